#!/bin/sh
# Profiles of the program: it checks the rules; then the profile that it wrote is read.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
${CC:-gcc} -g -O2 -pthread -I"$here/../../include" -o test "$here/custom.c" "$AGENT" || exit 1
timeout -k 1 60 env LD_PRELOAD="$AGENT" ./test profile.pb.gz | sed '/^1\.\./d' >log
cat log
n=$(wc -l <log)
# check NAME PATTERN
check() {
	n=$((n + 1))
	if grep -Eq "$2" report; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' report
	fi
}
"$KILN" -top -cum profile.pb.gz >report 2>/dev/null
check 'its type is its name' '^Type: test.files$'
check 'two of three were added here' '^ *2 .* open_file$'
check 'all by main' '^ *[0-2] .* 3 +100% +main$'
echo "1..$n"
