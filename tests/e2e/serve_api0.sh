#!/bin/sh
# profefe's API: its parameters, JSON and errors, and what a server must know of pprof.
exec python3 -B "$(dirname "$0")/serve_api0.py"
