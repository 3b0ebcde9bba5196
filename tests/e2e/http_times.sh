#!/bin/sh
# Samples that have times: a part of the time, the heat map, and stacks over time.
exec python3 -B "$(dirname "$0")/http_times.py"
