#!/bin/sh
# Sources and instructions in the pages of kiln serve.
exec python3 -B "$(dirname "$0")/serve_source.py"
