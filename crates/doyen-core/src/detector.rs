//! The failure detector: decides by heartbeats which peers are up.
//!
//! All sources begin with a coordinator that "does not answer", and do not say how a member notices. There are three
//! ways, with `D` the longest one-way time, `p` the longest processing time, `h` the period:
//!
//! | way | considers a peer down after | messages per period, N members |
//! |---|---|---|
//! | request: a member needs the coordinator and gets no answer (notes, os-textbook, cs425) | `2D + p` from the request | none |
//! | pull: every member asks every other each period | `h + 2D + p` from the last answered request | 2N(N−1) |
//! | push: every member sends to every other each period | `h + D + jitter` without a message | N(N−1) |
//!
//! This is **push**. The last heartbeat before a crash may take `D`, so the crash is detected within `h + 2D + jitter`:
//! as soon as by pull, with half the messages, and independent of the time that the other side takes to answer. A
//! request costs nothing, and detects nothing until a member needs the coordinator. With pull, an answer proves that
//! both directions work; with push, the heartbeat must say so: it tells the receiver whether the sender receives
//! messages from *it*, and **a peer counts as up only if it receives messages from this member**. So if a link works in
//! one direction only, both ends agree that the other is down, instead of one waiting for answers to requests that
//! never arrive.
//!
//! The detector has no clock. It measures silence by one timer per peer, [`Timer::Suspect`], which every message from
//! the peer arms again; it fires only after [`DetectorConfig::patience`] without any. All messages count, not only
//! heartbeats. Timers may be late: a late `Suspect` decides later, never wrongly, because the host handles waiting
//! messages before it fires timers. `jitter` is the lateness allowed for a peer's heartbeat.
//!
//! | rule | event | action |
//! |---|---|---|
//! | W1 | every `h` | sends every peer a heartbeat, which says whether that peer is received |
//! | W2 | any message | arms `Suspect`; if the peer was not received before, sends it a heartbeat at once |
//! | W3 | a heartbeat that says "I receive you" | the peer is up |
//! | W4 | a heartbeat that says "I do not receive you" | a peer that was up is down |
//! | W5 | `Suspect` fires | the peer is down |
//! | W6 | the link gives the peer up, or the peer has restarted | the peer is down until it is received again (W2) |
//!
//! With the reply of W2, two members that find each other agree within three messages instead of two periods. It cannot
//! echo forever: the second time, the peer has already been received.
//!
//! **Initial state.** Founding members assume that all are up and receive each other, as in the initial state of every
//! source. A joining process assumes nothing: to it a peer is neither up nor down until it says "I receive you" or has
//! been silent for the whole patience. In that state "I do not receive you" deliberately changes nothing: no peer can
//! have received anything from a process that has just started.
//!
//! **Down may be reported twice** in a row: first the peer does not receive from this member (W4), later it is silent
//! too (W5). An algorithm may follow a leader that can only send, and must learn of its crash.
//!
//! **Limits.** Heartbeats are not numbered, because a counter would make the state space infinite. If a later "I
//! receive you" overtakes "I do not receive you", the older one counts as the newer, and the peer is down until its
//! next heartbeat. That can happen only around a real change. If a message is delayed beyond `D`, or more heartbeats
//! than `losses` are lost, a live peer is suspected: the detector is always complete, and accurate only while the
//! network keeps its bounds.

use crate::config::Timing;
use crate::map::SortedMap;
use crate::members::{Members, NodeId};
use crate::protocol::Origin;
use crate::time::{Delay, Span};

/// The settings of a failure detector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DetectorConfig {
    /// `h`: how often every member sends every other a heartbeat. Not zero.
    pub heartbeat: Span,
    /// `D`: no heartbeat takes longer. Heartbeats are never retransmitted, so this is the bare network's bound.
    pub transmission: Span,
    /// By how much a heartbeat may be late at its sender.
    pub jitter: Span,
    /// How many consecutive heartbeats may be lost before the peer is considered down. The sources' networks lose none.
    pub losses: u32,
}

impl DetectorConfig {
    /// The detector for a network that keeps `timing` and loses nothing, with a jitter of `D`.
    pub fn for_timing(timing: &Timing) -> Self {
        Self {
            heartbeat: timing.heartbeat,
            transmission: timing.transmission,
            jitter: timing.transmission,
            losses: 0,
        }
    }

    /// `T_detect`: a peer silent for this long is considered down. `h + D + jitter`, and `h` more for every heartbeat
    /// that may be lost.
    pub fn patience(&self) -> Span {
        self.heartbeat * (1 + u64::from(self.losses)) + self.transmission + self.jitter
    }
}

/// What a detector waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Its next round of heartbeats.
    Beat,
    /// The end of its patience with this peer.
    Suspect(NodeId),
}

/// What a detector asks its host to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Action {
    /// Send a heartbeat: whether messages from that peer arrive.
    Heartbeat { to: NodeId, reachable: bool },
    /// Arm a timer.
    SetTimer { timer: Timer, after: Delay },
    /// Disarm a timer.
    CancelTimer(Timer),
    /// This peer is down.
    Down(NodeId),
    /// This peer is up.
    Up(NodeId),
}

/// What one member knows about its peers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Detector {
    peers: SortedMap<NodeId, PeerState>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum PeerState {
    /// Neither up nor down yet.
    Unknown { reachable: bool },
    /// Messages pass in both directions.
    Up,
    /// It is silent, or does not receive messages from this member.
    Down { reachable: bool },
}

impl PeerState {
    /// Down, and known to be silent: the only state in which nothing is awaited, so no timer is armed.
    const SILENT: Self = Self::Down { reachable: false };

    fn reachable(self) -> bool {
        match self {
            Self::Up => true,
            Self::Unknown { reachable } | Self::Down { reachable } => reachable,
        }
    }
}

impl Detector {
    /// The detector of member `me`, which has just started.
    pub fn start(
        config: &DetectorConfig,
        me: NodeId,
        members: &Members,
        origin: Origin,
        out: &mut Vec<Action>,
    ) -> Self {
        assert!(config.heartbeat > Span::ZERO, "heartbeats need a period");
        let state = match origin {
            Origin::Founding { .. } => PeerState::Up,
            Origin::Joining | Origin::Rejoining => PeerState::Unknown { reachable: false },
        };
        let detector = Self { peers: members.others(me).map(|peer| (peer, state)).collect() };
        for &peer in detector.peers.keys() {
            out.push(suspect(config, peer));
        }
        detector.beat(config, out);
        detector
    }

    /// Whether `peer` has been reported down and not up since.
    pub fn is_down(&self, peer: NodeId) -> bool {
        matches!(self.peers.get(&peer), Some(PeerState::Down { .. }))
    }

    /// A timer fired.
    pub fn on_timer(&mut self, config: &DetectorConfig, timer: Timer, out: &mut Vec<Action>) {
        match timer {
            Timer::Beat => self.beat(config, out),
            Timer::Suspect(peer) => self.mark_silent(peer, out),
        }
    }

    /// A message came from `peer`. `report`: if it was a heartbeat, whether the peer receives messages from this
    /// member.
    pub fn on_sign_of_life(
        &mut self,
        config: &DetectorConfig,
        peer: NodeId,
        report: Option<bool>,
        out: &mut Vec<Action>,
    ) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        out.push(suspect(config, peer));
        if !state.reachable() {
            out.push(Action::Heartbeat { to: peer, reachable: true });
        }
        let before = *state;
        *state = match (before, report) {
            (_, Some(true)) | (PeerState::Up, None) => PeerState::Up,
            (PeerState::Unknown { .. }, _) => PeerState::Unknown { reachable: true },
            (PeerState::Up, Some(false)) | (PeerState::Down { .. }, _) => {
                PeerState::Down { reachable: true }
            }
        };
        match (before, *state) {
            (PeerState::Up, PeerState::Down { .. }) => out.push(Action::Down(peer)),
            (PeerState::Unknown { .. } | PeerState::Down { .. }, PeerState::Up) => {
                out.push(Action::Up(peer));
            }
            _ => {}
        }
    }

    /// W6: considers `peer` down at once: earlier messages from it no longer count.
    pub fn give_up(&mut self, peer: NodeId, out: &mut Vec<Action>) {
        if self.peers.get(&peer).is_some_and(|&state| state != PeerState::SILENT) {
            out.push(Action::CancelTimer(Timer::Suspect(peer)));
        }
        self.mark_silent(peer, out);
    }

    /// W1: sends every peer a heartbeat.
    fn beat(&self, config: &DetectorConfig, out: &mut Vec<Action>) {
        for (&to, state) in self.peers.iter() {
            out.push(Action::Heartbeat { to, reachable: state.reachable() });
        }
        out.push(Action::SetTimer { timer: Timer::Beat, after: config.heartbeat.into() });
    }

    /// W5: `peer` is silent. Reports it unless that was known.
    fn mark_silent(&mut self, peer: NodeId, out: &mut Vec<Action>) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        if std::mem::replace(state, PeerState::SILENT) != PeerState::SILENT {
            out.push(Action::Down(peer));
        }
    }
}

fn suspect(config: &DetectorConfig, peer: NodeId) -> Action {
    Action::SetTimer { timer: Timer::Suspect(peer), after: config.patience().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);
    const PEER: NodeId = NodeId(2);

    fn config() -> DetectorConfig {
        DetectorConfig {
            heartbeat: Span::from_millis(10),
            transmission: Span::from_millis(3),
            jitter: Span::from_millis(1),
            losses: 0,
        }
    }

    /// A detector of two members, and what it did at its start.
    fn start(me: NodeId, origin: Origin) -> (Detector, Vec<Action>) {
        let mut out = Vec::new();
        let members = Members::range(1, 2).unwrap();
        (Detector::start(&config(), me, &members, origin, &mut out), out)
    }

    fn founding(me: NodeId) -> Detector {
        start(me, Origin::Founding { leader: None }).0
    }

    fn hear(detector: &mut Detector, peer: NodeId, report: Option<bool>) -> Vec<Action> {
        let mut out = Vec::new();
        detector.on_sign_of_life(&config(), peer, report, &mut out);
        out
    }

    fn fire(detector: &mut Detector, timer: Timer) -> Vec<Action> {
        let mut out = Vec::new();
        detector.on_timer(&config(), timer, &mut out);
        out
    }

    fn armed(peer: NodeId) -> Action {
        let after = Span::from_millis(14).into();
        Action::SetTimer { timer: Timer::Suspect(peer), after }
    }

    #[test]
    fn a_peer_silent_for_a_period_a_transmission_and_the_jitter_is_given_up() {
        let (mut detector, begun) = start(ME, Origin::Founding { leader: None });
        let beat = Action::SetTimer { timer: Timer::Beat, after: config().heartbeat.into() };
        assert_eq!(begun, [armed(PEER), Action::Heartbeat { to: PEER, reachable: true }, beat]);
        assert_eq!(hear(&mut detector, PEER, Some(true)), [armed(PEER)]);
        assert_eq!(fire(&mut detector, Timer::Suspect(PEER)), [Action::Down(PEER)]);
        assert!(detector.is_down(PEER));
        let unreachable = Action::Heartbeat { to: PEER, reachable: false };
        assert_eq!(fire(&mut detector, Timer::Beat), [unreachable, beat]);
    }

    #[test]
    fn every_heartbeat_that_may_be_lost_costs_one_period_more() {
        let patient = DetectorConfig { losses: 2, ..config() };
        assert_eq!(patient.patience(), Span::from_millis(34));
    }

    #[test]
    fn any_traffic_is_a_sign_of_life() {
        let mut detector = founding(ME);
        assert_eq!(hear(&mut detector, PEER, None), [armed(PEER)]);
        assert!(!detector.is_down(PEER));
    }

    #[test]
    fn a_peer_is_up_only_if_messages_pass_both_ways() {
        let mut detector = founding(ME);
        assert_eq!(hear(&mut detector, PEER, Some(false)), [armed(PEER), Action::Down(PEER)]);
        assert_eq!(hear(&mut detector, PEER, None), [armed(PEER)]);
        assert_eq!(hear(&mut detector, PEER, Some(false)), [armed(PEER)]);
        assert_eq!(hear(&mut detector, PEER, Some(true)), [armed(PEER), Action::Up(PEER)]);
    }

    #[test]
    fn the_death_of_a_peer_that_could_only_send_is_reported_too() {
        let mut detector = founding(ME);
        hear(&mut detector, PEER, Some(false));
        assert_eq!(fire(&mut detector, Timer::Suspect(PEER)), [Action::Down(PEER)]);
    }

    #[test]
    fn a_joining_process_assumes_nothing() {
        let (mut detector, begun) = start(ME, Origin::Joining);
        assert!(begun.contains(&Action::Heartbeat { to: PEER, reachable: false }));
        assert!(!detector.is_down(PEER));
        let greeting = Action::Heartbeat { to: PEER, reachable: true };
        assert_eq!(hear(&mut detector, PEER, Some(false)), [armed(PEER), greeting]);
        assert_eq!(hear(&mut detector, PEER, Some(true)), [armed(PEER), Action::Up(PEER)]);

        let (mut detector, _) = start(ME, Origin::Joining);
        assert_eq!(fire(&mut detector, Timer::Suspect(PEER)), [Action::Down(PEER)]);
    }

    #[test]
    fn a_peer_given_up_starts_afresh() {
        let mut detector = founding(ME);
        let mut out = Vec::new();
        detector.give_up(PEER, &mut out);
        assert_eq!(out, [Action::CancelTimer(Timer::Suspect(PEER)), Action::Down(PEER)]);
        out.clear();
        detector.give_up(PEER, &mut out);
        assert_eq!(out, []);
        let greeting = Action::Heartbeat { to: PEER, reachable: true };
        assert_eq!(hear(&mut detector, PEER, None), [armed(PEER), greeting]);
        assert!(detector.is_down(PEER));
    }

    #[test]
    fn two_that_find_each_other_agree_within_three_heartbeats() {
        let mut old = founding(PEER);
        fire(&mut old, Timer::Suspect(ME));
        let (mut new, mut out) = start(ME, Origin::Joining);
        let mut exchanged = 0;
        let mut up = Vec::new();
        while let Some(Action::Heartbeat { to, reachable }) =
            out.iter().find(|action| matches!(action, Action::Heartbeat { .. })).copied()
        {
            exchanged += 1;
            out = match to {
                ME => hear(&mut new, PEER, Some(reachable)),
                _ => hear(&mut old, ME, Some(reachable)),
            };
            up.extend(out.iter().filter(|action| matches!(action, Action::Up(_))).copied());
        }
        assert_eq!((exchanged, up), (3, vec![Action::Up(PEER), Action::Up(ME)]));
    }

    #[test]
    fn over_a_one_way_link_both_ends_hold_the_other_for_down() {
        let (mut sender, mut receiver) = (founding(ME), founding(PEER));
        assert_eq!(fire(&mut sender, Timer::Suspect(PEER)), [Action::Down(PEER)]);
        let told = fire(&mut sender, Timer::Beat);
        assert!(told.contains(&Action::Heartbeat { to: PEER, reachable: false }));
        assert!(hear(&mut receiver, ME, Some(false)).contains(&Action::Down(ME)));
    }

    #[test]
    fn strangers_are_ignored() {
        let mut detector = founding(ME);
        let before = detector.clone();
        let stranger = NodeId(77);
        assert_eq!(hear(&mut detector, stranger, Some(true)), []);
        assert_eq!(fire(&mut detector, Timer::Suspect(stranger)), []);
        assert_eq!(detector, before);
    }
}
