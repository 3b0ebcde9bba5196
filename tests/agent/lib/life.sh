# Shared by the tests of the agent's life: a temporary folder, the program "ends", and checks.
: "${AGENT:?}" "${KILN:?}"
here=$(cd "$(dirname "$0")" && pwd) tmp=$(mktemp -d) n=0
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export HOME="$tmp" PPROF_TMPDIR="$tmp"
${CC:-gcc} -g -O2 -pthread -o ends "$here/ends.c" || exit 1

# agent SETTING=... PROGRAM...: with the agent in it; killed if it hangs.
agent() {
	timeout -s KILL 20 env LD_PRELOAD="$AGENT" "$@"
}

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

# Is it a complete profile in which the function "work" is?
has_work() {
	"$KILN" -top "$1" | grep -q ' work$'
}
