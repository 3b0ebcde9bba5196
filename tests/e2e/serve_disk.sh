#!/bin/sh
# How much room the store takes: the limit of its folder, and of the disk.
exec python3 -B "$(dirname "$0")/serve_disk.py"
