#!/bin/sh
# make install puts everything below DESTDIR, and what it installs runs.
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL BUILD
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT

check() {
	name=$1 n=$((n + 1))
	shift
	"$@" >"$tmp/log" 2>&1 && echo "ok $n - $name" || { echo "not ok $n - $name"; sed 's/^/# /' "$tmp/log"; }
}
check "make install" make install PREFIX=/opt DESTDIR="$tmp" PPROF=1
check "kiln runs" "$tmp/opt/bin/kiln" -top "${DATA:?}/worked_a.pb"
check "so does pprof" "$tmp/opt/bin/pprof" -top "$DATA/worked_a.pb"
check "the kubectl plugin" "$tmp/opt/bin/kubectl-kiln" get --help
check "under its other name, and the collector" sh -c "'$tmp/opt/bin/kubectl-profefe' --help && '$tmp/opt/bin/kprofefe' --help"
check "manual of the plugin" grep -q -- '--output-dir' "$tmp/opt/share/man/man1/kubectl-kiln.1"
check "manual of annotations" grep -q auth-secret "$tmp/opt/share/man/man1/kiln-collect.1"
check "completion" test -s "$tmp/opt/share/bash-completion/completions/kiln"
check "completion knows record" grep -q record "$tmp/opt/share/bash-completion/completions/kiln"
check "manual of the agent" grep -q KILN_PPROF_ADDR "$tmp/opt/share/man/man7/kiln-agent.7"
check "manual of the API" grep -q 'GET /api/1/merge' "$tmp/opt/share/man/man7/kiln-api.7"
every_setting() {
	for variable in $(grep -o 'KILN_[A-Z_]*"' src/agent/settings.def | tr -d '"'); do
		tr -d '\\' <"$tmp/opt/share/man/man7/kiln-agent.7" | grep -q "^fB${variable}fR$" || {
			echo "$variable is missing"
			return 1
		}
	done
}
check "manual has every setting" every_setting
check "kiln record finds its library" "$tmp/opt/bin/kiln" record --cpu "$tmp/cpu.pb.gz" -- sort README.md

# The examples, built as a user would.
export PKG_CONFIG_PATH="$tmp/opt/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp" LD_LIBRARY_PATH="$tmp/opt/lib"
# shellcheck disable=SC2046  # lists of flags
check "the example in C" gcc -g -O2 -Wall -Wextra -Werror -o "$tmp/primes" examples/primes.c \
	$(pkg-config --cflags --libs kiln) -pthread
# shellcheck disable=SC2046
check "the service" gcc -g -O2 -Wall -Wextra -Werror -o "$tmp/shop" examples/shop.c $(pkg-config --cflags --libs kiln) -pthread
# shellcheck disable=SC2046
check "the example in C++" g++ -g -O2 -Wall -Wextra -Werror -o "$tmp/words" examples/words.cc \
	$(pkg-config --cflags --libs kiln)
check "runs" "$tmp/words" "$tmp/cpu.pb.gz" "$tmp/heap.pb.gz" README.md
check "its heap profile is read" "$tmp/opt/bin/kiln" -top "$tmp/heap.pb.gz"
serves() {
	timeout -s KILL 20 "$tmp/primes" 0 "unix:$tmp/socket" &
	primes=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ -S "$tmp/socket" ] && break
		sleep 0.3
	done
	python3 - "$tmp/socket" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"GET /debug/pprof/ HTTP/1.0\r\n\r\n")
text = b""
while (part := s.recv(65536)):
    text += part
sys.exit(b"connections" not in text)
END
	failed=$?
	kill $primes
	return $failed
}
check "the server serves profiles of its own" serves
linked_in() {
	gcc -g -O2 -I"$tmp/opt/include" -o "$tmp/static" tests/agent/ends.c "$tmp/opt/lib/libkiln.a" -pthread &&
		! KILN_CPU_PROFILE="$tmp/linked.pb.gz" "$tmp/static" exit &&
		"$tmp/opt/bin/kiln" -top "$tmp/linked.pb.gz" | grep -q ' work$'
}
check "libkiln.a, linked in" linked_in
echo "1..$n"
