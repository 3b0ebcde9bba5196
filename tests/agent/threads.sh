#!/bin/sh
# Threads: all are found where they are, and none is changed by being watched.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export HOME="$tmp" PPROF_TMPDIR="$tmp"

# check NAME COMMAND...: the command must succeed.
check() {
	name=$1 n=$((n + 1))
	shift
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$tmp/log"
	fi
}
# build NAME [AGENT]
build() {
	${CC:-gcc} -g -O2 -pthread -I"$here/../../include" -o "$1" "$here/$1.c" $2
}
agent() {
	timeout -k 1 20 env LD_PRELOAD="$AGENT" "$@"
}

# thread NAME PATTERN: what the dump has of that thread (tags, then its frames).
thread() {
	awk -v want="$1" -v RS='-----------[+]-*\n' '$0 ~ "thread: *" want "\n"' traces | tee found
	grep -Eq "$2" found
}

build threads_kinds "$AGENT" && build threads_ends || { echo "1..0 # no compiler"; exit 1; }

check 'all threads are asked' agent ./threads_kinds threads.pb.gz
"$KILN" -traces threads.pb.gz >traces 2>/dev/null
check 'a thread is found in its function' thread posix 'posix_thread'
check 'with what it calls' thread posix 'wait_in_pause'
check 'with its labels' thread posix 'work: *posix'
check 'waiting' thread posix 'state: *waiting'
check 'one with a stack of 16 KB' thread small 'posix_thread'
check 'one that works' thread busy 'busy_thread'
check 'is running' thread busy 'state: *running'
check 'one made by thrd_create' thread c11 'c11_thread'
check 'one that blocks all signals is listed' thread deaf 'state: *not responding'
check 'one made by clone' grep -q raw_thread traces
check 'the main thread, which asks' thread threads_kinds 'main'
check 'no thread is missing' test "$("$KILN" -raw threads.pb.gz 2>/dev/null | grep -c 'tid:')" = 7
check 'sample type' sh -c "'$KILN' -raw threads.pb.gz | grep -q 'goroutine/count'"

# In the tests many threads are 500, so that it takes no time. The limit is far above what it takes.
check '500 threads' agent ./threads_kinds many.pb.gz 500
cp log took
check 'soon' awk '{ soon = $4 < 500 } END { exit !soon }' took
check 'all of them' test "$("$KILN" -raw many.pb.gz 2>/dev/null | grep -c 'thread:\[many\]')" = 500

for kind in return exit cancel destructor attributes failure detached fork main; do
	check "a thread that ends: $kind" agent KILN_PPROF_ADDR=unix:"$tmp/socket" ./threads_ends $kind
	check "the same without: $kind" ./threads_ends $kind
done
echo "1..$n"
