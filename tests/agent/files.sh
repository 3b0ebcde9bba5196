#!/bin/bash
# Files: names, times, signals, and places where they cannot be written.
# shellcheck source=tests/agent/lib/life.sh
. "$(dirname "$0")/lib/life.sh"

# wait_for COMMAND...: up to 10 seconds, until it succeeds
wait_for() {
	for _ in $(seq 100); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

pid_in_name() {
	agent KILN_HEAP_PROFILE=heap.%p.%%.gz ./ends exit pid >pid
	has_work "heap.$(cat pid).%.gz"
}
check "%p is the process id, %% a per cent sign" pid_in_name

all_at_once() {
	agent KILN_CPU_PROFILE=cpu KILN_HEAP_PROFILE=heap KILN_ALLOCS_PROFILE=allocs KILN_MUTEX_PROFILE=mutex \
		KILN_BLOCK_PROFILE=block KILN_WALL_PROFILE=wall KILN_TRACE=trace ./ends exit
	has_work cpu && has_work heap && has_work allocs && has_work wall &&
		"$KILN" -raw mutex && "$KILN" -raw block && python3 -c 'import json; json.load(open("trace"))'
}
check "all kinds in one run" all_at_once

old_is_replaced() {
	echo old >old && chmod 600 old
	agent KILN_HEAP_PROFILE=old ./ends exit
	has_work old
}
check "an old file is replaced" old_is_replaced

devices_are_kept() {
	ln -s /dev/null null
	agent KILN_HEAP_PROFILE=null ./ends exit
	[ $? = 3 ] && [ -L null ] && [ -c /dev/null ]
}
check "a device is written to, not replaced" devices_are_kept

full() {
	agent KILN_HEAP_PROFILE=/dev/full ./ends exit >full.log 2>&1
	[ $? = 3 ] && [ -c /dev/full ] && grep -q 'No space left' full.log
}
check "a full disk is told" full

# background SETTING...: the program goes on until it is killed; its id is in $program.
background() {
	env LD_PRELOAD="$AGENT" "$@" ./ends pause &
	program=$!
}
stop() {
	kill -"$1" "$program"
	wait "$program" 2>/dev/null
}

every() {
	background KILN_EVERY=1 KILN_CPU_PROFILE=every.cpu KILN_HEAP_PROFILE=every.heap
	wait_for has_work every.cpu && wait_for has_work every.heap
	local status=$?
	stop KILL
	return $status
}
check "KILN_EVERY: files are there before SIGKILL" every

seconds() {
	background KILN_SECONDS=1 KILN_CPU_PROFILE=seconds.cpu
	wait_for has_work seconds.cpu
	local status=$?
	rm -f seconds.cpu
	stop TERM
	[ $status = 0 ] && [ ! -e seconds.cpu ]
}
check "KILN_SECONDS: written once, early" seconds

toggle() {
	background KILN_TOGGLE_SIGNAL=SIGUSR2 KILN_CPU_PROFILE=toggle
	sleep 1
	kill -USR2 "$program"
	sleep 0.5
	kill -USR2 "$program"
	wait_for test -e toggle.1
	local status=$?
	kill -USR2 "$program"
	sleep 0.3
	stop TERM
	[ $status = 0 ] && "$KILN" -raw toggle.1 && "$KILN" -raw toggle.2 && [ ! -e toggle ]
}
check "KILN_TOGGLE_SIGNAL: between two signals" toggle

unprivileged() {
	mkdir -m 755 readonly
	chmod 755 "$tmp"
	setpriv --reuid=65534 --regid=65534 --clear-groups timeout -s KILL 20 env LD_PRELOAD="$AGENT" \
		KILN_HEAP_PROFILE=readonly/p ./ends exit >readonly.log 2>&1
	[ $? = 3 ] && grep -q 'Permission denied' readonly.log
}
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$AGENT"; then
	check "a folder that may not be written is told" unprivileged
fi
echo "1..$n"
