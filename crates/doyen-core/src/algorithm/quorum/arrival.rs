//! Coming up: what a member may do that has just started, and how one comes back that has lost its disk.
//!
//! A member that restarts may have promised to follow somebody just before. It observes **hold-down**: it neither votes
//! nor stands as long as the longest vote lease that it may have given can last, or until it accepts a heartbeat
//! (`following.rs` says why that is enough).
//!
//! **A copy made during the last life** (a nightly backup, restored) has a right incarnation and an old term: the member
//! may have voted in terms of which it knows nothing. So one that comes up says HELLO, and each other member answers with
//! the latest term in which it has heard it. If that is later than the term that the disk held *at the start*, the member
//! halts for good. The present term would not do: a heartbeat that comes before the answer raises it. Nor may the member
//! say anything in a later term before it is answered, or the answer would be about this life: it says nothing else to a
//! member that has not answered, however long that takes, and accepts no heartbeat from it. It repeats HELLO for a while,
//! and later whenever it hears from a member that has not answered yet, or would say something to it.
//! (A copy of an earlier life has an old incarnation, which is for the sessions beneath to find.)
//!
//! One that has lost its disk may *rejoin*, which an operator must want. It asks every other member and waits for all
//! of them. Whoever it voted for had stored that term before asking, so the latest of all terms is at least the last
//! in which it voted: it adopts that one and votes in none up to it. (It may have voted for itself in a term of which
//! nobody else has stored anything. Such a vote went with the candidate: nobody counts it any more.) Its hold-down is as
//! long as the longest vote lease that any member has given or asked for.
//!
//! - **An answer counts for the life that asked.** HELLO says in which life it is said, WELCOME repeats it, and an
//!   answer to another life is not heeded. A member that loses its disk a second time may have voted since it was
//!   first answered; a late answer to its first HELLO does not know of that term.
//! - **Who is alone has nobody to ask.** A single member that has lost its disk cannot know which terms there have
//!   been, and would show the tokens of the first terms again. It halts and says so. Its operator sets it up anew with
//!   a floor: a disk whose [term](Stored::term) is at least the last that was ever shown. The same is so for a group
//!   that has lost all its disks, whose members wait for each other for ever.

use crate::config::Config;
use crate::members::{Epoch, Incarnation, NodeId};
use crate::protocol::{Boot, Notice, Origin};
use crate::story::{Loss, Why};
use crate::time::Span;

use super::ballot::Stored;
use super::following::Promise;
use super::message::Body;
use super::rules::Rule;
use super::settings::LONGEST_PROMISE;
use super::{Duty, Out, Quorum, Timer};

/// So often HELLO is repeated to all. Members of which nothing is heard for that long are greeted when they speak.
pub(super) const MOST_HELLOS: u8 = 20;

/// A member that has lost its disk and asks around.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rejoining {
    /// The latest term that anybody knows of.
    latest: Epoch,
    /// The longest promise that anybody has given or asked for.
    longest: Span,
}

impl Quorum {
    /// Q1: begins.
    pub(super) fn arrive(&mut self, config: &Config, boot: &Boot<Stored>, out: &mut Out) {
        if self.ballot.stored().drained.is_some() {
            self.stand_back(config, out);
        }
        self.watch_everybody(config, out);
        match boot.origin {
            Origin::Founding { leader: None } => self.await_turn(config, out),
            Origin::Founding { leader: Some(leader) } => self.found(config, leader, out),
            Origin::Joining => {
                let promise = self.pace(config).promise;
                let longest = match config.quorum.keeps(Rule::QuarantineIsLongest) {
                    true => self.ballot.stored().longest.max(promise),
                    false => promise,
                };
                self.keep_still(config, longest, out);
                if !config.quorum.keeps(Rule::LongestFallsLate) {
                    self.ballot.stored_mut().longest = promise;
                    self.store(out);
                }
                self.watch_longest(config, out);
                if config.quorum.remembers && config.quorum.keeps(Rule::Courtesy) {
                    self.unanswered = config.members.others(self.id).collect();
                    self.say_hello(config, out);
                }
            }
            Origin::Rejoining if config.members.len() == 1 => {
                self.halt(Notice::NobodyToAsk, config, out);
            }
            Origin::Rejoining => {
                out.rule("Q1a");
                let longest = self.pace(config).promise;
                self.rejoining = Some(Rejoining { latest: Epoch::default(), longest });
                self.unanswered = config.members.others(self.id).collect();
                self.say_hello(config, out);
            }
        }
    }

    /// The scene with which the seeds begin: everybody has voted for `leader`, and follows it.
    fn found(&mut self, config: &Config, leader: NodeId, out: &mut Out) {
        let length = config.quorum.pace_of(leader).promise;
        let term = Epoch(1);
        *self.ballot.stored_mut() =
            Stored { term, voted: Some(leader), longest: length, ..Stored::default() };
        self.store(out);
        if leader == self.id {
            return self.take_office(config, Why::Founded, out);
        }
        self.leader = Some(leader);
        self.promise = Some(Promise::new(term, length));
        out.set_timer(Timer::Promise, length);
        self.watch_longest(config, out);
        self.consider_takeover(config, out);
    }

    /// Votes for nobody until what it may have promised in a former life is over.
    fn keep_still(&mut self, config: &Config, longest: Span, out: &mut Out) {
        out.rule("Q1");
        if config.quorum.keeps(Rule::Quarantine) {
            self.quarantined = true;
            out.set_timer(Timer::Quarantine, longest);
        } else {
            self.await_turn(config, out);
        }
    }

    /// HELLO to all who have not answered yet, and again, for datagrams get lost: for a while, or for as long as it takes
    /// if it needs the answers.
    pub(super) fn say_hello(&mut self, config: &Config, out: &mut Out) {
        for peer in self.unanswered.clone().iter() {
            self.greet(peer, out);
        }
        if self.rejoining.is_none() {
            self.hellos += 1;
        }
        if self.hellos < MOST_HELLOS {
            out.set_timer(Timer::Hello, self.pace(config).heartbeat);
        }
    }

    /// HELLO to one.
    pub(super) fn greet(&mut self, peer: NodeId, out: &mut Out) {
        self.tell(peer, self.hello(), out);
    }

    pub(super) fn hello(&self) -> Body {
        Body::Hello { life: self.life, rejoins: self.rejoining.is_some() }
    }

    /// Whether `peer` is still to say what it has heard of this member.
    pub(super) fn has_not_answered(&self, peer: NodeId) -> bool {
        self.unanswered.contains(peer)
    }

    /// Somebody has come up, and should know what is known of it.
    pub(super) fn on_hello(
        &mut self,
        config: &Config,
        from: NodeId,
        life: Incarnation,
        out: &mut Out,
    ) {
        if self.rejoining.is_some() {
            return; // it has nothing to say about anybody's promises
        }
        let seen = self.seen.get(&from).copied().unwrap_or_default();
        let longest = self.ballot.stored().longest.max(self.pace(config).promise);
        let losses = self.standings.losses(config, from);
        self.tell(from, Body::Welcome { life, seen, longest, losses }, out);
    }

    /// The answer to HELLO, as it was said in `life`.
    pub(super) fn on_welcome(
        &mut self,
        config: &Config,
        from: NodeId,
        term: Epoch,
        (life, seen, longest, losses): (Incarnation, Epoch, Span, u8),
        out: &mut Out,
    ) {
        if life != self.life && config.quorum.keeps(Rule::AnswerIsForItsLife) {
            return out.rule("Q1c");
        }
        if !self.unanswered.remove(from) {
            return;
        }
        self.hold_against(config, self.id, losses, out);
        if let Some(rejoining) = &mut self.rejoining {
            rejoining.latest = rejoining.latest.max(term).max(seen);
            if config.quorum.keeps(Rule::RejoinWaitsTheLongest) {
                // Nobody gives or asks for longer ones.
                rejoining.longest = rejoining.longest.max(longest.min(LONGEST_PROMISE));
            }
            return self.finish_rejoining(config, out);
        }
        let known = match config.quorum.keeps(Rule::OldDiskByItsStart) {
            true => self.booted,
            false => self.ballot.term(),
        };
        if seen > known {
            return self.halt(Notice::StateIsOld { seen, by: from }, config, out);
        }
        if self.unanswered.is_empty() {
            out.cancel_timer(Timer::Hello);
        }
    }

    fn finish_rejoining(&mut self, config: &Config, out: &mut Out) {
        let Some(rejoining) = &self.rejoining else { return };
        let needed = match config.quorum.keeps(Rule::RejoinAsksAll) {
            true => config.members.len() - 1,
            false => config.quorum.majority(config.members.len()) - 1,
        };
        if config.members.len() - 1 - self.unanswered.len() < needed {
            return;
        }
        out.rule("Q1a");
        let Rejoining { latest, longest, .. } = *rejoining;
        self.rejoining = None;
        self.unanswered.clear();
        out.cancel_timer(Timer::Hello);
        self.ballot.stored_mut().longest = longest;
        if config.quorum.keeps(Rule::RejoinVotesLater) {
            self.ballot.adopt(latest);
            // A vote for itself, in a term in which it does not stand: it has none left for anybody.
            self.ballot.stored_mut().voted = Some(self.id);
        }
        self.store(out);
        self.keep_still(config, longest, out);
        self.watch_longest(config, out);
    }

    /// What it may have promised in a former life is over.
    pub(super) fn on_quarantine_over(&mut self, config: &Config, out: &mut Out) {
        self.quarantined = false;
        self.consider_takeover(config, out);
        self.await_turn(config, out);
    }

    /// It has accepted a heartbeat, so what it may have promised in a former life does not matter any more.
    pub(super) fn end_hold_down(&mut self, out: &mut Out) {
        if std::mem::take(&mut self.quarantined) {
            out.cancel_timer(Timer::Quarantine);
        }
    }

    /// Does nothing any more, for ever.
    fn halt(&mut self, reason: Notice, config: &Config, out: &mut Out) {
        out.rule("Q1b");
        self.leave_office(config, Loss::Halted, out);
        self.drop_candidacy(out);
        self.end_promise(out);
        self.leader = None;
        self.duty = Duty::Halted;
        out.inform(reason);
    }
}
