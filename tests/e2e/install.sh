#!/bin/sh
# make install puts everything below DESTDIR, and what it installs runs.
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL BUILD
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT

check() {
	name=$1 n=$((n + 1))
	shift
	"$@" >"$tmp/log" 2>&1 && echo "ok $n - $name" || { echo "not ok $n - $name"; sed 's/^/# /' "$tmp/log"; }
}
check "make install" make install PREFIX=/opt DESTDIR="$tmp" PPROF=1
check "kiln runs" "$tmp/opt/bin/kiln" -top "${DATA:?}/worked_a.pb"
check "so does pprof" "$tmp/opt/bin/pprof" -top "$DATA/worked_a.pb"
check "completion" test -s "$tmp/opt/share/bash-completion/completions/kiln"
echo "1..$n"
