#!/bin/bash
# Profiles from servers: good ones, busy ones, hostile ones.
. "$(dirname "$0")/server.bash"

# says TEXT ARGUMENTS...: fails, and says it.
says() {
	local text=$1
	shift
	"$KILN" "$@" >out 2>err
	[ $? = 2 ] && grep -qF -- "$text" err
}
top() { "$KILN" -top "$@" >out 2>err; }
shows() { # shows TEXT ARGUMENTS...
	local text=$1
	shift
	top "$@" && grep -q -- "$text" out
}
same_as_file() {
	top "$url/debug/pprof/heap" && "$KILN" -top "$DATA/heap.pb.gz" | cmp - out &&
		grep -qx "Fetching profile over HTTP from $url/debug/pprof/heap" err
}
saves_copies() {
	rm -rf copies
	top "$url/debug/pprof/profile" && top "$url/debug/pprof/profile" &&
		[ "$(grep -c '^Saved profile in ' err)" = 1 ] && [ "$(find copies -name 'pprof.*.002.pb.gz' | wc -l)" = 1 ] &&
		"$KILN" -top copies/*.002.pb.gz | cmp - out
}
saves_at_home() { env -u PPROF_TMPDIR "$KILN" -top "$url/debug/pprof/heap" >out 2>err && ls home/pprof/pprof.*.001.pb.gz; }
no_directory() {
	PPROF_TMPDIR=/dev/null/x top "$url/debug/pprof/heap" && grep -q '^Could not use temp dir /dev/null/x: mkdir /dev/null: not a directory' err &&
		grep -q "^Saved profile in $HOME/pprof/" err
}
with_seconds() {
	top -seconds=1 "$at/debug/pprof/profile?seconds=7&b=2&a=1" &&
		grep -qxF "Fetching profile over HTTP from $url/debug/pprof/profile?a=1&b=2&seconds=1" err &&
		grep -qxF 'Please wait... (1s)' err
}
bare_address() { top "$at" && grep -qxF "Fetching profile over HTTP from $url/debug/pprof/profile" err; }
# 100 servers of one second each, and a base, all at once.
at_once() {
	local start=$EPOCHSECONDS all=()
	for ((i = 0; i < 100; i++)); do all+=("$url/slow?seconds=1&i=$i"); done
	"$KILN" -raw -base="$url/slow?seconds=1" "${all[@]}" >out 2>err || return 1
	[ $((EPOCHSECONDS - start)) -lt 10 ] && grep -q '99' out
}
symbols() { shows at_0x3002 "$url/pprof/contention" && grep -q at_0x1000 out; }
no_symbols() { top -symbolize=local "$url/pprof/contention" && ! grep -q at_0x out; }
not_of_the_system() {
	"$KILN" -traces -symbolize=remote "$url/debug/pprof/mappings.pb" >out 2>err && grep -q '\[\[vdso\]\]' out && grep -q at_0x out
}
no_libcurl() {
	mkdir -p lib && : >lib/libcurl.so.4
	LD_LIBRARY_PATH=$tmp/lib says 'install the package libcurl4' -top "$url/x"
}
symbols_fail() { says "http post $url/nosymbols/symbolz: server response: 404 Not Found" -top "$url/nosymbols/contention"; }
others_count() {
	shows rec "$url/debug/pprof/profile" "$url/nosuch" http://127.0.0.1:1/x &&
		grep -qx "$url/nosuch: server response: 404 Not Found" err &&
		grep -q '127.0.0.1:1: connect: connection refused' err &&
		grep -qx 'Fetched 1 source profiles out of 3' err
}
countdown() {
	script -qec "$KILN -top -seconds=2 $url/debug/pprof/profile" /dev/null </dev/null >screen
	grep -q 'reading: 0 of 1 sources, 0 samples, 2s, 1s left' screen && grep -q rec screen
}
escape_sequences() { says 'CPU profiling: ?[31mcpu profiling already in use' -top "$url/busy"; }
from_stdin() { "$KILN" -top - <"$DATA/heap.pb.gz" | grep -q shop/cart.grow; }
pattern() { shows rec "$DATA/worked_?.pb" && says 'no such file' -top "$DATA/nosuch*"; }
# All that stall, while the other tests run: the deadline is 1 s and 5 s of grace.
SECONDS=0
{
	"$KILN" -top -timeout=1 "$url/debug/pprof/profile" "$url"/{silent,stall,trickle} >stall.out 2>stall.err
	echo $? $SECONDS >stall.status
} &
stalled=$!
deadlines() {
	wait $stalled
	read -r status seconds <stall.status
	cat stall.err
	[ "$status" = 0 ] && [ "$seconds" -lt 12 ] && grep -q rec stall.out &&
		grep -q 'silent.*context deadline exceeded (Client.Timeout exceeded while awaiting headers)' stall.err &&
		grep -q 'stall.*deadline exceeded (Client.Timeout or context cancellation while reading body)' stall.err &&
		grep -q 'trickle.*while reading body' stall.err
}
# What never ends must not fill the memory.
bounded() { (
	case $BUILD in asan | tsan) ;; *) ulimit -v 2000000 ;; esac # they map terabytes
	says "$1" -top -max_profile_size=20MB "$url/$2"
) }
bounded_together() {
	says 'more than 20971520 bytes; raise -max_profile_size' -top -max_profile_size=20MB "$url"/endless{,,,,,}
}

check "a profile from a server is that profile" same_as_file
check "it is saved, under the next free number" saves_copies
check "or below HOME" saves_at_home
check "a directory that cannot be made is passed over" no_directory
check "-seconds goes into the query" with_seconds
check "a bare address means the CPU profile" bare_address
check "text profiles, whose names /debug/pprof/symbol knows" shows at_0x "$url/debug/pprof/goroutine?debug=1"
check "redirects are followed" shows shop "$url/moved"
check "100 servers and a base are asked at once" at_once
check "names come from the server" symbols
check "unless they shall not" no_symbols
check "nobody is asked about memory of the system" not_of_the_system
check "a server without symbols" symbols_fail
check "without libcurl" no_libcurl
check "a source that fails does not harm the others" others_count
check "a countdown at a terminal" countdown
check "a server's text cannot steer the terminal" escape_sequences
check "stdin" from_stdin
check "patterns" pattern
check "https with a CA of our own" shows shop -tls_ca=ca.pem "$tls/debug/pprof/heap"
check "https without it" says 'x509: certificate signed by unknown authority' -top "$tls/debug/pprof/heap"
check "https+insecure" shows shop "https+insecure://localhost:$tls_port/debug/pprof/heap"
check "a client's certificate" shows shop -tls_ca=ca.pem -tls_cert=cert.pem -tls_key=key.pem "$mutual/debug/pprof/heap"
check "a client without one" says "$mutual/debug/pprof/heap: http fetch:" -top -tls_ca=ca.pem "$mutual/debug/pprof/heap"
check "a certificate without a key" says '-tls_cert is specified, so -tls_key must also be specified' -top -tls_cert=cert.pem "$tls/x"
check "a CA that is not there" says 'could not load CA specified by -tls_ca: open nosuch: no such file' -top -tls_ca=nosuch "$tls/x"
check "a key that is none" says 'could not load certificate/key pair' -top -tls_ca=ca.pem -tls_cert=ports -tls_key=ports "$tls/x"
check "closed without a word" says "http fetch: Get \"$url/close\": EOF" -top "$url/close"
check "less than promised" says "http fetch: unexpected EOF" -top "$url/short"
check "a body without an end" bounded 'the server sends more than 20971520 bytes; raise -max_profile_size' endless
check "many of them" bounded_together
check "headers without an end" bounded "the server's headers are larger than" headers
check "a gzip bomb" bounded 'the server sends more than 20971520 bytes' bomb
check "a profile that is one" bounded 'max_profile_size' packed-bomb
check "redirects in a circle" says "Get \"$url/loop\": stopped after 10 redirects" -top "$url/loop"
check "a redirect to a file" says 'http fetch' -top "$url/elsewhere"
check "another protocol" says "Get \"$url/garbage\"" -top "$url/garbage"
check "a web page" says "$url/html: parsing profile: unrecognized profile format" -top "$url/html"
check "no such scheme" says 'unsupported protocol scheme "ftp"' -top ftp://h/x
check "silence ends with the deadline" deadlines
echo "1..$n"
