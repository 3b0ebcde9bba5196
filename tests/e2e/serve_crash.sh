#!/bin/sh
# kill -9 at any moment, and a full disk: what was acknowledged is there, and nothing else that is not whole.
# CRASHES=50 for more of them.
exec python3 -B "$(dirname "$0")/serve_crash.py"
