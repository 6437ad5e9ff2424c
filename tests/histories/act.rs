//! What may happen in a history, small enough to be read.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// One of the two hosts.
pub const HOSTS: usize = 2;
/// Names of the VMs.
pub const VMS: [&str; 3] = ["a", "b", "c"];

/// What is asked for an instance; which operation it becomes depends on where the instance is and how far its move is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Spawn(Flavor),
    Claim(Flavor),
    Destroy,
    Start,
    Stop,
    Reboot,
    Suspend,
    Resume,
    Rescue,
    Unrescue,
    Rebuild,
    Attach(Flavor),
    Detach,
    Resize(Flavor),
    /// To the other host: switched off here.
    Leave,
    /// Prepared on the other host.
    Arrive,
    /// The next one of whatever way it is on.
    Onward,
    Finish,
    Confirm,
    Revert,
    /// To the other host from the document alone, the guest being off for good here.
    Evacuate,
    /// What is left of it on the host that it was evacuated from.
    Forget,
    Restore,
    /// The next step of a live migration, the first one if there is none.
    Send,
}

/// What a VM asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    None,
    Small,
    Two,
    Large,
    Both,
}

impl Flavor {
    pub fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Small => "resources:VGPU=1,trait:CUSTOM_SMALL=required",
            Self::Two => {
                "resources1:VGPU=1,trait1:CUSTOM_SMALL=required,resources2:VGPU=1,trait2:CUSTOM_SMALL=required"
            }
            Self::Large => "resources:VGPU=1,trait:CUSTOM_LARGE=required",
            Self::Both => {
                "resources1:VGPU=1,trait1:CUSTOM_SMALL=required,resources2:VGPU=1,trait2:CUSTOM_LARGE=required"
            }
        }
    }
}

/// What goes wrong while it is done; numbers count calls of the host, or points of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Nothing,
    /// The daemon dies at a point of the operation.
    Crash(u8),
    /// And the next one too, at a later point.
    CrashTwice(u8, u8),
    /// A call is refused.
    Refused(u8),
    /// A call is refused, and the daemon dies on the way back.
    RefusedAndCrash(u8, u8),
    /// The answer of a call is lost; it took effect.
    AnswerLost(u8),
    /// From this call on libvirt is away, for as many.
    Away(u8, u8),
}

/// One line of a history.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// `host` is where a new one begins.
    Ask {
        vm: usize,
        verb: Verb,
        host: usize,
        trouble: Trouble,
    },
    /// The daemon is started anew.
    Restart(usize),
    /// libvirt is away until it is back, or until the end.
    LibvirtAway(usize),
    LibvirtBack(usize),
    /// A card is pulled, its devices with it.
    Pull(usize, u8),
    PutBack(usize, u8),
    /// The device of a VM vanishes.
    Lose(usize),
    /// Its guest shuts down by itself, or is started by somebody.
    Off(usize),
    On(usize),
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ask { vm, verb, host, trouble } => {
                write!(f, "{} {verb:?} (host {host})", VMS[*vm])?;
                if *trouble == Trouble::Nothing { Ok(()) } else { write!(f, ", meanwhile {trouble:?}") }
            }
            Self::Restart(host) => write!(f, "host {host} restarts its daemon"),
            Self::LibvirtAway(host) => write!(f, "host {host} loses libvirt"),
            Self::LibvirtBack(host) => write!(f, "host {host} has libvirt again"),
            Self::Pull(host, card) => write!(f, "host {host} loses card {card:#x}"),
            Self::PutBack(host, card) => write!(f, "host {host} has card {card:#x} again"),
            Self::Lose(vm) => write!(f, "{} loses its device", VMS[*vm]),
            Self::Off(vm) => write!(f, "{} shuts down by itself", VMS[*vm]),
            Self::On(vm) => write!(f, "{} is started by somebody", VMS[*vm]),
        }
    }
}

/// Which troubles a history has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    Calm,
    Crashes,
    Faults,
    All,
}

fn flavor() -> impl Strategy<Value = Flavor> {
    select(&[Flavor::Small, Flavor::Two, Flavor::Large, Flavor::Both][..])
}

fn new_flavor() -> impl Strategy<Value = Flavor> {
    prop_oneof![1 => Just(Flavor::None), 4 => flavor()]
}

fn verb() -> impl Strategy<Value = Verb> {
    use Verb as V;
    prop_oneof![
        3 => flavor().prop_map(V::Spawn),
        1 => flavor().prop_map(V::Claim),
        2 => Just(V::Destroy),
        6 => select(&[V::Start, V::Stop, V::Reboot, V::Suspend, V::Resume, V::Restore][..]),
        3 => select(&[V::Rescue, V::Unrescue, V::Rebuild][..]),
        2 => flavor().prop_map(V::Attach),
        2 => Just(V::Detach),
        3 => new_flavor().prop_map(V::Resize),
        8 => Just(V::Onward),
        7 => select(&[V::Leave, V::Arrive, V::Finish, V::Confirm, V::Revert][..]),
        2 => select(&[V::Evacuate, V::Forget][..]),
        4 => Just(V::Send),
    ]
}

fn trouble(kinds: Kinds) -> BoxedStrategy<Trouble> {
    use Trouble as T;
    let (at, early) = (0u8..40, 0u8..16);
    let crash = prop_oneof![
        at.clone().prop_map(T::Crash),
        (at.clone(), at.clone()).prop_map(|(a, b)| T::CrashTwice(a, b)),
        (early.clone(), at).prop_map(|(a, b)| T::RefusedAndCrash(a, b)),
    ];
    let fault = prop_oneof![
        early.clone().prop_map(T::Refused),
        early.clone().prop_map(T::AnswerLost),
        (early, 1u8..6).prop_map(|(a, b)| T::Away(a, b)),
    ];
    match kinds {
        Kinds::Calm => Just(T::Nothing).boxed(),
        Kinds::Crashes => prop_oneof![1 => Just(T::Nothing), 1 => crash].boxed(),
        Kinds::Faults => prop_oneof![1 => Just(T::Nothing), 1 => fault].boxed(),
        Kinds::All => prop_oneof![2 => Just(T::Nothing), 1 => crash, 1 => fault].boxed(),
    }
}

/// Acts, of which most have something to act on: there is a VM at first, and it is asked for most of what follows.
pub fn history(kinds: Kinds) -> impl Strategy<Value = Vec<Act>> {
    let first = (flavor(), 0..HOSTS, trouble(kinds)).prop_map(|(flavor, host, trouble)| Act::Ask {
        vm: 0,
        verb: Verb::Spawn(flavor),
        host,
        trouble,
    });
    (first, vec(any(kinds), 5..=11)).prop_map(|(first, rest)| [vec![first], rest].concat())
}

fn any(kinds: Kinds) -> impl Strategy<Value = Act> {
    let vm = || prop_oneof![5 => Just(0), 2 => Just(1), 1 => Just(2)];
    let host = || 0..HOSTS;
    let card = || 0x81u8..=0x83;
    let ask = (vm(), verb(), host(), trouble(kinds)).prop_map(|(vm, verb, host, trouble)| Act::Ask {
        vm,
        verb,
        host,
        trouble,
    });
    let others = prop_oneof![
        host().prop_map(Act::Restart),
        host().prop_map(Act::LibvirtAway),
        host().prop_map(Act::LibvirtBack),
        (host(), card()).prop_map(|(host, card)| Act::Pull(host, card)),
        (host(), card()).prop_map(|(host, card)| Act::PutBack(host, card)),
        vm().prop_map(Act::Lose),
        vm().prop_map(Act::Off),
        vm().prop_map(Act::On),
    ];
    let outside = if kinds == Kinds::Calm { 0 } else { 3 };
    prop_oneof![16 => ask, 1 + outside => others]
}
