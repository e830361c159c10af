//! Recovery: what a member may do after a start, and how a member that lost its disk rejoins.
//!
//! A restarted member may have given a vote lease just before. It enters **hold-down**: it neither votes nor campaigns for
//! as long as the longest vote lease that it may have given can last, or until it accepts a heartbeat (`follower.rs` says why
//! that is enough).
//!
//! **A restored copy of the disk** (a nightly backup) has the right incarnation and an old term: the member may have voted
//! in terms that it knows nothing about. So a member that starts sends HELLO, and each other member answers with the latest
//! term in which it has seen it. If that is later than the term that the disk held *at the start*, the member halts for
//! good. The current term would not do: a heartbeat that arrives before the answer raises it. Nor may the member send
//! anything in a later term before it is answered, or the answer would be about this incarnation: it sends nothing but HELLO
//! to a member that has not answered, however long that takes, and accepts no heartbeat from it. It repeats HELLO for a
//! while, and later whenever it receives from a member that has not answered yet, or would send something to it. (A copy
//! from an earlier incarnation is found by the sessions below.)
//!
//! A member that lost its disk may *rejoin* at the operator's request. It asks every other member and waits for all of them.
//! Every candidate that it voted for had stored that term before it asked, so the latest of all terms is at least the last
//! one in which it voted: it adopts that term and votes in none up to it. (It may have voted for itself in a term that no
//! other member has stored. That vote was lost with the candidate: no member counts it any more.) Its hold-down is as long as
//! the longest vote lease that any member has given or asked for.
//!
//! - **An answer counts for the incarnation that asked.** WELCOME repeats the incarnation of the HELLO, and an answer to
//!   another incarnation is ignored. A member that loses its disk a second time may have voted since it was first answered; a
//!   late answer to its first HELLO does not know of that term.
//! - **A single member has no member to ask.** If it lost its disk, it cannot know which terms there have been, and would
//!   present old fencing tokens again. It halts. Its operator sets it up again with a floor: a disk whose
//!   [term](Stored::term) is at least the last that was ever shown. The same holds for a cluster that lost all its disks,
//!   whose members wait for each other forever.

use crate::change::{ElectionReason, StepDownReason};
use crate::members::{Incarnation, NodeId, PeerSet, Term};
use crate::protocol::{Notice, Origin};
use crate::time::Span;

use super::ballot::Stored;
use super::follower::VoteLease;
use super::message::Body;
use super::{Cx, Quorum, Role, Timer};
use crate::config::quorum::MAX_VOTE_LEASE;
use crate::config::rules::Rule;

/// HELLO is repeated to all members this often. A member that has not answered by then is greeted when it sends something.
pub(super) const MAX_HELLOS: u8 = 20;

/// What a member has still to learn or to wait for after a start.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recovery {
    /// It may have given a vote lease before its restart; [`Timer::HoldDown`] is armed.
    pub(super) hold_down: bool,
    /// It has lost its disk, and not all members have answered yet.
    rejoining: Option<Rejoining>,
    /// The term that its disk held at the start.
    pub(super) stored_term: Term,
    /// The members that have not answered its HELLO yet.
    pub(super) unanswered: PeerSet,
    /// How often it has sent HELLO to all of them.
    pub(super) hellos: u8,
}

/// What a member that lost its disk has learned so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Rejoining {
    /// The latest term that any member knows of.
    latest: Term,
    /// The longest vote lease that any member has given or asked for.
    longest: Span,
}

impl Recovery {
    pub(super) fn new(disk: Option<Stored>) -> Self {
        Self {
            hold_down: false,
            rejoining: None,
            stored_term: disk.map_or(Term::default(), |stored| stored.term),
            unanswered: PeerSet::new(),
            hellos: 0,
        }
    }

    pub(super) fn is_rejoining(&self) -> bool {
        self.rejoining.is_some()
    }
}

impl Quorum {
    /// Q1: starts.
    pub(super) fn recover(&mut self, origin: Origin, cx: &mut Cx<'_>) {
        if self.ballot.stored().drained.is_some() {
            self.apply_drain(cx);
        }
        if self.is_paused() {
            self.count_down(cx);
        }
        self.monitor_members(cx);
        match origin {
            Origin::Founding { leader: None } => self.await_turn(cx),
            Origin::Founding { leader: Some(leader) } => self.found(leader, cx),
            Origin::Joining => {
                let vote_lease = self.pace(cx.config).vote_lease;
                let longest = match cx.config.quorum.keeps(Rule::HoldDownIsLongest) {
                    true => self.ballot.stored().longest.max(vote_lease),
                    false => vote_lease,
                };
                self.enter_hold_down(longest, cx);
                if !cx.config.quorum.keeps(Rule::LongestFallsLate) {
                    self.ballot.stored_mut().longest = vote_lease;
                    self.store(cx);
                }
                self.watch_longest(cx);
                if cx.config.quorum.remembers && cx.config.quorum.keeps(Rule::PreVote) {
                    self.recovery.unanswered = cx.config.members.others(self.id).collect();
                    self.say_hello(cx);
                }
            }
            Origin::Rejoining if cx.config.members.len() == 1 => {
                self.halt(Notice::NoOtherMember, cx);
            }
            Origin::Rejoining => {
                cx.rule("Q1a");
                let longest = self.pace(cx.config).vote_lease;
                let latest = Term::default();
                self.recovery.rejoining = Some(Rejoining { latest, longest });
                self.recovery.unanswered = cx.config.members.others(self.id).collect();
                self.say_hello(cx);
            }
        }
    }

    /// The sources' initial state: all members have voted for `leader` and follow it.
    fn found(&mut self, leader: NodeId, cx: &mut Cx<'_>) {
        let length = cx.config.quorum.pace_of(leader).vote_lease;
        let term = Term(1);
        *self.ballot.stored_mut() =
            Stored { term, voted: Some(leader), longest: length, ..Stored::default() };
        self.store(cx);
        if leader == self.id {
            return self.become_leader(ElectionReason::Founded, cx);
        }
        if let Some(follower) = self.follower_mut() {
            follower.leader = Some(leader);
            follower.vote_lease = Some(VoteLease { term, length });
        }
        cx.set_timer(Timer::VoteLease, length);
        self.watch_longest(cx);
        self.consider_takeover(cx);
    }

    /// Does not vote until the vote leases that it may have given before its restart are over.
    fn enter_hold_down(&mut self, longest: Span, cx: &mut Cx<'_>) {
        cx.rule("Q1");
        if cx.config.quorum.keeps(Rule::HoldDown) {
            self.recovery.hold_down = true;
            cx.set_timer(Timer::HoldDown, longest);
        } else {
            self.await_turn(cx);
        }
    }

    /// It has accepted a heartbeat, so vote leases that it may have given before its restart do not matter any more.
    pub(super) fn end_hold_down(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.recovery.hold_down) {
            cx.cancel_timer(Timer::HoldDown);
        }
    }

    /// Sends HELLO to all members that have not answered yet, and repeats it because datagrams get lost: for a while, or until
    /// all have answered if it needs the answers.
    pub(super) fn say_hello(&mut self, cx: &mut Cx<'_>) {
        for peer in self.recovery.unanswered.iter() {
            self.greet(peer, cx);
        }
        if !self.recovery.is_rejoining() {
            self.recovery.hellos += 1;
        }
        if self.recovery.hellos < MAX_HELLOS {
            cx.set_timer(Timer::Hello, self.pace(cx.config).heartbeat);
        }
    }

    pub(super) fn greet(&self, peer: NodeId, cx: &mut Cx<'_>) {
        self.send(peer, self.hello(), cx);
    }

    pub(super) fn hello(&self) -> Body {
        Body::Hello { incarnation: self.incarnation, rejoins: self.recovery.is_rejoining() }
    }

    /// Whether `peer` has still to say in which term it saw this member last.
    pub(super) fn has_not_answered(&self, peer: NodeId) -> bool {
        self.recovery.unanswered.contains(peer)
    }

    /// A member has started, and asks what is known of it.
    pub(super) fn on_hello(&mut self, from: NodeId, incarnation: Incarnation, cx: &mut Cx<'_>) {
        if self.recovery.is_rejoining() {
            return; // it knows nothing of any vote lease
        }
        let seen = self.seen.get(&from).copied().unwrap_or_default();
        let longest = self.ballot.stored().longest.max(self.pace(cx.config).vote_lease);
        let failures = self.ranking.failures(from);
        self.send(from, Body::Welcome { incarnation, seen, longest, failures }, cx);
    }

    /// The answer to the HELLO of `incarnation`.
    pub(super) fn on_welcome(
        &mut self,
        from: NodeId,
        term: Term,
        (incarnation, seen, longest, failures): (Incarnation, Term, Span, u8),
        cx: &mut Cx<'_>,
    ) {
        let is_mine = incarnation == self.incarnation;
        if !is_mine && cx.config.quorum.keeps(Rule::AnswerIsForItsIncarnation) {
            return cx.rule("Q1c");
        }
        if !self.recovery.unanswered.remove(from) {
            return;
        }
        self.raise_penalty(failures, cx);
        if let Some(rejoining) = &mut self.recovery.rejoining {
            rejoining.latest = rejoining.latest.max(term).max(seen);
            if cx.config.quorum.keeps(Rule::RejoinWaitsTheLongest) {
                // No member gives or asks for a longer vote lease.
                rejoining.longest = rejoining.longest.max(longest.min(MAX_VOTE_LEASE));
            }
            return self.finish_rejoining(cx);
        }
        let known = match cx.config.quorum.keeps(Rule::OldDiskByItsStart) {
            true => self.recovery.stored_term,
            false => self.ballot.term(),
        };
        if seen > known {
            return self.halt(Notice::StateIsOld { seen, by: from }, cx);
        }
        if self.recovery.unanswered.is_empty() {
            cx.cancel_timer(Timer::Hello);
        }
    }

    fn finish_rejoining(&mut self, cx: &mut Cx<'_>) {
        let Some(Rejoining { latest, longest }) = self.recovery.rejoining else { return };
        let others = cx.config.members.len() - 1;
        let needed = match cx.config.quorum.keeps(Rule::RejoinAsksAll) {
            true => others,
            false => cx.config.quorum.majority(cx.config.members.len()) - 1,
        };
        if others - self.recovery.unanswered.len() < needed {
            return;
        }
        cx.rule("Q1a");
        self.recovery.rejoining = None;
        self.recovery.unanswered.clear();
        cx.cancel_timer(Timer::Hello);
        self.ballot.stored_mut().longest = longest;
        if cx.config.quorum.keeps(Rule::RejoinVotesLater) {
            self.ballot.adopt(latest);
            // A vote for itself in a term in which it is not a candidate: no vote is left for any other member.
            self.ballot.stored_mut().voted = Some(self.id);
        }
        self.store(cx);
        self.enter_hold_down(longest, cx);
        self.watch_longest(cx);
    }

    /// Never acts again.
    fn halt(&mut self, reason: Notice, cx: &mut Cx<'_>) {
        cx.rule("Q1b");
        self.stop_leading(StepDownReason::Halted, cx);
        self.stop_campaign(cx);
        self.stop_following(cx);
        self.role = Role::Halted;
        cx.inform(reason);
    }
}
