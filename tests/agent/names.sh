#!/bin/sh
# Names of functions that only the running program knows: its file is deleted, a library's is another, code was made
# at run time.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d) n=0
trap 'rm -f "/tmp/perf-$(cat "$tmp/pid").map"; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
${CXX:-g++} -g -O2 -std=c++17 -o names "$here/names.cc" || exit 1
# The same code by another name.
for name in library other; do
	echo "extern \"C\" void ${name}_work() { for (volatile int i = 0; i < 100000; i = i + 1); }" |
		${CXX:-g++} -g -O2 -shared -fPIC -Wl,--build-id -o $name.so -x c++ - || exit 1
done
timeout 60 env LD_PRELOAD="$AGENT" KILN_EXE=names KILN_CPU_PROFILE="$tmp/cpu.pb.gz" KILN_CPU_RATE=250 ./names >pid
status=$?
"$KILN" -top cpu.pb.gz >top 2>errors
# check NAME PATTERN
check() {
	n=$((n + 1))
	if grep -Eq "$2" top; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1 (status $status)"
		sed 's/^/# /' top errors
	fi
}
check 'a template of the deleted program' ' space::thing(<unsigned long>)?::work'
check "the kernel's page" ' __vdso_clock_gettime|\[vdso\].*clock_gettime| clock_gettime'
check 'code made at run time has its last name' ' jit::hot of a script$'
n=$((n + 1))
if grep -q 'other_work' top; then
	echo "not ok $n - the new file of a library is not taken for the old one"
else
	echo "ok $n - the new file of a library is not taken for the old one"
fi
check 'but its time is there' '\[library.so\]|library.so|library_work'
echo "1..$n"
