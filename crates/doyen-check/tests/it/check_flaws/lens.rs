//! Members seen through a lens: the algorithm is the shipped one, only what a property sees of it is not everything.
//!
//! A search shows the shortest way to break a property. Where a simpler flaw breaks the same one sooner, a lens
//! overlooks that one, so that the search goes on to the flaw that is meant.

use std::borrow::Cow;
use std::collections::BTreeSet;

use doyen_core::config::Config;
use doyen_core::explore::Explore;
use doyen_core::members::NodeId;
use doyen_core::protocol::{Boot, Effect, Effects, Event, Kind, Protocol, Role, View};

/// How members are seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Lens {
    /// All look content until the same message has come three times, which two elections do not take. So a message that
    /// is lost in a crash does not break termination.
    Content,
    /// A dead leader looks like the lowest member alive, so those who follow the same dead one agree.
    Mourning,
    /// Once 1 is dead nobody seems to follow anybody, so only what happens while 1 lives counts.
    WhileOneLives,
}

/// The configuration of an algorithm that is seen through a lens.
pub(crate) struct Through {
    /// The algorithm's own.
    pub(crate) config: Config,
    pub(crate) lens: Lens,
}

/// A member that is seen through a lens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Seen<P: Protocol> {
    member: P,
    id: NodeId,
    lens: Lens,
    /// For [`Lens::Content`]: every message that has come, and how often, up to three times.
    heard: Vec<(P::Message, u8)>,
    /// Who is alive, as far as its failure detector has told it.
    alive: BTreeSet<NodeId>,
}

impl<P: Protocol> Seen<P> {
    fn hear(&mut self, message: &P::Message) {
        if self.lens != Lens::Content {
            return;
        }
        match self.heard.iter_mut().find(|(heard, _)| heard == message) {
            Some((_, times)) => *times = 3.min(*times + 1),
            None => self.heard.push((message.clone(), 1)),
        }
    }

    fn is_weary(&self) -> bool {
        self.heard.iter().any(|&(_, times)| times == 3)
    }
}

impl<P: Protocol<Config = Config>> Protocol for Seen<P> {
    type Config = Through;
    type Message = P::Message;
    type Timer = P::Timer;
    type Durable = P::Durable;

    fn start(
        id: NodeId,
        through: &Through,
        boot: Boot<P::Durable>,
        out: &mut Effects<Self>,
    ) -> Self {
        let mut wanted = Effects::new();
        let member = P::start(id, &through.config, boot, &mut wanted);
        pass_on(wanted, out);
        let alive = through.config.members.iter().collect();
        let (lens, heard) = (through.lens, Vec::new());
        Self { member, id, lens, heard, alive }
    }

    fn handle(
        &mut self,
        through: &Through,
        event: Event<P::Message, P::Timer>,
        out: &mut Effects<Self>,
    ) {
        match &event {
            Event::PeerDown(peer) => {
                self.alive.remove(peer);
            }
            Event::PeerUp(peer) => {
                self.alive.insert(*peer);
            }
            Event::Message { message, .. } => self.hear(message),
            Event::Timer(_)
            | Event::Campaign
            | Event::Command(_)
            | Event::Retired
            | Event::Request
            | Event::Exit
            | Event::Crashed => {}
        }
        let mut wanted = Effects::new();
        self.member.handle(&through.config, event, &mut wanted);
        pass_on(wanted, out);
    }

    fn view(&self) -> View {
        let view = self.member.view();
        match self.lens {
            Lens::Content if self.is_weary() => view,
            Lens::Content => View { leader: Some(self.id), role: Role::Follower, ..view },
            Lens::Mourning => {
                let leader = view.leader.filter(|leader| self.alive.contains(leader));
                let mourner = view.leader.and(self.alive.first().copied());
                View { leader: leader.or(mourner), ..view }
            }
            Lens::WhileOneLives if self.alive.contains(&NodeId(1)) => view,
            Lens::WhileOneLives => View { leader: None, ..view },
        }
    }

    fn kinds(through: &Through) -> Cow<'static, [Kind]> {
        P::kinds(&through.config)
    }

    fn kind_index(through: &Through, message: &P::Message) -> usize {
        P::kind_index(&through.config, message)
    }

    fn is_background(timer: P::Timer) -> bool {
        P::is_background(timer)
    }
}

impl<P: Protocol<Config = Config>> Explore for Seen<P> {}

fn pass_on<P: Protocol<Config = Config>>(mut wanted: Effects<P>, out: &mut Effects<Seen<P>>) {
    for effect in wanted.drain() {
        match effect {
            Effect::Persist(durable) => out.persist(durable),
            Effect::Send { to, message } => out.send(to, message),
            Effect::SetTimer { timer, after } => out.set_timer(timer, after),
            Effect::CancelTimer(timer) => out.cancel_timer(timer),
            Effect::Announce(view) => out.announce(view),
            Effect::Inform(notice) => out.inform(notice),
        }
    }
}
