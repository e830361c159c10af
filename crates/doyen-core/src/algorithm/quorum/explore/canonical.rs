//! The canonical form of a member, for explorers: states that differ only in what cannot matter have the same one.
//!
//! **Rounds.** Heartbeats are numbered as long as a member leads, so no two states of a leader would ever be equal. But only
//! the rounds from a *first live one* on matter: those that can renew a lease, and, where a leader chooses a successor, the
//! last three, by which it knows which members it receives from. Earlier rounds are forgotten, and the others are counted
//! from the first live one. An acknowledgement of a forgotten round has no effect, now or later: the first live round never
//! falls while its leader leads, not even when its lease lapses, and no member leads twice in a term.
//!
//! **The search for a leader.** What a member remembers of it matters only with pre-votes.
//!
//! **Obsolete messages.** Terms never fall, and in one term a member votes once and is a candidate at most once. So many
//! messages in flight can have no effect on their receiver any more, whatever happens to it, even a restart: see
//! [`Quorum::is_obsolete`]. It reads no rule, because a reduction must not assume what it is to prove. It is a conjecture,
//! which explorers verify on clones of every member that they meet and drop where it is wrong.
//!
//! **Names.** Ranks matter only to pre-votes and takeovers. Without both, and if all members have the same attribute and
//! timing, members differ only in their names ([`is_symmetric`]).
//!
//! All of this holds only where members keep no account of each other ([`has_canonical_form`]): otherwise every message has an
//! effect, and the number of a heartbeat tells how long its leader has led.

use crate::config::Config;
use crate::explore::{Explore, Giver, Serial};
use crate::members::{NodeId, Term};
use crate::time::Span;

use super::super::ballot::Stored;
use super::super::candidate::Search;
use super::super::follower::Follower;
use super::super::message::{Body, Heartbeat, Message, Round};
use super::super::{Quorum, Role, Timer};
use crate::config::quorum::Preemption;
use crate::config::rules::Rule;

/// Whether members with this configuration have a canonical form.
fn has_canonical_form(config: &Config) -> bool {
    let quorum = &config.quorum;
    quorum.probe.is_none() && !quorum.remembers && quorum.penalty_decay == Span::ZERO
}

/// Whether members with this configuration differ only in their names.
fn is_symmetric(config: &Config) -> bool {
    let quorum = &config.quorum;
    let attr = |id| config.members.key(id).attr;
    let one_attr = config.members.iter().all(|id| attr(id) == attr(config.members.highest()));
    let one_kind = quorum.paces.is_empty()
        && quorum.witnesses.is_empty()
        && quorum.reluctant.is_empty()
        && one_attr;
    let never_better =
        !config.quorum.keeps(Rule::PreVote) && quorum.preemption == Preemption::Never;
    one_kind && never_better && has_canonical_form(config)
}

impl Explore for Quorum {
    /// Only a member that lost its disk heeds it: any other HELLO has no effect.
    fn heeds_incarnation(_: &Config) -> bool {
        false
    }

    fn has_canonical_form(config: &Config) -> bool {
        has_canonical_form(config)
    }

    fn canonical(&self, config: &Config) -> Self {
        self.canonicalize(config)
    }

    fn canonical_timer(&self, config: &Config, timer: Timer) -> Timer {
        match (timer, self.first_live_round(config)) {
            (Timer::Lease(round), Some(first)) => Timer::Lease(since(round, first)),
            (Timer::Lease(_), None) => Timer::Lease(Round::default()),
            (other, _) => other,
        }
    }

    fn first_live_serial(&self, config: &Config) -> Option<Serial> {
        let number = self.first_live_round(config)?.0;
        Some(Serial { series: self.ballot.term(), number })
    }

    fn serial(message: &Message) -> Option<(Serial, Giver)> {
        let series = message.term;
        match message.body {
            Body::Heartbeat(Heartbeat { round, .. }) => {
                Some((Serial { series, number: round.0 }, Giver::Sender))
            }
            Body::Ack { round, .. } => Some((Serial { series, number: round.0 }, Giver::Receiver)),
            _ => None,
        }
    }

    fn without_serial(message: &Message) -> Message {
        let mut message = message.clone();
        if let Body::Heartbeat(Heartbeat { round, .. }) | Body::Ack { round, .. } =
            &mut message.body
        {
            *round = Round::default();
        }
        message
    }

    /// Whether `message` seems to have no effect on it, now and whatever happens to it later.
    fn is_obsolete(&self, config: &Config, from: NodeId, message: &Message) -> bool {
        // Of pauses it may learn from any message.
        if self.recovery.is_rejoining() || message.pause != self.latest_pause() {
            return false;
        }
        let (term, own) = (message.term, self.ballot.term());
        match message.body {
            Body::Vote => {
                let counts = matches!(self.role, Role::Candidate(_));
                term < own || term == own && !counts
            }
            Body::Ack { round, .. } => {
                let counts = self.first_live_round(config).is_some_and(|first| round >= first);
                term < own || term == own && !counts
            }
            Body::Nack => term <= own,
            Body::Request { .. } if term < own => !config.quorum.keeps(Rule::PreVote),
            Body::Request { .. } => {
                let voted = self.ballot.stored().voted;
                term == own && voted.is_some_and(|voted| voted != from)
            }
            Body::Heartbeat(_) => term < own && !config.quorum.keeps(Rule::PreVote),
            Body::TimeoutNow { .. } | Body::Release { .. } => term < own,
            Body::Welcome { .. } => !config.quorum.keeps(Rule::PreVote),
            _ => false,
        }
    }

    fn is_symmetric(config: &Config) -> bool {
        is_symmetric(config)
    }

    fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        self.with_names(names)
    }

    fn renamed_durable(durable: &Stored, names: &dyn Fn(NodeId) -> NodeId) -> Stored {
        durable.renamed(names)
    }
}

impl Quorum {
    /// The first round that matters, if it leads.
    fn first_live_round(&self, config: &Config) -> Option<Round> {
        let Role::Leader(leader) = &self.role else { return None };
        // If the lease lapses, its round is over; the rounds before it are over already.
        let lease = leader.lease.filter(|_| config.quorum.keeps(Rule::LapsedRoundIsOver));
        let renews = lease.map_or(leader.oldest, |lease| leader.oldest.max(lease.next()));
        let among_last = |count: u64| Round((leader.newest.0 + 1).saturating_sub(count).max(1));
        let transfers_freely = !config.quorum.keeps(Rule::PreVote);
        Some(match config.quorum.preemption {
            Preemption::Never if transfers_freely => renews,
            // The members from which it received recently, and whether it has had time to be received itself.
            _ => renews.min(among_last(3)),
        })
    }

    /// The same member, with rounds counted from the first live one, and without what cannot matter.
    fn canonicalize(&self, config: &Config) -> Self {
        let mut this = self.clone();
        if !config.quorum.keeps(Rule::PreVote) {
            this.search = Search::default();
        }
        if self.recovery.unanswered.is_empty() {
            // No answer about its disk is awaited, so the term that the disk held does not matter.
            this.recovery.stored_term = Term::default();
        }
        this.lingering_lease = self.lingering_lease.map(|_| Round::default());
        let Some(first) = self.first_live_round(config) else { return this };
        if let Role::Leader(leader) = &mut this.role {
            leader.acks.retain(|_, round| *round >= first);
            for round in [&mut leader.newest, &mut leader.oldest]
                .into_iter()
                .chain(leader.acks.values_mut())
                .chain(&mut leader.lease)
            {
                *round = since(*round, first);
            }
        }
        this
    }

    /// The same member with all members renamed. It knows nothing else of them where the configuration is
    /// [symmetric](is_symmetric).
    fn with_names(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        let mut this = self.clone();
        this.id = names(self.id);
        this.ballot = self.ballot.renamed(names);
        this.recovery.unanswered = self.recovery.unanswered.iter().map(names).collect();
        match &mut this.role {
            Role::Follower(Follower { leader, .. }) => *leader = leader.map(names),
            Role::Candidate(candidate) => {
                candidate.votes = candidate.votes.iter().map(names).collect();
            }
            Role::Leader(leader) => {
                leader.acks = leader.acks.iter().map(|(&id, &round)| (names(id), round)).collect();
                if let Some(transfer) = &mut leader.transfer {
                    transfer.successor = transfer.successor.map(names);
                }
            }
            Role::PreCandidate(_) | Role::Halted => {}
        }
        this
    }
}

fn since(round: Round, first: Round) -> Round {
    Round(round.0 + 1 - first.0.min(round.0 + 1))
}
