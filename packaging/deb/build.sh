#!/bin/bash
# build.sh ROOT VERSION OUT - packs an installed tree as OUT/mdevirt_VERSION_ARCH.deb. ROOT is changed and packed as it is.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$1 version=$2 out=$3
arch=$(dpkg --print-architecture)

# One commit gives one package, bit for bit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# Libraries that the programs are linked with, each with the oldest version that has every symbol they use.
library_depends() {
	local work
	work=$(mktemp -d)
	mkdir "$work/debian"
	printf 'Source: mdevirt\n\nPackage: mdevirt\nArchitecture: any\n' >"$work/debian/control"
	(cd "$work" && dpkg-shlibdeps -O "$root/usr/sbin/mdevirtd" "$root/usr/bin/mdevirtctl") | sed -n 's/^shlibs:Depends=//p'
	rm -r "$work"
}

depends() {
	# Node devices behave as we need them from libvirt 9.0.0 on, whatever symbols are used. That it is there at all is
	# for the library list to say: a build without the feature links no libvirt.
	library_depends | sed -E 's/libvirt0( \([^)]*\))?/libvirt0 (>= 9.0.0)/'
	echo ", dbus, polkitd, systemd"
}

write_docs() {
	local doc=$root/usr/share/doc/mdevirt
	rm "$doc/LICENSE" # every Debian system has the text; copyright says where
	install -m 0644 "$here/copyright" "$doc/copyright"
	printf 'mdevirt (%s) unstable; urgency=medium\n\n  * CHANGELOG.md lists what changed.\n\n -- %s  %s\n' \
		"$version" "$maintainer" "$(date -Ru -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
}

write_control() {
	mkdir -p "$root/DEBIAN"
	(cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
	(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
	local script
	for script in postinst prerm postrm; do install -m 0755 "$here/$script" "$root/DEBIAN/$script"; done
	sed -e "s|@VERSION@|$version|" -e "s|@ARCH@|$arch|" -e "s|@MAINTAINER@|$maintainer|" \
		-e "s|@SIZE@|$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)|" \
		-e "s|@DEPENDS@|$(depends | tr -d '\n')|" "$here/control.in" >"$root/DEBIAN/control"
}

strip --strip-unneeded "$root/usr/sbin/mdevirtd" "$root/usr/bin/mdevirtctl"
maintainer="mdevirt developers <mdevirt@users.noreply.github.com>"
write_docs
write_control
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -h -d "@$SOURCE_DATE_EPOCH"
package=$out/mdevirt_${version}_$arch.deb
rm -f "$out"/mdevirt_*.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
