#!/bin/sh
# kiln serve: how it starts, is told what to do, says what it does, and ends.
exec python3 -B "$(dirname "$0")/serve.py"
