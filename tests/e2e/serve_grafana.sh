#!/bin/sh
# Queries of Grafana's Pyroscope data source to kiln serve.
exec python3 -B "$(dirname "$0")/serve_grafana.py"
