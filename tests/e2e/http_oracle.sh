#!/bin/sh
# What the web page's server answers is what the command line prints: all profiles that there are here.
here=$(dirname "$0")
every=5
[ "${BUILD:-release}" = release ] || every=20
exec python3 -B "$here/http_oracle.py" --every=$every "$DATA" "$here/../recorded/profiles"
