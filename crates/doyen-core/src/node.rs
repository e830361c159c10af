//! A member as it runs: an algorithm, and below it the layers that provide what it assumes.
//!
//! The textbook algorithms assume that channels are reliable and first-in-first-out, that a crash of a member is
//! detected, and that a restarted member is not mistaken for its earlier incarnation. A [`Node`] provides that over a
//! network that loses, duplicates and reorders messages. It wraps an algorithm and is itself a [`Protocol`], so hosts
//! run either:
//!
//! ```text
//!     algorithm
//!        │  messages            ▲  messages, PeerDown, PeerUp
//!     link       every message once and in order         link.rs       optional
//!     detector   which peers are up                      detector.rs   optional
//!     filter     which incarnation counts                here          optional
//!        ▼  packets             │  packets
//!     host
//! ```
//!
//! **The incarnation filter.** A member may crash and come back before any other notices. Then an answer from its
//! earlier incarnation would count for the present one, or a question meant for the earlier incarnation would be
//! answered by the present one. So every packet carries its sender's incarnation and, once the sender knows it, the
//! receiver's, and
//!
//! - I1: a packet from an older incarnation than the known one is dropped;
//! - I2: a packet for another incarnation than the present one is dropped;
//! - I3: a packet from a newer incarnation than the known one means that the older one has crashed: the algorithm is
//!   informed that the peer went down, and the link discards what it kept for it. The peer is up again as soon as the
//!   detector finds that it receives messages from this member; without a detector, at once;
//! - I4: a packet that I2 drops because it is for an *older* incarnation is answered with an empty acknowledgement,
//!   which carries the present one. I3 then informs the sender of the crash.
//!
//! An unknown incarnation is neither older nor newer: the first packet makes it known.
//!
//! Without I4 a restarted member would receive nothing from members to which its algorithm does not happen to send: on
//! a ring these are all but its neighbour, and a leader elsewhere would send to its earlier incarnation forever. I4
//! cannot echo: the answer carries the incarnation from which the packet came, so it is answered in turn only if that
//! member has restarted as well, and then both know each other's present incarnation. If an answer is lost, the next
//! packet causes another.
//!
//! **Which peers are up** is the decision of the detector. Without one a peer is up until the link gives it up, and up
//! again with the next packet from it. A host may also have its own detector and feed `PeerDown` and `PeerUp`, which
//! then count. In each case, the link discards what it kept for a peer that goes down, and a peer that is down gets
//! each new message once, because it may be alive although it is not received.
//!
//! **Metrics.** The first transmission of a message has the message's own kind. Retransmissions, acknowledgements and
//! heartbeats are kinds of their own, so that the counts of the election stay those of the literature.
//!
//! **Bounds.** Packets from unknown senders are dropped. The memory used grows with the number of members and the
//! link's queue, and with nothing that a peer can send.

pub(crate) mod packet;

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::detector::{self, Detector, DetectorConfig};
use crate::explore::{Explore, Giver, Serial};
use crate::link::{self, Link, LinkConfig};
use crate::map::SortedMap;
use crate::members::{Incarnation, Members, NodeId, PeerSet, Term};
use crate::protocol::{
    Bonds, Boot, Deliveries, Effect, Effects, Event, Holding, Kind, Notice, Protocol, Recording,
    View,
};

pub use packet::{Body, Packet};

/// The configuration of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeConfig<C> {
    /// The configuration of its algorithm.
    pub inner: C,
    /// The members; the same as in `inner`.
    pub members: Members,
    /// Whether incarnations are distinguished. A link requires it, and distinguishes them in any case.
    pub filter: bool,
    /// The link, unless messages use the bare network.
    pub link: Option<LinkConfig>,
    /// The failure detector, unless the host has one.
    pub detector: Option<DetectorConfig>,
}

impl<C> NodeConfig<C> {
    /// The same with something else above.
    pub fn map<D>(self, change: impl FnOnce(C) -> D) -> NodeConfig<D> {
        let Self { inner, members, filter, link, detector } = self;
        NodeConfig { inner: change(inner), members, filter, link, detector }
    }

    /// Whether packets of other incarnations are dropped.
    pub fn filters(&self) -> bool {
        self.filter || self.link.is_some()
    }
}

/// A member: an algorithm, its links, its failure detector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node<P: Protocol> {
    inner: P,
    incarnation: Incarnation,
    /// The known incarnations of its peers.
    incarnations: SortedMap<NodeId, Incarnation>,
    links: SortedMap<NodeId, Link<P::Message>>,
    detector: Option<Detector>,
    /// Without a detector: the peers that were given up and have not been received since.
    down: PeerSet,
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer<T> {
    /// A timer of its algorithm.
    Inner(T),
    /// The acknowledgement of this peer.
    Resend(NodeId),
    /// A timer of its detector.
    Detector(detector::Timer),
}

/// The work of one event: the effects, and the events that the algorithm has yet to handle.
struct Turn<'a, P: Protocol> {
    config: &'a NodeConfig<P::Config>,
    out: &'a mut Effects<Node<P>>,
    inbox: VecDeque<Event<P::Message, P::Timer>>,
}

/// What the incarnation filter decides about a packet.
enum Judgement {
    /// Both incarnations are the present ones.
    Admit,
    /// I4: it is meant for an earlier incarnation of this node, and its sender should know.
    Correct,
    /// I1, I2: it is from or for an incarnation that does not exist.
    Drop,
}

impl<P: Protocol> Protocol for Node<P> {
    type Config = NodeConfig<P::Config>;
    type Message = Packet<P::Message>;
    type Timer = Timer<P::Timer>;
    type Durable = P::Durable;

    fn start(
        id: NodeId,
        config: &Self::Config,
        boot: Boot<P::Durable>,
        out: &mut Effects<Self>,
    ) -> Self {
        let Boot { incarnation, origin, .. } = boot;
        assert!(
            !config.filters() || incarnation > Incarnation::default(),
            "the host raises the incarnation before every start"
        );
        let mut watch = Vec::new();
        let detector = config
            .detector
            .as_ref()
            .map(|settings| Detector::start(settings, id, &config.members, origin, &mut watch));
        let mut effects = Effects::new();
        let mut node = Self {
            inner: P::start(id, &config.inner, boot, &mut effects),
            incarnation,
            incarnations: SortedMap::new(),
            links: SortedMap::new(),
            detector,
            down: PeerSet::new(),
        };
        let mut turn = Turn { config, out, inbox: VecDeque::new() };
        node.apply_detector(watch, &mut turn);
        node.carry_out(effects, &mut turn);
        node.handle_pending(&mut turn);
        node
    }

    fn handle(
        &mut self,
        config: &Self::Config,
        event: Event<Self::Message, Self::Timer>,
        out: &mut Effects<Self>,
    ) {
        let mut turn = Turn { config, out, inbox: VecDeque::new() };
        match event {
            Event::Message { from, message } => self.on_packet(from, message, &mut turn),
            Event::Timer(Timer::Inner(timer)) => turn.inbox.push_back(Event::Timer(timer)),
            Event::Timer(Timer::Resend(peer)) => {
                self.with_link(peer, &mut turn, Link::on_timer);
            }
            Event::Timer(Timer::Detector(timer)) => self.on_detector_timer(timer, &mut turn),
            Event::PeerDown(peer) => self.on_host_down(peer, &mut turn),
            Event::PeerUp(peer) => self.on_host_up(peer, &mut turn),
            other => turn.inbox.extend(other.passed()),
        }
        self.handle_pending(&mut turn);
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]> {
        [&P::kinds(&config.inner)[..], &packet::ADDED].concat().into()
    }

    fn kind_index(config: &Self::Config, packet: &Self::Message) -> usize {
        let added = || P::kinds(&config.inner).len();
        match &packet.body {
            Body::Plain(message) => P::kind_index(&config.inner, message),
            Body::First(numbered) => P::kind_index(&config.inner, &numbered.message),
            Body::Again(_) => added(),
            Body::Ack { .. } => added() + 1,
            Body::Heartbeat { .. } => added() + 2,
        }
    }

    fn heeds_detector(config: &Self::Config) -> bool {
        P::heeds_detector(&config.inner)
    }

    fn has_leases(config: &Self::Config) -> bool {
        P::has_leases(&config.inner)
    }

    fn lease(&self) -> Option<Self::Timer> {
        self.inner.lease().map(Timer::Inner)
    }

    fn hold(&self) -> Option<Self::Timer> {
        self.inner.hold().map(Timer::Inner)
    }

    fn holding(&self) -> Option<Holding> {
        self.inner.holding()
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        self.inner.deliveries()
    }

    fn recording(&self) -> Option<Recording> {
        self.inner.recording()
    }

    fn bonds(&self) -> Bonds<Self::Timer> {
        self.inner.bonds().map(Timer::Inner)
    }

    fn is_lease(timer: Self::Timer) -> bool {
        matches!(timer, Timer::Inner(timer) if P::is_lease(timer))
    }

    fn is_background(timer: Self::Timer) -> bool {
        match timer {
            Timer::Inner(timer) => P::is_background(timer),
            // Even heartbeats of a leader are retransmitted, so this never ends either.
            Timer::Resend(_) => true,
            Timer::Detector(_) => true,
        }
    }
}

impl<P: Explore> Explore for Node<P> {
    fn has_canonical_form(config: &Self::Config) -> bool {
        // A link keeps messages with their serial numbers.
        config.link.is_none() && P::has_canonical_form(&config.inner)
    }

    fn canonical(&self, config: &Self::Config) -> Self {
        Self { inner: self.inner.canonical(&config.inner), ..self.clone() }
    }

    fn canonical_timer(&self, config: &Self::Config, timer: Self::Timer) -> Self::Timer {
        match timer {
            Timer::Inner(timer) => Timer::Inner(self.inner.canonical_timer(&config.inner, timer)),
            other => other,
        }
    }

    fn first_live_serial(&self, config: &Self::Config) -> Option<Serial> {
        self.inner.first_live_serial(&config.inner)
    }

    fn serial(packet: &Self::Message) -> Option<(Serial, Giver)> {
        match &packet.body {
            Body::Plain(message) => P::serial(message),
            _ => None,
        }
    }

    fn without_serial(packet: &Self::Message) -> Self::Message {
        match &packet.body {
            Body::Plain(message) => {
                Packet { body: Body::Plain(P::without_serial(message)), ..packet.clone() }
            }
            _ => packet.clone(),
        }
    }

    fn token(&self) -> Option<Term> {
        self.inner.token()
    }

    // What a link sends may be sent again, and its receiver drops the second: the packet is no token.
    fn token_in(packet: &Self::Message) -> Option<Term> {
        match &packet.body {
            Body::Plain(message) => P::token_in(message),
            _ => None,
        }
    }
}

impl<P: Protocol> Node<P> {
    /// The algorithm's own state.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Passes all pending events to the algorithm. That may make it send, and sending may give a peer up, which is one
    /// more event; but nothing is kept for a peer that is down, so each peer is given up only once.
    fn handle_pending(&mut self, turn: &mut Turn<'_, P>) {
        while let Some(event) = turn.inbox.pop_front() {
            let mut effects = Effects::new();
            self.inner.handle(&turn.config.inner, event, &mut effects);
            self.carry_out(effects, turn);
        }
    }

    fn carry_out(&mut self, mut effects: Effects<P>, turn: &mut Turn<'_, P>) {
        turn.out.take_notes(&effects);
        for effect in effects.drain() {
            match effect {
                Effect::Persist(durable) => turn.out.persist(durable),
                Effect::Send { to, message } => self.send(to, message, turn),
                Effect::SetTimer { timer, after } => {
                    turn.out.set_timer(Timer::Inner(timer), after);
                }
                Effect::CancelTimer(timer) => turn.out.cancel_timer(Timer::Inner(timer)),
                Effect::Announce(view) => turn.out.announce(view),
                Effect::Inform(notice) => turn.out.inform(notice),
            }
        }
    }

    fn send(&mut self, to: NodeId, message: P::Message, turn: &mut Turn<'_, P>) {
        if turn.config.link.is_none() {
            return self.post(to, Body::Plain(message), turn);
        }
        let down = self.is_down(to);
        self.links.get_or_default(to);
        self.with_link(to, turn, |link, config, out| match down {
            true => link.send_once(message, out),
            false => link.send(config, message, out),
        });
    }

    /// Puts `body` into its envelope and sends it.
    fn post(&self, to: NodeId, body: Body<P::Message>, turn: &mut Turn<'_, P>) {
        let (mine, theirs) = match turn.config.filters() {
            true => (self.incarnation, self.incarnations.get(&to).copied().unwrap_or_default()),
            false => Default::default(),
        };
        turn.out.send(to, Packet { from: mine, to: theirs, body });
    }

    fn on_packet(&mut self, from: NodeId, packet: Packet<P::Message>, turn: &mut Turn<'_, P>) {
        if !turn.config.members.contains(from) {
            return;
        }
        match self.judge(from, &packet, turn) {
            Judgement::Admit => self.on_body(from, packet.body, turn),
            Judgement::Correct => {
                self.on_sign_of_life(from, None, turn);
                self.post(from, Body::Ack { below: 0 }, turn);
            }
            Judgement::Drop => {}
        }
    }

    fn on_body(&mut self, from: NodeId, body: Body<P::Message>, turn: &mut Turn<'_, P>) {
        let report = match body {
            Body::Heartbeat { reachable } => Some(reachable),
            _ => None,
        };
        self.on_sign_of_life(from, report, turn);
        match body {
            Body::Plain(message) => {
                if turn.config.link.is_none() {
                    turn.inbox.push_back(Event::Message { from, message });
                }
            }
            Body::First(numbered) | Body::Again(numbered) => {
                if turn.config.link.is_some() {
                    self.links.get_or_default(from);
                }
                self.with_link(from, turn, |link, config, out| {
                    link.on_message(config, numbered, out);
                });
            }
            Body::Ack { below } => self.with_link(from, turn, |link, config, out| {
                link.on_acknowledgement(config, below, out);
            }),
            Body::Heartbeat { .. } => {}
        }
    }

    /// The incarnation filter: whether both incarnations are the present ones. Learns newer incarnations.
    fn judge(
        &mut self,
        from: NodeId,
        packet: &Packet<P::Message>,
        turn: &mut Turn<'_, P>,
    ) -> Judgement {
        if !turn.config.filters() {
            return Judgement::Admit;
        }
        let unknown = Incarnation::default();
        let known = self.incarnations.get(&from).copied().unwrap_or_default();
        if packet.from < known || packet.to > self.incarnation {
            return Judgement::Drop;
        }
        if packet.from > known {
            self.incarnations.insert(from, packet.from);
            if known != unknown {
                self.on_restart(from, turn);
            }
        }
        match packet.to == unknown || packet.to == self.incarnation {
            true => Judgement::Admit,
            false => Judgement::Correct,
        }
    }

    /// I3: the peer crashed, and runs again.
    fn on_restart(&mut self, peer: NodeId, turn: &mut Turn<'_, P>) {
        self.give_up(peer, turn);
        self.with_link(peer, turn, |link, _, out| link.on_restart(out));
    }

    /// Whether `peer` has been reported down and not up since.
    fn is_down(&self, peer: NodeId) -> bool {
        match &self.detector {
            Some(detector) => detector.is_down(peer),
            None => self.down.contains(peer),
        }
    }

    /// A packet from `peer` arrived. `report`: if it was a heartbeat, whether the peer receives messages from this
    /// node.
    fn on_sign_of_life(&mut self, peer: NodeId, report: Option<bool>, turn: &mut Turn<'_, P>) {
        let mut actions = Vec::new();
        if let (Some(detector), Some(config)) = (&mut self.detector, &turn.config.detector) {
            detector.on_sign_of_life(config, peer, report, &mut actions);
        } else if turn.config.filters() && self.down.remove(peer) {
            actions.push(detector::Action::Up(peer));
        }
        self.apply_detector(actions, turn);
    }

    /// The link gives `peer` up, or it crashed.
    fn give_up(&mut self, peer: NodeId, turn: &mut Turn<'_, P>) {
        let mut actions = Vec::new();
        if let Some(detector) = &mut self.detector {
            detector.give_up(peer, &mut actions);
        } else if self.down.insert(peer) {
            actions.push(detector::Action::Down(peer));
        }
        self.apply_detector(actions, turn);
    }

    /// The host's own detector considers `peer` down.
    fn on_host_down(&mut self, peer: NodeId, turn: &mut Turn<'_, P>) {
        if self.detector.is_some() {
            return self.give_up(peer, turn);
        }
        self.down.insert(peer);
        self.with_link(peer, turn, |link, _, out| link.give_up(out));
        turn.inbox.push_back(Event::PeerDown(peer));
    }

    /// The host's own detector considers `peer` up again.
    fn on_host_up(&mut self, peer: NodeId, turn: &mut Turn<'_, P>) {
        if self.detector.is_some() {
            return self.on_sign_of_life(peer, None, turn);
        }
        self.down.remove(peer);
        turn.inbox.push_back(Event::PeerUp(peer));
    }

    fn on_detector_timer(&mut self, timer: detector::Timer, turn: &mut Turn<'_, P>) {
        if let (Some(detector), Some(config)) = (&mut self.detector, &turn.config.detector) {
            let mut actions = Vec::new();
            detector.on_timer(config, timer, &mut actions);
            self.apply_detector(actions, turn);
        }
    }

    fn apply_detector(&mut self, actions: Vec<detector::Action>, turn: &mut Turn<'_, P>) {
        for action in actions {
            match action {
                detector::Action::Heartbeat { to, reachable } => {
                    self.post(to, Body::Heartbeat { reachable }, turn);
                }
                detector::Action::SetTimer { timer, after } => {
                    turn.out.set_timer(Timer::Detector(timer), after);
                }
                detector::Action::CancelTimer(timer) => {
                    turn.out.cancel_timer(Timer::Detector(timer));
                }
                detector::Action::Down(peer) => {
                    self.with_link(peer, turn, |link, _, out| link.give_up(out));
                    turn.out.inform(Notice::Down(peer));
                    turn.inbox.push_back(Event::PeerDown(peer));
                }
                detector::Action::Up(peer) => {
                    turn.out.inform(Notice::Up(peer));
                    turn.inbox.push_back(Event::PeerUp(peer));
                }
            }
        }
    }

    /// Runs `act` on the link with `peer`, if there is one, and carries out the resulting actions.
    fn with_link(
        &mut self,
        peer: NodeId,
        turn: &mut Turn<'_, P>,
        act: impl FnOnce(&mut Link<P::Message>, &LinkConfig, &mut Vec<link::Action<P::Message>>),
    ) {
        let (Some(config), Some(link)) = (&turn.config.link, self.links.get_mut(&peer)) else {
            return;
        };
        let mut actions = Vec::new();
        act(link, config, &mut actions);
        for action in actions {
            match action {
                link::Action::Transmit(numbered) => self.post(peer, Body::First(numbered), turn),
                link::Action::Retransmit(numbered) => self.post(peer, Body::Again(numbered), turn),
                link::Action::Acknowledge(below) => self.post(peer, Body::Ack { below }, turn),
                link::Action::Deliver(message) => {
                    turn.inbox.push_back(Event::Message { from: peer, message });
                }
                link::Action::SetTimer(after) => turn.out.set_timer(Timer::Resend(peer), after),
                link::Action::CancelTimer => turn.out.cancel_timer(Timer::Resend(peer)),
                link::Action::GiveUp => self.give_up(peer, turn),
            }
        }
    }
}

#[cfg(test)]
mod tests;
