#!/bin/bash
# KILN_PUSH_URL: what a server gets, and what a program notices of one that does not answer.
# shellcheck source=tests/agent/lib/life.sh
. "$(dirname "$0")/lib/life.sh"

# collect [STATUS]: starts a server; its port is in $port, what it got in requests
collect() {
	python3 "$here/lib/collector.py" "$@" >requests &
	collector=$!
	for _ in $(seq 100); do
		port=$(head -1 requests)
		[ -n "$port" ] && return
		sleep 0.1
	done
}
end_collect() {
	kill "$collector"
	wait "$collector" 2>/dev/null
}

collect
short_lived() {
	agent KILN_PUSH_URL=http://127.0.0.1:$port/ KILN_SERVICE='a b' KILN_LABELS=region=eu,v=7 ./ends "$@"
}
check "a program that ends soon" test "$(short_lived exit; echo $?)" = 3
check "cpu was sent" grep -Eq '^/api/0/profiles instance_id=.+ labels=region=eu,v=7 service=a b type=cpu$' requests
check "heap was sent" grep -q 'type=heap$' requests
check "the CPU profile is whole" has_work pushed.1.cpu.pb.gz
check "the heap profile is whole" has_work pushed.2.heap.pb.gz
check "once each" test "$(grep -c type=heap requests)" = 1
check "one that is ended by SIGTERM" test "$(short_lived term 2>/dev/null; echo $?)" = 143
check "sent as well" test "$(grep -c type=heap requests)" = 2
end_collect

collect 400
refused() {
	short_lived exit 2>&1 | grep -q 'cpu is not taken, status 400'
}
check "a refusal is told" refused
check "and not repeated" test "$(grep -c type=cpu requests)" = 1
end_collect

dead() {
	agent KILN_PUSH_URL=http://127.0.0.1:1 ./ends exit >dead.log 2>&1
	[ $? = 3 ] && [ "$(grep -c 'Connection refused' dead.log)" = 1 ]
}
check "no server: told once, the program ends as ever" dead

# Takes connections and never answers.
silent() {
	python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); time.sleep(60)' >silent &
	local server=$! begin=$SECONDS status
	until [ -s silent ]; do sleep 0.1; done
	agent KILN_PUSH_URL="http://127.0.0.1:$(cat silent)" ./ends exit
	status=$?
	kill $server
	[ $status = 3 ] && [ $((SECONDS - begin)) -le 9 ]
}
check "a server that never answers: waited for five seconds" silent

says() {
	agent KILN_PUSH_URL="$1" ./ends exit 2>&1 | grep -q "$2"
}
check "https is refused, with what to do" says https://x 'no TLS; send to a collector'
check "what is no URL is told" says localhost:80 'is not a URL such as'
echo "1..$n"
