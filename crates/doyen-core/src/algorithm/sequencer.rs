//! A sequencer for totally ordered multicast: the leader numbers the messages of all programs, and every member delivers
//! them in the order of the numbers. It exists to show what a coordinator without a replicated log loses when it fails.
//!
//! A [request](Event::Request) makes a member multicast its next message, which is named by the member and a number.
//!
//! | # | event | action |
//! |---|---|---|
//! | Q1 | multicast m | SUBMIT to the leader; again to every new leader until m is delivered here |
//! | Q2 | leader: SUBMIT, m not in its log | append; ORDER to all others |
//! | Q3 | ORDER of the installed term, next position | append; *eager*: deliver; *stable*: STORED. Out of place: ignored, the next INSTALL has it |
//! | Q4 | leader, *stable*: a majority has the position | deliver; COMMIT to all others |
//! | Q5 | it takes over | COLLECT to all others, and to a member that is reported up meanwhile. A member that answers LOG accepts nothing of a lower term any more |
//! | Q6 | leader: LOG of every other live member (*eager*) or of a majority (*stable*) | take the log with the highest (term of the last INSTALL, length); INSTALL it; then order again |
//! | Q7 | INSTALL | if what it has delivered is a prefix: deliver the rest (*stable*: as committed); else reset: the program takes over the state |
//!
//! **Eager** (textbook mode) delivers at once: 1 + (N−1) messages and two message times. The leader delivers what it orders
//! before any other member has it. If it crashes then, the others never deliver that, or deliver it after other messages:
//! what the crashed member did with it cannot be reconciled. Collecting from a majority instead of from all live members
//! (the variant `collects-majority`) contradicts even live members, which must be reset.
//!
//! **Stable** (hardened mode) delivers what a majority has: 1 + 3(N−1) messages and four message times. It loses nothing and
//! resets no member, and it is a replicated log in all but name: a durable log, terms, majorities. That is why no node has
//! either of them: the eager one promises less than it seems to, and the stable one is to be had in systems that are made
//! for it.
//!
//! Departures, and why:
//!
//! - **The succession** is not the point here, and there is no election: the lowest member that is not reported down takes
//!   over when the leader is, or any member that is told to ([`Event::Campaign`]). Terms are dealt out to the members in
//!   turn, so that no two members ever use the same. Nothing above relies on there being one leader.
//! - Channels lose nothing and keep the order. The log of the stable sequencer is on disk before STORED leaves; a member
//!   that restarts has it, and the leader sends INSTALL to a member that is reported up again.

pub mod rules;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::exclusion::Reliance;
use crate::config::{Config, Variant};
use crate::explore::Explore;
use crate::ledger;
use crate::map::SortedMap;
use crate::members::{NodeId, PeerSet, Term};
use crate::protocol::{
    AlgorithmMessage, Boot, Context, Deliveries, Durable, Effects, Event, Family, Kind, Multicast,
    NoTimer, Origin, Protocol, Role, View,
};

type Cx<'a> = Context<'a, Sequencer>;

/// A member of the multicast.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sequencer {
    id: NodeId,
    leader: Option<NodeId>,
    kept: Kept,
    duty: Duty,
    delivered: Deliveries,
    /// How many messages its own program has multicast.
    multicast: u32,
    down: PeerSet,
}

/// What a member knows of the order; the stable sequencer stores it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// The highest term that it has answered.
    term: Term,
    /// The term of the last INSTALL that it has.
    installed: Term,
    log: Vec<Multicast>,
}

impl Durable for Kept {
    fn term(&self) -> Term {
        self.term
    }
}

/// What a member does besides delivering.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Duty {
    Follow,
    /// It has taken over, and waits for the logs of the others.
    Collect(SortedMap<NodeId, (Term, Vec<Multicast>)>),
    /// It orders. Stable: how many positions each of the others has.
    Order(SortedMap<NodeId, usize>),
}

/// Messages between the members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table says what they are")]
pub enum Message {
    Submit { message: Multicast },
    Order { term: Term, position: u32, message: Multicast },
    Ack { term: Term, position: u32 },
    Commit { term: Term, position: u32 },
    Collect { term: Term },
    Log { term: Term, installed: Term, log: Vec<Multicast> },
    Install { term: Term, log: Vec<Multicast> },
}

impl AlgorithmMessage for Message {
    kinds! {
        Self::Submit { .. } => Kind::own("SUBMIT", Family::Ask, "asks the sequencer to order a message"),
        Self::Order { .. } => Kind::own("ORDER", Family::Announce, "gives a message its position"),
        Self::Ack { .. } => Kind::own("STORED", Family::Answer, "says up to which position its sender has the log"),
        Self::Commit { .. } => Kind::own("COMMIT", Family::Announce, "says up to which position a majority has the log"),
        Self::Collect { .. } => Kind::own("COLLECT", Family::Ask, "asks for the log, and ends all earlier terms"),
        Self::Log { .. } => Kind::own("LOG", Family::Answer, "hands over its sender's log"),
        Self::Install { .. } => Kind::own("INSTALL", Family::HandOver, "replaces the receiver's log"),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |log: &[Multicast]| log.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::Submit { message } => write!(f, "SUBMIT {message}"),
            Self::Order { term, position, message } => {
                write!(f, "ORDER term={term} {position}={message}")
            }
            Self::Ack { term, position } => write!(f, "STORED term={term} below={position}"),
            Self::Commit { term, position } => write!(f, "COMMIT term={term} below={position}"),
            Self::Collect { term } => write!(f, "COLLECT term={term}"),
            Self::Log { term, installed, log } => {
                write!(f, "LOG term={term} installed={installed} [{}]", list(log))
            }
            Self::Install { term, log } => write!(f, "INSTALL term={term} [{}]", list(log)),
        }
    }
}

impl Protocol for Sequencer {
    type Config = Config;
    type Message = Message;
    type Timer = NoTimer;
    type Durable = Kept;

    fn start(id: NodeId, config: &Config, boot: Boot<Kept>, out: &mut Effects<Self>) -> Self {
        let mut member = Self {
            id,
            leader: None,
            kept: boot.durable.unwrap_or_default(),
            duty: Duty::Follow,
            delivered: Deliveries::default(),
            multicast: 0,
            down: PeerSet::new(),
        };
        if let Origin::Founding { leader } = boot.origin {
            let leader = leader.unwrap_or(config.members.at(0));
            let term = config.members.next_term_of(leader, Term(0));
            member.leader = Some(leader);
            member.kept = Kept { term, installed: term, log: Vec::new() };
            if leader == id {
                member.duty = Duty::Order(SortedMap::new());
            }
            member.store(&mut Context { config, out });
        }
        member
    }

    fn handle(&mut self, config: &Config, event: Event<Message, NoTimer>, out: &mut Effects<Self>) {
        let cx = &mut Context { config, out };
        match event {
            Event::Request => {
                self.multicast += 1;
                self.submit(self.multicast, cx);
            }
            Event::Campaign => self.take_over(cx),
            Event::PeerDown(peer) => {
                self.down.insert(peer);
                let is_lowest = config.members.iter().find(|&id| !self.down.contains(id));
                if Some(peer) == self.leader && is_lowest == Some(self.id) {
                    self.take_over(cx);
                }
                self.finish_collecting(cx);
            }
            Event::PeerUp(peer) => {
                self.down.remove(peer);
                let Kept { term, log, .. } = self.kept.clone();
                match self.duty {
                    Duty::Follow => {}
                    Duty::Collect(_) => cx.send(peer, Message::Collect { term }),
                    Duty::Order(_) => cx.send(peer, Message::Install { term, log }),
                }
            }
            Event::Message { from, message } => self.on_message(from, message, cx),
            _ => {}
        }
    }

    fn view(&self) -> View {
        let role = match self.duty {
            Duty::Follow => Role::Follower,
            Duty::Collect(_) => Role::Candidate,
            Duty::Order(_) => Role::Leader,
        };
        View::new(self.leader, self.kept.term, role)
    }

    fn kinds(_: &Config) -> Cow<'static, [Kind]> {
        Message::KINDS.into()
    }

    fn kind_index(_: &Config, message: &Message) -> usize {
        message.index()
    }

    fn is_background(timer: NoTimer) -> bool {
        match timer {}
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        Some(&self.delivered)
    }
}

impl Sequencer {
    fn is_stable(config: &Config) -> bool {
        config.hardened()
    }

    fn store(&self, cx: &mut Cx<'_>) {
        if Self::is_stable(cx.config) {
            cx.persist(self.kept.clone());
        }
    }

    fn send_all(&self, message: &Message, cx: &mut Cx<'_>) {
        for peer in cx.config.members.others(self.id) {
            cx.send(peer, message.clone());
        }
    }

    /// Q1: the `number`th message of its own program goes to the leader.
    fn submit(&mut self, number: u32, cx: &mut Cx<'_>) {
        let message = Multicast { client: self.id, number };
        match self.leader {
            Some(leader) if leader == self.id => self.order(message, cx),
            Some(leader) => {
                cx.out.rule("Q1");
                cx.send(leader, Message::Submit { message });
            }
            None => {}
        }
    }

    /// Its program's messages that it has not delivered go to a new leader.
    fn resubmit(&mut self, cx: &mut Cx<'_>) {
        let is_open = |number: &u32| {
            let message = Multicast { client: self.id, number: *number };
            !self.delivered.sequence.contains(&message)
        };
        for number in (1..=self.multicast).filter(is_open).collect::<Vec<_>>() {
            self.submit(number, cx);
        }
    }

    /// Q2.
    fn order(&mut self, message: Multicast, cx: &mut Cx<'_>) {
        let is_known =
            cx.config.exclusion.keeps(Reliance::OrderedOnce) && self.kept.log.contains(&message);
        if !matches!(self.duty, Duty::Order(_)) || is_known {
            return;
        }
        cx.out.rule("Q2");
        self.kept.log.push(message);
        self.store(cx);
        let position = self.kept.log.len() as u32;
        self.send_all(&Message::Order { term: self.kept.term, position, message }, cx);
        match Self::is_stable(cx.config) {
            true => self.commit(cx),
            false => self.deliver(self.kept.log.len()),
        }
    }

    fn deliver(&mut self, below: usize) {
        let delivered = self.delivered.sequence.len();
        let below = below.min(self.kept.log.len());
        if let Some(new) = self.kept.log.get(delivered..below) {
            self.delivered.sequence.extend_from_slice(new);
        }
    }

    /// Q4: delivers what a majority has.
    fn commit(&mut self, cx: &mut Cx<'_>) {
        let Duty::Order(stored) = &self.duty else { return };
        let mut positions: Vec<usize> = cx
            .config
            .members
            .others(self.id)
            .map(|id| stored.get(&id).copied().unwrap_or(0))
            .collect();
        positions.push(self.kept.log.len());
        positions.sort_unstable();
        // As many members have at least this much as make a majority.
        let needs_majority = cx.config.exclusion.keeps(Reliance::MajorityHasIt);
        let majority = if needs_majority { ledger::majority(positions.len()) } else { 1 };
        let held = positions[positions.len() - majority];
        if held > self.delivered.sequence.len() {
            cx.out.rule("Q4");
            self.deliver(held);
            let position = held as u32;
            self.send_all(&Message::Commit { term: self.kept.term, position }, cx);
        }
    }

    /// Q5.
    fn take_over(&mut self, cx: &mut Cx<'_>) {
        cx.out.rule("Q5");
        cx.out.election_started();
        self.kept.term = cx.config.members.next_term_of(self.id, self.kept.term);
        self.leader = Some(self.id);
        self.duty = Duty::Collect(SortedMap::new());
        self.store(cx);
        cx.announce(self.view());
        self.send_all(&Message::Collect { term: self.kept.term }, cx);
        self.finish_collecting(cx);
    }

    /// Q6.
    fn finish_collecting(&mut self, cx: &mut Cx<'_>) {
        let Duty::Collect(logs) = &self.duty else { return };
        let mut others = cx.config.members.others(self.id);
        let is_enough =
            match Self::is_stable(cx.config) || cx.config.reads(Variant::CollectsMajority) {
                true => logs.len() + 1 > cx.config.members.len() / 2,
                false => others.all(|id| self.down.contains(id) || logs.contains_key(&id)),
            };
        if !is_enough {
            return;
        }
        cx.out.rule("Q6");
        let own = (self.kept.installed, self.kept.log.clone());
        let all = logs.values().cloned().chain([own.clone()]);
        let takes_latest = cx.config.exclusion.keeps(Reliance::LatestLogWins);
        let best = all
            .filter(|log| takes_latest || *log == own)
            .max_by_key(|(installed, log)| (*installed, log.len()));
        let (_, log) = best.unwrap_or_default();
        self.duty = Duty::Order(SortedMap::new());
        self.install(self.kept.term, log, cx);
        let Kept { term, log, .. } = self.kept.clone();
        self.send_all(&Message::Install { term, log }, cx);
        cx.announce(self.view());
        self.resubmit(cx);
    }

    /// Q7, for followers and for the leader itself.
    fn install(&mut self, term: Term, log: Vec<Multicast>, cx: &mut Cx<'_>) {
        if !log.starts_with(&self.delivered.sequence) {
            let resets = self.delivered.resets + 1;
            self.delivered = Deliveries { sequence: Vec::new(), resets };
        }
        self.kept = Kept { term, installed: term, log };
        self.store(cx);
        if !Self::is_stable(cx.config) {
            self.deliver(self.kept.log.len());
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, cx: &mut Cx<'_>) {
        match message {
            Message::Submit { message } => self.order(message, cx),
            Message::Order { term, position, message } => {
                let is_next = position as usize == self.kept.log.len() + 1;
                let is_bound = cx.config.exclusion.keeps(Reliance::AnsweredTermBinds);
                let is_last = term == self.kept.term || !is_bound;
                if is_last && self.kept.installed == term && is_next {
                    cx.out.rule("Q3");
                    self.kept.log.push(message);
                    self.store(cx);
                    match Self::is_stable(cx.config) {
                        true => cx.send(from, Message::Ack { term, position }),
                        false => self.deliver(self.kept.log.len()),
                    }
                }
            }
            Message::Ack { term, position } => {
                if let Duty::Order(stored) = &mut self.duty
                    && term == self.kept.term
                {
                    let most = stored.get_or_default(from);
                    *most = (*most).max(position as usize);
                    self.commit(cx);
                }
            }
            Message::Commit { term, position } => {
                if term == self.kept.term && self.kept.installed == term {
                    self.deliver(position as usize);
                }
            }
            Message::Collect { term } if term > self.kept.term => {
                self.follow(from, term, cx);
                self.store(cx);
                let Kept { installed, log, .. } = self.kept.clone();
                cx.send(from, Message::Log { term, installed, log });
            }
            Message::Log { term, installed, log } => {
                if let Duty::Collect(logs) = &mut self.duty
                    && term == self.kept.term
                {
                    logs.insert(from, (installed, log));
                    self.finish_collecting(cx);
                }
            }
            Message::Install { term, log } => self.on_install(from, term, log, cx),
            Message::Collect { .. } => {}
        }
    }

    /// Q7. A log of the term that it has is a continuation of its own, or is one that it has had before.
    fn on_install(&mut self, from: NodeId, term: Term, log: Vec<Multicast>, cx: &mut Cx<'_>) {
        let has_it = self.kept.installed == term && self.kept.log.len() >= log.len();
        if term < self.kept.term || has_it {
            return;
        }
        cx.out.rule("Q7");
        self.follow(from, term, cx);
        self.install(term, log, cx);
        if Self::is_stable(cx.config) {
            let position = self.kept.log.len() as u32;
            cx.send(from, Message::Ack { term, position });
        }
        self.resubmit(cx);
    }

    fn follow(&mut self, leader: NodeId, term: Term, cx: &mut Cx<'_>) {
        let before = self.view();
        self.kept.term = term;
        self.leader = Some(leader);
        self.duty = Duty::Follow;
        if self.view() != before {
            cx.announce(self.view());
        }
    }
}

impl Explore for Sequencer {
    fn heeds_incarnation(_: &Config) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
