#!/bin/sh
# kiln collect of targets that are no pods, and what kubectl kiln asks a server.
exec python3 -B "$(dirname "$0")/serve_collect.py"
