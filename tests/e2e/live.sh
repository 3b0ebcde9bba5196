#!/bin/sh
# A real Go server, the smallest there is; make live has more of them.
exec "$(dirname "$0")/../live/run" etcd
