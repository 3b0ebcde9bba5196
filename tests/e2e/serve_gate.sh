#!/bin/sh
# Hostile clients of kiln serve, and those who are not who they should be.
ulimit -n "$(ulimit -Hn)"
exec python3 -B "$(dirname "$0")/serve_gate.py"
