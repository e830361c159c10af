//! Faults in words, with the flag that says the same if there is one.

use doyen_core::members::NodeId;
use doyen_core::protocol::AdminCommand;
use doyen_core::time::Span;
use doyen_sim::fault::{Action, Chaos, ChaosKind, Disk, Fault, LinkOverride, Place, Trigger};
use doyen_sim::render::describe::names;
use doyen_sim::time::Time;
use doyen_sim::words::listed;

use super::spaced;

/// A fault as a sentence without its end.
pub(super) fn in_words(fault: &Fault) -> String {
    let when = match &fault.when {
        Trigger::At(at) => format!("at {}", spaced(*at - Time::ZERO)),
        Trigger::Message { member, sent, kind, count } => {
            let verb = if *sent { "sent" } else { "received" };
            let messages = match count {
                1 => kind.clone(),
                count => format!("{kind} {count} times"),
            };
            format!("as soon as {member} has {verb} {messages}")
        }
    };
    format!("{} {when}", what(&fault.what))
}

fn what(action: &Action) -> String {
    match action {
        Action::Crash { member, forwards: true, .. } => {
            format!("{member} crashes, and its control part still forwards,")
        }
        Action::Crash { member, guardian: Some(_), .. } => {
            format!("{member} crashes, and its guardian lives,")
        }
        Action::Crash { member, .. } => format!("{member} crashes"),
        Action::Restart { member, disk, place, .. } => {
            let disk = match disk {
                Disk::Kept => "",
                Disk::Lost | Disk::LostUnlessAnother => " without its disk",
                Disk::Restored => " with an old copy of its disk",
                Disk::New => " with an empty disk",
            };
            let place = if *place == Place::Same { "" } else { " elsewhere" };
            format!("{member} restarts{disk}{place}")
        }
        Action::Replace { member, disk: Disk::Kept, .. } => {
            format!("a clone of {member} starts elsewhere")
        }
        Action::Replace { member, .. } => format!("a second process of {member} starts elsewhere"),
        Action::CopyDisk(member) => format!("the disk of {member} is copied"),
        Action::Pause { member, lasting } => format!("{member} pauses for {}", spaced(*lasting)),
        Action::Clock { member, rate_ppm, jump: Span::ZERO } => {
            format!("the clock of {member} runs at {} of the true rate", rate(*rate_ppm))
        }
        Action::Clock { member, jump, .. } => {
            format!("the clock of {member} jumps ahead by {}", spaced(*jump))
        }
        Action::Cut { from, to } => format!("the link from {from} to {to} is cut"),
        Action::Mend { from, to } => format!("the link from {from} to {to} is mended"),
        Action::Partition { groups, .. } => {
            let groups: Vec<String> =
                groups.iter().map(|it| format!("{{{}}}", names(it))).collect();
            format!("{} are separated", listed(&groups))
        }
        Action::LinkOverride(rule) => link(rule, &ends(rule)),
        Action::Heal => "the network heals".to_owned(),
        Action::Drop { kind } => format!("the next {kind} is lost"),
        Action::Campaign(member) => format!("{member} starts an election"),
        Action::Command { member, command: AdminCommand::Snapshot } => {
            format!("{member} starts a snapshot")
        }
        Action::Command { member, command: AdminCommand::Tell { to } } => {
            format!("{member} tells {to} something")
        }
        Action::Command { member, command } => format!("{member} receives the command {command}"),
        Action::Attributes { member, .. } => format!("the attribute of {member} keeps changing"),
    }
}

fn rate(rate_ppm: u32) -> f64 {
    f64::from(rate_ppm) / 1e6
}

/// Link overrides, each as a sentence without its end. `bound`: how long members think that messages take.
pub(super) fn links(rules: &[LinkOverride], bound: Span) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    let mut rules = rules.iter().peekable();
    while let Some(rule) = rules.next() {
        let mut ends = ends(rule);
        // The opposite direction nearly always has the same override, and one sentence says both.
        if let Some(id) = rule.from.xor(rule.to)
            && rules.next_if(|&next| *next == reversed(rule)).is_some()
        {
            ends = format!(" to and from {id}");
        }
        let mut sentence = link(rule, &ends);
        if rule.delay.is_some_and(|model| model.bound() > bound.as_nanos()) {
            sentence += &format!(", longer than the {} that members count on", spaced(bound));
        }
        sentences.push(sentence);
    }
    sentences
}

/// The same override for the opposite direction.
fn reversed(rule: &LinkOverride) -> LinkOverride {
    LinkOverride { from: rule.to, to: rule.from, ..rule.clone() }
}

/// The direction of the messages of an override: ` from 2 to 3`.
fn ends(rule: &LinkOverride) -> String {
    let member = |id: Option<NodeId>, word: &str| id.map(|id| format!(" {word} {id}"));
    [member(rule.from, "from"), member(rule.to, "to")].into_iter().flatten().collect()
}

/// A link override, as a sentence without its end.
fn link(rule: &LinkOverride, ends: &str) -> String {
    let kind =
        rule.kind.as_ref().map_or_else(|| "messages".to_owned(), |kind| format!("{kind} messages"));
    let mut what = Vec::new();
    what.extend(rule.delay.map(|model| format!("take {}", model.in_words())));
    what.extend(
        rule.loss.map(|share| format!("are lost with probability {}", percent(f64::from(share)))),
    );
    let share = rule.share.map(|share| format!("{} of the ", percent(f64::from(share))));
    format!("{}{kind}{ends} {}", share.unwrap_or_default(), what.join(" and "))
}

/// `5%`.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", share * 100.0)
}

/// Random faults, a sentence without its end for each kind.
pub(super) fn at_random(chaos: &Chaos) -> Vec<String> {
    let sentence = |kind: ChaosKind| {
        let (every, lasting) = chaos.rate(kind)?;
        let what = match kind {
            ChaosKind::Crash => "a member crashes",
            ChaosKind::Pause => "a member pauses",
            ChaosKind::Cut => "a link is cut",
        };
        let [every, lasting] = [every, lasting].map(spaced);
        Some(format!("at random {what}, every {every} for {lasting} on average"))
    };
    ChaosKind::ALL.into_iter().filter_map(sentence).collect()
}
