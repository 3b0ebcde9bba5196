#!/bin/sh
# The web page's server.
exec python3 -B "$(dirname "$0")/httpd.py"
