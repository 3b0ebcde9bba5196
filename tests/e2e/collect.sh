#!/bin/bash
# kiln fetch: rounds of profiles in dated folders.
. "$(dirname "$0")/server.bash"

fetch() { "$KILN" fetch --out rounds "$@" >out 2>err; }
saves_round() {
	fetch --seconds 1 --types cpu,heap "$url" name="http://$at/" || return 1
	folder=$(echo rounds/????-??-??-??:??:??)
	[ "$(ls "$folder" | sed 's/....-..-..-..:..:../TIME/' | tr '\n' ' ')" = \
		"127.0.0.1_$port-cpu-TIME.pb.gz 127.0.0.1_$port-heap-TIME.pb.gz name-cpu-TIME.pb.gz name-heap-TIME.pb.gz " ] &&
		cmp "$folder"/name-heap-* "$DATA/heap.pb.gz" && "$KILN" -top "$folder"/name-cpu-* | grep -q rec &&
		[ "$(grep -c "^$folder/" out)" = 4 ] && grep -qx 'saved 4 profiles in 1 round: 2 cpu, 2 heap; 0 failed' out
}
saves_rounds() {
	rm -rf rounds
	fetch --every 1s --for 2500ms --types heap,goroutine "$url" down=http://127.0.0.1:1 &&
		[ "$(ls -d rounds/* | wc -l)" = 3 ] && grep -q 'saved 6 profiles in 3 rounds: 3 heap, 3 goroutine; 6 failed' out &&
		grep -q '^  3 x down heap: http fetch: .*connection refused' out && [ "$(grep -c '^down ' err)" = 6 ]
}
# A round under way is finished, but not the next profile of it.
interrupted() {
	rm -rf rounds
	# A shell lets what it starts with & ignore SIGINT.
	env --default-signal=INT timeout --foreground 20 \
		"$KILN" fetch --out rounds --every 1h --seconds 1 --types cpu,heap "$url" >out 2>err &
	sleep 0.5
	kill -INT $!
	wait $! && grep -qx 'saved 1 profile in 1 round: 1 cpu, 0 heap; 0 failed' out
}
nothing() {
	rm -rf rounds
	fetch --types html "$url" x=http://127.0.0.1:1
	[ $? = 1 ] && grep -q 'html: server response: 404' err && [ ! -e rounds ]
}
no_profile() { ! fetch --types html page="$url/html" && grep -q 'page html: ' err && [ ! -e rounds ]; }
refuses() { # refuses TEXT ARGUMENTS...
	local text=$1
	shift
	fetch "$@"
	[ $? = 2 ] && grep -qF -- "$text" err
}

check "kiln fetch saves a round" saves_round
check "and several, with a target that is down" saves_rounds
check "until it is interrupted" interrupted
check "status 1 if there is nothing" nothing
check "what is no profile is not saved" no_profile
check "two targets of one name" refuses 'give one a name' a=h:1 a=h:2
check "a round too often" refuses 'at least a second' --every 10ms h:1
check "a time that is none" refuses '--every 3x: not a time' --every 3x h:1
check "--for alone" refuses '--for needs --every' --for 1h h:1
check "a type that leads elsewhere" refuses 'not a profile' --types ../x h:1
check "no target" refuses 'no target given'
check "its help" sh -c "$KILN fetch --help | grep -q -- '--every TIME'"
echo "1..$n"
