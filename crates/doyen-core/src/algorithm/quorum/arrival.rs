//! Coming up: what a member may do that has just started, and how one comes back that has lost its disk.
//!
//! A member that restarts may have promised to follow somebody just before. It keeps still as long as the longest
//! promise of its life can last; only then it votes or stands. Meanwhile it says HELLO, and everybody answers with
//! the latest term in which they heard it. If that is later than what its disk says, the disk has been restored from
//! a copy: it may have voted in terms of which it knows nothing. Such a member halts for good.
//!
//! One that has lost its disk may *rejoin*, which an operator must want. It asks every other member and waits for all
//! of them. Whoever it voted for had stored that term before asking, so the latest of all terms is at least the last
//! in which it voted: it adopts that one and votes in none up to it. (It may have voted for itself in a term of which
//! nobody else has stored anything. Such a vote went with the candidate: nobody counts it any more.) Then it waits out
//! the longest promise that anybody has ever asked for.
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
                self.say_hello(config, out);
                let Stored { voted, blameless, .. } = *self.ballot.stored();
                if voted == Some(self.id) && !blameless {
                    // It stood or led when it died, and the others hold that against it. If it did not know, they would
                    // say "higher" to each other.
                    self.blame(config, self.id, out);
                }
            }
            Origin::Rejoining if config.members.len() == 1 => {
                self.halt(Notice::NobodyToAsk, config, out);
            }
            Origin::Rejoining => {
                out.rule("Q1a");
                let longest = self.pace(config).promise;
                self.rejoining = Some(Rejoining { latest: Epoch::default(), longest });
                self.say_hello(config, out);
                self.finish_rejoining(config, out);
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

    /// HELLO to all who have not answered yet, and again while it matters: datagrams get lost.
    pub(super) fn say_hello(&mut self, config: &Config, out: &mut Out) {
        let rejoins = self.rejoining.is_some();
        if !rejoins && (!self.quarantined || !config.quorum.keeps(Rule::Courtesy)) {
            return;
        }
        for peer in config.members.others(self.id).filter(|&peer| !self.welcome.contains(peer)) {
            self.tell(peer, Body::Hello { life: self.life, rejoins }, out);
        }
        out.set_timer(Timer::Hello, self.pace(config).heartbeat);
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
        if self.rejoining.is_none() && seen > self.ballot.term() {
            return self.halt(Notice::StateIsOld { seen, by: from }, config, out);
        }
        if self.rejoining.is_some() || self.quarantined {
            self.welcome.insert(from);
            self.hold_against(config, self.id, losses, out);
        }
        if let Some(rejoining) = &mut self.rejoining {
            rejoining.latest = rejoining.latest.max(term).max(seen);
            if config.quorum.keeps(Rule::RejoinWaitsTheLongest) {
                // Nobody gives or asks for longer ones.
                rejoining.longest = rejoining.longest.max(longest.min(LONGEST_PROMISE));
            }
            self.finish_rejoining(config, out);
        } else if self.welcome.len() + 1 == config.members.len() {
            out.cancel_timer(Timer::Hello);
        }
    }

    fn finish_rejoining(&mut self, config: &Config, out: &mut Out) {
        let Some(rejoining) = &self.rejoining else { return };
        let needed = match config.quorum.keeps(Rule::RejoinAsksAll) {
            true => config.members.len() - 1,
            false => config.quorum.majority(config.members.len()) - 1,
        };
        if self.welcome.len() < needed {
            return;
        }
        out.rule("Q1a");
        let Rejoining { latest, longest, .. } = *rejoining;
        self.rejoining = None;
        out.cancel_timer(Timer::Hello);
        self.ballot.stored_mut().longest = longest;
        if config.quorum.keeps(Rule::RejoinVotesLater) {
            self.ballot.adopt(latest);
            // A vote for itself, in a term in which it does not stand: it has none left for anybody.
            let stored = self.ballot.stored_mut();
            (stored.voted, stored.blameless) = (Some(self.id), true);
        }
        self.store(out);
        self.keep_still(config, longest, out);
    }

    /// What it may have promised in a former life is over.
    pub(super) fn on_quarantine_over(&mut self, config: &Config, out: &mut Out) {
        self.quarantined = false;
        self.welcome.clear();
        out.cancel_timer(Timer::Hello);
        self.consider_takeover(config, out);
        self.await_turn(config, out);
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
