#!/bin/sh
# Rows, their sums and differences; then a profile of 10,000 of them is read by kiln and by Go.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp" PPROF_TMPDIR="$tmp"
out=$(dirname "$AGENT") objects=
[ -d "$out/src" ] || out=$out/release
for source in "$here"/../../src/agent/*.c; do
	case $source in */linked_*) continue ;; esac # of the archives alone
	objects="$objects $out/src/agent/$(basename "$source" .c).o"
done
cd "$tmp" || exit 1
${CC:-gcc} -g -O2 -D_GNU_SOURCE -pthread -I"$here/../../src" -I"$here/../../include" -o test "$here/record.c" $objects \
	-l:libdeflate.a -lm || exit 1
timeout 60 ./test big.pb.gz | sed '/^1\.\./d' >log
cat log
n=$(grep -Ec '^(not )?ok' log)
# check NAME WANT GOT
check() {
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		printf '%s\n' "$2" "$3" | sed 's/^/# /'
	fi
}
check 'kiln reads 10,000 samples' 10000 "$("$KILN" -raw big.pb.gz 2>/dev/null | grep -c 'bytes:\[')"
if command -v go >/dev/null; then
	go tool pprof -raw -symbolize=none big.pb.gz >go.txt 2>/dev/null
	check 'so does Go' 10000 "$(grep -c 'bytes:\[' go.txt)"
	check 'with its default type' 1 "$(grep -c '^things/count\[dflt\] space/bytes$' go.txt)"
	check 'and the program first' "$tmp/test" "$(sed -n 's/^1: 0x[^ ]* \([^ ]*\).*/\1/p' go.txt | tail -1)"
	check 'no mapping says that it has names' 0 "$(grep -c '\[FN\]' go.txt)"
	check 'though locations have' yes "$(grep -q ' M=[0-9]* *_IO_\|printf' go.txt && echo yes)"
fi
echo "1..$n"
