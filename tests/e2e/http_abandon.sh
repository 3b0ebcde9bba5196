#!/bin/sh
# The web page's server works for nobody who has gone away.
exec python3 -B "$(dirname "$0")/http_abandon.py"
