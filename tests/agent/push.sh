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
	agent KILN_PUSH_URL="http://127.0.0.1:$(cat silent)" ./ends exit 2>said
	status=$?
	kill $server
	cat said
	[ $status = 3 ] && [ $((SECONDS - begin)) -le 9 ] && grep -q 'KILN_PUSH_URL=.*timed out' said
}
check "a server that never answers: waited for five seconds, and told" silent

says() {
	agent KILN_PUSH_URL="$1" ./ends exit 2>&1 | grep -q "$2"
}
check "https is refused, with what to do" says https://x 'no TLS; send to a collector'
check "what is no URL is told" says localhost:80 'is not a URL such as'

# ---- a server that wants to know who sends

printf 'write secret-token-of-agents agents\nread,write secret-token-of-both both\n' >tokens
echo "ann:$(openssl passwd -6 -salt abcdefgh 'open:@/sesame%'):write" >users
"$KILN" serve --data data --listen 127.0.0.1:0 --tokens tokens --users users 2>served &
server=$!
for _ in $(seq 100); do
	at=$(grep -o '127\.0\.0\.1:[0-9]*' served | head -1)
	[ -n "$at" ] && break
	sleep 0.1
done
stored=0

# taken SETTING...: the server has two more profiles, and nobody has said a secret
taken() {
	agent KILN_SERVICE=known "$@" ./ends exit 2>&1 | tee said
	local found
	found=$(curl -s -H 'Authorization: Bearer secret-token-of-both' \
		"http://$at/api/0/profiles?service=known&from=2000-01-01T00:00:00&to=2100-01-01T00:00:00" | grep -o '"type":"[a-z]*"' | wc -l)
	echo "$found profiles, before $stored"
	[ "$found" -ge $((stored + 2)) ] && stored=$found && ! grep . said
}
echo ' secret-token-of-agents' >token
check "a token" taken KILN_PUSH_URL="http://$at" KILN_PUSH_TOKEN=secret-token-of-agents
check "a token in a file" taken KILN_PUSH_URL="http://$at" KILN_PUSH_TOKEN_FILE=token
check "a token as a password" taken KILN_PUSH_URL="http://x:secret-token-of-agents@$at"
check "a user and a password with all that must be escaped" taken KILN_PUSH_URL="http://ann:open%3A%40%2fsesame%25@$at/"

# told WHAT SETTING...: that is said, without a word of the secret
told() {
	local what=$1
	shift
	agent "$@" ./ends exit >said 2>&1
	cat said
	grep -q "$what" said && ! grep -q 'secret\|sesame' said
}
check "without a token: told what to set" told 'status 401 (it wants to know who sends: set KILN_PUSH_TOKEN' KILN_PUSH_URL="http://$at"
check "a wrong one is told" told 'status 401 (what KILN_PUSH_TOKEN' KILN_PUSH_URL="http://x:secret@$at"
check "a token with a blank" told 'KILN_PUSH_TOKEN is not a token' KILN_PUSH_URL="http://$at" KILN_PUSH_TOKEN='secret token'
check "a file that is not there" told 'KILN_PUSH_TOKEN_FILE=none: No such file' KILN_PUSH_URL="http://$at" KILN_PUSH_TOKEN_FILE=none
check "an empty file" told 'there is no token in it' KILN_PUSH_URL="http://$at" KILN_PUSH_TOKEN_FILE=/dev/null
check "no secrets in what is said of a URL: https" told 'no TLS' KILN_PUSH_URL="https://x:secret@$at"
check "no secrets in what is said of a URL: broken" told 'is not a URL' KILN_PUSH_URL="http://x:secret%zz@$at"
check "no secrets in what is said of a URL: a slash in it" told 'is not a URL' KILN_PUSH_URL="http://x:se/secret@$at"
check "no secrets in what is said of a URL: no server" told 'Connection refused' KILN_PUSH_URL="http://x:secret@127.0.0.1:1"
kill $server
wait $server
echo "1..$n"
