#!/bin/bash
# Builds a Kubernetes API server out of Debian's source package, and a kubelet that can do port-forward
# and no more, for tests/kube. Both are kept in the user's cache; what is there is not built again.
# Usage: tools/kube.sh build    makes what is missing: 8 minutes of one core, 2 GB of disk meanwhile
#        tools/kube.sh where    prints the folder; fails if something is missing
set -eu

version=1.20.2
kubelet=$(realpath "$(dirname "$0")")/../tests/kube/kubelet.go
home=${XDG_CACHE_HOME:-$HOME/.cache}/kiln/kube-$version

has_apiserver() { [ -x "$home/kube-apiserver" ]; }
# The copy tells of which source the program is.
has_kubelet() { [ -x "$home/kubelet" ] && cmp -s "$kubelet" "$home/kubelet.go"; }

# Debian's own sources, whatever mirror this machine has, as apt's lists of source packages.
write_source_lists() {
	local codename
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mkdir -p apt/parts apt/lists/partial
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
		awk -v suite="$codename" '$1 == "deb" { for (i = 3; i <= NF; i++) if ($i == suite) { $1 = "deb-src"; print; break } }' \
			>apt/sources.list
	cat /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -v '^#' |
		awk -v suite="$codename" 'BEGIN { RS = ""; ORS = "\n\n" }
			$0 ~ "Suites:[^\n]*[ \t]" suite "[ \t\n]" { sub(/Types:[^\n]*/, "Types: deb-src"); print }' \
			>apt/parts/debian.sources
	[ -s apt/sources.list ] || [ -s apt/parts/debian.sources ] || {
		echo "kube.sh: no source of $codename in /etc/apt" >&2
		return 1
	}
}

# The vendored reflect2 reads a nil pointer when a Go since 1.18 has compiled it, with every pod. Debian has
# one that does not.
fetch_sources() {
	local apt="-qq -o Dir::Etc::SourceList=$PWD/apt/sources.list -o Dir::Etc::SourceParts=$PWD/apt/parts
		-o Dir::State::Lists=$PWD/apt/lists -o APT::Sandbox::User=root"
	write_source_lists
	# shellcheck disable=SC2086  # a list of options
	apt-get $apt update && apt-get $apt source --download-only kubernetes
	apt-get -qq -o APT::Sandbox::User=root download golang-github-modern-go-reflect2-dev
	mkdir -p go/src/k8s.io/kubernetes
	tar -xzf kubernetes_*.orig.tar.gz -C go/src/k8s.io/kubernetes --strip-components=1
	tar -xJf kubernetes_*.debian.tar.xz -C go/src/k8s.io/kubernetes
	dpkg-deb -x golang-github-modern-go-reflect2-dev_*.deb reflect2
	cd go/src/k8s.io/kubernetes
	local patch
	while read -r patch; do
		patch -p1 -s <"debian/patches/$patch"
	done <debian/patches/series
	rm -r vendor/github.com/modern-go/reflect2
	cp -r ../../../../reflect2/usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/
}

# The one generated file that the server needs and the package has not. That the generator complains of just
# what Kubernetes' own list of exceptions has shows that it saw the same types.
generate_openapi() {
	local packages
	go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
	# Folders of vendor/k8s.io are links, which grep follows only where they are named.
	packages=$(grep -rl --include='*.go' '^// *+k8s:openapi-gen=' pkg cmd vendor/k8s.io/*/ |
		sed 's|//|/|' | grep -vE '^vendor/k8s.io/(code-generator|sample-apiserver|kube-openapi|gengo)/' |
		xargs -n1 dirname | sort -u | sed 's|^|k8s.io/kubernetes/|' | paste -sd,)
	"$work/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
		-O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$work/violations"
	diff -q <(sort "$work/violations") <(sort api/api-rules/violation_exceptions.list)
}

build_apiserver() {
	local flags="-s -w" package
	for package in component-base/version client-go/pkg/version; do
		package=k8s.io/kubernetes/vendor/k8s.io/$package
		flags="$flags -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=20"
	done
	generate_openapi
	go build -trimpath -ldflags "$flags" -o "$work/kube-apiserver" ./cmd/kube-apiserver
	mv "$work/kube-apiserver" "$home/"
}

build_kubelet() {
	mkdir -p cmd/kiln-kubelet
	cp "$kubelet" cmd/kiln-kubelet/main.go
	go build -trimpath -ldflags "-s -w" -o "$work/kubelet" ./cmd/kiln-kubelet
	mv "$work/kubelet" "$home/"
	cp "$kubelet" "$home/kubelet.go"
}

build() {
	if has_apiserver && has_kubelet; then
		return
	fi
	mkdir -p "$home"
	work=$(mktemp -d "$home/work.XXXXXX")
	trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
	cd "$work"
	fetch_sources
	# As in the days of GOPATH: what the package has is complete, but not for Go's modules.
	export GOPATH=$work/go GO111MODULE=off CGO_ENABLED=0 GOCACHE=$work/cache GOFLAGS='' GOTOOLCHAIN=local
	has_apiserver || build_apiserver
	has_kubelet || build_kubelet
	"$home/kube-apiserver" --version
}

case ${1-} in
build) build ;;
where) has_apiserver && has_kubelet && echo "$home" ;;
*) echo "usage: tools/kube.sh build|where" >&2; exit 2 ;;
esac
