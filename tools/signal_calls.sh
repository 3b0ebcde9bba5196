#!/bin/sh
# Does what runs in signal handlers call only what tools/signal_calls.txt allows? Takes signal.o.
set -e
allowed=$(sed 's/ *#.*//' "$(dirname "$0")/signal_calls.txt" | grep -v '^$')
found=$(nm -u "$1" | awk '{ print $2 }')
[ "$found" ] || { echo "signal_calls: nothing found in $1" >&2; exit 1; }
bad=
for name in $found; do
	echo "$allowed" | grep -qx "$name" || bad="$bad $name"
done
[ ! "$bad" ] || { echo "signal.c calls, from signal handlers:$bad" >&2; exit 1; }
