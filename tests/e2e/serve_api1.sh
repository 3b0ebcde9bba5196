#!/bin/sh
# /api/1/ of kiln serve.
exec python3 -B "$(dirname "$0")/serve_api1.py"
