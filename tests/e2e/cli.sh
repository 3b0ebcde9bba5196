#!/bin/sh
# The program as a program: names it is started under, files it writes, errors it ends with.
: "${KILN:?}" "${DATA:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$DATA" || exit 1

# check NAME COMMAND...: the command must succeed.
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
same() { "$KILN" "$@" >"$tmp/a" && "$tmp/pprof" "$@" >"$tmp/b" && cmp "$tmp/a" "$tmp/b"; }
fails_with() {
	text=$1
	shift
	"$KILN" "$@" >"$tmp/out" 2>"$tmp/err"
	[ $? = 2 ] && grep -q -- "$text" "$tmp/err" || { cat "$tmp/err"; return 1; }
}
from_pipe() { "$KILN" -top /dev/stdin <heap.pb.gz | grep -q shop/cart.grow; }
to_file() { "$KILN" -proto -output="$tmp/o.gz" worked_a.pb && "$KILN" -top "$tmp/o.gz" | grep -q rec; }
folded_again() {
	"$KILN" -folded -sample_index=samples worked_a.pb >"$tmp/stacks" && "$KILN" -top "$tmp/stacks" | grep -q rec
}
to_closed_pipe() { "$KILN" -raw many_labels.pb | head -1 | grep -q PeriodType; }
full_disk() { ! "$KILN" -raw many_labels.pb >/dev/full; }
merged_is_sum() {
	"$KILN" -raw -sample_index=samples worked_a.pb worked_a.pb | grep -q '^ *80 *800000000: 5 5 5 2'
}
# A source that takes its time, read at a terminal.
progress() {
	mkfifo "$tmp/slow"
	{ sleep 1.5; cat worked_a.pb; } >"$tmp/slow" &
	script -qec "$KILN -top $tmp/slow" /dev/null </dev/null >"$tmp/screen"
	grep -q 'reading: 0 of 1 sources' "$tmp/screen" && grep -q rec "$tmp/screen"
}

ln -s "$KILN" "$tmp/pprof"
check "started as pprof it is the same" same -top worked_a.pb
check "reads a pipe" from_pipe
check "writes a profile that can be read again" to_file
check "writes folded stacks that can be read again" folded_again
check "a closed pipe is no disaster" to_closed_pipe
check "a full disk is an error" full_disk
check "equal stacks of two profiles are summed" merged_is_sum
check "a missing file is named" fails_with nosuch.pb -top nosuch.pb
check "a broken file is named" fails_with "$tmp/pprof" -top "$tmp/pprof"
check "an unknown flag is named" fails_with nosuchflag -nosuchflag worked_a.pb
check "a slow source shows progress" progress
check "help lists what pprof does not have" sh -c "$KILN help | grep -q -- -folded"
echo "1..$n"
