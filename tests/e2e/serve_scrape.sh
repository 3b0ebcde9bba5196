#!/bin/sh
# kiln serve takes profiles of targets, good ones and bad ones.
exec python3 -B "$(dirname "$0")/serve_scrape.py"
