#!/bin/sh
# Labels: the program that uses them checks them; then the profile that it wrote has them.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
${CC:-gcc} -g -O2 -pthread -I"$here/../../include" -o test "$here/labels.c" "$AGENT" || exit 1
timeout -k 1 60 env LD_PRELOAD="$AGENT" ./test profile.pb.gz | sed '/^1\.\./d' >log
cat log
n=$(wc -l <log)
for label in a:.1. b:.2.; do
	n=$((n + 1))
	if "$KILN" -raw profile.pb.gz 2>/dev/null | grep -q "$label"; then
		echo "ok $n - $label is in the profile"
	else
		echo "not ok $n - $label is in the profile"
	fi
done
echo "1..$n"
