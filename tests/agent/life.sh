#!/bin/bash
# However a program ends, it ends as it would without the agent, and its profile is there.
# shellcheck source=tests/agent/lib/life.sh
. "$(dirname "$0")/lib/life.sh"

# ends STATUS SETTING HOW [BEFORE...]: with that status, and a whole profile of it
ends() {
	local want=$1 setting=$2
	shift 2
	rm -rf out && mkdir out
	agent "$setting=out/p" ./ends "$@"
	local status=$?
	[ $status = "$want" ] || { echo "status $status"; return 1; }
	for _ in $(seq 50); do # daemons end later
		[ -e out/p ] && break
		sleep 0.1
	done
	ls -A out
	has_work out/p && [ -z "$(find out -name '.kiln*')" ]
}

# With and without a thread of the agent's.
for setting in KILN_CPU_PROFILE KILN_HEAP_PROFILE; do
	for how in return _exit quick_exit thread; do
		check "$setting: $how" ends 3 $setting $how
	done
	check "$setting: the main thread leaves by pthread_exit" ends 0 $setting pthread_exit
	check "$setting: SIGTERM without a handler" ends 143 $setting term
	check "$setting: SIGTERM with a handler that raises it again" ends 143 $setting term again
	check "$setting: after fork" ends 3 $setting exit fork
	check "$setting: after all files were closed" ends 3 $setting exit closeall
	check "$setting: daemon" ends 0 $setting exit daemon
done
check "_Exit" ends 3 KILN_HEAP_PROFILE _Exit
check "SIGINT without a handler" ends 130 KILN_HEAP_PROFILE int
check "SIGTERM with a handler that exits" ends 7 KILN_CPU_PROFILE term handler
check "SIGTERM is ignored" ends 3 KILN_CPU_PROFILE term ignore
check "the program sees its own actions of signals" ends 3 KILN_CPU_PROFILE exit inherited default
check "in another directory" ends 3 KILN_CPU_PROFILE exit chdir
[ "$(id -u)" != 0 ] || check "in another root" ends 3 KILN_CPU_PROFILE exit chroot

# A program that no file has any more.
from_memory() {
	rm -rf out && mkdir out
	agent KILN_EXE=ends KILN_CPU_PROFILE=out/p python3 -c 'import os
fd = os.memfd_create("ends")
os.write(fd, open("ends", "rb").read())
os.execv("/proc/self/fd/%d" % fd, ["ends", "exit"])'
	[ $? = 3 ] && ls -A out && has_work "$(find out -name 'p*')"
}
check "a program in memory only (memfd)" from_memory

read_only() {
	mkdir -p fixed && mount -t tmpfs -o ro none fixed || return
	agent KILN_CPU_PROFILE=fixed/p ./ends exit
	local status=$?
	umount fixed
	[ $status = 3 ] && grep -q 'Read-only file system' "$tmp/log"
}
[ "$(id -u)" != 0 ] || check "a file system that is read-only is told" read_only

# pids MAX: a control group of that size, in $group, if there may be one
pids() {
	for root in /sys/fs/cgroup/pids /sys/fs/cgroup; do
		group=$root/kiln-test-$$
		mkdir "$group" 2>/dev/null && echo "$1" >"$group/pids.max" && return
		rmdir "$group"
	done
	return 1
} 2>/dev/null
no_more_threads() {
	(echo "$BASHPID" >"$group/cgroup.procs" && export LD_PRELOAD="$AGENT" KILN_CPU_PROFILE=few.p && exec ./ends exit)
	[ $? = 3 ] && grep -q "cannot start the agent's thread" "$tmp/log"
}
if pids 1; then
	check "a control group without room for our thread" no_more_threads
	rmdir "$group"
else
	n=$((n + 1))
	echo "ok $n - a control group without room for our thread # SKIP none can be made here"
fi

no_file_after_abort() {
	rm -rf out && mkdir out
	agent KILN_CPU_PROFILE=out/p ./ends abort
	[ $? = 134 ] && [ -z "$(ls -A out)" ]
}
check "abort leaves nothing" no_file_after_abort

# What the program starts has names of its own; forks write nothing.
names() {
	rm -rf out && mkdir out
	agent KILN_HEAP_PROFILE=out/p "$@" ./ends exit fork spawn
	find out -name 'p*' | sed 's/\.[0-9]*$/.PID/' | sort | uniq -c | tr -s ' \n' ' '
}
check "children that exec have FILE.PID, those that do not have none" \
	test "$(names KILN_VERBOSE=0)" = " 1 out/p 2 out/p.PID "
check "KILN_EXE: only the program of that name" test "$(names KILN_EXE='en*')" = " 1 out/p "
check "KILN_EXE: another program" test "$(names KILN_EXE=other)" = ""

follow() {
	rm -rf out && mkdir out
	agent KILN_FOLLOW_FORK=1 KILN_HEAP_PROFILE=out/p ./ends exit fork
	[ "$(find out -name 'p.*' | wc -l)" = 2 ] && has_work out/p
}
check "KILN_FOLLOW_FORK: children of fork have files" follow

session() {
	rm -rf out && mkdir out
	agent KILN_HEAP_PROFILE=out/p ./ends exit session
	for _ in $(seq 50); do
		[ -n "$(find out -name 'p.*')" ] && break
		sleep 0.1
	done
	has_work "$(find out -name 'p.*')"
}
check "a daemon made by hand has FILE.PID" session

says() {
	local want=$1
	shift
	agent "$@" ./ends exit 2>&1 | tee /dev/stderr | grep -q -- "$want"
}
check "a wrong number is told" says 'KILN_EVERY=often is not a whole number' KILN_EVERY=often
check "a wrong signal is told" says 'KILN_TOGGLE_SIGNAL=HELLO is not a signal' KILN_TOGGLE_SIGNAL=HELLO
check "an unknown setting is told" says 'KILN_CPUPROFILE is set' KILN_CPUPROFILE=x
check "a folder that is not there is told" says 'No such file or directory' KILN_CPU_PROFILE=nowhere/p
quiet() {
	agent ./ends exit 2>&1 | wc -c | grep -qx 0
}
check "without settings it is quiet" quiet

sanitizer() {
	${CC:-gcc} -g -O1 -fsanitize="$1" -pthread -o san "$here/ends.c" 2>/dev/null || return 0
	ASAN_OPTIONS=detect_leaks=0 agent KILN_CPU_PROFILE=san.pb.gz ./san exit fork >san.log 2>&1
	local status=$?
	cat san.log
	[ $status = 3 ] && grep -q 'Sanitizer, so nothing is profiled' san.log && [ ! -e san.pb.gz ]
}
check "AddressSanitizer: the program runs" sanitizer address
check "ThreadSanitizer: the program runs" sanitizer thread
echo "1..$n"
