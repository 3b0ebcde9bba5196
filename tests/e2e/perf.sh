#!/bin/sh
# perf.data that is recorded now: kiln must name the same functions, with the same shares of time, as
# perf report does. Skipped, with the reason, where perf is missing or may not record.
: "${KILN:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

skip() { echo "1..0 # SKIP $1"; exit 0; }
command -v perf >/dev/null || skip "perf is not installed (Debian: linux-perf)"
command -v gcc >/dev/null || skip "gcc is not installed"
perf record -N -q -e cpu-clock -g -o "$tmp/try" true >/dev/null 2>"$tmp/log" ||
	skip "perf may not record here: $(tr '\n' ' ' <"$tmp/log")"

check() {
	name=$1 n=$((n + 1))
	shift
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$tmp/log"
	fi
}

# "12.34 name" of the program's own functions that take 3% or more.
own() {
	nm "$tmp/$1" | awk '$2 ~ /[tT]/ { print $3 }' >"$tmp/own"
	awk 'NR == FNR { own[$1] = 1; next } $2 in own && $1 >= 3 { printf "%.2f %s\n", $1, $2 }' "$tmp/own" - |
		sort -k1,1nr -k2
}
kiln_flat() { "$KILN" -top -noinlines -nodefraction=0 "$2" | awk 'seen { print $2 + 0, $6 } /flat%/ { seen = 1 }' | own "$1"; }
kiln_cum() { "$KILN" -top -noinlines -nodefraction=0 "$2" | awk 'seen { print $5 + 0, $6 } /flat%/ { seen = 1 }' | own "$1"; }
perf_report() { perf report --stdio --no-inline -g none -i "$@" 2>/dev/null | grep -v '^#'; }
perf_flat() { perf_report "$2" --no-children -F overhead,sym | awk '{ print $1 + 0, $3 }' | own "$1"; }
perf_cum() { perf_report "$2" --children -F overhead_children,sym | awk '{ print $1 + 0, $3 }' | own "$1"; }
same() {
	"kiln_$1" "$2" "$3" >"$tmp/kiln" && "perf_$1" "$2" "$3" >"$tmp/perf" &&
		[ "$(wc -l <"$tmp/perf")" -ge 2 ] && diff "$tmp/perf" "$tmp/kiln"
}
from_pipe() { "$KILN" -top /dev/stdin <"$tmp/fp.data" | grep -q ' spin$'; }
from_script() {
	perf script -i "$tmp/fp.data" 2>/dev/null >"$tmp/fp.txt" && "$KILN" -top -noinlines -nodefraction=0 "$tmp/fp.txt" |
		awk 'seen { print $2 + 0, $6 } /flat%/ { seen = 1 }' | own fp >"$tmp/kiln" &&
		perf_flat fp "$tmp/fp.data" >"$tmp/perf" && diff "$tmp/perf" "$tmp/kiln"
}
# Packed by perf, and written to a pipe: there is nothing to compare with, but the hot functions are.
packed() {
	perf record -N -q -F 997 -e cpu-clock:u -z -o - "$tmp/fp" >"$tmp/z.data" 2>/dev/null &&
		"$KILN" -top "$tmp/z.data" | awk '$6 == "spin" || $6 == "turn" { n++ } END { exit n != 2 }'
}
cut_short() {
	head -c 5000 "$tmp/dwarf.data" >"$tmp/cut.data"
	! "$KILN" -top "$tmp/cut.data" 2>"$tmp/err" && grep -q 'cut.data: perf.data:.*offset' "$tmp/err"
}

source=tests/perf/live.c
gcc -g -O1 -fno-omit-frame-pointer -o "$tmp/fp" $source && gcc -g -O2 -fomit-frame-pointer -o "$tmp/dwarf" $source || exit 1
perf record -N -q -F 997 -e cpu-clock:u --call-graph fp -o "$tmp/fp.data" "$tmp/fp" >/dev/null 2>&1
perf record -N -q -F 997 -e cpu-clock:u --call-graph dwarf,8192 -o "$tmp/dwarf.data" "$tmp/dwarf" >/dev/null 2>&1

check "frame pointers: flat as in perf report" same flat fp "$tmp/fp.data"
check "frame pointers: cumulative as in perf report" same cum fp "$tmp/fp.data"
check "saved stacks: flat as in perf report" same flat dwarf "$tmp/dwarf.data"
check "saved stacks: cumulative as in perf report" same cum dwarf "$tmp/dwarf.data"
check "perf script: flat as in perf report" from_script
check "perf.data from standard input" from_pipe
check "compressed records from a pipe" packed
check "a file that is cut short is an error" cut_short
echo "1..$n"
