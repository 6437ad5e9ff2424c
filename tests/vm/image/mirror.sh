#!/bin/bash
# mirror.sh - prints the Debian mirror that apt on this machine already uses. Suites of one archive live side by side, so the host's
# own release leads to the guest's. RIG_MIRROR overrides, for a host that is not a Debian.
set -euo pipefail

if [ -n "${RIG_MIRROR:-}" ]; then
	echo "$RIG_MIRROR"
	exit
fi
# shellcheck disable=SC1091
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016  # the $(..) is apt's own format, not the shell's
mirror=$(apt-get indextargets --format '$(CODENAME) $(ORIGIN) $(REPO_URI)' 'Created-By: Packages' |
	awk -v c="$codename" '$1 == c && $2 == "Debian" && !found { print $3; found = 1 }')
if [ -z "$mirror" ]; then
	echo "mirror.sh: found no Debian mirror in apt's sources; run apt-get update, or set RIG_MIRROR" >&2
	exit 1
fi
echo "$mirror"
