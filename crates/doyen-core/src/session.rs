//! Sessions: which process of a member this one talks to, and which process of a member counts.
//!
//! A member is a name. One process after the other runs it, and in the worst case two run it at once: an old machine
//! resumes beside its replacement, a disk is cloned, a member is founded a second time. A vote counts only once if the
//! processes of a member are distinguished. So every process has an **incarnation**, which is raised and stored before
//! every start, and draws a random **session** number when it starts; and every process learns the session of every
//! other by asking.
//!
//! ```text
//!   n1, session a                                     n2, session b
//!     │  GREETING  ask x                                │
//!     │ ──────────────────────────────────────────────▶ │  a is not known: answer, and ask as well
//!     │                     GREETING  answer x, ask y   │
//!     │ ◀────────────────────────────────────────────── │
//!  stores and meets b                                   │
//!     │  GREETING  answer y                             │
//!     │ ──────────────────────────────────────────────▶ │  stores and meets a
//! ```
//!
//! - **S1** A peer's session is **met** when a greeting from it repeats the open question and is for this session. No
//!   replayed letter can do that: this session is new, and it asks each question once. The question to the met session
//!   (S7) is a different one, so the met session cannot answer in the place of a later one.
//! - **S2** A message counts only from the met session, for this session, and with a counter that has not been
//!   received. Any other message is dropped and prompts a greeting (S6).
//! - **S3** A session is met only if its incarnation is above the highest of that member that was ever met, or is the
//!   same incarnation in the same session in which it was met. The highest is **stored**, with its session, before the
//!   session is met; so nothing leads back to an earlier process, not even a restart of this one.
//! - **S4** A greeting from the met session counts if its counter has not been received, whichever session of this
//!   member it is for. Its question is answered.
//! - **S5** A question from any other session is answered too, because its process must learn that it does not count
//!   (S9), and the answer asks in turn, unless S3 forbids to meet it.
//! - **S6** The greetings prompted by S2, the answers of S5 and the questions of S10 are limited, because replayed
//!   letters may cause them. Letters are of six kinds, and in 20 ms each member is given four answers to each kind: to
//!   sessions that S3 allows to meet, to processes that have lost their state, each where the member is expected and
//!   elsewhere; to sessions that S3 forbids to meet; and to the met session where its messages do not go (S10). So
//!   recordings of earlier processes, however many are replayed, do not delay the present one.
//! - **S7** A question is repeated until it is answered: after a round trip, then after twice as long each time, up to
//!   a second. Two seconds after an answer comes the next question: these are the pings. A rejoining process that still
//!   needs the roster of a peer asks again after a round trip.
//! - **S8** To a peer that is not met, only greetings are sent. If a message is to be sent to it, the next greeting
//!   goes within a round trip.
//! - **S9** A greeting tells its receiver the highest incarnation of the receiver that the sender has met in *another*
//!   session. If that is not below its own, its state is an old copy, or another process runs with a copy of it: it
//!   must stop.
//! - **S10** Messages to a peer go to the address of its configured name, or to another address if a question that was
//!   sent there, and to no other address, was answered from there. Such a question is sent when the newest letter of
//!   the met session comes from an address to which its messages do not go; and S5 asks one of a session that is not
//!   met. It is void when a newer letter comes from where the messages go. So an attacker who makes a letter arrive
//!   from another address diverts nothing. Four such questions may be open for each kind of letter (S6), none for a
//!   session that S3 forbids to meet. Each stays open for at least two round trips, whatever arrives meanwhile; after
//!   four at most it is closed.
//!
//! The effect of each fault:
//!
//! | fault | rules | effect |
//! |---|---|---|
//! | a copy of the disk from an earlier incarnation is started | S3, S9 | its incarnation has been met in another session: it is told so, and stops |
//! | a member is founded a second time | S3, S9 | the same |
//! | a copy of the disk of the running process is started | S3, S9 | its incarnation is one higher, so it is met, and the original stops, as soon as one member has talked to both |
//! | an old process resumes beside its replacement | S2, S3, S9 | no member that has met the replacement accepts its session |
//! | every other member has restarted in the meantime | S3 | they have stored what they have met |
//!
//! A copy of a running member's disk is the one fault that no rule makes harmless: until one member has talked to both
//! processes, each of them is accepted, and both may vote in one term. The exploration finds that with three members
//! and one copy (`--clones 1`). A lost disk is safe, a copied one is not: let the member rejoin.
//!
//! A process that has lost its state rejoins: `session/rejoin.rs`.
//!
//! # Addresses
//!
//! A peer is at the address of its configured name, or where it has answered (S10). If it does not answer, it is greeted
//! at both. The host resolves names and encrypts letters: all that arrives here was made by a member.
//!
//! **Hostile letters** cost no memory: there is one record for each member, and none for other senders.

mod explore;
mod greet;
pub(crate) mod letter;
mod peer;
mod places;
mod rejoin;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod window;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::config::rules::{Rule, Rules};
use crate::map::SortedMap;
use crate::members::{Incarnation, Members, NodeId, PeerSet, SessionId, Term};
use crate::protocol::{
    Bonds, Boot, Context, Dropped, Durable, Effect, Effects, Event, Kind, Notice, Origin, Protocol,
    Refusal, Role, View,
};
use crate::time::Span;
use peer::{Encounter, PING, Peer};
use places::Prompts;

pub use letter::{Challenge, Content, Greeting, Letter, Met, Roster};

/// From the first second of 2025 to the last of 2099: a clock that shows any other time is obviously wrong. A clock
/// that is far ahead would leave a member few incarnations for later starts.
pub const PLAUSIBLE_TIMES: Range<u32> = 1_735_689_600..4_102_444_800;

/// S7: no greeting is repeated sooner, so that members that are down cost little.
pub const SHORTEST_REPEAT: Span = Span::from_millis(5);

/// The configuration of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionConfig<C> {
    /// The configuration of the protocol above.
    pub inner: C,
    /// The members; the same as in `inner`.
    pub members: Members,
    /// S7: how long an answer takes at most, `2D + p`: an unanswered greeting is repeated after this time, but not
    /// before [`SHORTEST_REPEAT`].
    pub round_trip: Span,
    /// Whether greetings are repeated, letters counted and answers limited (S6, S7, the counter of S2), and questions
    /// numbered. Explorers switch this off where messages persist: there it adds no run, and infinitely many states.
    /// See `session/explore.rs`.
    pub background: bool,
    /// The active rules: all of them, unless a check removes one.
    pub rules: Rules,
}

impl<C> SessionConfig<C> {
    /// S7: the wait before the first repetition of a greeting.
    fn repeat(&self) -> Span {
        self.round_trip.max(SHORTEST_REPEAT)
    }
}

/// The state that survives a crash.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Kept<D> {
    /// The incarnation that stored it.
    pub incarnation: Incarnation,
    /// It has lost its state, and the protocol above has stored nothing since.
    pub rejoining: bool,
    /// S3: the highest incarnation of each other member that was ever met.
    pub roster: Roster,
    /// What the protocol above has stored.
    pub inner: Option<D>,
}

impl<D> Kept<D> {
    /// The same with another form of what the protocol above has stored.
    pub fn map<E>(self, change: impl FnOnce(D) -> E) -> Kept<E> {
        let Self { incarnation, rejoining, roster, inner } = self;
        Kept { incarnation, rejoining, roster, inner: inner.map(change) }
    }
}

impl<D: Durable> Durable for Kept<D> {
    fn term(&self) -> Term {
        self.inner.as_ref().map(Durable::term).unwrap_or_default()
    }

    fn vote(&self) -> Option<NodeId> {
        self.inner.as_ref().and_then(Durable::vote)
    }

    fn is_drained(&self) -> bool {
        self.inner.as_ref().is_some_and(Durable::is_drained)
    }

    fn is_paused(&self) -> bool {
        self.inner.as_ref().is_some_and(Durable::is_paused)
    }

    fn is_rejoining(&self) -> bool {
        self.rejoining
    }

    fn incarnation(&self) -> Option<Incarnation> {
        Some(self.incarnation)
    }
}

/// A process of a member: its sessions with all others, and the protocol above.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Session<P: Protocol> {
    id: NodeId,
    session: SessionId,
    /// The number of the last question.
    questions: u64,
    stage: Stage<P>,
    peers: SortedMap<NodeId, Peer>,
    kept: Kept<P::Durable>,
}

/// The stage of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage<P> {
    /// J1.
    Asking {
        /// The lowest incarnation that it may take, as far as it knows.
        lowest: Incarnation,
        /// The members that have sent their roster.
        answered: PeerSet,
    },
    /// J2.
    Confirming {
        /// The members that have stored this incarnation.
        answered: PeerSet,
    },
    /// The protocol above runs.
    Running(P),
    /// It must stop, and does nothing more.
    Halted,
}

impl<P> Stage<P> {
    /// While it rejoins: the members that have answered.
    fn answered(&self) -> Option<&PeerSet> {
        match self {
            Self::Asking { answered, .. } | Self::Confirming { answered } => Some(answered),
            Self::Running(_) | Self::Halted => None,
        }
    }
}

/// What a session waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer<T> {
    /// A timer of the protocol above.
    Inner(T),
    /// The next greeting to this peer (S7).
    Greet(NodeId),
    /// The next answers to this peer (S6).
    Prompt(NodeId),
    /// The end of open questions to other addresses of this peer (S10).
    Close(NodeId),
}

/// What is known about the path to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contact {
    /// The session that has been met.
    pub met: Met,
    /// Where its messages go (S10); none: to the address of its configured name.
    pub address: Option<SocketAddr>,
    /// How many of its letters have been accepted.
    pub accepted: u64,
}

type Cx<'a, P> = Context<'a, Session<P>>;

/// The envelope of a received letter.
#[derive(Clone, Copy)]
struct Envelope {
    from: NodeId,
    at: Option<SocketAddr>,
    session: SessionId,
    known: Option<SessionId>,
    counter: u64,
}

impl<P: Protocol> Protocol for Session<P> {
    type Config = SessionConfig<P::Config>;
    type Message = Letter<P::Message>;
    type Timer = Timer<P::Timer>;
    type Durable = Kept<P::Durable>;

    fn start(
        id: NodeId,
        config: &Self::Config,
        boot: Boot<Self::Durable>,
        out: &mut Effects<Self>,
    ) -> Self {
        let Boot { incarnation, durable, origin, session, time_of_day } = boot;
        // Explorers let members meet by themselves, because that is what they explore.
        let founds = config.background && matches!(origin, Origin::Founding { .. });
        let session = if founds { SessionId::of_founder(id) } else { session };
        let lost = origin == Origin::Rejoining && durable.is_none();
        let rejoining = origin == Origin::Rejoining;
        let empty = Kept { incarnation, rejoining, roster: Roster::default(), inner: None };
        let kept = Kept { incarnation, rejoining, ..durable.unwrap_or(empty) };
        let mut member = Self {
            id,
            session,
            questions: 0,
            stage: Stage::Confirming { answered: PeerSet::new() },
            peers: config.members.others(id).map(|peer| (peer, Peer::default())).collect(),
            kept,
        };
        let cx = &mut Context { config, out };
        if founds {
            member.meet_founders(cx);
        }
        if lost {
            member.begin_asking(incarnation.max(Incarnation(time_of_day)), time_of_day, cx);
        } else if !rejoining {
            member.begin_running(origin, cx);
        }
        if !founds {
            if !config.rules.keeps(Rule::SessionIsStored) {
                member.kept.roster = Roster::default();
            }
            member.presume(config);
            member.greet_all(cx);
        }
        // A single member has no other member to wait for.
        member.end_asking(cx);
        member.confirm(cx);
        member
    }

    fn handle(
        &mut self,
        config: &Self::Config,
        event: Event<Self::Message, Self::Timer>,
        out: &mut Effects<Self>,
    ) {
        let cx = &mut Context { config, out };
        match event {
            _ if matches!(self.stage, Stage::Halted) => {}
            Event::Message { from, message } => self.on_letter(from, message, cx),
            Event::Timer(Timer::Greet(peer)) => self.greet(peer, cx),
            Event::Timer(Timer::Prompt(peer)) => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.prompts = Prompts::default();
                }
            }
            Event::Timer(Timer::Close(peer)) => self.close_old_questions(peer, cx),
            Event::Timer(Timer::Inner(timer)) => self.pass(Event::Timer(timer), cx),
            other => {
                match other {
                    Event::Command(_) if !matches!(self.stage, Stage::Running(_)) => {
                        cx.inform(Notice::Refused(Refusal::Rejoining));
                    }
                    Event::Crashed => {
                        self.peers.values_mut().for_each(Peer::skip_to_last_counter);
                    }
                    _ => {}
                }
                other.passed().into_iter().for_each(|event| self.pass(event, cx));
            }
        }
    }

    fn view(&self) -> View {
        self.inner().map_or(View::new(None, Term::default(), Role::Follower), Protocol::view)
    }

    fn kinds(config: &Self::Config) -> Cow<'static, [Kind]> {
        [&P::kinds(&config.inner)[..], &letter::ADDED].concat().into()
    }

    fn kind_index(config: &Self::Config, letter: &Self::Message) -> usize {
        match &letter.content {
            Content::Inner(message) => P::kind_index(&config.inner, message),
            Content::Greeting(_) => P::kinds(&config.inner).len(),
            Content::Roster(_) => P::kinds(&config.inner).len() + 1,
        }
    }

    fn heeds_detector(config: &Self::Config) -> bool {
        P::heeds_detector(&config.inner)
    }

    fn has_leases(config: &Self::Config) -> bool {
        P::has_leases(&config.inner)
    }

    fn has_sessions(_config: &Self::Config) -> bool {
        true
    }

    fn has_met(&self, peer: NodeId) -> bool {
        self.peers.get(&peer).is_none_or(|peer| peer.encounter.is_some())
    }

    fn lease(&self) -> Option<Self::Timer> {
        self.inner().and_then(Protocol::lease).map(Timer::Inner)
    }

    fn hold(&self) -> Option<Self::Timer> {
        self.inner().and_then(Protocol::hold).map(Timer::Inner)
    }

    fn bonds(&self) -> Bonds<Self::Timer> {
        match self.inner() {
            Some(inner) => inner.bonds().map(Timer::Inner),
            None => Bonds { silenced: true, ..Bonds::NONE },
        }
    }

    fn is_lease(timer: Self::Timer) -> bool {
        matches!(timer, Timer::Inner(timer) if P::is_lease(timer))
    }

    fn is_background(timer: Self::Timer) -> bool {
        match timer {
            Timer::Inner(timer) => P::is_background(timer),
            Timer::Greet(_) | Timer::Prompt(_) | Timer::Close(_) => true,
        }
    }
}

impl<P: Protocol> Session<P> {
    /// The state of the protocol above, once it runs.
    pub fn inner(&self) -> Option<&P> {
        match &self.stage {
            Stage::Running(inner) => Some(inner),
            Stage::Asking { .. } | Stage::Confirming { .. } | Stage::Halted => None,
        }
    }

    /// Its incarnation; zero while it is unknown.
    pub fn incarnation(&self) -> Incarnation {
        match self.stage {
            Stage::Asking { .. } => Incarnation::default(),
            _ => self.kept.incarnation,
        }
    }

    /// The members that it still waits for while it rejoins.
    pub fn awaited(&self) -> Option<PeerSet> {
        let answered = self.stage.answered()?;
        Some(self.peers.keys().copied().filter(|&peer| !answered.contains(peer)).collect())
    }

    /// What is known about the path to a peer, once it has been met.
    pub fn contact(&self, peer: NodeId) -> Option<Contact> {
        let peer = self.peers.get(&peer)?;
        let Encounter { met, address, .. } = *peer.encounter.as_ref()?;
        Some(Contact { met, address, accepted: peer.accepted() })
    }

    /// All members start together, as a simulation sets it up: all have met each other, in sessions that all know
    /// beforehand, and have stored that. A real node never starts like this.
    fn meet_founders(&mut self, cx: &mut Cx<'_, P>) {
        let incarnation = self.kept.incarnation;
        for (&id, peer) in self.peers.iter_mut() {
            let met = Met { incarnation, session: SessionId::of_founder(id) };
            self.kept.roster.insert(id, met);
            peer.encounter = Some(Encounter::new(met));
            if cx.config.background {
                cx.out.set_timer(Timer::Greet(id), PING);
            }
        }
        if cx.config.rules.keeps(Rule::SessionIsStored) {
            cx.persist(self.kept.clone());
        }
    }

    fn begin_running(&mut self, origin: Origin, cx: &mut Cx<'_, P>) {
        let boot = Boot {
            session: self.session,
            ..Boot::new(self.kept.incarnation, self.kept.inner.clone(), origin)
        };
        let mut effects = Effects::new();
        let before = self.view();
        self.stage = Stage::Running(P::start(self.id, &cx.config.inner, boot, &mut effects));
        if self.view() != before {
            cx.announce(self.view());
        }
        self.carry_out(effects, cx);
    }

    /// Passes an event to the protocol above, if it runs.
    fn pass(&mut self, event: Event<P::Message, P::Timer>, cx: &mut Cx<'_, P>) {
        let Stage::Running(inner) = &mut self.stage else { return };
        let mut effects = Effects::new();
        inner.handle(&cx.config.inner, event, &mut effects);
        self.carry_out(effects, cx);
    }

    fn carry_out(&mut self, mut effects: Effects<P>, cx: &mut Cx<'_, P>) {
        cx.out.take_notes(&effects);
        for effect in effects.drain() {
            match effect {
                Effect::Persist(durable) => {
                    self.kept.inner = Some(durable);
                    self.kept.rejoining = false;
                    cx.persist(self.kept.clone());
                }
                Effect::Send { to, message } => self.send(to, message, cx),
                Effect::SetTimer { timer, after } => {
                    cx.out.set_timer(Timer::Inner(timer), after);
                }
                Effect::CancelTimer(timer) => cx.out.cancel_timer(Timer::Inner(timer)),
                Effect::Announce(view) => cx.announce(view),
                Effect::Inform(notice) => cx.inform(notice),
            }
        }
    }

    /// S8.
    fn send(&mut self, to: NodeId, message: P::Message, cx: &mut Cx<'_, P>) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        if let Some(Encounter { met, address, .. }) = &peer.encounter {
            let (known, at) = (Some(met.session), *address);
            return self.post(to, known, at, Content::Inner(message), cx);
        }
        cx.inform(Notice::Unsent(to));
        if cx.config.background && peer.hurry() {
            cx.out.set_timer(Timer::Greet(to), cx.config.repeat());
        }
    }

    fn post(
        &mut self,
        to: NodeId,
        known: Option<SessionId>,
        at: Option<SocketAddr>,
        content: Content<P::Message>,
        cx: &mut Cx<'_, P>,
    ) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        let counter = if cx.config.background { peer.next_counter() } else { 0 };
        cx.out.send(to, Letter { at, session: self.session, known, counter, content });
    }

    fn on_letter(&mut self, from: NodeId, letter: Letter<P::Message>, cx: &mut Cx<'_, P>) {
        if !self.peers.contains_key(&from) {
            return;
        }
        let Letter { at, session, known, counter, content } = letter;
        let envelope = Envelope { from, at, session, known, counter };
        match content {
            Content::Greeting(greeting) => self.on_greeting(envelope, greeting, cx),
            Content::Roster(roster) => self.on_roster(envelope, &roster, cx),
            Content::Inner(message) => {
                if self.admits(envelope, cx) {
                    self.pass(Event::Message { from, message }, cx);
                }
            }
        }
    }

    fn is_for_me(&self, envelope: Envelope) -> bool {
        envelope.known == Some(self.session)
    }

    /// S2.
    fn admits(&mut self, envelope: Envelope, cx: &mut Cx<'_, P>) -> bool {
        let Envelope { from, session, .. } = envelope;
        let is_met = self.peers.get(&from).is_some_and(|peer| peer.has_met(session));
        if is_met && self.is_for_me(envelope) {
            return !cx.config.background || self.accept(envelope, cx);
        }
        if !cx.config.rules.keeps(Rule::MetSessionOnly) {
            return true;
        }
        cx.inform(Notice::Dropped { from, why: Dropped::Session });
        let by = self.prompter(envelope, None, cx.config.rules);
        if cx.config.background && self.has_prompt_left(from, by, cx) {
            self.answer_and_ask(envelope, by, None, cx);
        }
        false
    }

    /// S3: whether this session is later than all that were ever met, or is the latest of them.
    fn may_meet(&self, peer: NodeId, met: Met, rules: Rules) -> bool {
        if met.incarnation == Incarnation::default() || matches!(self.stage, Stage::Asking { .. }) {
            return false;
        }
        self.is_latest(peer, met, rules)
    }

    fn is_latest(&self, peer: NodeId, met: Met, rules: Rules) -> bool {
        self.kept.roster.get(peer).is_none_or(|last| {
            let same = met.incarnation == last.incarnation
                && (met.session == last.session || !rules.keeps(Rule::SameSessionOnly));
            met.incarnation > last.incarnation || same || !rules.keeps(Rule::IncarnationsRise)
        })
    }

    /// S1, S3: this session has answered. That it was met is stored before anything is sent in it.
    fn meet(&mut self, peer: NodeId, met: Met, cx: &mut Cx<'_, P>) {
        cx.rule("S1");
        if self.kept.roster.get(peer) != Some(met) {
            self.kept.roster.insert(peer, met);
            if cx.config.rules.keeps(Rule::SessionIsStored) {
                cx.persist(self.kept.clone());
            }
        }
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.encounter = Some(Encounter::new(met));
            peer.question = None;
        }
    }

    /// S9: whether a process of this member that has been met with incarnation `seen` in another session makes this one
    /// an old copy.
    fn is_refused(&self, seen: Incarnation) -> bool {
        let mine = self.incarnation();
        mine != Incarnation::default() && seen >= mine
    }

    /// Stops: does nothing more.
    fn halt(&mut self, seen: Incarnation, by: NodeId, cx: &mut Cx<'_, P>) {
        cx.rule("S9");
        let before = self.view();
        self.stage = Stage::Halted;
        if self.view() != before {
            cx.announce(self.view());
        }
        cx.inform(Notice::Replaced { seen, by });
    }
}
