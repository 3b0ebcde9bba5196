#!/bin/sh
# Waiting calls: nobody sees that its thread was asked for its stack.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
${CC:-gcc} -g -O2 -pthread -I"$here/../../include" -o test "$here/wait.c" "$AGENT" || exit 1
exec env LD_PRELOAD="$AGENT" timeout 60 ./test
