#!/bin/sh
# Names that come later: debug info of kiln serve.
exec python3 -B "$(dirname "$0")/serve_debuginfo.py"
