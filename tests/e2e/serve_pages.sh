#!/bin/sh
# The pages of kiln serve, and what is behind them.
exec python3 -B "$(dirname "$0")/serve_pages.py"
