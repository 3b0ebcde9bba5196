#!/bin/sh
# The stream that tells pages what is new.
exec python3 -B "$(dirname "$0")/serve_live.py"
