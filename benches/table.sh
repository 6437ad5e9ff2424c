#!/bin/bash
# table.sh - measures and prints one table: the inventory pass beside bare libvirt, a claim's commits and time, the traits
# of a fleet, the hook, and the idle daemon's memory and wake-ups. Ratios are of the same run; absolute times say little about another machine.
set -euo pipefail
cd "$(dirname "$0")/.."

idle_seconds=${IDLE_SECONDS:-60}
target=$(cargo metadata --format-version 1 --no-deps | jq -r .target_directory)
work=$(mktemp -d)
bus_pid="" daemon_pid=""
finish() {
	for pid in $daemon_pid $bus_pid; do
		kill "$pid" 2>/dev/null || continue
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap finish EXIT

estimate() { jq .median.point_estimate "$target/criterion/$1/new/estimates.json"; }

echo "measuring (a few minutes) ..." >&2
cargo bench --locked --bench inventory >"$work/inventory.log" 2>&1 || { cat "$work/inventory.log" >&2; exit 1; }
cargo bench --locked --bench claim >"$work/claim.log" 2>&1 || { cat "$work/claim.log" >&2; exit 1; }
cargo bench --locked --bench verify >"$work/verify.log" 2>&1 || { cat "$work/verify.log" >&2; exit 1; }
cargo build --locked --release --bins >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }

address=unix:path=$work/bus
dbus-daemon --session --nofork --nopidfile --address="$address" >"$work/bus.log" 2>&1 &
bus_pid=$!
until [ -S "$work/bus" ]; do kill -0 "$bus_pid"; sleep 0.1; done
"$target/release/mdevirtd" --address "$address" --sim tests/scenarios/a2-16vf.xml --config tests/scenarios/a2-16vf.toml \
	--state-dir "$work/state" >"$work/mdevirtd.log" 2>&1 &
daemon_pid=$!
until "$target/release/mdevirtctl" --address "$address" inventory >/dev/null 2>&1; do kill -0 "$daemon_pid"; sleep 0.1; done

# Voluntary switches of all threads: each is one sleep that ended.
wakeups() { cat /proc/"$daemon_pid"/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'; }
# Threads that only blocking calls needed end by themselves after ten seconds.
sleep 15
before=$(wakeups)
sleep "$idle_seconds"
after=$(wakeups)
rss=$(awk '/^VmRSS/ { print $2 }' /proc/"$daemon_pid"/status)

# Of a guest that we have nothing to do with, once for each thing that libvirt tells of it.
hooks=200
guest="<domain type='kvm'><name>guest</name><devices/></domain>"
began=$(date +%s%N)
for _ in $(seq $hooks); do
	said=$("$target/release/mdevirtctl" hook qemu guest prepare begin - <<<"$guest")
	[ -z "$said" ]
done
hook=$((($(date +%s%N) - began) / hooks))

bare=$(estimate inventory_384vf/bare_libvirt)
pass=$(estimate inventory_384vf/inventory_pass)
claim=$(estimate claim_and_release)
fleet=$(estimate trait_verify/10000_hosts)
commits=$(awk '/^claim_commits/ { print $2; exit }' "$work/claim.log")

{
	echo "what|measured|goal"
	echo "bare libvirt, list and read 384 VFs x 23 types|$(jq -n "$bare / 1e6 * 100 | round / 100") ms|-"
	echo "inventory pass over the same|$(jq -n "$pass / 1e6 * 100 | round / 100") ms|-"
	echo "ratio|$(jq -n "$pass / $bare * 100 | round / 100")|at most 1.3"
	echo "commits of a claim|$commits|at most 2"
	echo "claim and release, simulated host|$(jq -n "$claim / 1e6 * 100 | round / 100") ms|-"
	echo "traits of 10,000 hosts compared|$(jq -n "$fleet / 1e9 * 100 | round / 100") s|under 2 s"
	echo "libvirt's hook for a guest without our devices|$(jq -n "$hook / 1e6 * 100 | round / 100") ms|under 10 ms"
	echo "idle daemon, resident|$(jq -n "$rss / 1024 * 10 | round / 10") MiB|under 25 MiB"
	echo "idle daemon, wake-ups in $idle_seconds s|$((after - before))|0 without a watchdog"
} | column -t -s '|'
