#!/bin/sh
# Instructions and source of a program: -disasm, -weblist, -list.
: "${KILN:?}"
tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export HOME="$tmp" PPROF_TMPDIR="$tmp" PPROF_BINARY_PATH="$tmp"

# Which objdump there is decides how instructions are spelled.
mkdir llvm gnu
touch llvm/llvm-objdump gnu/objdump
chmod +x llvm/llvm-objdump gnu/objdump
export PPROF_TOOLS="objdump:$tmp/llvm"

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

cat >'a<b>&"c.c' <<'C'
#include <stdlib.h>

static inline __attribute__((always_inline)) int square(int v)
{
	return v * v; /* <b>&amp; */
}

__attribute__((noinline)) int work(int v)
{
	int sum = rand();

	for (int i = 0; i < v; i++)
		sum += square(i ^ sum);
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	return work(argc);
}
C
gcc -g -O1 -no-pie -o prog 'a<b>&"c.c' || { echo "1..0 # no compiler"; exit 1; }

# profile FILE BINARY OFFSET: a heap profile with a sample at each byte of work after OFFSET. Its
# addresses are return addresses, one more than what they stand for.
start=$((0x$(nm prog | sed -n 's/ T work$//p')))
main=$((0x$(nm prog | sed -n 's/ T main$//p') + 8))
profile() {
	{
		echo 'heap profile: 3: 600 [3: 600] @ heapprofile'
		for at in 5 6 7; do
			printf '1: 200 [1: 200] @ 0x%x 0x%x\n' $((start + at + $3)) $((main + $3))
		done
		echo 'MAPPED_LIBRARIES:'
		printf '%08x-%08x r-xp 00001000 00:00 1 %s\n' $((0x401000 + $3)) $((0x402000 + $3)) "$2"
	} >"$1"
}
profile p "$tmp/prog" 0

kiln() { "$KILN" "$@"; }
disasm() {
	kiln -disasm=work p >out && grep -q '^ROUTINE =* work$' out &&
		grep -q 'callq.*<rand@plt>' out && grep -q ';work a<b>&"c.c:10$' out
}
# The samples are at bytes 4, 5 and 6; all addresses from the symbol to the end are there.
weights() {
	kiln -disasm=work p | awk '$3 ~ /:$/ { sum += $1 != "." ? $1 : 0; n++ } END { exit !(sum == 600 && n > 8) }'
}
intel() { kiln -disasm=work -intel_syntax p | grep -q 'call.*<rand@plt>' && ! kiln -disasm=work -intel_syntax p | grep -q '%r'; }
address() { kiln -disasm=$start p | grep -q '^ROUTINE =* work$'; }
# Objdump of LLVM, if it is there, lists the same addresses; but as in pprof the last byte of a symbol
# is left out.
as_objdump() {
	command -v llvm-objdump >/dev/null || return 0
	llvm-objdump -d --disassemble-symbols=work prog | sed -n 's/^ *\([0-9a-f]*\): .*/\1/p' >want
	kiln -disasm=work p | awk '$3 ~ /:$/ { sub(":", "", $3); print $3 }' >got
	head -n "$(wc -l <got)" want | diff - got && [ $(($(wc -l <want) - $(wc -l <got))) -le 1 ]
}
# Only the start: what objdump prints after the end of the symbol depends on who asks.
as_gnu_objdump() {
	for syntax in '' -intel_syntax; do
		LC_ALL=C objdump -d --no-show-raw-insn ${syntax:+-M intel} --disassemble=work prog |
			sed -n 's/^ *\([0-9a-f]*\):\t/\1: /p' | head -n 8 >want
		kiln -tools="objdump:$tmp/gnu" -disasm=work $syntax p |
			sed -n 's/^ *[^ ]* *[^ ]* *\([0-9a-f][0-9a-f]*: .*\)/\1/p' | sed 's/ *;.*//' | head -n 8 >got
		diff want got || return 1
	done
}
gnu_names_what_is_inlined() {
	kiln -tools="objdump:$tmp/gnu" -disasm=work p | grep ';square a<b>&"c.c:5$' &&
		! kiln -disasm=work p | grep ';square'
}
gnu_page() { kiln -tools="objdump:$tmp/gnu" -weblist=work -output=g.html p && grep 'call  .*&lt;rand@plt&gt;' g.html; }
fails_with() {
	text=$1
	shift
	kiln "$@" >out 2>err
	[ $? = 2 ] && grep -q -- "$text" err || { cat out err; return 1; }
}
missing_binary() {
	profile q "$tmp/nosuch" 0
	fails_with 'no matches found for regexp .' -disasm=. q && grep -q 'nosuch: no such file' out
}
pie() {
	gcc -g -O1 -pie -o pie 'a<b>&"c.c' || return 1
	start=$((0x$(nm pie | sed -n 's/ T work$//p'))) main=$((0x$(nm pie | sed -n 's/ T main$//p') + 8))
	{
		echo 'heap profile: 1: 200 [1: 200] @ heapprofile'
		printf '1: 200 [1: 200] @ 0x%x 0x%x\n' $((start + 0x555555554005)) $((main + 0x555555554000))
		echo 'MAPPED_LIBRARIES:'
		echo "555555555000-555555556000 r-xp 00001000 00:00 1 $tmp/pie"
	} >q
	kiln -disasm=work q | awk '$1 == "200B" && $3 ~ /:$/ { found = 1 } END { exit !found }'
}
page() {
	kiln -weblist=work -output=o.html p 2>err && grep -q 'Generating report in o.html' err &&
		grep -q '<h2>work</h2>' o.html && grep -q 'class=livesrc>.*sum &#43;= square' o.html &&
		grep -q 'callq.*&lt;rand@plt&gt;' o.html && grep -q '</html>' o.html
}
# The line that was inlined is shown at the one that it was inlined into.
inlined() { grep -q '<span class=inlinesrc> *return v \* v; /\* &lt;b&gt;&amp;amp; \*/ *</span>' o.html; }
# Nothing of what the files say is taken for a tag.
escaped() {
	grep -q 'a&lt;b&gt;&amp;&#34;c.c' o.html && ! grep -q 'a<b>' o.html &&
		[ "$(grep -c '<b>' o.html)" = 0 ]
}
no_page() {
	fails_with 'no matches found for regexp: nosuch' -weblist=nosuch -output=none.html p && [ ! -e none.html ]
}
# Without the binary the page shows what the profile knows.
from_profile() {
	kiln -proto -output=named.pb.gz p 2>err && mkdir gone && mv prog gone &&
		PPROF_BINARY_PATH=/nonexistent "$KILN" -symbolize=none -weblist=work -output=o2.html named.pb.gz 2>err
	status=$?
	mv gone/prog .
	[ $status = 0 ] && grep -q 'class=deadsrc> *[0-9]*B' o2.html
}
list() { kiln -list=work p | grep -q 'sum = rand()'; }

check "-disasm shows instructions, names and lines" disasm
check "the weights are those of the samples" weights
check "-intel_syntax" intel
check "an address selects its symbol" address
check "the addresses are llvm-objdump's" as_objdump
check "instructions are GNU objdump's where there is no other" as_gnu_objdump
check "functions are those that GNU objdump names" gnu_names_what_is_inlined
check "-weblist as with GNU objdump" gnu_page
check "what does not match is an error" fails_with 'no matches found for regexp nosuch' -disasm=nosuch p
check "an address without a symbol is an error" fails_with 'no matches found for address 0x1' -disasm=0x1 p
check "an address without samples is an error" fails_with 'do not have samples' -disasm=0x$(nm prog | sed -n 's/ T _start$//p') p
check "a missing binary is named on stdout" missing_binary
check "a binary that was moved when it was loaded" pie
check "-weblist writes a page" page
check "-weblist shows what was inlined" inlined
check "-weblist takes no text for a tag" escaped
check "-weblist without a match writes nothing" no_page
check "-weblist without a binary" from_profile
check "-list" list
echo "1..$n"
