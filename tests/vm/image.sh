#!/bin/bash
# image.sh - makes the VM image of the rig if it is not there yet, and prints its directory:
#   vm.img (ext4, no partitions), vmlinuz, initrd, id_rig (ssh key for root)
# The directory is named after a hash of all that goes in, so an image is never stale and a second run costs nothing.
# RIG_SUITE chooses the Debian release (trixie).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${RIG_CACHE:-$here/../../target/vm}
suite=${RIG_SUITE:-trixie}
size=4G

say() { echo "image: $*" >&2; }

hash_of() { # names and contents of the files below the given paths
	(cd "$here" && echo "$suite" && find "$@" -type f -print0 | sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-16
}

# Everything that touches the root's files runs as its root. Who is not root on the host gets a user namespace.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else mmdebstrap --unshare-helper "$@"; fi
}

make_base() { # OUTPUT.tar
	say "Debian $suite root with packages (about a minute)"
	"$here/image/base.sh" "$suite" "$1" >&2
}

# Only for the release that tests them.
make_modular() { # OUTPUT.tar
	say "virtqemud and virtnodedevd of Debian $suite's source (two minutes)"
	"$here/image/modular.sh" "$suite" "$1.part" >&2
	mv "$1.part" "$1"
}

make_key() { # PATH
	[ -e "$1" ] || ssh-keygen -q -t ed25519 -N '' -C mdevirt-rig -f "$1"
}

build_image() { # BASE.tar MODULAR.tar KEY OUTPUT-DIR
	local work
	work=$(mktemp -d "$cache/work.XXXXXX")
	# shellcheck disable=SC2064  # the directory of now
	trap "as_root rm -rf '$work'" EXIT
	say "unpacking, building simgpu, writing the file system"
	as_root "$here/image/populate.sh" "$1" "$2" "$3" "$work" "$size" >&2
	mkdir -p "$4.part"
	mv "$work/out"/* "$4.part/"
	mv "$4.part" "$4"
}

drop_old() { # keep the newest three of each kind
	local kind
	for kind in "image-$suite" "base-$suite" "modular-$suite"; do
		find "$cache" -maxdepth 1 -name "$kind-*" -printf '%T@ %p\n' | sort -rn | awk 'NR > 3 { print $2 }' | xargs -r rm -rf
	done
}

mkdir -p "$cache"
exec 9>"$cache/image.lock"
flock 9
as_root rm -rf "$cache"/work.* "$cache"/*.part # of a run that was killed

key=$cache/id_rig
make_key "$key"
base=$cache/base-$suite-$(hash_of image/base.sh image/packages.txt).tar
modular=$cache/modular-$suite-$(hash_of image/modular.sh).tar
[ "$suite" = trixie ] || modular=
image=$cache/image-$suite-$(hash_of image.sh image guest simgpu)-$(sha256sum <"$key.pub" | cut -c1-8)
if [ ! -e "$image/vm.img" ]; then
	[ -e "$base" ] || make_base "$base"
	touch "$base"
	if [ -n "$modular" ]; then
		[ -e "$modular" ] || make_modular "$modular"
		touch "$modular"
	fi
	build_image "$base" "$modular" "$key" "$image"
	cp "$key" "$image/id_rig"
	drop_old
fi
echo "$image"
