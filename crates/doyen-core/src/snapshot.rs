//! A snapshot of a running group: Chandy and Lamport 1985, as a layer around any algorithm.
//!
//! No member can see the whole group at one instant. The snapshot records a state in which the group could have been: the
//! state of every member, and for every directed channel the messages that were under way on it. It need not have
//! occurred at any instant. It can be reached from the state in which the snapshot began, and the state in which it ended
//! can be reached from it.
//!
//! ```text
//!     algorithm
//!        │  messages            ▲  messages
//!     snapshot   copies the state, and what is under way
//!        ▼  messages, MARKER    │
//!     a link, or a host whose channels keep the order
//! ```
//!
//! | # | event | action |
//! |---|---|---|
//! | D1 | `AdminCommand::Snapshot` | record the own state, open all incoming channels, send MARKER on every outgoing one |
//! | D2 | MARKER, nothing recorded yet | as D1; the channel on which it came is closed, and empty |
//! | D3 | MARKER, recorded | close the channel: its state is what was recorded on it |
//! | D4 | a message on an open channel | append it to the state of the channel, and deliver it |
//! | D5 | all incoming channels are closed | this member is done |
//!
//! The channels are those of a complete graph, so there are N(N−1) markers. They must lose nothing and keep the order, and
//! the group must be closed: a member that crashes takes its recording with it, and the snapshot stays incomplete. The
//! lecture that the example comes from (cs425) asks for causal order and reliable multicast as well; neither is needed.
//!
//! Departures, and why:
//!
//! - **One snapshot a run.** The paper tells several apart by the initiator and a number. Here a member that has recorded
//!   ignores a second command, so that two members may start the same snapshot, which the paper allows.
//! - **No collector.** Hosts read what members have recorded ([`Protocol::recording`]) and put it together.
//! - **Messages say whether their sender had recorded.** The algorithm does not use it; the *judgement* does. With this bit
//!   a receiver knows of each message on which side of the cut it was sent, so it notices at once if the cut is
//!   inconsistent ([`Flaw`]). That is exactly when the message and the marker have changed places: on a channel that keeps
//!   the order it cannot happen. (Lai and Yang 1987 record by this bit instead of by markers, on any channel.)

pub mod rules;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::exclusion::Reliance;
use crate::explore::{Explore, Giver, Serial};
use crate::map::SortedMap;
use crate::members::{Members, NodeId, Term};
use crate::protocol::{
    AdminCommand, Bonds, Boot, Channel, Class, Commitments, Deliveries, Effects, Event, Family,
    Flaw, Holding, Kind, Message, Notice, Protocol, Recording, View,
};

/// The kind that the layer adds to those of the algorithm.
pub(crate) const MARKER: Kind = Kind {
    name: "MARKER",
    class: Class::Marker,
    family: Family::Announce,
    meaning: "says that its sender has recorded its state: what it sent before is part of the snapshot",
};

/// The configuration of a member of which a snapshot can be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotConfig<C> {
    /// The configuration of its algorithm.
    pub inner: C,
    /// The members; the same as in `inner`.
    pub members: Members,
    /// The rule that a check takes away.
    pub without: Option<Reliance>,
}

impl<C> SnapshotConfig<C> {
    fn keeps(&self, reliance: Reliance) -> bool {
        self.without != Some(reliance)
    }
}

/// A member of which a snapshot can be taken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Snapshot<P: Protocol> {
    id: NodeId,
    inner: P,
    recorded: Option<Recorded<P>>,
    flaw: Option<Flaw>,
}

/// What a member has recorded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Recorded<P: Protocol> {
    state: P,
    channels: SortedMap<NodeId, Incoming<P::Message>>,
}

/// What has been recorded of an incoming channel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Incoming<M> {
    open: bool,
    messages: Vec<M>,
}

/// A message between members of which a snapshot can be taken.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Marked<M> {
    /// The sender has recorded its state.
    Marker,
    /// A message of the algorithm.
    Plain {
        /// The message.
        message: M,
        /// Whether its sender had recorded its state before it sent it.
        after: bool,
    },
}

impl<M: Message> Message for Marked<M> {
    fn kind(&self) -> Kind {
        match self {
            Self::Marker => MARKER,
            Self::Plain { message, .. } => message.kind(),
        }
    }

    fn commitments(&self) -> Commitments {
        match self {
            Self::Marker => Commitments::default(),
            Self::Plain { message, .. } => message.commitments(),
        }
    }

    /// A run continues until every marker has arrived.
    fn is_background(&self) -> bool {
        match self {
            Self::Marker => false,
            Self::Plain { message, .. } => message.is_background(),
        }
    }

    fn amount(&self) -> u64 {
        match self {
            Self::Marker => 0,
            Self::Plain { message, .. } => message.amount(),
        }
    }
}

impl<M: fmt::Display> fmt::Display for Marked<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Marker => f.write_str(MARKER.name),
            Self::Plain { message, .. } => message.fmt(f),
        }
    }
}

impl<P: Protocol> Snapshot<P> {
    /// D1: records the own state, opens all incoming channels and sends a marker on every outgoing one. `closed` is the
    /// channel on which the marker came that made it record.
    fn record(
        &mut self,
        closed: Option<NodeId>,
        config: &SnapshotConfig<P::Config>,
        out: &mut Effects<Self>,
    ) {
        let channel = |from| (from, Incoming { open: Some(from) != closed, messages: Vec::new() });
        let channels = config.members.others(self.id).map(channel).collect();
        self.recorded = Some(Recorded { state: self.inner.clone(), channels });
        let (view, holding) = (self.inner.view(), self.inner.holding());
        out.inform(Notice::Recorded { view, holding });
        let omitted = usize::from(!config.keeps(Reliance::MarkersToAll));
        for peer in config.members.others(self.id).skip(omitted) {
            out.send(peer, Marked::Marker);
        }
    }

    fn on_marker(
        &mut self,
        from: NodeId,
        config: &SnapshotConfig<P::Config>,
        out: &mut Effects<Self>,
    ) {
        let closes = config.keeps(match self.recorded {
            None => Reliance::FirstMarkerCloses,
            Some(_) => Reliance::MarkerCloses,
        });
        if self.recorded.is_none() {
            out.rule("D2");
            self.record(Some(from).filter(|_| closes), config, out);
        } else {
            out.rule("D3");
        }
        let Some(recorded) = &mut self.recorded else { return };
        let Some(channel) = recorded.channels.get_mut(&from) else { return };
        channel.open &= !closes;
        let messages = channel.messages.len() as u32;
        let amount = channel.messages.iter().map(Message::amount).sum();
        out.inform(Notice::ChannelRecorded { from, messages, amount });
        if recorded.channels.values().all(|channel| !channel.open) {
            out.rule("D5");
        }
    }

    /// D4, and what a message says about the consistency of the cut. `after`: its sender had recorded.
    fn on_message(
        &mut self,
        from: NodeId,
        message: &P::Message,
        after: bool,
        config: &SnapshotConfig<P::Config>,
        out: &mut Effects<Self>,
    ) {
        let channel = self.recorded.as_mut().and_then(|it| it.channels.get_mut(&from));
        let flaw = match channel {
            None => after.then_some(Flaw::Unsent { from }),
            Some(channel) if channel.open => {
                out.rule("D4");
                if config.keeps(Reliance::OpenChannelsRecord) {
                    channel.messages.push(message.clone());
                }
                after.then_some(Flaw::Surplus { from })
            }
            Some(_) => (!after).then_some(Flaw::Missing { from }),
        };
        self.flaw = self.flaw.or(flaw);
    }

    /// Lets the algorithm handle an event, and sends what it wants sent.
    fn pass(
        &mut self,
        config: &P::Config,
        event: Event<P::Message, P::Timer>,
        out: &mut Effects<Self>,
    ) {
        let mut own = out.for_wrapped();
        self.inner.handle(config, event, &mut own);
        carry_out(own, self.recorded.is_some(), out);
    }
}

/// Carries out the effects of the algorithm. `after`: this member has recorded its state.
fn carry_out<P: Protocol>(own: Effects<P>, after: bool, out: &mut Effects<Snapshot<P>>) {
    out.take_over(
        own,
        |message| Marked::Plain { message, after },
        |timer| timer,
        |durable| durable,
    );
}

impl<P: Protocol> Protocol for Snapshot<P> {
    type Config = SnapshotConfig<P::Config>;
    type Message = Marked<P::Message>;
    type Timer = P::Timer;
    type Durable = P::Durable;

    fn start(
        id: NodeId,
        config: &Self::Config,
        boot: Boot<P::Durable>,
        out: &mut Effects<Self>,
    ) -> Self {
        let mut own = out.for_wrapped();
        let inner = P::start(id, &config.inner, boot, &mut own);
        carry_out(own, false, out);
        Self { id, inner, recorded: None, flaw: None }
    }

    fn handle(
        &mut self,
        config: &Self::Config,
        event: Event<Self::Message, Self::Timer>,
        out: &mut Effects<Self>,
    ) {
        if let Event::Command(AdminCommand::Snapshot) = event {
            if self.recorded.is_none() {
                out.rule("D1");
                self.record(None, config, out);
            }
            return;
        }
        let receive = |from, message| match message {
            Marked::Marker => {
                self.on_marker(from, config, out);
                None
            }
            Marked::Plain { message, after } => {
                self.on_message(from, &message, after, config, out);
                Some(message)
            }
        };
        let Some(event) = event.map(receive, Some) else { return };
        self.pass(&config.inner, event, out);
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]> {
        [&P::kinds(&config.inner)[..], &[MARKER]].concat().into()
    }

    fn kind_index(config: &Self::Config, message: &Self::Message) -> usize {
        match message {
            Marked::Marker => P::kinds(&config.inner).len(),
            Marked::Plain { message, .. } => P::kind_index(&config.inner, message),
        }
    }

    fn is_background(timer: P::Timer) -> bool {
        P::is_background(timer)
    }

    fn heeds_detector(config: &Self::Config) -> bool {
        P::heeds_detector(&config.inner)
    }

    fn has_leases(config: &Self::Config) -> bool {
        P::has_leases(&config.inner)
    }

    fn lease(&self) -> Option<P::Timer> {
        self.inner.lease()
    }

    fn hold(&self) -> Option<P::Timer> {
        self.inner.hold()
    }

    fn is_lease(timer: P::Timer) -> bool {
        P::is_lease(timer)
    }

    fn bonds(&self) -> Bonds<P::Timer> {
        self.inner.bonds()
    }

    fn holding(&self) -> Option<Holding> {
        self.inner.holding()
    }

    fn deliveries(&self) -> Option<&Deliveries> {
        self.inner.deliveries()
    }

    fn recording(&self) -> Option<Recording> {
        let recorded = self.recorded.as_ref()?;
        let channel = |(&from, channel): (&NodeId, &Incoming<P::Message>)| Channel {
            from,
            closed: !channel.open,
            messages: channel.messages.iter().map(ToString::to_string).collect(),
            amount: channel.messages.iter().map(Message::amount).sum(),
        };
        Some(Recording {
            view: recorded.state.view(),
            holding: recorded.state.holding(),
            channels: recorded.channels.iter().map(channel).collect(),
            flaw: self.flaw,
        })
    }
}

/// States stand for themselves: a canonical form would leave out what has been recorded.
impl<P: Explore> Explore for Snapshot<P> {
    fn heeds_incarnation(config: &Self::Config) -> bool {
        P::heeds_incarnation(&config.inner)
    }

    fn serial(message: &Self::Message) -> Option<(Serial, Giver)> {
        match message {
            Marked::Marker => None,
            Marked::Plain { message, .. } => P::serial(message),
        }
    }

    fn token(&self) -> Option<Term> {
        self.inner.token()
    }

    fn token_in(message: &Self::Message) -> Option<Term> {
        match message {
            Marked::Marker => None,
            Marked::Plain { message, .. } => P::token_in(message),
        }
    }
}

#[cfg(test)]
mod tests;
