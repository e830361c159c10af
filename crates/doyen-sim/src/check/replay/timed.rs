//! A timed run: the simulator runs it, and what it recorded is judged.

use doyen_core::members::{Epoch, NodeId};
use doyen_core::protocol::Role;

use super::super::property::{Fact, Property};
use super::super::space::Claim;
use super::{Ending, Replay, past_of};
use crate::account::Ended;
use crate::record::{Record, What};
use crate::run;
use crate::scenario::Case;

/// Runs `case`, and judges whether it breaks `property`.
pub(super) fn replay(case: Case, property: Property) -> Replay {
    let mut records: Vec<Record> = Vec::new();
    let outcome = run::run(&case, Some(&mut records));
    let members = case.members();
    let (views, quiet) = (&outcome.views, outcome.ended == Ended::Quiet);
    let is_restless = !quiet && property.claim() == Claim::Rests;
    let facts = match property {
        Property::OneLeader => two_leaders(&case, &records),
        Property::OneLeaderPerTerm => two_in_a_term(&records),
        _ if property.holds(members, views) => Vec::new(),
        _ if quiet || is_restless => property.evidence(members, views),
        _ => Vec::new(),
    };
    let ending = match property.claim() {
        Claim::Always | Claim::NoStep => Ending::There,
        _ if quiet => Ending::Rest,
        _ => Ending::Limit,
    };
    let broken = !facts.is_empty() || is_restless;
    let past = past_of(property, &records, &facts);
    let steps = Vec::new();
    Replay { case, property, broken, facts, ending, from: None, steps, records, past }
}

/// The first two that led at once.
fn two_leaders(case: &Case, records: &[Record]) -> Vec<Fact> {
    let mut leaders: Vec<NodeId> = case.leader.into_iter().collect();
    for record in records {
        match record.what {
            What::View { member, role, .. } => {
                leaders.retain(|&leader| leader != member);
                if role == Role::Leader {
                    leaders.push(member);
                }
            }
            What::Crashed { member, .. } => leaders.retain(|&leader| leader != member),
            _ => {}
        }
        if leaders.len() > 1 {
            let leads = format!("leads at {}", record.at);
            return leaders.into_iter().map(|leader| Fact::new(leader, leads.clone())).collect();
        }
    }
    Vec::new()
}

/// The first two that ever led in the same term.
fn two_in_a_term(records: &[Record]) -> Vec<Fact> {
    let mut reigns: Vec<(Epoch, NodeId)> = Vec::new();
    for record in records {
        let What::View { member, epoch, role: Role::Leader, .. } = record.what else { continue };
        let usurps = |&&(term, other): &&(Epoch, NodeId)| term == epoch && other != member;
        if let Some(&(_, other)) = reigns.iter().find(usurps) {
            return vec![
                Fact::new(other, format!("has led in term {epoch}")),
                Fact::new(member, format!("leads in term {epoch} too")),
            ];
        }
        reigns.push((epoch, member));
    }
    Vec::new()
}
