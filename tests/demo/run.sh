#!/bin/bash
# run.sh BIN - shows the main job of mdevirt on a simulated host, with the programs of the directory BIN: a private bus,
# mdevirtd on it, and libvirt's test driver inside. Every step is checked; it ends by itself, exit code 0 if all is as told.
set -euo pipefail

bin=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
scenario=$(realpath "$here/../scenarios/two-m60.xml")
gold="resources:VGPU=1,trait:CUSTOM_GOLD=required"
silver="resources:VGPU=1,trait:CUSTOM_SILVER=required"

work=$(mktemp -d)
address=unix:path=$work/bus
other=unix:path=$work/bus-b
bus_pid="" daemon_pid="" other_bus_pid="" other_pid=""

end() { # PID, if it still runs
	[ -n "$1" ] || return 0
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

finish() {
	local code=$?
	trap - EXIT
	if [ "$code" != 0 ] && [ -s "$work/mdevirtd.log" ]; then
		echo "demo: the end of mdevirtd's log:" >&2
		tail -n 30 "$work/mdevirtd.log" >&2
	fi
	end "$daemon_pid"
	end "$bus_pid"
	end "$other_pid"
	end "$other_bus_pid"
	rm -rf "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "demo: FAILED: $*" >&2
	exit 1
}

await() { # PID WHAT COMMAND... - until the command succeeds; fails when the process has ended, or after half a minute
	local pid=$1 what=$2 deadline=$((SECONDS + 30))
	shift 2
	until "$@" >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || fail "$what has ended"
		[ "$SECONDS" -lt "$deadline" ] || fail "$what does not answer"
		sleep 0.1
	done
}

ctl() { "$bin/mdevirtctl" --address "$address" --timeout 60 "$@"; }

show() { # a command as a person types it, and what it says
	local argument shown=""
	for argument; do shown+=" ${argument:-''}"; done
	echo "\$ mdevirtctl$shown"
	ctl "$@"
	echo
}

there() { "$bin/mdevirtctl" --address "$other" --timeout 60 "$@"; }

tell() { printf '%s\n' "--- $*"; }

expect() { # WHAT JSON-FILE JQ-FILTER [--arg NAME VALUE]... - the filter must give true
	local what=$1 file=$2 filter=$3
	shift 3
	# Slurped, since jq is content with an empty file.
	jq -e -s "$@" "length == 1 and (.[0] | $filter)" "$file" >/dev/null || fail "$what; this does not hold: $filter, of $(jq -c . "$file" || cat "$file")"
}

record() { # FILE COMMAND... - the command's JSON
	local file=$work/$1
	shift
	ctl --json "$@" >"$file" || fail "mdevirtctl --json $* ended with code $?"
}

hostdev_of() { jq -r .domain_xml "$1" | sed -n '/<hostdev/,/<\/hostdev>/p'; }

start() { # SCENARIO
	"$bin/mdevirtd" --address "$address" --sim "$1" --host-name host-a --config "$work/mdevirt.toml" --state-dir "$work/state" \
		>>"$work/mdevirtd.log" 2>&1 &
	daemon_pid=$!
	await "$daemon_pid" mdevirtd ctl status
}

start_other() { # SCENARIO - a second host, with the configuration, traits and lock of the first
	dbus-daemon --session --nofork --nopidfile --address="$other" >"$work/bus-b.log" 2>&1 &
	other_bus_pid=$!
	await "$other_bus_pid" dbus-daemon test -S "$work/bus-b"
	"$bin/mdevirtd" --address "$other" --sim "$1" --host-name host-b --config "$work/mdevirt.toml" --state-dir "$work/state-b" \
		>>"$work/mdevirtd.log" 2>&1 &
	other_pid=$!
	await "$other_pid" "the second mdevirtd" there status
}

stop() {
	local code=0
	kill "$daemon_pid"
	wait "$daemon_pid" || code=$?
	daemon_pid=""
	[ "$code" = 0 ] || fail "mdevirtd ended with code $code when told to stop"
}

cd "$here"
# The files of traits have absolute paths, which are those of this run.
mkdir "$work/mdevirt.toml.d"
cp mdevirt.toml "$work"
printf '[traits]\nfile = "%s"\nlock = "%s"\n' "$here/traits.toml" "$work/traits.lock" >"$work/mdevirt.toml.d/traits.toml"

dbus-daemon --session --nofork --nopidfile --address="$address" >"$work/bus.log" 2>&1 &
bus_pid=$!
await "$bus_pid" dbus-daemon test -S "$work/bus"

start "$scenario"

tell "A host with two GPUs: one cut into four slices of 2 GiB, one that is a single slice of 8 GiB"
show inventory
record before inventory
expect "two providers" "$work/before" 'length == 2 and all(.used == 0 and .foreign == 0)'
expect "one gold slice" "$work/before" \
	'any(.parent == "0000:85:00.0" and .type_name == "GRID M60-8Q" and .total == 1 and (.traits | index("CUSTOM_GOLD")) != null)'
expect "four silver slices" "$work/before" \
	'any(.parent == "0000:84:00.0" and .type_name == "GRID M60-2Q" and .total == 4 and (.traits | index("CUSTOM_SILVER")) != null)'

tell "What gold means is said once, by the vendor's name of the type; each host looks up its own id for it"
cat traits.toml
echo
show trait list
record traits trait list
expect "gold is a type that the second card offers" "$work/traits" \
	'length == 1 and (.[0] | .name == "CUSTOM_GOLD" and .state == "ok" and (.locked | not) and any(.local_types[]; . == {parent: "0000:85:00.0", id: "nvidia-22"}))'

tell "The lock pins that; the same file is shipped to every host, and a host that differs says so with exit code 5"
show trait lock | sed "s|$work|/etc/mdevirt|"
show trait check | sed "s|$work|/etc/mdevirt|"
[ -s "$work/traits.lock" ] || fail "there is no lock"
record check trait check
expect "the host agrees with its lock" "$work/check" '.agree and .differences == [] and .lock.revision == 1 and .lock.traits == 1'

tell "A VM that asks for gold; first only what would happen"
show spawn web-01.xml --flavor "$gold" --dry-run
record dry instance list
expect "a dry run books nothing" "$work/dry" '. == []'

tell "Now in earnest; this <hostdev> was written into its domain XML"
echo "\$ mdevirtctl --json spawn web-01.xml --flavor $gold"
record web-01 spawn web-01.xml --flavor "$gold"
hostdev_of "$work/web-01"
echo
expect "one gold device" "$work/web-01" \
	'(.job | type == "string") and (.devices | length == 1) and (.devices[0] | .parent == "0000:85:00.0" and .trait == "CUSTOM_GOLD")'
uuid=$(jq -r '.devices[0].uuid' "$work/web-01")
hostdev=$(hostdev_of "$work/web-01")
[[ $hostdev == *"type='mdev'"* && $hostdev == *"model='vfio-pci'"* && $hostdev == *"uuid='$uuid'"* ]] ||
	fail "the hostdev of mdev $uuid is not in the domain XML"

tell "Another one on the other card"
show spawn web-02.xml --flavor "$silver"

tell "The books: who holds what, and what is left"
show instance list
show inventory
record instances instance list
expect "two instances with a device each, in use" "$work/instances" \
	'(map(.name) | sort) == ["web-01", "web-02"] and all(.claims | length == 1 and all(.state == "in-use"))'
# shellcheck disable=SC2016  # $uuid is jq's
expect "web-01 holds the device of its XML" "$work/instances" 'any(.name == "web-01" and .claims[0].uuid == $uuid)' --arg uuid "$uuid"
record after inventory
expect "one slice of each card used" "$work/after" 'length == 2 and all(.used == 1)'

tell "Gold is sold out: the next one is refused, with the reason for each parent"
sed -e 's/web-01/web-03/' -e '/<uuid>/d' web-01.xml >"$work/web-03.xml"
echo "\$ mdevirtctl spawn web-03.xml --flavor $gold"
code=0
ctl spawn "$work/web-03.xml" --flavor "$gold" || code=$?
echo "exit code $code"
echo
[ "$code" = 3 ] || fail "no capacity is exit code 3, this was $code"
record instances instance list
expect "the refused one left nothing behind" "$work/instances" 'length == 2'

tell "web-02 is resized to a flavor without a slice; until that is confirmed, the old one is kept for it"
show resize web-02 --flavor ''
record resized instance show web-02
expect "the old slice is kept" "$work/resized" '.moving == "resize finished" and (.claims | length == 1 and .[0].role == "outgoing")'

tell "It is reverted: the very slice it had, in the very definition"
show revert web-02
record reverted instance show web-02
# shellcheck disable=SC2016  # $before is jq's
expect "web-02 is as it was" "$work/reverted" '. == ($before[0][] | select(.name == "web-02"))' --slurpfile before "$work/instances"

tell "A second host, whose driver knows the same type by another id. web-01 moves there: gold means the same on both"
sed "s/'nvidia-22'/'nvidia-522'/" "$scenario" >"$work/host-b.xml"
start_other "$work/host-b.xml"
echo "\$ mdevirtctl migrate web-01 --to host-b"
ctl migrate web-01 --to "$other" | sed "s|$other|host-b|"
echo
echo "\$ mdevirtctl confirm web-01"
ctl confirm web-01 | sed "s|$other|host-b|"
echo
there --json instance list >"$work/there"
expect "web-01 runs on host-b with a slice of its own" "$work/there" \
	'length == 1 and (.[0] | .name == "web-01" and .moving == null and (.claims[0] | .mdev_type == "nvidia-522" and .type_name == "GRID M60-8Q" and .state == "in-use"))'
record here instance list
expect "nothing of it is left here" "$work/here" 'map(.name) == ["web-02"]'

tell "All destroyed: the books are empty, and the cards are as they were"
echo "\$ mdevirtctl --host host-b destroy web-01"
there destroy web-01
echo
show destroy web-02
show instance list
show inventory
record instances instance list
expect "no instances" "$work/instances" '. == []'
record end inventory
cmp -s <(jq -S . "$work/before") <(jq -S . "$work/end") || fail "the inventory differs: $(jq -c . "$work/end")"
record devices device list
expect "no device stayed behind" "$work/devices" 'length == 2 and all(.mdevs == [])'

tell "A driver update gives the type another id: gold means the same, and is served under the new one"
stop
sed "s/'nvidia-22'/'nvidia-522'/" "$scenario" >"$work/updated.xml"
start "$work/updated.xml"
show trait show CUSTOM_GOLD
show trait check | sed "s|$work|/etc/mdevirt|"
record traits trait list
expect "gold has moved to the new id, and its history says so" "$work/traits" \
	'.[0] | .state == "ok" and .locked and all(.local_types[]; .id == "nvidia-522") and any(.history[]; .kind == "renumbered" and .now == "nvidia-522")'
record dry spawn web-01.xml --flavor "$gold" --dry-run
expect "the next gold VM gets the new id" "$work/dry" '.devices[0] | .parent == "0000:85:00.0" and .mdev_type == "nvidia-522"'

stop
echo "demo: all as told"
