//! What a node knows about the path to another member.

use std::net::SocketAddr;
use std::time::Duration;

use doyen_core::members::{NodeId, SessionId};
use doyen_core::session::Challenge;
use doyen_core::session::window::Window;

use super::Current;
use crate::clock::Moment;
use crate::node::counters::Counters;
use crate::node::wire::{Content, EARLIEST, Envelope, Opened, Rejection, VERSION};

/// After this long without a letter (two pings and their repetitions) a member is unreachable, if the algorithm does not
/// watch that itself.
const UNREACHABLE: Duration = Duration::from_secs(5);

/// After this long without a letter the name of a member is looked up again: a ping and its first repetitions were not
/// answered.
const SILENT: Duration = Duration::from_secs(3);

/// The least time between two look-ups of the same name.
const RESOLVE: Duration = Duration::from_secs(5);

/// The least time between two answers to a member that is configured otherwise: one to where it is expected, and one to
/// anywhere else, because replayed datagrams may cause them.
const MISMATCH_ANSWER: Duration = Duration::from_millis(20);

/// How long a rejected datagram from the address of an unreachable member explains why it is unreachable: longer than it
/// waits before it greets again.
pub(super) const REJECTED: Duration = Duration::from_secs(10);

/// How many challenges to a member are remembered. More are not open at once: one to its present process, one to any other,
/// and a few to processes at the address to which it has moved.
pub(super) const MOST_ASKED: usize = 4;

/// The path to a member.
#[derive(Debug, Default)]
pub(in crate::node) struct Peer {
    /// What its configured name resolved to last.
    pub(super) configured: Option<SocketAddr>,
    /// Where its letters go; none: to `configured`.
    pub(super) address: Option<SocketAddr>,
    /// Its current session, and the version that this session speaks.
    pub(super) met: Option<(SessionId, u8)>,
    /// When its current session was met.
    pub(in crate::node) met_at: Option<Moment>,
    /// How many of its letters have been accepted.
    pub(super) accepted: u64,
    /// How many packets have been relayed to it.
    pub(super) relayed: u64,
    /// Which packets of its current session have arrived.
    pub(super) relays: Window,
    /// When its last letter was accepted.
    pub(in crate::node) last_seen: Option<Moment>,
    /// A time before that letter arrived: what is read after a stop of this process may be as old as the stop.
    pub(in crate::node) arrived_after: Option<Moment>,
    /// The smoothed round-trip time.
    pub(in crate::node) round_trip: Option<Duration>,
    /// The last challenges that were sent to where it is expected, the oldest first. There are several, because its
    /// present process is asked another one than a process that has not been met.
    pub(super) asked: Vec<Asked>,
    /// When its name was last looked up.
    pub(super) resolved: Option<Moment>,
    /// Whether it last answered a challenge from another configuration.
    pub(in crate::node) config_mismatch: bool,
    /// Why a datagram from it, or from its address, was last rejected, and when. An address proves nothing, so this is only
    /// shown.
    pub(super) rejected: Option<(Rejection, Moment)>,
    /// When a datagram from its address was last dropped that it should not have sent.
    pub(super) last_dropped: Option<Moment>,
    /// When it was last answered although it is configured otherwise: where it is expected, and elsewhere.
    pub(super) mismatch_answered: [Option<Moment>; 2],
}

/// A challenge that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub(super) challenge: Challenge,
    pub(super) at: Moment,
    /// An answer to a repeated challenge says nothing about the round-trip time.
    pub(super) repeated: bool,
}

/// Whether a member's own datagrams arrive, while others from its address are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::node) enum OwnDatagrams {
    /// It is unreachable: the dropped ones are probably its own.
    Missing,
    /// They arrived lately, but not yet between two that were dropped: it may have been restarted with another key.
    Undecided,
    /// The dropped ones are not its own.
    Arrive,
}

impl Peer {
    /// Whether something has arrived from it since this node started, its configuration matches, and it is not silent.
    pub(super) fn is_reachable(&self, now: Moment, by_algorithm: Option<bool>) -> bool {
        let Some(last) = self.last_seen else { return false };
        by_algorithm.unwrap_or_else(|| now.since(last) <= UNREACHABLE) && !self.config_mismatch
    }

    /// Whether its datagrams still arrive although it has been unreachable since `lost_at`: then they pass in one direction
    /// only. Of a process that started later this is not known: it may end, and start again, before it can answer.
    pub(in crate::node) fn arrives(&self, lost_at: Moment, now: Moment) -> bool {
        let is_recent = |seen: Moment| seen > lost_at && now.since(seen) <= UNREACHABLE;
        self.last_seen.is_some_and(is_recent) && self.met_at.is_some_and(|met| met < lost_at)
    }

    /// Where it is, once its present process has been met.
    pub(in crate::node) fn observed_address(&self) -> Option<SocketAddr> {
        self.met.and_then(|_| self.address.or(self.configured))
    }

    /// Whether a datagram is for this member and from the same configuration. An answer to a challenge of `session` also
    /// measures the round-trip time, or proves that the sender is configured otherwise now.
    pub(super) fn admit(
        &mut self,
        me: NodeId,
        configuration: u32,
        session: SessionId,
        opened: &Opened<'_>,
        counters: &Counters,
    ) -> Result<(), Rejection> {
        let Envelope { to, group, known, .. } = opened.envelope;
        if to != me || group != 0 {
            return Err(Rejection::Misdirected);
        }
        let answered = match &opened.content {
            Content::Greeting(greeting) if known == Some(session) => {
                let is_answered = |asked: &Asked| greeting.answer == Some(asked.challenge);
                self.asked.iter().position(is_answered)
            }
            _ => None,
        };
        if opened.envelope.configuration != configuration {
            if answered.is_some() {
                self.config_mismatch = true;
                self.rejected = Some((Rejection::Configuration, Moment::now()));
            }
            return Err(Rejection::Configuration);
        }
        if let Content::Relay(_) | Content::Rider(_) = opened.content {
            let is_present = self.met.is_some_and(|(met, _)| met == opened.envelope.session);
            if !is_present || known != Some(session) {
                return Err(Rejection::Session);
            }
            let is_new = self.relays.accept(opened.envelope.counter);
            return if is_new { Ok(()) } else { Err(Rejection::Replayed) };
        }
        if let Some(place) = answered {
            let Asked { at, repeated, .. } = self.asked.remove(place);
            if !repeated {
                let trip = Moment::now().since(at);
                counters.round_trip.observe(trip);
                self.round_trip = Some(smoothed(self.round_trip, trip));
            }
        }
        Ok(())
    }

    /// Whether a member that is configured otherwise may be answered now. If so, it counts as answered.
    pub(super) fn may_answer_mismatch(&mut self, source: SocketAddr) -> bool {
        let is_expected = [self.address, self.configured].contains(&Some(source));
        may_answer(&mut self.mismatch_answered[usize::from(is_expected)])
    }

    /// A datagram from its address is dropped.
    pub(super) fn reject(&mut self, reason: Rejection, now: Moment) -> OwnDatagrams {
        if let Rejection::Key | Rejection::Version | Rejection::Cluster = reason {
            self.rejected = Some((reason, now));
        }
        if !self.is_reachable(now, None) {
            return OwnDatagrams::Missing;
        }
        // Others are dropped of a healthy member, too: those of an earlier process, and duplicates.
        if reason != Rejection::Forged && self.rejected != Some((reason, now)) {
            return OwnDatagrams::Undecided;
        }
        let before = self.last_dropped.replace(now).filter(|it| now.since(*it) <= UNREACHABLE);
        match before.is_some() && self.last_seen > before {
            true => OwnDatagrams::Arrive,
            false => OwnDatagrams::Undecided,
        }
    }

    /// Why it is unreachable although datagrams arrive from its address.
    pub(in crate::node) fn rejected(&self, now: Moment) -> Option<Rejection> {
        let recent = self.rejected.filter(|(_, at)| now.since(*at) < REJECTED);
        recent.map(|(reason, _)| reason)
    }

    /// Records a challenge that is being sent.
    pub(super) fn ask(&mut self, challenge: Challenge, at: Moment) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.challenge == challenge) {
            asked.repeated = true;
            return;
        }
        if self.asked.len() == MOST_ASKED {
            self.asked.remove(0);
        }
        self.asked.push(Asked { challenge, at, repeated: false });
    }

    /// The versions in which a letter to the session `known` is sent. A question is sent in both until the peer is known
    /// to read the current one: perhaps only the earlier one has arrived so far, and that cannot ask for a roster.
    pub(super) fn versions(
        &self,
        to: NodeId,
        known: Option<SessionId>,
        asks: bool,
        current: Option<Current>,
    ) -> &'static [u8] {
        let met =
            self.met.filter(|(session, _)| Some(*session) == known).map(|(_, version)| version);
        let asked = current.filter(|it| it.from == to && Some(it.session) == known);
        match met.max(asked.map(|it| it.version)) {
            Some(EARLIEST) if !asks => &[EARLIEST],
            Some(VERSION) => &[VERSION],
            _ => &[VERSION, EARLIEST],
        }
    }

    /// Whether its name should be looked up now. If so, it counts as looked up.
    pub(super) fn wants_resolving(&mut self, now: Moment) -> bool {
        let is_silent = self.last_seen.is_none_or(|seen| now.since(seen) >= SILENT);
        let wants = is_silent && self.resolved.is_none_or(|last| now.since(last) >= RESOLVE);
        if wants {
            self.resolved = Some(now);
        }
        wants
    }
}

/// Whether a sender whose datagrams are dropped may be answered now. If so, it counts as answered.
pub(super) fn may_answer(last: &mut Option<Moment>) -> bool {
    let now = Moment::now();
    let may = last.is_none_or(|last| now.since(last) >= MISMATCH_ANSWER);
    if may {
        *last = Some(now);
    }
    may
}

/// A moving average in which the latest measurement counts an eighth, as in TCP.
fn smoothed(before: Option<Duration>, measured: Duration) -> Duration {
    before.map_or(measured, |before| (before * 7 + measured) / 8)
}
