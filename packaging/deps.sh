#!/bin/bash
# deps.sh GROUP... - installs the system packages that a group of make targets needs and this machine lacks.
#
#   build   compile             demo   run the demo          check  run the tests that need no VM
#   deb     pack                vm     run the tests in the VM
#
# Python packages that tests ask about the world outside go to target/venv-NAME, in pinned versions.
# Nothing missing: no package manager is started and it ends within a second. The Rust toolchain is checked, not installed.
set -euo pipefail

cd "$(dirname "$0")/.."

# shellcheck disable=SC2034  # both tables are read through the name packages_of
declare -A apt=(
	[build]="gcc libc6-dev pkg-config libvirt-dev"
	[demo]="dbus jq"
	[check]="dbus jq libvirt-daemon-driver-qemu libvirt-daemon-system libxml2-utils polkitd python3 python3-venv qemu-system-x86 shellcheck systemd"
	[deb]="dpkg-dev gzip"
	[vm]="e2fsprogs mmdebstrap openssh-client python3 qemu-system-x86 qemu-utils"
)
# shellcheck disable=SC2034
declare -A dnf=(
	[build]="gcc glibc-devel pkgconf-pkg-config libvirt-devel"
	[demo]="dbus-daemon jq"
	[check]="dbus-daemon jq libvirt-daemon-driver-nodedev libvirt-daemon-driver-qemu libxml2 polkit python3 qemu-system-x86-core ShellCheck systemd"
	[deb]="dpkg dpkg-dev gzip"
	[vm]="e2fsprogs mmdebstrap openssh-clients python3 qemu-img qemu-system-x86-core"
)

say() { echo "deps: $*"; }
die() {
	echo "deps: $*" >&2
	exit 1
}

check_toolchain() {
	command -v cargo >/dev/null || die "no cargo: install the Rust toolchain (https://rustup.rs, or your distribution's if it is new enough)"
	local want have
	want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
	have=$(rustc --version | cut -d' ' -f2)
	[ "$(printf '%s\n' "$want" "$have" | sort -V | head -n 1)" = "$want" ] ||
		die "rustc is $have, at least $want is needed: rustup update stable"
}

check_components() {
	cargo fmt --version >/dev/null 2>&1 || die "no cargo fmt: rustup component add rustfmt"
	cargo clippy --version >/dev/null 2>&1 || die "no cargo clippy: rustup component add clippy"
}

# Prints those of the given packages that are not installed.
missing_apt() {
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
		awk -v want="$*" '$1 == "installed" { have[$2] } END { n = split(want, w, " "); for (i = 1; i <= n; i++) if (!(w[i] in have)) print w[i] }'
}

missing_dnf() {
	local package
	for package in "$@"; do rpm -q --quiet "$package" || echo "$package"; done
}

# A sudo that may ask for a password needs a terminal for it.
sudo_works() {
	command -v sudo >/dev/null || return 1
	[ -t 0 ] || sudo -n true 2>/dev/null
}

# Runs a command as root, its output only shown if it fails; or says what somebody else has to run.
as_root() {
	local log=target/deps.log prefix=()
	if [ "$(id -u)" != 0 ]; then
		sudo_works || die "not root, and sudo is missing or wants a password; have root install: ${missing[*]}"
		prefix=(sudo)
	fi
	mkdir -p target
	"${prefix[@]}" "$@" >"$log" 2>&1 && return
	cat "$log" >&2
	die "failed: $*"
}

install_apt() {
	local wait_for_others=(-o DPkg::Lock::Timeout=600)
	as_root apt-get "${wait_for_others[@]}" update
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get "${wait_for_others[@]}" install -y --no-install-recommends "$@"
}

install_dnf() {
	as_root dnf --assumeyes --setopt=install_weak_deps=False install "$@"
}

# python_env NAME PACKAGE==VERSION...: an environment below target/ that holds just these.
python_env() {
	local dir=${CARGO_TARGET_DIR:-target}/venv-$1 log=target/deps.log
	shift
	[ "$(cat "$dir/wanted" 2>/dev/null)" != "$*" ] || return 0
	say "making $dir ($*)"
	mkdir -p target
	rm -rf "$dir"
	if ! { python3 -m venv "$dir" && "$dir/bin/pip" install --quiet --disable-pip-version-check --no-deps "$@"; } >"$log" 2>&1; then
		cat "$log" >&2
		die "failed: python3 -m venv $dir, or pip install $* in it"
	fi
	# Written last, so that a broken attempt is not taken for a whole one.
	echo "$*" >"$dir/wanted"
}

[ $# -gt 0 ] || die "usage: deps.sh build|demo|check|deb|vm ..."
if command -v apt-get >/dev/null; then
	kind=apt
elif command -v dnf >/dev/null; then
	kind=dnf
else
	die "neither apt-get nor dnf here; install the packages named in $0 with what this system has"
fi
declare -n packages_of=$kind

wanted=()
for group in "$@"; do
	[ -n "${packages_of[$group]:-}" ] || die "no group $group (build, demo, check, deb, vm)"
	read -ra more <<<"${packages_of[$group]}"
	wanted+=("${more[@]}")
	[ "$group" != build ] || check_toolchain
	[ "$group" != check ] || check_components
done

mapfile -t missing < <("missing_$kind" "${wanted[@]}" | sort -u)
if [ ${#missing[@]} -gt 0 ]; then
	say "installing ${missing[*]}"
	"install_$kind" "${missing[@]}"
	mapfile -t missing < <("missing_$kind" "${wanted[@]}" | sort -u)
	[ ${#missing[@]} -eq 0 ] || die "$kind ended well but these are not installed: ${missing[*]}"
fi

for group in "$@"; do
	[ "$group" != check ] || python_env os-traits os-traits==3.9.0 pbr==7.1.3
done
