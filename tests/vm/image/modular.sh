#!/bin/bash
# modular.sh SUITE OUTPUT.tar - virtqemud and virtnodedevd, libvirt's daemons of one driver each, which Debian leaves out of its
# packages. Built from Debian's source of the libvirt that the guest has, whose library and drivers they use.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
suite=$1
output=$2
mirror=$("$here/mirror.sh")

build_needs=gcc,libc6-dev,libglib2.0-dev,libgnutls28-dev,libjson-c-dev,libnl-3-dev,libnl-route-3-dev,libpciaccess-dev
build_needs+=,libtirpc-dev,libudev-dev,libxml2-dev,libxml2-utils,meson,ninja-build,pkg-config,python3-docutils,xsltproc,xz-utils

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs in the new root. The source is checked by apt against the archive's signed index; everything that neither daemon needs is
# left out, and what is left is not optimised, for it is the drivers that work.
cat >"$work/build" <<'END'
exec 3>&2 >/root/log 2>&1
trap '[ $? = 0 ] || tail -n 50 /root/log >&3' EXIT
cd /root
apt-get source --print-uris libvirt | tr -d "'" | while read -r uri file _ hash; do
	case $file in *.orig.tar.xz) /usr/lib/apt/apt-helper download-file "$uri" libvirt.tar.xz "$hash" ;; esac
done
mkdir src
tar -xf libvirt.tar.xz -C src --strip-components=1
cd src
meson setup build --prefix=/usr --libdir="lib/$(gcc -print-multiarch)" --sysconfdir=/etc --localstatedir=/var -Drunstatedir=/run \
	--buildtype=plain -Dauto_features=disabled -Ddriver_remote=enabled -Ddriver_libvirtd=enabled -Ddriver_qemu=enabled \
	-Dudev=enabled -Dpciaccess=enabled -Djson_c=enabled -Dlibnl=enabled
ninja -C build src/virtqemud src/virtnodedevd
install -D -t /out/usr/sbin build/src/virtqemud build/src/virtnodedevd
END

# shellcheck disable=SC2016  # mmdebstrap's shell knows the root as $1
mmdebstrap --variant=minbase --format=null --include="$build_needs" --dpkgopt=force-unsafe-io \
	--customize-hook="upload $work/build /root/build" \
	--customize-hook='chroot "$1" sh -eu /root/build' \
	--customize-hook="tar-out /out $work/out.tar" \
	"$suite" /dev/null "deb $mirror $suite main" "deb-src $mirror $suite main"
mv "$work/out.tar" "$output"
