//! What has to hold when nothing is under way.

use std::collections::BTreeSet;

use mdevirt::host::Hypervisor;
use mdevirt::model::{ClaimRole, ClaimState, DomainOwner, MdevUuid, MoveKind, MovePhase, OpKind};
use mdevirt::xml::domain::DomainDoc;

use crate::act::VMS;
use crate::orchestrator::{stands, uuid};
use crate::run::Pair;
use crate::world::picture::Picture;

/// The slice and the domain that are somebody else's.
const THEIRS: [u128; 2] =
    [0x0000_0000_0000_4000_8000_0000_0000_00ff, 0x0000_0000_0000_4000_8000_0000_0000_00fe];

fn picture(pair: &Pair, host: usize) -> Picture {
    pair.seats[host].on(async |world| Picture::of(&world.service().store, &*world.sim, &*world.sim).await)
}

fn devices(xml: &str) -> BTreeSet<MdevUuid> {
    let doc = DomainDoc::parse(xml).unwrap();
    doc.mdevs().collect()
}

/// Claims, devices and domains agree, on each host and between them.
pub fn at_rest(pair: &mut Pair) {
    for host in 0..2 {
        let now = picture(pair, host);
        let mut odds = hardware(&now);
        for vm in 0..VMS.len() {
            if !pair.stuck.contains(&(host, vm)) {
                odds.extend(instance(pair, host, vm, &now));
            }
        }
        for domain in &now.domains {
            let theirs = domain.uuid.0.as_u128() == THEIRS[1];
            if !theirs && now.books.instance(domain.uuid).is_none() {
                odds.push(format!("domain {:?} has no instance", domain.name));
            }
        }
        let sagas = |vm| format!("{}: {}", VMS[vm], pair.told_of(host, vm));
        if !odds.is_empty() {
            odds.extend((0..VMS.len()).map(sagas));
        }
        pair.odds.extend(odds.into_iter().map(|odd| format!("host {host}: {odd}")));
    }
    for (vm, name) in VMS.iter().enumerate() {
        one_home(pair, vm, name);
    }
}

/// Devices of the books are those of the hardware that are not somebody else's, each in one claim.
fn hardware(now: &Picture) -> Vec<String> {
    let mut odds = Vec::new();
    let made: BTreeSet<_> = now
        .scan
        .mdevs
        .iter()
        .filter(|m| m.uuid.0.as_u128() != THEIRS[0])
        .map(|m| (m.uuid, m.parent.clone()))
        .collect();
    let own: BTreeSet<_> = now.books.own_devices().map(|d| (d.uuid, d.parent.clone())).collect();
    let claimed: Vec<_> = now.books.claims().map(|c| (c.uuid, c.parent.clone())).collect();
    let once: BTreeSet<_> = claimed.iter().cloned().collect();
    if made != own {
        odds.push(format!("made are {made:?}, in the books {own:?}"));
    }
    if own != once || once.len() != claimed.len() {
        odds.push(format!("ours are {own:?}, claimed {claimed:?}"));
    }
    if !now.scan.mdevs.iter().any(|m| m.uuid.0.as_u128() == THEIRS[0] && m.active) {
        odds.push("somebody else's slice is gone".to_owned());
    }
    odds
}

fn instance(pair: &Pair, host: usize, vm: usize, now: &Picture) -> Vec<String> {
    let mut odds = Vec::new();
    let Some(instance) = now.books.instance(uuid(vm)) else { return odds };
    let moving = now.books.move_of(uuid(vm)).map(|m| (m.kind, m.phase));
    let domain = now.domains.iter().find(|d| d.uuid == uuid(vm));
    let expects_none =
        instance.owner == DomainOwner::Caller || moving == Some((MoveKind::In, MovePhase::Prepared));
    if matches!(moving, Some((MoveKind::LiveIn, _))) {
        return expected(vm, now, domain.map(|d| d.xml.as_str()));
    }
    let domain = match (domain, expects_none) {
        (None, true) => return odds,
        (Some(domain), false) => domain,
        (found, _) => {
            odds.push(format!("{}: domain {:?}, {moving:?}", VMS[vm], found.map(|d| &d.name)));
            return odds;
        }
    };
    let here = match moving {
        Some((MoveKind::Out | MoveKind::LiveOut, _)) => ClaimRole::Outgoing,
        _ => ClaimRole::Primary,
    };
    let claims: Vec<_> = now.books.claims_of(uuid(vm)).collect();
    let held: BTreeSet<MdevUuid> = claims.iter().filter(|c| c.role == here).map(|c| c.uuid).collect();
    let definition =
        pair.seats[host].on(async |world| world.sim.definition(uuid(vm)).await.unwrap()).unwrap();
    let saved = pair.seats[host].on(async |world| world.sim.is_saved(uuid(vm)).await.unwrap());
    if devices(&definition) != held {
        odds.push(format!("{}: defined with {:?}, booked {held:?}", VMS[vm], devices(&definition)));
    }
    if domain.running && devices(&domain.xml) != held {
        odds.push(format!("{}: runs with {:?}, booked {held:?}", VMS[vm], devices(&domain.xml)));
    }
    if domain.running && saved {
        odds.push(format!("{} runs, and its memory is saved", VMS[vm]));
    }
    if domain.running && here == ClaimRole::Outgoing {
        odds.push(format!("{} runs on the host that it left", VMS[vm]));
    }
    for claim in claims {
        let used = claim.role == here && domain.running;
        let fits = match claim.state {
            ClaimState::InUse => used,
            ClaimState::Ready | ClaimState::Parked => !used,
            ClaimState::Reserved | ClaimState::Releasing | ClaimState::Missing | ClaimState::Lost => false,
        };
        let role_fits = claim.role == here || matches!(moving, Some((MoveKind::Resize, _)));
        if !fits || !role_fits {
            odds.push(format!(
                "{}: {} claim is {}, running: {}",
                VMS[vm], claim.role, claim.state, domain.running
            ));
        }
    }
    odds
}

/// A guest that is to come, and has come or not: its devices are made, and are nobody else's.
fn expected(vm: usize, now: &Picture, domain: Option<&str>) -> Vec<String> {
    let claims: Vec<_> = now.books.claims_of(uuid(vm)).collect();
    let fits = claims.iter().all(|c| (c.role, c.state) == (ClaimRole::Incoming, ClaimState::Ready));
    let booked: BTreeSet<MdevUuid> = claims.iter().map(|c| c.uuid).collect();
    let named = domain.map_or_else(|| booked.clone(), devices);
    let odd = || format!("{}: to come, claims {claims:?}, its domain names {named:?}", VMS[vm]);
    if fits && named == booked { Vec::new() } else { vec![odd()] }
}

/// An instance lives on one host, or is off on the one that it leaves.
fn one_home(pair: &mut Pair, vm: usize, name: &str) {
    let [a, b] = stands(pair, vm);
    if let (Some(a), Some(b)) = (a, b)
        && a.at_home() == b.at_home()
        && !pair.stuck.iter().any(|(_, it)| *it == vm)
    {
        pair.odds.push(format!("{name} is on both hosts: {a:?} and {b:?}"));
    }
}

/// Every move is brought to an end and every instance destroyed: nothing is left.
pub fn at_the_end(pair: &mut Pair) {
    for vm in 0..VMS.len() {
        end_migration(pair, vm);
        for host in 0..2 {
            match stands(pair, vm)[host].map(|s| s.owner) {
                Some(DomainOwner::Mdevirt) => pair.must(host, vm, OpKind::Destroy),
                Some(DomainOwner::Caller | DomainOwner::Libvirt) => pair.must(host, vm, OpKind::Release),
                None => {}
            }
        }
    }
    for host in 0..2 {
        let now = picture(pair, host);
        let left = (now.books.instances().len(), now.books.claims().len(), now.books.own_devices().len());
        if left != (0, 0, 0) || now.scan.mdevs != pair.seats[host].before.mdevs {
            pair.odds.push(format!("host {host}: left are {left:?} and {:?}", now.scan.mdevs));
        }
        if now.domains.len() != 1 || !now.domains[0].running {
            pair.odds.push(format!("host {host}: domains left: {:?}", now.domains));
        }
    }
}

/// What has come is taken, what has not is given up.
fn end_live(pair: &mut Pair, vm: usize) {
    for host in 0..2 {
        if stands(pair, vm)[host].is_some_and(|s| s.expected()) {
            let came = picture(pair, host).domains.iter().any(|d| d.uuid == uuid(vm));
            pair.must(host, vm, if came { OpKind::LiveCommit } else { OpKind::LiveRollback });
        }
    }
}

fn end_migration(pair: &mut Pair, vm: usize) {
    end_live(pair, vm);
    let all = stands(pair, vm);
    if all.iter().flatten().any(|s| matches!(s.moving, Some((MoveKind::LiveOut, _)))) {
        return; // destroyed with the rest
    }
    let Some(source) = (0..2).find(|host| all[*host].is_some_and(|s| s.leaves())) else {
        // Its source has gone back already.
        for target in 0..2 {
            if let Some((MoveKind::In, phase)) = all[target].and_then(|s| s.moving) {
                let op =
                    if phase == MovePhase::Finished { OpKind::MigrateConfirm } else { OpKind::MigrateRevert };
                pair.must(target, vm, op);
            }
        }
        return;
    };
    let target = 1 - source;
    let end = match all[target].map(|s| s.moving) {
        Some(Some((MoveKind::In, MovePhase::Finished))) => {
            pair.must(target, vm, OpKind::MigrateConfirm);
            OpKind::MigrateConfirm
        }
        Some(Some((MoveKind::In, MovePhase::Prepared))) => {
            pair.must(target, vm, OpKind::MigrateRevert);
            OpKind::MigrateRevert
        }
        Some(_) => OpKind::MigrateConfirm,
        None => OpKind::MigrateRevert,
    };
    pair.must(source, vm, end);
}
