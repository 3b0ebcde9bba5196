#!/bin/bash
# Builds the image of packaging/Dockerfile, as localhost/kiln, with buildah: a docker is not needed, nor is a registry,
# as Debian's own image is made by debootstrap, of what apt has here. PULL=1 takes the registry's.
# Usage: tools/image.sh FOLDER    which keeps images, for CONTAINERS_STORAGE_CONF=FOLDER/storage.conf podman run kiln
set -eu

release=bookworm
base=docker.io/library/debian:12-slim
mkdir -p "$1"
folder=$(realpath "$1")
export CONTAINERS_STORAGE_CONF=$folder/storage.conf

# In folders that steps of the build see instead of the image's own, so that nothing of this machine gets into it.
write_apt_settings() {
	rm -rf "$folder/apt"
	mkdir -p "$folder/apt/sources" "$folder/apt/conf"
	apt-get indextargets --format "deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' |
		grep " $release" | grep -v '^deb copy:' | sort -u >"$folder/apt/sources/debian.list"
	apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until)' >"$folder/apt/conf/90machine"
}

make_base() {
	local mirror
	mirror=$(sed -n "s/^deb \([^ ]*\) $release main$/\1/p" "$folder/apt/sources/debian.list")
	rm -rf "$folder/base"
	debootstrap --variant=minbase $release "$folder/base" "${mirror:-http://deb.debian.org/debian}" >"$folder/debootstrap.log" || {
		tail "$folder/debootstrap.log" "$folder/base/debootstrap/debootstrap.log" >&2
		return 1
	}
	# As slim as the registry's.
	rm -rf "$folder"/base/var/cache/apt/* "$folder"/base/var/lib/apt/lists/* "$folder"/base/usr/share/{locale,man,info}/* "$folder/base/etc/resolv.conf"
	find "$folder/base/usr/share/doc" -type f ! -name copyright -delete
	tar -C "$folder/base" -cf "$folder/base.tar" .
	podman import --change CMD=bash "$folder/base.tar" $base
	rm -rf "$folder/base" "$folder/base.tar"
}

[ "$(id -u)" = 0 ] || { echo "image.sh: debootstrap and buildah want root" >&2; exit 1; }
printf '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/images"\n' "$folder" "$folder" >"$CONTAINERS_STORAGE_CONF"
write_apt_settings
pull=--pull-never
if [ -n "${PULL-}" ]; then
	pull=--pull-always
elif ! podman image exists $base; then
	make_base
fi
buildah build --isolation chroot $pull --volume "$folder/apt/sources:/etc/apt/sources.list.d:ro" \
	--volume "$folder/apt/conf:/etc/apt/apt.conf.d:ro" --file packaging/Dockerfile --tag kiln .
podman image prune --force >/dev/null
