#!/bin/sh
# Takes a small real profile; then a service and kiln serve, which scrapes it. At a terminal both run until Ctrl-C.
# Usage: tools/demo.sh KILN EXAMPLE SERVICE
set -eu
kiln=$1 example=$2 service=$3 profile=build/example.pb.gz demo=build/demo
pids=
stop() {
	trap - EXIT INT TERM
	# shellcheck disable=SC2086  # a list
	[ -z "$pids" ] || kill $pids 2>/dev/null || :
	wait
}
trap stop EXIT
trap 'exit 0' INT TERM

# The first port from $1 on that nobody listens at.
free_port() {
	port=$1
	while cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$(printf %04X "$port") [0:F]* 0A"; do
		port=$((port + 1))
	done
	echo "$port"
}
# Has the server stored something of the service?
is_scraped() { PPROF_TMPDIR=$demo/copies "$kiln" -proto -output=/dev/null "$url/api/1/merge?service=shop&type=$1" >/dev/null 2>&1; }

echo "Profiling $example ..."
"$example" "$profile"
echo "\$ $kiln -top $profile"
"$kiln" -top "$profile"

rm -rf "$demo"
mkdir -p "$demo"
at=localhost:$(free_port 8070)
KILN_PPROF_ADDR=$at KILN_MUTEX_FRACTION=1 KILN_BLOCK_RATE=10000 KILN_HEAP_RATE=65536 "$service" &
pids=$!
cat > "$demo/kiln.yaml" <<END
# kiln-serve(5) describes all of this.
data: $demo/data
listen: localhost:$(free_port 10100)
access-log: false
# Names and sources from this machine, where the service was built.
symbolize-local: true
source-path: "$PWD"
scrape:
  - job: shop
    interval: 5s
    profiles: {cpu: {seconds: 4}, heap: , goroutine: , mutex: , block: }
    labels: {version: demo}
    targets: ["$at"]
END
url=http://$(sed -n 's/^listen: //p' "$demo/kiln.yaml")
"$kiln" serve --config "$demo/kiln.yaml" 2>"$demo/log" &
pids="$pids $!"
echo
echo "Started $service, which profiles itself at http://$at/debug/pprof/,"
echo "and kiln serve, which takes its profiles every 5 s. The first ones come ..."
i=0
until is_scraped heap && is_scraped cpu; do
	i=$((i + 1))
	if [ $i -gt 100 ]; then
		cat "$demo/log" >&2
		echo "nothing has been scraped" >&2
		exit 1
	fi
	sleep 0.3
done
cat <<END

  $url

Now try, in another terminal:
  $kiln -http=localhost: '$url/api/1/merge?service=shop&type=cpu'
  curl -X POST '$url/api/1/capture?service=shop&seconds=10'
  $kiln -list=collatz $profile
END
[ -t 1 ] || exit 0
echo
echo "Both run until you type Ctrl-C; $demo/log and $demo/kiln.yaml are the server's."
wait
