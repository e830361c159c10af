//! Why no formula applies to a case, as the end of a sentence: "no formula applies: …".

use doyen_core::registry::Algorithm;
use doyen_sim::fault::{Action, Fault};
use doyen_sim::message::{Change, MessageChange};
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::Case;
use doyen_sim::time::Time;

use super::{Formula, Group, of};

/// The reason why a run is not calm. All formulas are about calm runs.
pub(super) fn disturbance(case: &Case) -> Option<String> {
    if let Some(fault) = case.faults.first() {
        return Some(of_fault(fault, case.algorithm.elects()));
    }
    if let Some(change) = case.changes.first() {
        return Some(of_change(change));
    }
    let network = &case.network;
    let reasons = [
        (network.loss > 0.0, "messages may be lost, and the formulas assume that none is"),
        (
            network.duplication > 0.0,
            "messages may arrive twice, and the formulas assume that none does",
        ),
        (!network.links.is_empty(), "links differ, and the formulas assume that all are alike"),
        (case.chaos.is_some(), "faults happen at random, and the formulas assume that none does"),
        (
            case.detector.is_some(),
            "a failure detector starts elections, and the formulas are about one that is started",
        ),
        (
            case.algorithm.elects() && case.initiators.is_empty(),
            "no member starts an election by itself",
        ),
        (
            !starts_at_one_instant(case),
            "members start at different times, and the formulas assume that they start together",
        ),
    ];
    if let Some(leader) = case.leader.filter(|_| case.algorithm.elects()) {
        return Some(format!(
            "{leader} leads at the beginning, and the formulas assume that no member does"
        ));
    }
    reasons.into_iter().find(|(is, _)| *is).map(|(_, why)| why.to_owned())
}

fn starts_at_one_instant(case: &Case) -> bool {
    let first = case.initiators.iter().next().map_or(Time::ZERO, |(_, at)| at);
    case.initiators.iter().all(|(_, at)| at == first)
}

fn of_fault(fault: &Fault, elects: bool) -> String {
    let when = if elects { " during the election" } else { "" };
    let assumed = format!("and the formulas assume that no member does{when}");
    match &fault.what {
        Action::Crash { member, .. } => format!("{member} crashes, {assumed}"),
        Action::Restart { member, .. } | Action::Replace { member, .. } => {
            format!("{member} restarts, {assumed}")
        }
        Action::Pause { member, .. } => format!("{member} pauses, {assumed}"),
        Action::Campaign(member) => {
            format!("{member} starts another election, and the formulas are about one")
        }
        Action::Clock { member, .. } => {
            format!("the clock of {member} changes, and the formulas assume that none does")
        }
        Action::Cut { from, to } => {
            format!("the link from {from} to {to} is cut, and the formulas assume that none is")
        }
        Action::Mend { from, to } => {
            format!(
                "the link from {from} to {to} is mended, and the formulas assume that none is cut"
            )
        }
        Action::Heal => {
            "the network heals, and the formulas assume that nothing goes wrong with it".to_owned()
        }
        Action::Partition { .. } => {
            "the members are separated, and the formulas assume that all reach each other"
                .to_owned()
        }
        Action::Drop { kind } => {
            format!("a {kind} is lost, and the formulas assume that no message is")
        }
        Action::LinkOverride(_) => {
            "the network changes, and the formulas assume that it does not".to_owned()
        }
        Action::CopyDisk(_) | Action::Command { .. } | Action::Attributes { .. } => {
            "an operator acts, and the formulas assume that none does".to_owned()
        }
    }
}

fn of_change(MessageChange { message, change }: &MessageChange) -> String {
    let (from, to, kind) = (message.from, message.to, &message.kind);
    let what = match change {
        Change::Drop => "is lost",
        Change::Delay(_) => "is late",
        Change::Double(_) => "arrives twice",
    };
    format!(
        "{from}'s {kind} to {to} {what}, and the formulas assume that no message is lost, late or doubled"
    )
}

/// Why [`of`](super::of) knows no formula for `case`; none if it knows one.
pub fn why_not(case: &Case) -> Option<String> {
    if of(case).is_some() {
        return None;
    }
    // There is no formula for a quorum, however calm the run is.
    if case.algorithm == Algorithm::Quorum {
        return Some("no source gives one for a quorum".to_owned());
    }
    if !case.algorithm.elects() {
        let none = || format!("none is known for these requests with {}", case.algorithm);
        return disturbance(case).or_else(|| Some(none()));
    }
    let Some(group) = Group::of(case) else { return disturbance(case) };
    let bound = case.config.timing.transmission;
    let count = group.count();
    Some(if matches!(case.network.delay, DelayModel::Exponential { .. }) {
        "delays have no bound, and the formulas assume one".to_owned()
    } else if !group.in_time() {
        format!("messages may take longer than D, {bound}, and the formulas assume that none does")
    } else if count > 1 {
        format!("{count} members start at once, and none is known for that here")
    } else if group.contacts_dead() {
        "members that are down are contacted, and none is known for that here".to_owned()
    } else {
        format!("none is known for {} in this reading, {}", case.algorithm, case.mode())
    })
}

/// The formula for the same case without faults; none if none applies even then.
pub fn undisturbed(case: &Case) -> Option<Formula> {
    let mut calm = case.clone();
    calm.faults.clear();
    calm.changes.clear();
    calm.chaos = None;
    calm.network.links.clear();
    (calm.network.loss, calm.network.duplication) = (0.0, 0.0);
    of(&calm)
}
