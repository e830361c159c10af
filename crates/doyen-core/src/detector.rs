//! The failure detector: who is up, judged by heartbeats.
//!
//! All sources begin with a coordinator that "does not answer", and leave open how anybody notices. Three ways, with `D`
//! the longest one-way time, `p` the longest time to process, `h` the period:
//!
//! | way | gives a peer up after | messages a period, N members |
//! |---|---|---|
//! | request: somebody needs the coordinator and gets no answer (notes, os-textbook, cs425) | `2D + p` from the request | none |
//! | pull: everybody asks everybody each period | `h + 2D + p` from the last question answered | 2N(N−1) |
//! | push: everybody tells everybody each period | `h + D + jitter` of silence | N(N−1) |
//!
//! This is **push**. The last heartbeat before a crash may take `D`, so the crash is noticed within `h + 2D + jitter`:
//! as soon as by pull, for half the messages, and whatever time the other side takes to answer. The first way costs
//! nothing and notices nothing until somebody wants something. What pull has for free, the proof that both directions
//! work, push must say: a heartbeat tells the receiver whether the sender hears *it*, and **a peer counts as up only if
//! it hears me**. So over a link that works one way only, both ends agree that the other is down, instead of
//! one waiting for answers to questions that never arrive.
//!
//! There is no clock here. Silence is measured by one timer for each peer, [`Timer::Suspect`], armed anew by every
//! sign of life; it fires only after [`DetectorConfig::patience`] without any. All traffic is a sign of life, not just
//! heartbeats. Timers may be late: a late `Suspect` judges later, never wrongly, because the host handles the messages
//! that wait before it fires timers. `jitter` is what a peer's heartbeat may be late.
//!
//! | rule | event | what it does |
//! |---|---|---|
//! | W1 | every `h` | tells every peer whether it is heard |
//! | W2 | a sign of life | arms `Suspect`; a peer that was not heard before is told at once that it is heard |
//! | W3 | "I hear you" | the peer is up |
//! | W4 | "I do not hear you" | a peer that was up is down |
//! | W5 | `Suspect` fires | the peer is down |
//! | W6 | the link gives the peer up, or it has restarted | the peer is down until it is heard again (W2) |
//!
//! W2's reply makes two members that find each other agree within three messages instead of two periods. It cannot
//! echo for ever: the second time, the peer has been heard before.
//!
//! **What is assumed at the beginning.** Founding members are taken to be up and to hear each other, the scene with
//! which every source begins. A joining process assumes nothing: a peer is neither up nor down to it until it says "I
//! hear you" or has been silent for the whole patience. That "I do not hear you" changes nothing then is on purpose:
//! nobody can have heard a process that has just come up.
//!
//! **Down may be reported twice** in a row: first the peer does not hear me (W4), later it is silent too (W5). An
//! algorithm may follow a leader that can only send, and must learn of its death.
//!
//! **Limits.** Heartbeats are not numbered, for a counter would make the state space infinite. A "not heard" that is
//! overtaken by a later "heard" therefore counts as the news, and the peer is down until its next heartbeat. That can
//! only happen around a true change. With a message delayed beyond `D` or more heartbeats lost than `losses`, a live
//! peer is suspected: the detector is complete always, accurate only while the network keeps its bounds.

use std::collections::BTreeMap;

use crate::config::Timing;
use crate::members::{Members, NodeId};
use crate::protocol::Origin;
use crate::time::{Delay, Span};

/// How a failure detector is set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DetectorConfig {
    /// `h`: how often every member tells every other that it lives. Not zero.
    pub heartbeat: Span,
    /// `D`: no heartbeat takes longer. Heartbeats are never retransmitted, so this is the bare network's bound.
    pub transmission: Span,
    /// By how much a heartbeat may be late at its sender.
    pub jitter: Span,
    /// How many heartbeats may be lost in a row before the peer is given up. The sources' networks lose none.
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

    /// `T_detect`: a peer silent for this long is given up. `h + D + jitter`, and `h` more for every heartbeat that
    /// may be lost.
    pub fn patience(&self) -> Span {
        self.heartbeat * (1 + u64::from(self.losses)) + self.transmission + self.jitter
    }
}

/// What a detector waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Its next round of heartbeats.
    Beat,
    /// The end of its patience with a peer.
    Suspect(NodeId),
}

/// What a detector wants done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Send a heartbeat.
    Heartbeat {
        /// To whom.
        to: NodeId,
        /// Whether that peer is heard.
        hears: bool,
    },
    /// Arm a timer.
    SetTimer {
        /// Its tag.
        timer: Timer,
        /// How long it waits.
        after: Delay,
    },
    /// Disarm a timer.
    CancelTimer(Timer),
    /// This peer is down.
    Down(NodeId),
    /// This peer is up.
    Up(NodeId),
}

/// What one member holds of its peers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Detector {
    peers: BTreeMap<NodeId, Standing>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    /// Neither up nor down yet.
    Unknown { heard: bool },
    /// It is heard and hears me.
    Up,
    /// It is silent, or does not hear me.
    Down { heard: bool },
}

impl Standing {
    /// Down, and known to be silent: the only standing in which nothing is awaited, so that no timer is armed.
    const SILENT: Self = Self::Down { heard: false };

    fn heard(self) -> bool {
        match self {
            Self::Up => true,
            Self::Unknown { heard } | Self::Down { heard } => heard,
        }
    }
}

impl Detector {
    /// The detector of member `me`, which has just come up.
    pub fn start(
        config: &DetectorConfig,
        me: NodeId,
        members: &Members,
        origin: Origin,
        out: &mut Vec<Action>,
    ) -> Self {
        assert!(config.heartbeat > Span::ZERO, "heartbeats need a period");
        let standing = match origin {
            Origin::Founding { .. } => Standing::Up,
            Origin::Joining | Origin::Rejoining => Standing::Unknown { heard: false },
        };
        let detector = Self { peers: members.others(me).map(|peer| (peer, standing)).collect() };
        for &peer in detector.peers.keys() {
            out.push(suspect(config, peer));
        }
        detector.beat(config, out);
        detector
    }

    /// Whether `peer` has been reported down and not up since.
    pub fn is_down(&self, peer: NodeId) -> bool {
        matches!(self.peers.get(&peer), Some(Standing::Down { .. }))
    }

    /// A timer fired.
    pub fn on_timer(&mut self, config: &DetectorConfig, timer: Timer, out: &mut Vec<Action>) {
        match timer {
            Timer::Beat => self.beat(config, out),
            Timer::Suspect(peer) => self.silence(peer, out),
        }
    }

    /// Something came from `peer`. `word`: what it says of hearing this member, if it was a heartbeat.
    pub fn on_sign_of_life(
        &mut self,
        config: &DetectorConfig,
        peer: NodeId,
        word: Option<bool>,
        out: &mut Vec<Action>,
    ) {
        let Some(standing) = self.peers.get_mut(&peer) else { return };
        out.push(suspect(config, peer));
        if !standing.heard() {
            out.push(Action::Heartbeat { to: peer, hears: true });
        }
        let before = *standing;
        *standing = match (before, word) {
            (_, Some(true)) | (Standing::Up, None) => Standing::Up,
            (Standing::Unknown { .. }, _) => Standing::Unknown { heard: true },
            (Standing::Up, Some(false)) | (Standing::Down { .. }, _) => {
                Standing::Down { heard: true }
            }
        };
        match (before, *standing) {
            (Standing::Up, Standing::Down { .. }) => out.push(Action::Down(peer)),
            (Standing::Unknown { .. } | Standing::Down { .. }, Standing::Up) => {
                out.push(Action::Up(peer));
            }
            _ => {}
        }
    }

    /// W6: gives `peer` up at once: nothing heard from it so far counts any more.
    pub fn give_up(&mut self, peer: NodeId, out: &mut Vec<Action>) {
        if self.peers.get(&peer).is_some_and(|&standing| standing != Standing::SILENT) {
            out.push(Action::CancelTimer(Timer::Suspect(peer)));
        }
        self.silence(peer, out);
    }

    /// W1: tells everybody.
    fn beat(&self, config: &DetectorConfig, out: &mut Vec<Action>) {
        for (&to, standing) in &self.peers {
            out.push(Action::Heartbeat { to, hears: standing.heard() });
        }
        out.push(Action::SetTimer { timer: Timer::Beat, after: config.heartbeat.into() });
    }

    /// W5: `peer` is not heard any more. Says so unless that was known.
    fn silence(&mut self, peer: NodeId, out: &mut Vec<Action>) {
        let Some(standing) = self.peers.get_mut(&peer) else { return };
        if std::mem::replace(standing, Standing::SILENT) != Standing::SILENT {
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

    fn hear(detector: &mut Detector, peer: NodeId, word: Option<bool>) -> Vec<Action> {
        let mut out = Vec::new();
        detector.on_sign_of_life(&config(), peer, word, &mut out);
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
        assert_eq!(begun, [armed(PEER), Action::Heartbeat { to: PEER, hears: true }, beat]);
        assert_eq!(hear(&mut detector, PEER, Some(true)), [armed(PEER)]);
        assert_eq!(fire(&mut detector, Timer::Suspect(PEER)), [Action::Down(PEER)]);
        assert!(detector.is_down(PEER));
        let unheard = Action::Heartbeat { to: PEER, hears: false };
        assert_eq!(fire(&mut detector, Timer::Beat), [unheard, beat]);
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
    fn a_peer_is_up_only_if_it_hears_me() {
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
        assert!(begun.contains(&Action::Heartbeat { to: PEER, hears: false }));
        assert!(!detector.is_down(PEER));
        let greeting = Action::Heartbeat { to: PEER, hears: true };
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
        let greeting = Action::Heartbeat { to: PEER, hears: true };
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
        while let Some(Action::Heartbeat { to, hears }) =
            out.iter().find(|action| matches!(action, Action::Heartbeat { .. })).copied()
        {
            exchanged += 1;
            out = match to {
                ME => hear(&mut new, PEER, Some(hears)),
                _ => hear(&mut old, ME, Some(hears)),
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
        assert!(told.contains(&Action::Heartbeat { to: PEER, hears: false }));
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
