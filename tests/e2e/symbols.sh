#!/bin/sh
# Names of a compiled program, from its profile to the report.
: "${KILN:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

check() {
	name=$1 n=$((n + 1))
	shift
	if "$@" >log 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' log
	fi
}
# word NUMBER: eight bytes, lowest first, as in a CPU profile of gperftools.
word() {
	v=$1 i=0
	while [ $i -lt 8 ]; do
		# shellcheck disable=SC2059  # the format is the byte
		printf "\\$(printf %o $((v & 255)))"
		v=$((v >> 8)) i=$((i + 1))
	done
}
profile() {
	for w in 0 3 0 10000 0 1 1 0x401004 0 1 0; do word $((w)); done
	echo "00401000-00402000 r-xp 00001000 00:00 1 $tmp/prog"
}

cat >prog.cc <<'SOURCE'
volatile int sink;
namespace app {
struct counter {
	inline __attribute__((always_inline)) void add(int n) { sink += n; }
};
__attribute__((noinline)) void run(counter c, int n)
{
	c.add(n);
}
}
extern "C" void _start() { app::run(app::counter(), 1); for (;;) ; }
SOURCE
g++ -g -O1 -nostdlib -static -no-pie -fcf-protection=none -fno-asynchronous-unwind-tables \
	-Wl,--build-id=0xabcdef,-Ttext=0x401000 -o prog prog.cc 2>log || { cat log; exit 1; }
profile >cpu.prof

export PATH="$tmp/tools:$PATH" HOME="$tmp"
mkdir tools
touch tools/llvm-symbolizer
chmod +x tools/llvm-symbolizer

names() { "$KILN" -top cpu.prof >out 2>err && grep -q ' app::counter::add (inline)$' out && grep -q ' app::run$' out && ! [ -s err ]; }
lines() { "$KILN" -top -lines -showcolumns cpu.prof | grep -q 'app::counter::add .*/prog.cc:4:[0-9]* (inline)'; }
source_lines() { "$KILN" -list=app::run cpu.prof | grep -q ' 10ms *8:	c.add(n);'; }
only_names() { "$KILN" -top -lines -symbolize=fastlocal cpu.prof >out && grep -q ' app::run$' out && ! grep -q prog.cc out; }
not_local() { "$KILN" -top -symbolize=remote cpu.prof | grep -q ' \[prog\]$'; }
by_addr2line() {
	mkdir -p gnu && touch gnu/addr2line && chmod +x gnu/addr2line
	PATH=$tmp/gnu "$KILN" -raw cpu.prof | grep -q 'app::counter::add .*/prog.cc:4:0 s=0'
}
without_tools() { PATH=/no/such/folder "$KILN" -top cpu.prof | grep -q ' app::run$'; }
moved() {
	mkdir -p moved && mv prog moved/ && "$KILN" -top -verbose cpu.prof >out 2>err
	grep -q "^Local symbolization failed for prog: stat $tmp/prog: no such file or directory" err &&
		grep -q "^No names for 1 address in $tmp/prog: .*PPROF_BINARY_PATH" err &&
		PPROF_BINARY_PATH=moved "$KILN" -top cpu.prof | grep -q ' app::run$'
}
check "names and inlined calls" names
check "lines and columns" lines
check "source" source_lines
check "fastlocal" only_names
check "remote" not_local
check "as addr2line" by_addr2line
check "without any tool" without_tools
check "a binary that is elsewhere" moved
echo "1..$n"
