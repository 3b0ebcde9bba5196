#!/bin/bash
# Static programs, with libkiln-static.a linked in.
# shellcheck source=tests/agent/lib/life.sh
. "$(dirname "$0")/lib/life.sh"
library=${AGENT%.so}-static.a

# build HOW [MORE...]: the program "ends", linked that way. The linker warns of getaddrinfo and dlopen.
build() {
	${CC:-gcc} -g -O2 "$@" -o static "$here/ends.c" -Wl,-u,kiln_serve "$library" -pthread
}

undisturbed() {
	timeout 20 env -i ./static exit >out 2>&1
	[ $? = 3 ] && ! grep . out
}

# cpu HOW: its exit status is its own
cpu() {
	rm -f p
	KILN_CPU_PROFILE=p timeout 20 ./static "$1"
	[ $? = 3 ] && has_work p && "$KILN" -peek '^work$' p | grep -q ' main$'
}

# What would need to stand in front of libc is told, in one line each.
heap_is_told() {
	KILN_HEAP_PROFILE=h KILN_MUTEX_PROFILE=m timeout 20 ./static exit 2>said
	cat said
	[ "$(grep -c '^kiln: the program is static: ' said)" = 2 ] && [ -s h ]
}

served() {
	cat >serves.c <<-'END'
		#include <kiln.h>
		#include <pthread.h>
		static volatile double sum;
		static void *work(void *nothing)
		{
			for (;;)
				sum += 1;
			return nothing;
		}
		int main(void)
		{
			pthread_t t;
			pthread_create(&t, 0, work, 0);
			return kiln_serve("unix:socket") < 0 || pthread_join(t, 0);
		}
	END
	${CC:-gcc} -g -O1 "$@" -I"$here/../../include" -o serves serves.c "$library" -pthread || return
	timeout 30 ./serves 2>said &
	local server=$!
	for _ in $(seq 50); do [ -S socket ] && break || sleep 0.1; done
	curl -s --unix-socket socket "http://x/debug/pprof/profile?seconds=1" >p
	curl -s --unix-socket socket "http://x/debug/pprof/threads?debug=2" >threads
	kill $server
	cat threads said
	has_work p && grep -q '^work(' threads
}

# Exceptions and operator new are those of libstdc++.
throws() {
	cat >throws.cc <<-'END'
		#include <stdexcept>
		#include <string>
		int main(int n, char **)
		{
			try {
				throw std::runtime_error(std::string((size_t)n * 1000, 'x'));
			} catch (const std::exception &e) {
				return std::string(e.what()).size() == 1000 ? 3 : 1;
			}
		}
	END
	g++ -g "$@" -o throws throws.cc -Wl,-u,kiln_serve "$library" || return
	KILN_CPU_PROFILE=p ./throws
	[ $? = 3 ]
}

# The linker says what to do, and there is no program that would crash.
refused() {
	! ${CC:-gcc} "$1" -o refused "$here/ends.c" "${AGENT%.so}.a" -pthread 2>said || return
	cat said
	grep -q 'static_programs_are_linked_with_libkiln_static_a' said && [ ! -e refused ]
}

for how in '-static -Wl,--eh-frame-hdr' -static-pie; do
	# shellcheck disable=SC2086 # several words
	{
		check "$how: links" build $how
		check "$how: runs as without the agent" undisturbed
		check "$how: CPU time until return" cpu return
		check "$how: CPU time until exit of a thread" cpu thread
		check "$how: heap and locks are told not to be seen" heap_is_told
		check "$how: kiln_serve" served $how
		check "$how: C++" throws $how
		check "libkiln.a refuses ${how%% *}" refused ${how%% *}
	}
done

# Other linkers resolve what is weak in other ways. The agent itself is static here, libc is not.
for linker in gold lld; do
	command -v ld.$linker >/dev/null || continue
	library=${AGENT%.so}.a
	check "$linker: libkiln.a" build -fuse-ld=$linker
	check "$linker: CPU time" cpu return
	library=${AGENT%.so}-static.a
	check "$linker: libkiln-static.a" build -fuse-ld=$linker -static -Wl,--eh-frame-hdr
	check "$linker: CPU time of a static program" cpu return
done
echo "1..$n"
