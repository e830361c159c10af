//! Sessions for explorers: without repetitions, counters and limits, in a network in which messages persist.
//!
//! There, every message that was sent may arrive at any later moment, any number of times, or never. So one greeting to
//! each member when a process starts, and again when it knows its incarnation, is equivalent to any number of them; and
//! nothing needs to be counted or limited. Four more things are simplified, and none of them removes a run:
//!
//! - **Questions have no numbers.** An answer counts if it is for the present session, whichever of its questions it
//!   answers. That adds runs: a process may meet one that has been alive since it started, but was not asked since. It
//!   removes none. Where an answer to an earlier question arrives, a real process ignores the answer: the greeting does
//!   what a greeting without it would do, and the first greeting of its sender, which has none, persists. Freshness
//!   comes from the session: no process can send to a session that has not sent anything yet.
//! - **An answer does not ask in turn.** The first greeting of the answering process already asks, and persists.
//!
//! - **A process that is told to stop (S9) ignores it.** It continues. A stopped process does nothing that a process
//!   which was never told could not do, so S9 removes runs, and adds none.
//!
//! - **Stored sessions are met.** When a process starts, it treats the sessions that it has stored as met, though they
//!   have not answered yet. That adds runs: it sends to sessions that may be over. It removes none, because what
//!   arrives for this session was sent after it began by a process that has met it, and the answer may have come just
//!   before.
//!
//! The number of a session is compared only with numbers of sessions of the same member, so it need not differ from
//! those of other members.

use std::num::NonZeroU64;

use crate::config::rules::Rule;
use crate::explore::{Explore, Giver, Serial};
use crate::members::{Incarnation, NodeId};
use crate::protocol::Protocol;

use super::letter::{Challenge, Content, Met};
use super::peer::Encounter;
use super::{Session, SessionConfig, Stage, Timer};

/// All questions are this one.
pub(super) const QUESTION: Challenge = Challenge(NonZeroU64::MIN);

impl<P: Protocol> Session<P> {
    /// Without `background`, stored sessions are met.
    pub(super) fn presume(&mut self, config: &SessionConfig<P::Config>) {
        if config.background || matches!(self.stage, Stage::Asking { .. }) {
            return;
        }
        for (id, peer) in self.peers.iter_mut() {
            peer.encounter = self.kept.roster.get(*id).map(Encounter::new);
        }
    }
}

impl<P: Explore> Explore for Session<P> {
    fn has_canonical_form(config: &Self::Config) -> bool {
        !config.background
    }

    fn canonical(&self, config: &Self::Config) -> Self {
        match &self.stage {
            Stage::Running(inner) => {
                Self { stage: Stage::Running(inner.canonical(&config.inner)), ..self.clone() }
            }
            Stage::Asking { .. } | Stage::Confirming { .. } | Stage::Halted => self.clone(),
        }
    }

    fn canonical_timer(&self, config: &Self::Config, timer: Self::Timer) -> Self::Timer {
        match (timer, self.inner()) {
            (Timer::Inner(timer), Some(inner)) => {
                Timer::Inner(inner.canonical_timer(&config.inner, timer))
            }
            _ => timer,
        }
    }

    fn serial(letter: &Self::Message) -> Option<(Serial, Giver)> {
        letter.inner().and_then(P::serial)
    }

    fn without_serial(letter: &Self::Message) -> Self::Message {
        letter.clone().map(|message| P::without_serial(&message))
    }

    /// A letter is obsolete if it is for another process of the member, or contains nothing new.
    fn is_obsolete(&self, config: &Self::Config, from: NodeId, letter: &Self::Message) -> bool {
        let rules = config.rules;
        let is_for_me = letter.known == Some(self.session);
        let Some(peer) = self.peers.get(&from) else { return false };
        let is_met = peer.has_met(letter.session);
        let last = self.kept.roster.get(from);
        let asks = matches!(self.stage, Stage::Asking { .. });
        match &letter.content {
            Content::Greeting(greeting) => {
                let met = Met { incarnation: greeting.incarnation, session: letter.session };
                let is_unknown = met.incarnation == Incarnation::default();
                let meets = self.is_latest(from, met, rules) && !is_met && !is_unknown;
                match (is_for_me, letter.known) {
                    // The first greeting of a process is answered whenever it comes.
                    (_, None) => false,
                    (false, Some(_)) => !meets || rules.keeps(Rule::ProvenSession),
                    (true, _) => {
                        let is_news = asks || greeting.wants_roster;
                        !is_news && (!meets || self.is_refused(greeting.seen))
                    }
                }
            }
            Content::Roster(_) if !is_for_me => true,
            Content::Roster(roster) => match self.stage {
                Stage::Running(_) | Stage::Halted => true,
                Stage::Asking { .. } => false,
                Stage::Confirming { .. } => {
                    let mine = Met { incarnation: self.kept.incarnation, session: self.session };
                    roster.get(self.id) != Some(mine)
                }
            },
            Content::Inner(_) if !rules.keeps(Rule::MetSessionOnly) => false,
            Content::Inner(_) if !is_for_me => true,
            Content::Inner(message) if is_met => {
                self.inner().is_some_and(|inner| inner.is_obsolete(&config.inner, from, message))
            }
            // Explorers number the sessions of a member in the order in which they begin, so this one is probably an
            // earlier one.
            Content::Inner(_) => {
                let is_past = last.is_some_and(|last| last.session > letter.session);
                let by = [Rule::IncarnationsRise, Rule::SameSessionOnly];
                is_past && by.into_iter().all(|rule| rules.keeps(rule))
            }
        }
    }
}
