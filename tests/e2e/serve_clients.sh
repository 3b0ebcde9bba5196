#!/bin/sh
# Real clients of a profefe server: an agent in Go, kprofefe, go tool pprof, curl.
if ! command -v go >/dev/null; then
	echo "1..0 # SKIP no go (Debian: golang-go)"
	exit 0
fi
exec python3 -B "$(dirname "$0")/serve_clients.py"
