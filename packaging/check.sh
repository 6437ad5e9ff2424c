#!/bin/bash
# check.sh ROOT - checks a tree made by `make install DESTDIR=ROOT`: all is there, and those who read the files like them.
set -euo pipefail

root=$(cd "$1" && pwd)
failed=0

bad() {
	echo "check-package: $*" >&2
	failed=1
}

# Path, and mode in octal.
while read -r mode path; do
	[ -f "$root$path" ] || { bad "$path is missing" && continue; }
	have=$(stat -c %a "$root$path")
	[ "$have" = "$mode" ] || bad "$path has mode $have, not $mode"
	[ -s "$root$path" ] || bad "$path is empty"
done <<'LIST'
755 /usr/sbin/mdevirtd
755 /usr/bin/mdevirtctl
644 /usr/lib/systemd/system/mdevirtd.service
644 /usr/share/dbus-1/system.d/org.mdevirt1.conf
644 /usr/share/dbus-1/system-services/org.mdevirt1.service
644 /usr/share/polkit-1/actions/org.mdevirt1.policy
644 /usr/share/polkit-1/rules.d/50-mdevirt.rules
644 /usr/lib/sysusers.d/mdevirt.conf
755 /etc/libvirt/hooks/qemu.d/50-mdevirt
644 /etc/mdevirt/mdevirt.toml
644 /etc/mdevirt/traits.toml
644 /usr/share/man/man1/mdevirtctl.1.gz
644 /usr/share/man/man5/traits.toml.5.gz
644 /usr/share/man/man8/mdevirtd.8.gz
644 /usr/share/bash-completion/completions/mdevirtctl
644 /usr/share/zsh/vendor-completions/_mdevirtctl
644 /usr/share/fish/vendor_completions.d/mdevirtctl.fish
LIST

compgen -G "$root/usr/share/mdevirt/xml-templates/*.xml" >/dev/null || bad "no templates"

check_unit() { # systemd itself reads it, with the programs where they are in the tree
	local work
	work=$(mktemp -d)
	sed -e "s|=/usr/sbin/|=$root/usr/sbin/|" -e "s|=/usr/bin/|=$root/usr/bin/|" \
		"$root/usr/lib/systemd/system/mdevirtd.service" >"$work/mdevirtd.service"
	local said
	said=$(systemd-analyze verify --man=no "$work/mdevirtd.service" 2>&1) || true
	# Words about other units of this machine are not ours to mend.
	said=$(grep -F mdevirtd <<<"$said") && bad "systemd-analyze: $said"
	rm -r "$work"
}

check_lock_writable() { # the daemon replaces the lock of traits, and the unit makes all but a few directories read-only
	local lock
	lock=$("$root/usr/bin/mdevirtctl" config show --default | sed -n 's/^lock = "\(.*\)"$/\1/p')
	grep -qx "ReadWritePaths=${lock%/*}" "$root/usr/lib/systemd/system/mdevirtd.service" || bad "the unit lets nobody write '$lock'"
}

check_bus_policy() { # a bus with the standard policy and ours starts only if both can be read
	local work pid # a socket's path is short, so not below the tree
	work=$(mktemp -d)
	cat >"$work/bus.conf" <<-CONF
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig>
		  <type>system</type>
		  <listen>unix:path=$work/socket</listen>
		  <include>$root/usr/share/dbus-1/system.d/org.mdevirt1.conf</include>
		</busconfig>
	CONF
	if pid=$(dbus-daemon --config-file="$work/bus.conf" --fork --print-pid=1 2>"$work/said"); then
		kill "$pid"
	else
		bad "dbus-daemon: $(cat "$work/said")"
	fi
	rm -rf "$work"
}

check_hook() { # a guest of somebody else starts, with the program and without; a refusal comes through
	local hook=$root/etc/libvirt/hooks/qemu.d/50-mdevirt work
	work=$(mktemp -d)
	sed "s|/usr/bin/mdevirtctl|$work/none|g" "$hook" >"$work/absent"
	sh "$work/absent" guest prepare begin - </dev/null || bad "the hook fails without mdevirtctl"
	sed "s|/usr/bin/mdevirtctl|$root/usr/bin/mdevirtctl|g" "$hook" >"$work/installed"
	sh "$work/installed" guest prepare begin - <<<"<domain type='qemu'><name>guest</name></domain>" || bad "the hook stops a guest without our devices"
	printf '#!/bin/sh\nexit 3\n' >"$work/broken"
	chmod +x "$work/broken"
	sed "s|/usr/bin/mdevirtctl|$work/broken|g" "$hook" >"$work/failing"
	sh "$work/failing" guest reconnect begin - </dev/null 2>/dev/null || bad "the hook would have a running guest killed"
	! sh "$work/failing" guest prepare begin - </dev/null || bad "the hook hides a refusal"
	rm -r "$work"
}

check_manual() { # written by hand: its options are those of the program
	local of_program of_page
	of_program=$("$root/usr/sbin/mdevirtd" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort)
	of_page=$(zcat "$root/usr/share/man/man8/mdevirtd.8.gz" | sed 's/\\-/-/g' | grep -E '^\.BI? ?R? ' | grep -oE -- '--[a-z-]+' | sort)
	[ "$of_program" = "$of_page" ] ||
		bad "mdevirtd.8 (<) and mdevirtd --help (>) differ: $(diff <(echo "$of_page") <(echo "$of_program") | grep '^[<>]' | paste -sd' ')"
}

check_unit
check_lock_writable
check_manual
check_bus_policy
check_hook
xmllint --noout --nonet "$root/usr/share/polkit-1/actions/org.mdevirt1.policy" || bad "the polkit action is no XML"
systemd-sysusers --dry-run "$root/usr/lib/sysusers.d/mdevirt.conf" >/dev/null 2>&1 || bad "sysusers cannot read its file"
"$root/usr/bin/mdevirtctl" config check "$root/etc/mdevirt/mdevirt.toml" >/dev/null || bad "the example configuration is refused"
bash -n "$root/usr/share/bash-completion/completions/mdevirtctl" || bad "the completion for bash does not parse"

[ "$failed" = 0 ] || exit 1
echo "check-package: $(cd "$root" && find . -type f | wc -l) files, all in order"
