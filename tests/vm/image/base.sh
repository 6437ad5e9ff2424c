#!/bin/bash
# base.sh SUITE OUTPUT.tar - a plain Debian root with the packages of packages.txt.
# This is the slow part (network, dpkg), so it is kept apart from image.sh and cached under its own key.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
suite=$1
output=$2

# The mirror that apt on this machine already uses. Suites of one archive live side by side, so the host's own
# release leads to the guest's. RIG_MIRROR overrides, for a host that is not a Debian.
host_mirror() {
	if [ -n "${RIG_MIRROR:-}" ]; then
		echo "$RIG_MIRROR"
		return
	fi
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016  # the $(..) is apt's own format, not the shell's
	apt-get indextargets --format '$(CODENAME) $(ORIGIN) $(REPO_URI)' 'Created-By: Packages' |
		awk -v c="$codename" '$1 == c && $2 == "Debian" { print $3; exit }'
}

# Hooks of mmdebstrap run with the new root as $1. The initramfs is told beforehand what to hold: all modules of a
# default one cost seconds of decompression under TCG.
# shellcheck disable=SC2016  # expanded in the root, not here
prepare_initramfs='
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"
echo MODULES=list > "$1/etc/initramfs-tools/conf.d/rig"
printf "%s\n" virtio_pci virtio_blk ext4 > "$1/usr/share/initramfs-tools/modules.d/rig"'

mirror=$(host_mirror)
if [ -z "$mirror" ]; then
	echo "base.sh: found no Debian mirror in apt's sources; run apt-get update, or set RIG_MIRROR" >&2
	exit 1
fi

include=$(grep -v -e '^#' -e '^$' "$here/packages.txt" | paste -sd,)
mmdebstrap --variant=minbase --format=tar --include="$include" \
	--dpkgopt=force-unsafe-io \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--essential-hook="$prepare_initramfs" \
	"$suite" "$output.part" "$mirror"
mv "$output.part" "$output"
