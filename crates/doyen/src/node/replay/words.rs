//! The effects of an event in words. A trace has them as the program writes its own values, which only it can compare.

use doyen_core::change::Names;
use doyen_core::ledger::Stored;
use doyen_core::protocol::{Dropped, Effect, EffectOf, Notice, Role, View};
use doyen_core::time::Delay;
use doyen_core::trace::timer_words;

use super::Process;

pub(super) fn describe(effect: &EffectOf<Process>, name: Names<'_>) -> String {
    match effect {
        Effect::Persist(durable) => {
            let Stored { term, vote, .. } = Stored::on(Some(durable));
            let vote = vote.map_or_else(String::new, |vote| format!(", vote for {}", name(vote)));
            format!("stores term {term}{vote}")
        }
        Effect::Send { to, message } => format!("to {}: {message}", name(*to)),
        Effect::SetTimer { timer, after: Delay { min, max } } => {
            let longest = if min == max { String::new() } else { format!(" to {max}") };
            format!("{} timer in {min}{longest}", timer_words(&format!("{timer:?}")))
        }
        Effect::CancelTimer(timer) => {
            format!("{} timer disarmed", timer_words(&format!("{timer:?}")))
        }
        Effect::Announce(view) => announcement(*view, name),
        Effect::Inform(notice) => describe_notice(*notice, name),
    }
}

fn announcement(View { leader, term, role, .. }: View, name: Names<'_>) -> String {
    match (role, leader) {
        (Role::Leader, _) => format!("leads in term {term}"),
        (Role::Retiring, _) => format!("leads in term {term}, and is about to transfer leadership"),
        (Role::Candidate, _) => format!("is a candidate in term {term}"),
        (Role::Follower, Some(leader)) => format!("follows {} in term {term}", name(leader)),
        (Role::Follower, None) => format!("knows no leader in term {term}"),
    }
}

fn describe_notice(notice: Notice, name: Names<'_>) -> String {
    match notice {
        Notice::Down(peer) => format!("{} is down or restarted", name(peer)),
        Notice::Up(peer) => format!("{} is reachable again", name(peer)),
        Notice::Changed(change) => change.describe(name),
        Notice::Refused(refusal) => format!("rejects the command: {refusal}"),
        Notice::ForeignConfiguration(peer) => format!("{} is configured differently", name(peer)),
        Notice::StateIsOld { seen, by } => {
            format!("its state is an old copy: {} has seen it in term {seen}", name(by))
        }
        Notice::Replaced { seen, by } => {
            format!("its state is a copy: {} has seen it in start {}", name(by), seen.0)
        }
        Notice::Paused { by, left } => {
            format!("elections are paused for {left:#}, by command of {}", name(by))
        }
        Notice::Resumed { by: Some(by) } => {
            format!("elections are resumed, by command of {}", name(by))
        }
        Notice::Resumed { by: None } => "the pause of elections is over".to_owned(),
        Notice::Recorded { .. } | Notice::ChannelRecorded { .. } => {
            "records its part of a snapshot".to_owned()
        }
        Notice::NoOtherMember => "has lost its state, and there is no other member".to_owned(),
        Notice::OutOfTerms => "there is no higher term".to_owned(),
        Notice::WrongClock => "its clock is obviously wrong".to_owned(),
        Notice::Dropped { from, why } => {
            let why = match why {
                Dropped::Session => "of another start",
                Dropped::Replayed => "repeated",
                Dropped::Limited => "too many greetings",
            };
            format!("drops a datagram from {}: {why}", name(from))
        }
        Notice::Unsent(peer) => {
            format!("nothing sent to {}, which has not answered yet", name(peer))
        }
    }
}
