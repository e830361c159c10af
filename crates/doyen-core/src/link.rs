//! The reliable first-in-first-out link that every textbook algorithm assumes, over a network that loses, duplicates
//! and reorders.
//!
//! One [`Link`] is one member's end of its connection with one peer, in both directions. Messages to the peer are
//! numbered, kept until they are acknowledged and retransmitted on timeout; messages from it are delivered in the order
//! of their numbers, each once.
//!
//! | rule | event | action |
//! |---|---|---|
//! | L1 | the algorithm sends | numbers and keeps the message, transmits it, arms the timer if nothing was kept |
//! | L2 | a message arrives | delivers it if it is due, keeps it if it is early, drops it if it was received before; acknowledges |
//! | L3 | an acknowledgement arrives | discards what is acknowledged; arms the timer again if something is left |
//! | L4 | the timer fires | transmits all that is kept again, waits twice as long |
//! | L5 | after [`LinkConfig::retries`] of L4 in a row, or when more than [`LinkConfig::queue`] are kept | gives the peer up |
//! | L6 | the peer is given up | discards what is kept; the receiver will skip it |
//! | L7 | the peer has restarted | L6, and expects its first number again |
//!
//! **Numbers** belong to one incarnation of the sender and never go back, not even when the receiver restarts.
//! **Skipping**: every message carries its `base`, the lowest number that the sender still keeps. Messages below it
//! will never be sent again, so the receiver expects at least that number. So the two ends need no handshake to start,
//! to continue after one has given the other up, or after the receiver has restarted. What was given up is lost, even
//! if the receiver holds it as early: its sender has been informed that the peer was down, and must not find out later
//! that it was not.
//!
//! **Acknowledgements** are cumulative ("all below 7 has arrived") and sent for every message that arrives, including
//! duplicates; otherwise the loss of an acknowledgement would make its sender retransmit forever. They do not wait for
//! traffic in the other direction: an election has little of it, and its timeouts are short.
//!
//! **Giving up**: a failure detector ends the retransmissions (L6) sooner than L5 does. L5 bounds them where there is
//! no detector, and where the peer is alive and acknowledges nothing. A peer that has been given up still gets every
//! new message once, because it may be alive although it is not received ([`Link::send_once`]).
//!
//! **Bounds**: at most `queue` messages are kept for the peer, and as many early ones are held. Messages from a peer
//! with numbers beyond that window are dropped.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Timing;
use crate::map::SortedMap;
use crate::time::{Delay, Span};

/// The settings of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkConfig {
    /// How long an acknowledgement takes at most on the bare network, `2D + p`: the wait before the first
    /// retransmission. The `D` of the algorithm above must be larger, because it includes retransmissions.
    pub round_trip: Span,
    /// After how many retransmissions in a row without any acknowledgement the peer is given up.
    pub retries: u8,
    /// How many messages may wait for their acknowledgement; one more, and the peer is given up.
    pub queue: u16,
}

impl LinkConfig {
    /// A link for a network on which an acknowledgement takes at most `round_trip`: 64 messages, eight retries.
    pub fn for_round_trip(round_trip: Span) -> Self {
        Self { round_trip, retries: 8, queue: 64 }
    }

    /// How long a message is kept at most if nothing is acknowledged: the sum of all waits, before each retransmission
    /// and before the peer is given up, each as long as possible.
    pub fn patience(&self) -> Span {
        (0..=self.retries)
            .map(|attempts| Timing::back_off(self.round_trip, attempts).max)
            .fold(Span::ZERO, |sum, wait| sum + wait)
    }
}

/// A message with its place in the stream.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Numbered<M> {
    /// Its number.
    pub number: u64,
    /// The lowest number that the sender still keeps: nothing below it will come again.
    pub base: u64,
    /// The message itself.
    pub message: M,
}

impl<M> Numbered<M> {
    /// The same position with another form of the message.
    pub(crate) fn map<N>(self, change: impl FnOnce(M) -> N) -> Numbered<N> {
        Numbered { number: self.number, base: self.base, message: change(self.message) }
    }
}

impl<M: fmt::Display> fmt::Display for Numbered<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.message, self.number)
    }
}

/// What a link asks its host to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<M> {
    /// Transmit a message for the first time.
    Transmit(Numbered<M>),
    /// Transmit a message again.
    Retransmit(Numbered<M>),
    /// Acknowledge every message below this number.
    Acknowledge(u64),
    /// Deliver a message to the algorithm.
    Deliver(M),
    /// Arm the link's only timer.
    SetTimer(Delay),
    /// Disarm it.
    CancelTimer,
    /// The peer acknowledges nothing: it is to be considered down.
    GiveUp,
}

/// One end of the connection with one peer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Link<M> {
    /// The number of the next message to the peer.
    next: u64,
    /// The messages just below `next` that the peer has not acknowledged.
    kept: VecDeque<M>,
    /// How often they have been retransmitted since the last acknowledgement.
    attempts: u8,
    /// The number that is due from the peer.
    due: u64,
    /// Messages that arrived before their turn.
    early: SortedMap<u64, M>,
}

/// Zero means "nothing" in acknowledgements, so the first message is number one.
const FIRST: u64 = 1;

impl<M> Default for Link<M> {
    fn default() -> Self {
        Self {
            next: FIRST,
            kept: VecDeque::new(),
            attempts: 0,
            due: FIRST,
            early: SortedMap::new(),
        }
    }
}

impl<M: Clone> Link<M> {
    /// L1: sends `message` and keeps it until the peer acknowledges it.
    pub fn send(&mut self, config: &LinkConfig, message: M, out: &mut Vec<Action<M>>) {
        if self.kept.len() >= usize::from(config.queue) {
            self.give_up(out);
            return out.push(Action::GiveUp);
        }
        if self.kept.is_empty() {
            out.push(Action::SetTimer(Timing::back_off(config.round_trip, 0)));
        }
        let base = self.base();
        let number = self.take_number();
        self.kept.push_back(message.clone());
        out.push(Action::Transmit(Numbered { number, base, message }));
    }

    /// Sends `message` to a peer that has been given up: once, and does not keep it.
    pub fn send_once(&mut self, message: M, out: &mut Vec<Action<M>>) {
        assert!(self.kept.is_empty(), "nothing is kept for a peer that has been given up");
        let number = self.take_number();
        out.push(Action::Transmit(Numbered { number, base: number, message }));
    }

    /// L2: a message arrived.
    pub fn on_message(
        &mut self,
        config: &LinkConfig,
        arrived: Numbered<M>,
        out: &mut Vec<Action<M>>,
    ) {
        let Numbered { number, base, message } = arrived;
        if base > self.due && base <= number {
            self.due = base;
            self.early.retain(|&number, _| number >= base);
        }
        let within = self.due..self.due.saturating_add(u64::from(config.queue));
        if within.contains(&number) {
            self.early.get_or_insert_with(number, || message);
        }
        while let Some(message) = self.early.remove(&self.due) {
            // The range above ends below the largest number, so this one has a successor.
            self.due += 1;
            out.push(Action::Deliver(message));
        }
        out.push(Action::Acknowledge(self.due));
    }

    /// L3: the peer has everything below `below`.
    pub fn on_acknowledgement(
        &mut self,
        config: &LinkConfig,
        below: u64,
        out: &mut Vec<Action<M>>,
    ) {
        // Old acknowledgements contain nothing new; one for a message that was never sent is invalid.
        if below <= self.base() || below > self.next {
            return;
        }
        self.kept.drain(..(below - self.base()) as usize);
        self.attempts = 0;
        out.push(match self.kept.is_empty() {
            true => Action::CancelTimer,
            false => Action::SetTimer(Timing::back_off(config.round_trip, 0)),
        });
    }

    /// L4: nothing has been acknowledged in time.
    pub fn on_timer(&mut self, config: &LinkConfig, out: &mut Vec<Action<M>>) {
        if self.kept.is_empty() {
            return;
        }
        if self.attempts >= config.retries {
            self.kept.clear();
            self.attempts = 0;
            return out.push(Action::GiveUp);
        }
        self.attempts += 1;
        let base = self.base();
        for (number, message) in (base..).zip(&self.kept) {
            out.push(Action::Retransmit(Numbered { number, base, message: message.clone() }));
        }
        out.push(Action::SetTimer(Timing::back_off(config.round_trip, self.attempts)));
    }

    /// L6: the peer is considered down; what it has not acknowledged is lost.
    pub fn give_up(&mut self, out: &mut Vec<Action<M>>) {
        if !self.kept.is_empty() {
            self.kept.clear();
            self.attempts = 0;
            out.push(Action::CancelTimer);
        }
    }

    /// L7: the peer has restarted; it has lost what was sent to it, and numbers from the beginning.
    pub fn on_restart(&mut self, out: &mut Vec<Action<M>>) {
        self.give_up(out);
        self.due = FIRST;
        self.early.clear();
    }

    /// The lowest number that is still kept, or the next one.
    fn base(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next = number.checked_add(1).expect("numbers do not run out");
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::collection::vec;
    use proptest::prelude::*;

    fn config() -> LinkConfig {
        LinkConfig { round_trip: Span::from_millis(2), retries: 3, queue: 4 }
    }

    fn numbered(number: u64, base: u64) -> Numbered<u64> {
        Numbered { number, base, message: number }
    }

    fn send(link: &mut Link<u64>, messages: impl IntoIterator<Item = u64>) -> Vec<Action<u64>> {
        let mut out = Vec::new();
        for message in messages {
            link.send(&config(), message, &mut out);
        }
        out
    }

    fn receive(link: &mut Link<u64>, number: u64, base: u64) -> Vec<Action<u64>> {
        let mut out = Vec::new();
        link.on_message(&config(), numbered(number, base), &mut out);
        out
    }

    fn acknowledge(link: &mut Link<u64>, below: u64) -> Vec<Action<u64>> {
        let mut out = Vec::new();
        link.on_acknowledgement(&config(), below, &mut out);
        out
    }

    fn fire(link: &mut Link<u64>) -> Vec<Action<u64>> {
        let mut out = Vec::new();
        link.on_timer(&config(), &mut out);
        out
    }

    fn wait(attempts: u8) -> Action<u64> {
        Action::SetTimer(Timing::back_off(config().round_trip, attempts))
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_ever_more_rarely() {
        let mut link = Link::default();
        let first = send(&mut link, [1, 2]);
        assert_eq!(
            first,
            [wait(0), Action::Transmit(numbered(1, 1)), Action::Transmit(numbered(2, 1))]
        );
        let again = [Action::Retransmit(numbered(1, 1)), Action::Retransmit(numbered(2, 1))];
        assert_eq!(fire(&mut link), [&again[..], &[wait(1)]].concat());
        assert_eq!(fire(&mut link), [&again[..], &[wait(2)]].concat());
        assert_eq!(acknowledge(&mut link, 2), [wait(0)]);
        assert_eq!(fire(&mut link), [Action::Retransmit(numbered(2, 2)), wait(1)]);
        assert_eq!(acknowledge(&mut link, 3), [Action::CancelTimer]);
    }

    #[test]
    fn a_peer_that_acknowledges_nothing_is_given_up() {
        let mut link = Link::default();
        send(&mut link, [1]);
        for _ in 0..config().retries {
            assert_eq!(fire(&mut link).len(), 2);
        }
        assert_eq!(fire(&mut link), [Action::GiveUp]);
        assert_eq!(fire(&mut link), []);
    }

    #[test]
    fn the_patience_is_the_longest_way_to_giving_up() {
        let mut link = Link::default();
        let mut out = send(&mut link, [1]);
        let mut waited = Span::ZERO;
        while !out.contains(&Action::GiveUp) {
            for action in &out {
                if let Action::SetTimer(delay) = action {
                    waited = waited + delay.max;
                }
            }
            out = fire(&mut link);
        }
        assert_eq!(config().patience(), waited);
        // 1 + 1.5 (2 + 4 + 8 + 16 + 32 + 64 + 64 + 64)
        let usual = LinkConfig::for_round_trip(Span::from_millis(1));
        assert_eq!(usual.patience(), Span::from_millis(382));
    }

    #[test]
    fn a_queue_that_overflows_gives_the_peer_up() {
        let mut link = Link::default();
        send(&mut link, 1..=4);
        assert_eq!(send(&mut link, [5]), [Action::CancelTimer, Action::GiveUp]);
    }

    #[test]
    fn what_is_early_waits_for_its_turn() {
        let mut link = Link::default();
        assert_eq!(receive(&mut link, 2, 1), [Action::Acknowledge(1)]);
        let both = [Action::Deliver(1), Action::Deliver(2), Action::Acknowledge(3)];
        assert_eq!(receive(&mut link, 1, 1), both);
        assert_eq!(receive(&mut link, 1, 1), [Action::Acknowledge(3)]);
    }

    #[test]
    fn what_was_given_up_is_skipped_even_where_it_had_come_early() {
        let (mut sender, mut receiver) = (Link::default(), Link::default());
        send(&mut sender, 1..=3);
        receive(&mut receiver, 2, 1);
        sender.give_up(&mut Vec::new());
        let mut out = Vec::new();
        sender.send_once(4, &mut out);
        assert_eq!(out, [Action::Transmit(numbered(4, 4))]);
        assert_eq!(receive(&mut receiver, 4, 4), [Action::Deliver(4), Action::Acknowledge(5)]);
        assert_eq!(send(&mut sender, [5]), [wait(0), Action::Transmit(numbered(5, 5))]);
        assert_eq!(receive(&mut receiver, 3, 1), [Action::Acknowledge(5)]);
        assert!(receiver.early.is_empty());
    }

    #[test]
    fn a_restarted_peer_is_served_from_the_present_number_of_the_sender() {
        let (mut sender, mut receiver) = (Link::default(), Link::default());
        send(&mut sender, 1..=2);
        acknowledge(&mut sender, 2);
        receive(&mut sender, 1, 1);
        receive(&mut sender, 3, 1);
        let mut out = Vec::new();
        sender.on_restart(&mut out);
        assert_eq!(out, [Action::CancelTimer]);
        assert_eq!(send(&mut sender, [3]), [wait(0), Action::Transmit(numbered(3, 3))]);
        assert_eq!(receive(&mut receiver, 3, 3), [Action::Deliver(3), Action::Acknowledge(4)]);
        assert_eq!(receive(&mut sender, 1, 1), [Action::Deliver(1), Action::Acknowledge(2)]);
        // What arrived early before the restart does not belong to the new incarnation.
        assert_eq!(receive(&mut sender, 2, 1), [Action::Deliver(2), Action::Acknowledge(3)]);
    }

    #[test]
    fn numbers_beyond_reason_do_no_harm() {
        let mut link = Link::default();
        send(&mut link, [1]);
        let before = link.clone();
        for below in [0, 1, 3, u64::MAX] {
            assert_eq!(acknowledge(&mut link, below), []);
        }
        assert_eq!(receive(&mut link, 5, 1), [Action::Acknowledge(1)]);
        assert_eq!(receive(&mut link, 0, u64::MAX), [Action::Acknowledge(1)]);
        assert_eq!(link, before);
        assert_eq!(receive(&mut link, u64::MAX, u64::MAX), [Action::Acknowledge(u64::MAX)]);
        assert_eq!(receive(&mut link, u64::MAX, 1), [Action::Acknowledge(u64::MAX)]);
    }

    /// Two ends and the messages in flight between them.
    #[derive(Default)]
    struct Pair {
        ends: [Link<u64>; 2],
        sent: [Vec<u64>; 2],
        delivered: [Vec<u64>; 2],
        armed: [bool; 2],
        /// How many had been sent when the other end was last given up.
        given_up: [usize; 2],
        on_the_way: Vec<(usize, Flying)>,
    }

    #[derive(Clone)]
    enum Flying {
        Message(Numbered<u64>),
        Acknowledgement(u64),
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(usize),
        Fire(usize),
        GiveUp(usize),
        Deliver(prop::sample::Index),
        Lose(prop::sample::Index),
        Double(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (0..2_usize).prop_map(Step::Send),
            1 => (0..2_usize).prop_map(Step::Fire),
            3 => any::<prop::sample::Index>().prop_map(Step::Deliver),
            2 => any::<prop::sample::Index>().prop_map(Step::Lose),
            1 => any::<prop::sample::Index>().prop_map(Step::Double),
        ]
    }

    impl Pair {
        const CONFIG: LinkConfig =
            LinkConfig { round_trip: Span::from_millis(2), retries: u8::MAX, queue: u16::MAX };

        fn act(&mut self, end: usize, act: impl FnOnce(&mut Link<u64>, &mut Vec<Action<u64>>)) {
            let mut out = Vec::new();
            act(&mut self.ends[end], &mut out);
            for action in out {
                match action {
                    Action::Transmit(numbered) | Action::Retransmit(numbered) => {
                        self.on_the_way.push((1 - end, Flying::Message(numbered)));
                    }
                    Action::Acknowledge(below) => {
                        self.on_the_way.push((1 - end, Flying::Acknowledgement(below)));
                    }
                    Action::Deliver(message) => self.delivered[end].push(message),
                    Action::SetTimer(_) => self.armed[end] = true,
                    Action::CancelTimer => self.armed[end] = false,
                    Action::GiveUp => panic!("nobody is given up here"),
                }
            }
        }

        fn send(&mut self, end: usize) {
            let message = self.sent[end].len() as u64;
            self.sent[end].push(message);
            self.act(end, |link, out| link.send(&Self::CONFIG, message, out));
        }

        fn fire(&mut self, end: usize) {
            if std::mem::take(&mut self.armed[end]) {
                self.act(end, |link, out| link.on_timer(&Self::CONFIG, out));
            }
        }

        fn deliver(&mut self, place: usize) {
            let (end, flying) = self.on_the_way.swap_remove(place);
            self.act(end, |link, out| match flying {
                Flying::Message(numbered) => link.on_message(&Self::CONFIG, numbered, out),
                Flying::Acknowledgement(below) => {
                    link.on_acknowledgement(&Self::CONFIG, below, out);
                }
            });
        }

        fn take(&mut self, step: &Step) {
            let count = self.on_the_way.len();
            match step {
                Step::Send(end) => self.send(*end),
                Step::Fire(end) => self.fire(*end),
                Step::GiveUp(end) => {
                    self.given_up[*end] = self.sent[*end].len();
                    self.act(*end, Link::give_up);
                }
                _ if count == 0 => {}
                Step::Deliver(place) => self.deliver(place.index(count)),
                Step::Lose(place) => {
                    self.on_the_way.swap_remove(place.index(count));
                }
                Step::Double(place) => {
                    let copy = self.on_the_way[place.index(count)].clone();
                    self.on_the_way.push(copy);
                }
            }
        }

        /// From now on nothing is lost, and timers fire.
        fn settle(&mut self) {
            while self.armed[0] || self.armed[1] || !self.on_the_way.is_empty() {
                while !self.on_the_way.is_empty() {
                    self.deliver(0);
                }
                self.fire(0);
                self.fire(1);
            }
        }
    }

    proptest! {
        #[test]
        fn every_message_is_delivered_once_and_in_order(steps in vec(step(), 0..200)) {
            let mut pair = Pair::default();
            for step in &steps {
                pair.take(step);
                for end in 0..2 {
                    prop_assert!(pair.sent[1 - end].starts_with(&pair.delivered[end]));
                }
            }
            pair.settle();
            prop_assert_eq!(&pair.delivered[0], &pair.sent[1]);
            prop_assert_eq!(&pair.delivered[1], &pair.sent[0]);
        }

        #[test]
        fn after_giving_up_the_rest_is_delivered_once_and_in_order(
            steps in vec(prop_oneof![9 => step(), 1 => (0..2_usize).prop_map(Step::GiveUp)], 0..200)
        ) {
            let mut pair = Pair::default();
            for step in &steps {
                pair.take(step);
            }
            pair.settle();
            for end in 0..2 {
                let delivered = &pair.delivered[end];
                prop_assert!(delivered.is_sorted_by(|a, b| a < b), "{delivered:?}");
                let rest = &pair.sent[1 - end][pair.given_up[1 - end]..];
                prop_assert!(delivered.ends_with(rest), "{delivered:?} lacks some of {rest:?}");
            }
        }
    }
}
