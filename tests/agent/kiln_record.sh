#!/bin/bash
# kiln record: runs programs, shows what they did, and refuses what it cannot record.
# shellcheck source=tests/agent/lib/life.sh
. "$(dirname "$0")/lib/life.sh"
export KILN_LIBRARY="$AGENT"

# record WANT ARGUMENTS...: ends with that status; what it printed is in printed
record() {
	local want=$1 status
	shift
	timeout -s KILL 30 "$KILN" record "$@" >out 2>printed
	status=$?
	cat out printed
	[ $status = "$want" ]
}
prints() {
	cat printed
	grep -Eq -- "$1" printed
}

check "a program" record 3 ./ends exit
check "says where the file is" prints '^kiln record: cpu in kiln\.ends\.[0-9]+\.cpu\.pb\.gz$'
# Beside other load the kernel may tell of a hundred milliseconds at once, and late: when the memset after them runs.
top='[0-9]% +(work|main)$'
check "shows the top of it" prints "$top"
check "five lines of it" test "$(grep -c '%' printed)" -le 6
check "the file is a profile" has_work "$(echo kiln.ends.*.cpu.pb.gz)"
check "several kinds" record 3 --heap h.pb.gz --allocs=a.pb.gz --mutex m.pb.gz --trace t.json -- ./ends exit
check "heap" has_work h.pb.gz
check "allocs" has_work a.pb.gz
check "nothing is told as such" prints '^   \(nothing\)$'
check "trace" test -s t.json
check "a program that dies by a signal" record 143 --cpu c.pb.gz ./ends term
check "is shown" prints "$top"
check "programs that it starts" record 3 --heap c.pb.gz ./ends exit spawn
check "are told" prints '2 of programs that it started in c.pb.gz\.\*'
check "%p in a name" record 3 --cpu %p.cpu ./ends exit
check "is the process id" prints '^kiln record: cpu in [0-9]+\.cpu$'
printf '#!/bin/sh\n./ends exit\nexit 4\n' >script && chmod +x script
check "a script" record 4 --heap s.pb.gz ./script

passes_on() {
	"$KILN" record --cpu t.pb.gz ./ends pause 2>passed &
	local kiln=$!
	sleep 1
	kill -TERM $kiln
	wait $kiln
	[ $? = 143 ] && has_work t.pb.gz
}
check "SIGTERM is passed on" passes_on

seconds() {
	"$KILN" record --seconds 1 --cpu early.pb.gz ./ends pause 2>passed &
	local kiln=$! status
	for _ in $(seq 100); do
		[ -e early.pb.gz ] && break
		sleep 0.1
	done
	has_work early.pb.gz
	status=$?
	kill -TERM $kiln
	wait $kiln
	return $status
}
check "--seconds: the file is there while the program runs" seconds

check "no program given" record 2
check "a program that is not there" record 127 no-such-program
check "is told" prints 'no-such-program: there is no such program'
echo 'int main(void) { return 0; }' >t.c
if ${CC:-gcc} -static -o static t.c 2>/dev/null; then
	check "a static program" record 2 ./static
	check "is told what to do" prints 'static program.*link it dynamically'
fi
if ${CC:-gcc} -m32 -o small t.c 2>/dev/null; then
	check "a 32-bit program" record 2 ./small
fi
sed 's|/lib64/ld-linux-x86-64.so.2|/lib/ld-musl-x86_64.so.1\x00\x00\x00|' ends >musl && chmod +x musl
check "a program for musl" record 2 ./musl
check "is told" prints 'made for musl'
if [ "$(id -u)" = 0 ]; then
	cp ends other && chown 65534 other && chmod u+s other
	check "a setuid program" record 2 ./other
	check "is told" prints 'more rights than yours'
fi
# The agent is in a Go program that is not static, but does not see its end.
mkdir go && printf 'package main\n\nimport (\n\t"os"\n\t"time"\n)\n
func main() {
\tfor end := time.Now().Add(2 * time.Second); len(os.Args) > 1 && time.Now().Before(end); {
\t}\n}\n' >go/main.go
if (cd go && GOCACHE=$tmp/cache GO111MODULE=off go build -o ../gostatic main.go) >/dev/null 2>&1; then
	check "a static Go program" record 2 ./gostatic
	check "is told what to do" prints 'a static Go program.*runtime/pprof.*kiln http'
	sed -i 's/^import (/import "C"\nimport (/' go/main.go
fi
if (cd go && GOCACHE=$tmp/cache GO111MODULE=off go build -o ../gocgo main.go) >/dev/null 2>&1; then
	check "a Go program" record 0 --cpu go.pb.gz ./gocgo
	check "why there is no profile, and what to do" prints 'no cpu profile was written to go.pb.gz: a Go program .*net/http/pprof.*kiln http.*--seconds'
	check "as that says" record 0 --seconds 1 --cpu go.pb.gz ./gocgo works
	check "it is there" prints 'cpu in go.pb.gz'
fi
wrong_option() {
	record 2 --wrong ./ends && prints 'there is no option --wrong'
}
check "an unknown option" wrong_option
check "--help" record 0 --help
echo "1..$n"
