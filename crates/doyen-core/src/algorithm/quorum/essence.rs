//! What of a member makes a difference to what it will do: for explorers, which take states for one that differ in
//! nothing else.
//!
//! **Rounds.** Heartbeats are numbered for as long as somebody leads, so no two states of a leader would ever be the
//! same. But only the rounds from a *first* one on count: those that can renew a lease, and, where a leader chooses a
//! successor, the last three, by which a leader knows whom it hears. All that came before is forgotten alike, and the others
//! count from that first one. An acknowledgement of a forgotten round has no effect, now or later, for the first round
//! that counts never falls while its leader is in office, not even when its lease lapses, and nobody leads twice in a term.
//!
//! **Votes.** Who voted for a member matters as long as it stands. What it remembers of the search for a leader matters
//! to the courteous alone.
//!
//! **Spent messages.** Terms never fall, and in one term a member votes once and campaigns at most once. So much of what is
//! still under way can have no effect on its receiver any more, whatever happens to it, not even if it restarts: see
//! [`Quorum::has_no_use_for`]. It reads no rule, because a reduction must not assume what it is to prove: what it says is
//! a conjecture, which explorers verify on clones of every member that they meet and drop where it is wrong.
//!
//! **Names.** Who is better is a matter of courtesy and of taking over. Where there is neither, and everybody has the same
//! attribute and goes at the same pace, members differ in nothing but their names ([`are_alike`]).
//!
//! A leader that may hand over asks whom it has heard lately: that is why the last three rounds count where there is
//! courtesy. All of this is so where members do not keep account of each other ([`is_known`]):
//! else every message has an effect, and the number of a heartbeat says how long somebody has led.

use crate::config::Config;
use crate::explore::{Explore, Giver, Serial};
use crate::members::{Epoch, NodeId};
use crate::time::Span;

use super::ballot::Stored;
use super::message::{Body, Message, Round};
use super::rules::Rule;
use super::settings::Preemption;
use super::{Duty, Quorum, Timer};

/// Whether what is said here is true of members with this configuration.
fn is_known(config: &Config) -> bool {
    let quorum = &config.quorum;
    quorum.probe.is_none() && !quorum.remembers && quorum.forgiveness == Span::ZERO
}

/// Whether members with this configuration differ in nothing but their names.
fn are_alike(config: &Config) -> bool {
    let quorum = &config.quorum;
    let attr = |id| config.members.key(id).attr;
    let one_attr = config.members.iter().all(|id| attr(id) == attr(config.members.highest()));
    let one_kind = quorum.paces.is_empty()
        && quorum.witnesses.is_empty()
        && quorum.reluctant.is_empty()
        && one_attr;
    let never_better =
        !config.quorum.keeps(Rule::Courtesy) && quorum.preemption == Preemption::Never;
    one_kind && never_better && is_known(config)
}

impl Explore for Quorum {
    /// It is for one that has lost its disk: HELLO of another has no effect on anybody.
    fn heeds_incarnation(_: &Config) -> bool {
        false
    }

    fn has_canonical_form(config: &Config) -> bool {
        is_known(config)
    }

    fn canonical(&self, config: &Config) -> Self {
        self.without_past(config)
    }

    fn canonical_timer(&self, config: &Config, timer: Timer) -> Timer {
        self.timer_without_past(config, timer)
    }

    fn first_live_serial(&self, config: &Config) -> Option<Serial> {
        let number = self.first_round(config)?.0;
        Some(Serial { series: self.ballot.term(), number })
    }

    fn serial(message: &Message) -> Option<(Serial, Giver)> {
        let series = message.term;
        match message.body {
            Body::Heartbeat { round, .. } => {
                Some((Serial { series, number: round.0 }, Giver::Sender))
            }
            Body::Ack { round, .. } => Some((Serial { series, number: round.0 }, Giver::Receiver)),
            _ => None,
        }
    }

    fn without_serial(message: &Message) -> Message {
        let mut message = message.clone();
        if let Body::Heartbeat { round, .. } | Body::Ack { round, .. } = &mut message.body {
            *round = Round::default();
        }
        message
    }

    fn is_obsolete(&self, config: &Config, from: NodeId, message: &Message) -> bool {
        self.has_no_use_for(config, from, message)
    }

    fn is_symmetric(config: &Config) -> bool {
        are_alike(config)
    }

    fn renamed(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        self.with_names(names)
    }

    fn renamed_durable(durable: &Stored, names: &dyn Fn(NodeId) -> NodeId) -> Stored {
        durable.renamed(names)
    }
}

impl Quorum {
    /// The first round that counts, if it leads.
    fn first_round(&self, config: &Config) -> Option<Round> {
        let Duty::Lead(office) = &self.duty else { return None };
        // Should the lease lapse, its round is over; and those before it are over already.
        let lease = office.lease.filter(|_| config.quorum.keeps(Rule::LapsedRoundIsOver));
        let renews = lease.map_or(office.oldest, |lease| office.oldest.max(lease.next()));
        let among_last = |count: u64| Round((office.newest.0 + 1).saturating_sub(count).max(1));
        let bold = !config.quorum.keeps(Rule::Courtesy);
        Some(match config.quorum.preemption {
            Preemption::Never if bold => renews,
            // Whom it has heard lately, and whether it has had time to be heard itself.
            _ => renews.min(among_last(3)),
        })
    }

    /// The same member, with rounds counted from the first that counts, and without what it has no use for any more.
    fn without_past(&self, config: &Config) -> Self {
        let mut this = self.clone();
        if !matches!(self.duty, Duty::Stand(_)) {
            this.ballot.forget_votes();
        }
        if !config.quorum.keeps(Rule::Courtesy) {
            this.forget_the_search();
        }
        if self.unanswered.is_empty() {
            // It asks no one what is known of its disk, so what that held does not matter.
            this.booted = Epoch::default();
        }
        this.lingering = self.lingering.map(|_| Round::default());
        let Some(first) = self.first_round(config) else { return this };
        if let Duty::Lead(office) = &mut this.duty {
            office.acks.retain(|_, round| *round >= first);
            for round in [&mut office.newest, &mut office.oldest]
                .into_iter()
                .chain(office.acks.values_mut())
                .chain(&mut office.lease)
            {
                *round = since(*round, first);
            }
        }
        this
    }

    /// The same member, without its past, under another name, and with other names for the others. What it knows of them
    /// besides is nothing where members [are alike](are_alike).
    fn with_names(&self, names: &dyn Fn(NodeId) -> NodeId) -> Self {
        let mut this = self.clone();
        this.id = names(self.id);
        this.ballot = self.ballot.renamed(names);
        this.leader = self.leader.map(names);
        this.unanswered = self.unanswered.iter().map(names).collect();
        if let Duty::Lead(office) = &mut this.duty {
            office.acks = office.acks.iter().map(|(&id, &round)| (names(id), round)).collect();
            if let Some(retiring) = &mut office.retiring {
                retiring.heir = retiring.heir.map(names);
            }
        }
        this
    }

    /// One of its timers in the same words.
    fn timer_without_past(&self, config: &Config, timer: Timer) -> Timer {
        match (timer, self.first_round(config)) {
            (Timer::Lease(round), Some(first)) => Timer::Lease(since(round, first)),
            (Timer::Lease(_), None) => Timer::Lease(Round::default()),
            (other, _) => other,
        }
    }

    /// Whether `message` seems to have no effect on it, now and whatever happens to it from now on.
    fn has_no_use_for(&self, config: &Config, from: NodeId, message: &Message) -> bool {
        if self.rejoining.is_some() {
            return false;
        }
        let (term, own) = (message.term, self.ballot.term());
        match message.body {
            Body::Vote => {
                let stands = matches!(self.duty, Duty::Stand(_));
                term < own || term == own && !stands
            }
            Body::Ack { round, .. } => {
                let counts = self.first_round(config).is_some_and(|first| round >= first);
                term < own || term == own && !counts
            }
            Body::Nack => term <= own,
            Body::Request { .. } if term < own => !config.quorum.keeps(Rule::Courtesy),
            Body::Request { .. } => {
                let voted = self.ballot.stored().voted;
                term == own && voted.is_some_and(|voted| voted != from)
            }
            Body::Heartbeat { .. } => term < own && !config.quorum.keeps(Rule::Courtesy),
            Body::TimeoutNow { .. } | Body::Release { .. } => term < own,
            Body::Welcome { .. } => !config.quorum.keeps(Rule::Courtesy),
            _ => false,
        }
    }
}

fn since(round: Round, first: Round) -> Round {
    Round(round.0 + 1 - first.0.min(round.0 + 1))
}
