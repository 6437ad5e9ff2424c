//! What a choice of devices rests on. libvirt's hook books without waiting for other bookings, so that each looks again, in
//! its transaction, whether another one was quicker on the same card.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::observe::Observation;
use crate::model::{Claim, ClaimId, Fault, FaultKind, ParentAddr};
use crate::store::Books;

/// The claims of the cards that a choice is on, as they were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Basis(BTreeMap<ParentAddr, BTreeSet<ClaimId>>);

/// How often a booking that was outrun is made again.
const TRIES: u32 = 3;

impl Basis {
    /// The basis of these new claims.
    pub(super) fn of(chosen: &[Claim], seen: &Observation) -> Self {
        let on = |card: &ParentAddr| seen.claims.iter().filter(|c| is_on(c, card)).map(|c| c.id).collect();
        let cards = chosen.iter().filter_map(|claim| claim.card.clone());
        Self(cards.map(|card| (card.clone(), on(&card))).collect())
    }

    /// Whether it still stands.
    ///
    /// # Errors
    /// A card has claims that were not seen.
    pub(super) fn check(&self, books: &Books) -> Result<(), Fault> {
        let outrun = |(card, seen): (&ParentAddr, &BTreeSet<ClaimId>)| {
            books.claims().any(|c| is_on(c, card) && !seen.contains(&c.id)).then(|| card.clone())
        };
        let Some(card) = self.0.iter().find_map(outrun) else { return Ok(()) };
        let text = format!("card {card} was booked on by somebody else meanwhile; ask again");
        Err(Fault::new(FaultKind::InstanceBusy, text).with_details(json!({ "outrun_on": card })))
    }
}

fn is_on(claim: &Claim, card: &ParentAddr) -> bool {
    claim.card.as_ref().unwrap_or(&claim.parent) == card
}

/// Attempts at a booking that another one may outrun.
#[derive(Debug, Default)]
pub(super) struct Tries(u32);

impl Tries {
    /// Whether it is worth another attempt.
    pub(super) fn again<T>(&mut self, outcome: &Result<T, Fault>) -> bool {
        self.0 += 1;
        self.0 < TRIES && outcome.as_ref().is_err_and(|fault| fault.details.get("outrun_on").is_some())
    }
}
