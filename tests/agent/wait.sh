#!/bin/sh
# Waiting calls: nobody sees that its thread was asked for its stack.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
${CC:-gcc} -g -O2 -pthread -I"$here/../../include" -o test "$here/wait.c" "$AGENT" || exit 1
exec timeout -k 1 60 env LD_PRELOAD="$AGENT" ./test
