//! The examples at the end of each command's `--help` and manual page.

pub(super) const TOP: &str = "\
Examples:
  mdevirtctl status
  mdevirtctl spawn web-01.xml --flavor resources:VGPU=1,trait:CUSTOM_SMALL=required
  mdevirtctl inventory --json | jq '.[] | {provider, total, used}'

Exit codes:
  0 done                           5 trait drift, mismatch or incompatible
  1 the host or the daemon failed  6 no such thing, or there already
  2 bad input or wrong usage       7 access denied
  3 no capacity                    8 daemon or host unreachable, timeout
  4 busy, try later";

pub(super) const STATUS: &str = "\
Examples:
  mdevirtctl status
  mdevirtctl status --json | jq .findings";

pub(super) const DEVICE: &str = "\
Examples:
  mdevirtctl device list
  mdevirtctl device show 0000:84:00.0
  mdevirtctl device list --json | jq -r '.[] | select(.status != \"ok\") | .address'";

pub(super) const TYPE: &str = "\
Examples:
  mdevirtctl type list
  mdevirtctl type list --json | jq -r '.[].name'";

pub(super) const INVENTORY: &str = "\
Examples:
  mdevirtctl inventory
  mdevirtctl inventory --json | jq 'map(.total - .reserved - .used) | add'";

pub(super) const INSTANCE: &str = "\
Examples:
  mdevirtctl instance list
  mdevirtctl instance show web-01
  mdevirtctl instance show 11111111-2222-4333-8444-555555555555 --json";

pub(super) const DOMAIN: &str = "\
Nothing is booked before the domain starts: libvirt's qemu hook then has its devices made, or refuses the start with the reason. \
When it stops they are given back, unless [policy] on_stop = \"keep\".

Examples:
  mdevirtctl domain request web-02 --flavor \"resources:VGPU=1,trait:CUSTOM_GOLD=required\"
  virsh start web-02
  mdevirtctl domain request web-02 --clear";

pub(super) const CLAIM: &str = "\
Examples:
  mdevirtctl claim create --instance 11111111-2222-4333-8444-555555555555 --flavor resources:VGPU=1
  mdevirtctl claim release 11111111-2222-4333-8444-555555555555";

pub(super) const SPAWN: &str = "\
Examples:
  mdevirtctl spawn web-01.xml --flavor resources:VGPU=1
  mdevirtctl spawn web-01.xml --flavor resources:VGPU=1,trait:CUSTOM_SMALL=required --dry-run
  mdevirtctl spawn - --flavor resources:VGPU=1 --operation-id 7 --json < web-01.xml";

pub(super) const DESTROY: &str = "\
Examples:
  mdevirtctl destroy web-01
  mdevirtctl destroy 11111111-2222-4333-8444-555555555555 --no-wait";

pub(super) const START: &str = "\
Examples:
  mdevirtctl start web-01
  mdevirtctl start web-01 --timeout 60";

pub(super) const STOP: &str = "\
Examples:
  mdevirtctl stop web-01
  mdevirtctl stop web-01 --json";

pub(super) const DOCTOR: &str = "\
Examples:
  mdevirtctl doctor
  mdevirtctl doctor --json | jq -r '.[] | select(.ok | not) | .fix'";

pub(super) const PLAN: &str = "\
Examples:
  mdevirtctl plan
  mdevirtctl plan --config ./mdevirt.toml
  mdevirtctl plan --json | jq '.changes | length'";

pub(super) const TRAIT: &str = "\
Examples:
  mdevirtctl trait list
  mdevirtctl trait show CUSTOM_GOLD
  mdevirtctl trait list --json | jq -r '.[] | select(.state != \"ok\") | .name'";

pub(super) const TRAIT_LOCK: &str = "\
Examples:
  mdevirtctl trait lock
  mdevirtctl trait check
  mdevirtctl trait check --json | jq '.differences'";

pub(super) const TRAIT_ACCEPT: &str = "\
Examples:
  mdevirtctl trait accept CUSTOM_GOLD --reason 'driver 580 calls it so'
  mdevirtctl trait accept 'GRID T4-2Q' --reason 'renamed by the vendor' --parent 0000:3b:00.0";

pub(super) const TRAIT_EXPORT: &str = "\
Examples:
  mdevirtctl trait export > $(hostname).json";

pub(super) const TRAIT_VERIFY: &str = "\
Examples:
  mdevirtctl trait verify gpu-01.json gpu-02.json
  mdevirtctl trait verify exports/*.json --json | jq -r '.differences[] | [.trait, .host] | @tsv'

What most hosts say is expected; of a tie, what the first file says. A trait that one host can serve and another
cannot is a difference too: compare hosts that VMs move between.";

pub(super) const JOB: &str = "\
Examples:
  mdevirtctl job list
  mdevirtctl job show e38f8857-e8ba-4559-b696-d9c39e499710
  mdevirtctl job list --json | jq -r '.[] | select(.state == \"stuck\") | .id'";

pub(super) const MONITOR: &str = "\
Examples:
  mdevirtctl monitor
  mdevirtctl monitor --json | jq -c 'select(.signal == \"JobRemoved\")'";

pub(super) const CONFIG: &str = "\
Examples:
  mdevirtctl config check
  mdevirtctl config show
  mdevirtctl config import-nova /etc/nova/nova.conf -o mdevirt.toml";

pub(super) const CONFIG_CHECK: &str = "\
Examples:
  mdevirtctl config check
  mdevirtctl config check ./mdevirt.toml --json";

pub(super) const CONFIG_SHOW: &str = "\
Examples:
  mdevirtctl config show
  mdevirtctl config show --default > mdevirt.toml";

pub(super) const CONFIG_IMPORT: &str = "\
Examples:
  mdevirtctl config import-nova /etc/nova/nova.conf
  mdevirtctl config import-nova /etc/nova/nova.conf -o mdevirt.toml --traits traits.toml";

pub(super) const TRAITS_DRAFT: &str = "\
Write a draft of traits.toml to this new file: one trait for each enabled type

nova.conf has no traits, so the draft proposes names, CUSTOM_ and the vendor's name of the type. Where nova.conf \
has only an id of a type, which other hosts and drivers may use for another type, the trait is a comment in which you \
fill in the vendor's name.";

pub(super) const RELOAD: &str = "\
Examples:
  mdevirtctl config check && mdevirtctl reload";

pub(super) const HOOK: &str = "\
Examples:
  mdevirtctl hook qemu web-01 prepare begin -";

pub(super) const COMPLETIONS: &str = "\
Examples:
  mdevirtctl completions bash > /usr/share/bash-completion/completions/mdevirtctl
  mdevirtctl completions zsh > /usr/share/zsh/site-functions/_mdevirtctl";

pub(super) const MAN: &str = "\
Examples:
  mdevirtctl man target/man";

pub(super) const REBOOT: &str = "\
Examples:
  mdevirtctl reboot web-01

A reboot from inside the guest needs nothing of mdevirt.";

pub(super) const SUSPEND: &str = "\
Examples:
  mdevirtctl suspend web-01
  mdevirtctl resume web-01

A device that cannot be saved is taken out of the guest for the time; it stays booked for it.";

pub(super) const RESCUE: &str = "\
Examples:
  mdevirtctl rescue web-01 rescue.xml
  mdevirtctl unrescue web-01";

pub(super) const REBUILD: &str = "\
Examples:
  mdevirtctl rebuild web-01 web-01-new.xml";

pub(super) const ATTACH: &str = "\
Examples:
  mdevirtctl attach web-01 --flavor resources:VGPU=1
  mdevirtctl instance show web-01
  mdevirtctl detach web-01 4b20d080-1b54-4048-85b3-a6a62d165c01";

pub(super) const RESTORE: &str = "\
Examples:
  mdevirtctl restore web-01
  mdevirtctl restore

Without an instance: every one that lacks a device.";

pub(super) const RESIZE: &str = "\
Examples:
  mdevirtctl resize web-01 --flavor resources:VGPU=1,trait:CUSTOM_LARGE=required
  mdevirtctl confirm web-01
  mdevirtctl resize web-01 --flavor ''";

pub(super) const MIGRATE: &str = "\
Examples:
  mdevirtctl migrate web-01 --to gpu-02
  mdevirtctl confirm web-01
  mdevirtctl --host root@gpu-01 migrate web-01 --to root@gpu-02 --confirm
  mdevirtctl migrate web-01 --to root@gpu-02 --live --downtime 5000

A command that was interrupted is given again and goes on where it was.";

pub(super) const EVACUATE: &str = "\
Examples:
  mdevirtctl instance export web-01 --output /srv/spare/web-01.json
  mdevirtctl evacuate /srv/spare/web-01.json
  mdevirtctl --host gpu-01 instance forget web-01";

pub(super) const RECONCILE: &str = "\
Never touched: devices of others, devices that a domain names or that are open, and what could not be read.

Examples:
  mdevirtctl reconcile --dry-run
  mdevirtctl --json reconcile | jq '.[] | select(.done | not)'";
