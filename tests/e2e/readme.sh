#!/bin/bash
# Every line of the README that starts with "$ " works as it is printed.
if [ "${BUILD:-release}" != release ]; then
	echo "1..0 # SKIP the README is about the release build"
	exit
fi
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL BUILD KILN DATA
log=$(mktemp) n=0
trap 'rm -f "$log"' EXIT

while read -r line; do
	n=$((n + 1))
	if bash -o pipefail -c "$line" >"$log" 2>&1; then
		echo "ok $n - $line"
	else
		echo "not ok $n - $line"
		tail -20 "$log" | sed 's/^/# /'
	fi
done < <(sed -n 's/^ *\$ //p' README.md)

n=$((n + 1))
if build/kiln -top build/example.pb.gz | grep -q ' fibonacci$'; then
	echo "ok $n - make run has taken a profile of its example"
else
	echo "not ok $n - make run has taken a profile of its example"
fi
echo "1..$n"
