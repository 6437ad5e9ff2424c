#!/bin/bash
# base.sh SUITE OUTPUT.tar - a plain Debian root with the packages of packages.txt.
# This is the slow part (network, dpkg), so it is kept apart from image.sh and cached under its own key.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
suite=$1
output=$2

# Hooks of mmdebstrap run with the new root as $1. The initramfs is told beforehand what to hold: all modules of a
# default one cost seconds of decompression under TCG.
# shellcheck disable=SC2016  # expanded in the root, not here
prepare_initramfs='
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"
echo MODULES=list > "$1/etc/initramfs-tools/conf.d/rig"
printf "%s\n" virtio_pci virtio_blk ext4 > "$1/usr/share/initramfs-tools/modules.d/rig"'

mirror=$("$here/mirror.sh")
include=$(grep -v -e '^#' -e '^$' "$here/packages.txt" | paste -sd,)
mmdebstrap --variant=minbase --format=tar --include="$include" \
	--dpkgopt=force-unsafe-io \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--essential-hook="$prepare_initramfs" \
	"$suite" "$output.part" "$mirror"
mv "$output.part" "$output"
