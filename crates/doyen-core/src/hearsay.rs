//! What members tell each other outside their algorithm of mutual exclusion: a layer above it for the property ME3, which says
//! that of two requests the one that happened before the other enters first.
//!
//! Requests happen before each other by way of messages (Lamport 1978), and not of those of the algorithm alone: a member
//! that has been told of a request may ask because of it. So a member here may *tell* another one something, at any moment
//! ([`AdminCommand::Tell`]). An application message carries Lamport's clock, if the algorithm has one: without it, a member
//! that was told of a request may ask with an earlier time, and overtakes it.
//!
//! To *judge* that, every message carries how many requests of each member its sender knows to have happened, which the
//! algorithm does not see. Simulations and explorations read what a request comes after ([`Protocol::asked_after`]); no node runs
//! this layer.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::explore::Explore;
use crate::members::{Members, NodeId, Term};
use crate::protocol::{
    AdminCommand, AskedAfter, Boot, Class, Commitments, Effects, Event, Family, Kind, Message,
    Protocol, View,
};

/// The kind that the layer adds to those of the algorithm.
pub(crate) const APP: Kind = Kind {
    name: "APP",
    class: Class::Client,
    family: Family::Announce,
    meaning: "tells the receiver something that the algorithm does not know of",
};

/// The configuration of a member that may tell others something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HearsayConfig<C> {
    /// The configuration of its algorithm.
    pub inner: C,
    /// The members; the same as in `inner`.
    pub members: Members,
    /// Whether application messages carry the clock.
    pub carries_clock: bool,
}

/// A member that may tell others something.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hearsay<P> {
    id: NodeId,
    inner: P,
    /// How many requests of each member it knows to have happened, by position.
    known: Vec<u32>,
    /// Those that had happened before its own request, while it has one.
    asked_after: Option<AskedAfter>,
}

/// A message, with what its sender knows of requests.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Carried<M> {
    known: Vec<u32>,
    what: Content<M>,
}

/// What a message says.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Content<M> {
    /// A message of the algorithm.
    Own(M),
    /// Of the application, with the clock of its sender.
    App { time: Option<u64> },
}

impl<M: Message> Message for Carried<M> {
    fn kind(&self) -> Kind {
        match &self.what {
            Content::Own(message) => message.kind(),
            Content::App { .. } => APP,
        }
    }

    /// That of the algorithm: what the judgement needs is not sent.
    fn encoded_len(&self) -> usize {
        match &self.what {
            Content::Own(message) => message.encoded_len(),
            Content::App { .. } => 0,
        }
    }

    fn commitments(&self) -> Commitments {
        Commitments::default()
    }

    fn is_background(&self) -> bool {
        match &self.what {
            Content::Own(message) => message.is_background(),
            Content::App { .. } => false,
        }
    }
}

impl<M: fmt::Display> fmt::Display for Carried<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Content::Own(message) => message.fmt(f),
            Content::App { time: None } => f.write_str(APP.name),
            Content::App { time: Some(time) } => write!(f, "{} time={time}", APP.name),
        }
    }
}

impl<P: Explore> Hearsay<P> {
    /// Carries out the effects of the algorithm.
    fn carry_out(&self, own: Effects<P>, out: &mut Effects<Self>) {
        let carried = |message| Carried { known: self.known.clone(), what: Content::Own(message) };
        out.take_over(own, carried, |timer| timer, |durable| durable);
    }

    fn tell(&self, config: &HearsayConfig<P::Config>, to: NodeId, out: &mut Effects<Self>) {
        let time = self.inner.time().filter(|_| config.carries_clock);
        out.send(to, Carried { known: self.known.clone(), what: Content::App { time } });
    }

    fn learn(&mut self, known: &[u32]) {
        for (own, told) in self.known.iter_mut().zip(known) {
            *own = (*own).max(*told);
        }
    }

    /// It asks: that comes after everything that it knows of.
    fn ask(&mut self, members: &Members) {
        let Some(place) = members.position(self.id) else { return };
        let after = members.iter().zip(self.known.iter().copied()).collect();
        self.known[place] += 1;
        self.asked_after = Some(AskedAfter { number: self.known[place], after });
    }
}

impl<P: Explore> Protocol for Hearsay<P> {
    type Config = HearsayConfig<P::Config>;
    type Message = Carried<P::Message>;
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
        let known = vec![0; config.members.len()];
        let member = Self { id, inner, known, asked_after: None };
        member.carry_out(own, out);
        member
    }

    fn handle(
        &mut self,
        config: &Self::Config,
        event: Event<Self::Message, Self::Timer>,
        out: &mut Effects<Self>,
    ) {
        if let Event::Command(AdminCommand::Tell { to }) = event {
            return self.tell(config, to, out);
        }
        if matches!(event, Event::Request) && self.inner.view().section.is_outside() {
            self.ask(&config.members);
        }
        let receive = |_, Carried { known, what }| {
            self.learn(&known);
            match what {
                Content::Own(message) => Some(message),
                Content::App { time } => {
                    time.into_iter().for_each(|time| self.inner.observe_time(time));
                    None
                }
            }
        };
        let Some(event) = event.map(receive, Some) else { return };
        let mut own = out.for_wrapped();
        self.inner.handle(&config.inner, event, &mut own);
        self.carry_out(own, out);
        if self.inner.view().section.is_outside() {
            self.asked_after = None;
        }
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]> {
        [&P::kinds(&config.inner)[..], &[APP]].concat().into()
    }

    fn kind_index(config: &Self::Config, message: &Self::Message) -> usize {
        match &message.what {
            Content::Own(message) => P::kind_index(&config.inner, message),
            Content::App { .. } => P::kinds(&config.inner).len(),
        }
    }

    fn is_background(timer: P::Timer) -> bool {
        P::is_background(timer)
    }

    fn heeds_detector(config: &Self::Config) -> bool {
        P::heeds_detector(&config.inner)
    }

    fn asked_after(&self) -> Option<&AskedAfter> {
        self.asked_after.as_ref()
    }
}

impl<P: Explore> Explore for Hearsay<P> {
    fn heeds_incarnation(config: &Self::Config) -> bool {
        P::heeds_incarnation(&config.inner)
    }

    fn token(&self) -> Option<Term> {
        self.inner.token()
    }

    fn token_in(message: &Self::Message) -> Option<Term> {
        match &message.what {
            Content::Own(message) => P::token_in(message),
            Content::App { .. } => None,
        }
    }
}
