#!/bin/sh
# The web page's server.
exec python3 "$(dirname "$0")/httpd.py"
