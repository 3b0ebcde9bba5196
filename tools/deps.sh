#!/bin/sh
# Installs the Debian packages that the named jobs need, if any is missing.
# Usage: tools/deps.sh build|test|browser|kube|live|image|lint|fuzz|difftest|bench ...
set -eu

need=
for job; do
	case $job in
	build)
		need="$need gcc libc6-dev libdeflate-dev libpcre2-dev libiberty-dev scdoc"
		need="$need libdw-dev libelf-dev liblzma-dev libbz2-dev zlib1g-dev libzstd-dev libsqlite3-dev libcapstone-dev"
		need="$need libedit-dev libbsd-dev libmd-dev libncurses-dev libcurl4-openssl-dev libmicrohttpd-dev libgnutls28-dev libyaml-dev"
		;;
	test)
		need="$need libcmocka-dev perl python3 openssl bsdutils libcurl4 libmicrohttpd12 graphviz libxml2-utils golang-go"
		need="$need etcd-server g++ pkg-config binutils xz-utils linux-perf curl python3-jsonschema prometheus"
		need="$need libgoogle-perftools-dev libjemalloc-dev libmimalloc-dev musl-tools gdb strace libdebuginfod1"
		;;
	browser)
		need="$need chromium"
		command -v npm >/dev/null || need="$need nodejs npm"
		;;
	kube)
		need="$need etcd-server golang-go dpkg-dev patch xz-utils diffutils openssl python3"
		command -v kubectl >/dev/null || need="$need kubernetes-client"
		;;
	live)
		need="$need perl python3 gcc libc6-dev golang-go libgoogle-perftools-dev"
		need="$need etcd-server influxdb prometheus"
		need="$need g++ redis-server redis-tools nginx-light wrk postgresql chromium"
		;;
	image) need="$need buildah podman runc debootstrap perl python3 python3-yaml curl" ;;
	lint) need="$need clang-format cppcheck" ;;
	fuzz) need="$need clang libclang-rt-14-dev" ;;
	difftest) need="$need python3 binutils llvm graphviz g++ libc6-dbg libgoogle-perftools4" ;;
	bench)
		need="$need golang-go python3 golang-github-google-pprof-dev llvm g++ binutils"
		need="$need libgoogle-perftools-dev libjemalloc2 heaptrack musl-tools libunwind-dev"
		;;
	*) echo "deps.sh: no such job: $job" >&2; exit 2 ;;
	esac
done

missing=
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')
for package in $need; do
	case "
$have
" in
	*"
$package
"*) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "Missing packages; as root: apt-get install$missing" >&2
	exit 1
fi
echo "Installing$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of names
install() { apt-get install -qq -y --no-install-recommends $missing >"$log" 2>&1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install || { apt-get update -qq >"$log" 2>&1 && install; } || { cat "$log" >&2; exit 1; }
