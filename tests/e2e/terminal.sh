#!/bin/sh
# The shell at a terminal.
exec python3 "$(dirname "$0")/terminal.py"
