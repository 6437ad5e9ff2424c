#!/bin/bash
# populate.sh BASE.tar MODULAR.tar KEY WORK SIZE - from a plain root to WORK/out/{vm.img,vmlinuz,initrd}. Runs as root of the
# root's files (see as_root in image.sh); needs no loop device. MODULAR.tar may be an empty word.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
base=$1
modular=$2
key=$3
work=$4
size=$5
root=$work/root

mkdir -p "$root" "$work/out"
tar -xf "$base" -C "$root" --numeric-owner --exclude='./dev/*'
[ -z "$modular" ] || tar -xf "$modular" -C "$root" --strip-components=1 --no-same-owner

# --- files of the rig
cp -r "$here/guest/." "$root/"
# Root of one guest may log in to the other.
install -D -m 600 "$key.pub" "$root/root/.ssh/authorized_keys"
install -m 600 "$key" "$root/root/.ssh/id_ed25519"
chmod 700 "$root/root/.ssh"
printf 'Host host-*\n\tStrictHostKeyChecking no\n\tUserKnownHostsFile /dev/null\n\tLogLevel ERROR\n' >"$root/root/.ssh/config"
echo rig >"$root/etc/hostname"
printf '127.0.0.1 localhost rig\n10.77.0.1 host-1\n10.77.0.2 host-2\n' >"$root/etc/hosts"
# A fixed id: an empty one makes systemd apply all presets on each boot of the pristine image.
echo 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a >"$root/etc/machine-id"
printf '/dev/vda / ext4 rw,noatime 0 1\n' >"$root/etc/fstab"

# --- the module, against the kernel that will run it
kernel=$(basename "$root"/boot/vmlinuz-*)
kernel=${kernel#vmlinuz-}
rm -rf "$root/usr/src/simgpu"
mkdir -p "$root/usr/src/simgpu" "$root/usr/lib/modules/$kernel/extra"
cp "$here"/simgpu/*.[ch] "$here/simgpu/Makefile" "$here/simgpu/COPYING" "$root/usr/src/simgpu/"
chroot "$root" make -s -C /usr/src/simgpu "KDIR=/usr/lib/modules/$kernel/build" modules
cp "$root/usr/src/simgpu/simgpu.ko" "$root/usr/lib/modules/$kernel/extra/"
chroot "$root" depmod "$kernel"

# --- services: what the rig needs, without what only costs boot time. Links made by hand, because systemctl in a root
# without /proc complains at length.
units=$root/etc/systemd/system
mkdir -p "$units/multi-user.target.wants"
for unit in /usr/lib/systemd/system/systemd-networkd.service /etc/systemd/system/simgpu-setup.service; do
	ln -sf "$unit" "$units/multi-user.target.wants/"
done
for unit in systemd-networkd-wait-online.service libvirt-guests.service e2scrub_reap.service \
	systemd-random-seed.service keyboard-setup.service console-setup.service \
	apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer; do
	ln -sf /dev/null "$units/$unit"
done

# Says that caches such as ld.so.cache are newer than /usr, or the first boot makes all of them again.
touch "$root/etc/.updated" "$root/var/.updated"

cp "$root/boot/vmlinuz-$kernel" "$work/out/vmlinuz"
cp "$root/boot/initrd.img-$kernel" "$work/out/initrd"
chmod 644 "$work/out/vmlinuz" "$work/out/initrd"
mke2fs -qF -t ext4 -L rig -d "$root" "$work/out/vm.img" "$size"
