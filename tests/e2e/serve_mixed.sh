#!/bin/sh
# Targets of kiln serve that push different values as one type.
exec python3 -B "$(dirname "$0")/serve_mixed.py"
