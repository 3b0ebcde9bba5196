#!/bin/sh
# Regressions of kiln serve, found, told and remembered.
exec python3 -B "$(dirname "$0")/serve_regressions.py"
