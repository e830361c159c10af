//! Every rule at the head of [`peers`](super), one by one; and what strangers and insiders can send.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use doyen_core::time::Span;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::node::wire::LIMIT;

const CLUSTER: &str = "blue";

fn keys(numbers: &[u8]) -> Keyring {
    let line = |number: &u8| format!("doyen-key-1:{}\n", format!("{number:02x}").repeat(32));
    Keyring::parse(&numbers.iter().map(line).collect::<String>()).unwrap()
}

fn session(number: u64) -> Session {
    Session::new(NonZeroU64::new(number).unwrap())
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000).after(Span::from_millis(millis))
}

fn address(number: u32) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7400 + number as u16))
}

/// A member and its socket.
struct Host {
    peers: Peers,
    address: SocketAddr,
    out: Outbox,
}

type Datagram = (SocketAddr, Vec<u8>);

impl Host {
    /// A life of a member of three.
    fn start(id: u32, incarnation: u32, now: Moment) -> Self {
        Self::with(identity(id, incarnation), &keys(&[1]), now)
    }

    fn with(identity: Identity, keys: &Keyring, now: Moment) -> Self {
        let members = [1, 2, 3].map(NodeId);
        let mut peers = Peers::new(identity, members, Sealer::new(keys, CLUSTER), now);
        for member in members {
            peers.resolved(now, member, address(member.0));
        }
        Self { peers, address: address(identity.me.0), out: Outbox::new() }
    }

    /// What it sends when it is time.
    fn tick(&mut self, now: Moment) -> Vec<Datagram> {
        self.peers.on_time(now, &mut self.out);
        self.take()
    }

    fn take(&mut self) -> Vec<Datagram> {
        let taken = self.out.iter().map(|(to, bytes)| (to, bytes.to_owned())).collect();
        self.out.clear();
        taken
    }

    /// What it makes of a datagram, and what it answers. A message is copied out of it.
    fn hear(
        &mut self,
        now: Moment,
        source: SocketAddr,
        bytes: &[u8],
    ) -> (Result<Heard, Rejection>, Vec<Datagram>) {
        let mut datagram = bytes.to_owned();
        let received = self.peers.on_datagram(now, source, &mut datagram, &mut self.out);
        let heard = received.map(|received| match received {
            Received::Nothing => Heard::Nothing,
            Received::Election { from, bytes } => Heard::Message(from, bytes.to_owned()),
            Received::Met(peer) => Heard::Met(peer),
            Received::StateIsOld { seen, by } => Heard::Old(seen, by),
        });
        (heard, self.take())
    }

    /// Seals a message to another member.
    fn say(&mut self, now: Moment, to: u32, text: &[u8]) -> Vec<u8> {
        self.peers.send(now, NodeId(to), text, &mut self.out).unwrap();
        let [(_, bytes)] = &self.take()[..] else { panic!("one message is one datagram") };
        bytes.clone()
    }

    fn contact(&self, id: u32) -> Contact {
        self.peers.contacts().find(|contact| contact.id == NodeId(id)).unwrap()
    }

    fn has_met(&self, id: u32) -> bool {
        self.contact(id).incarnation.is_some()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Heard {
    Nothing,
    Message(NodeId, Vec<u8>),
    Met(NodeId),
    Old(Incarnation, NodeId),
}

fn identity(id: u32, incarnation: u32) -> Identity {
    Identity {
        me: NodeId(id),
        incarnation: Incarnation(incarnation),
        session: session(u64::from(id) * 100 + u64::from(incarnation) + 1),
        configuration: 1,
    }
}

/// Lets two hosts talk until neither has anything to say; everything arrives at once.
fn converse(now: Moment, one: &mut Host, two: &mut Host) -> Vec<Heard> {
    let mut heard = Vec::new();
    let mut under_way: Vec<(SocketAddr, Datagram)> = Vec::new();
    under_way.extend(one.tick(now).into_iter().map(|datagram| (one.address, datagram)));
    under_way.extend(two.tick(now).into_iter().map(|datagram| (two.address, datagram)));
    for _ in 0..20 {
        let mut next = Vec::new();
        for (source, (to, bytes)) in under_way.drain(..) {
            let host = if to == one.address { &mut *one } else { &mut *two };
            if to != host.address {
                continue;
            }
            let (result, answers) = host.hear(now, source, &bytes);
            heard.extend(result.ok());
            next.extend(answers.into_iter().map(|datagram| (host.address, datagram)));
        }
        under_way = next;
    }
    assert!(under_way.is_empty(), "the conversation does not end");
    heard
}

/// Two members that have met, at the beginning.
fn acquainted() -> (Host, Host) {
    let (mut one, mut two) = (Host::start(1, 5, at(0)), Host::start(2, 5, at(0)));
    converse(at(0), &mut one, &mut two);
    assert!(one.has_met(2) && two.has_met(1));
    (one, two)
}

/// The datagrams of `list` that go to `member`.
fn to(member: u32, list: &[Datagram]) -> Vec<Vec<u8>> {
    let mine = list.iter().filter(|(to, _)| *to == address(member));
    mine.map(|(_, bytes)| bytes.clone()).collect()
}

#[test]
fn three_hellos_and_both_have_met() {
    let (mut one, mut two) = (Host::start(1, 5, at(0)), Host::start(2, 5, at(0)));
    let hello = &to(2, &one.tick(at(0)))[0];
    let (heard, answer) = two.hear(at(1), address(1), hello);
    assert_eq!((heard, two.has_met(1)), (Ok(Heard::Nothing), false));
    let (heard, last) = one.hear(at(2), address(2), &answer[0].1);
    assert_eq!((heard, one.has_met(2)), (Ok(Heard::Met(NodeId(2))), true));
    let (heard, none) = two.hear(at(3), address(1), &last[0].1);
    assert_eq!((heard, two.has_met(1), none), (Ok(Heard::Met(NodeId(1))), true, vec![]));
    assert_eq!(answer[0].1.len(), hello.len(), "an answer is as long as a question");
    assert_eq!(one.contact(2).round_trip, Some(Duration::from_millis(2)));
}

#[test]
fn messages_flow_when_both_have_met_and_each_counts_once() {
    let (mut one, mut two) = acquainted();
    let first = one.say(at(10), 2, b"first");
    let second = one.say(at(10), 2, b"second");
    let message = |text: &[u8]| Ok(Heard::Message(NodeId(1), text.to_owned()));
    assert_eq!(two.hear(at(11), address(1), &second), (message(b"second"), vec![]));
    assert_eq!(two.hear(at(11), address(1), &first), (message(b"first"), vec![]));
    for again in [&first, &second] {
        assert_eq!(two.hear(at(12), address(1), again), (Err(Rejection::Replayed), vec![]));
    }
    assert_eq!(two.contact(1).last_heard, Some(at(11)));
}

#[test]
fn nothing_but_a_hello_goes_to_whom_one_has_not_met() {
    let mut one = Host::start(1, 5, at(0));
    assert_eq!(one.tick(at(0)).len(), 2);
    // It has been greeted, and would be again after 100 ms, 300 ms, 700 ms.
    for millis in [100, 300, 700] {
        assert_eq!((one.peers.due(), one.tick(at(millis)).len()), (Some(at(millis)), 2));
    }
    assert_eq!(one.peers.due(), Some(at(1_500)));
    let sent = one.peers.send(at(710), NodeId(2), b"text", &mut one.out);
    assert_eq!((sent, one.take()), (Err(NotSent::NotMet(NodeId(2))), vec![]));
    assert_eq!(one.peers.due(), Some(at(800)), "who is wanted is greeted sooner");
    let strangers = [1, 4].map(|to| one.peers.send(at(2), NodeId(to), b"", &mut one.out));
    assert_eq!(strangers, [1, 4].map(|to| Err(NotSent::Stranger(NodeId(to)))));
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    let (mut one, _) = acquainted();
    let sent = one.peers.send(at(1), NodeId(2), &[0; LIMIT], &mut one.out);
    assert_eq!(sent, Err(NotSent::Unsealed(Unsealed::TooLong(LIMIT))));
    assert_eq!(one.take(), vec![]);
}

#[test]
fn hellos_are_repeated_ever_more_rarely_until_they_are_answered() {
    let mut one = Host::start(1, 5, at(0));
    let mut waits = Vec::new();
    let mut last = at(0);
    for _ in 0..7 {
        let due = one.peers.due().unwrap();
        waits.push(due.since(last).as_millis());
        assert_eq!(one.tick(due).len(), 2, "one to each of the others");
        last = due;
    }
    assert_eq!(waits, [0, 100, 200, 400, 800, 1_000, 1_000]);
}

#[test]
fn who_has_answered_is_asked_again_every_two_seconds() {
    let (mut one, mut two) = acquainted();
    // Greeting each other at the same moment they asked twice, so no round trip is known; it is measured soon.
    assert_eq!(one.contact(2).round_trip, None);
    let ping = &to(2, &one.tick(at(100)))[0];
    let (_, pong) = two.hear(at(104), address(1), ping);
    assert_eq!(one.hear(at(108), address(2), &pong[0].1).0, Ok(Heard::Nothing));
    assert_eq!(one.contact(2).round_trip, Some(Duration::from_millis(8)));
    assert!(to(2, &one.tick(at(2_107))).is_empty());
    let ping = &to(2, &one.tick(at(2_108)))[0];
    let (_, pong) = two.hear(at(2_110), address(1), ping);
    one.hear(at(2_124), address(2), &pong[0].1).0.unwrap();
    assert_eq!(one.contact(2).round_trip, Some(Duration::from_millis(9)), "smoothed");
}

#[test]
fn a_question_asked_twice_measures_nothing() {
    let (mut one, mut two) = (Host::start(1, 5, at(0)), Host::start(2, 5, at(0)));
    one.tick(at(0));
    let again = &to(2, &one.tick(at(100)))[0];
    let (_, answer) = two.hear(at(101), address(1), again);
    assert_eq!(one.hear(at(102), address(2), &answer[0].1).0, Ok(Heard::Met(NodeId(2))));
    assert_eq!(one.contact(2).round_trip, None);
}

#[test]
fn a_recording_from_before_a_restart_is_worthless() {
    let (mut one, mut two) = acquainted();
    let recorded = [one.say(at(1), 2, b"old"), to(2, &one.tick(at(100)))[0].clone()];
    // The receiver restarts. Neither the message nor the Hello gets anybody met or heard.
    let mut two_again = Host::start(2, 6, at(200));
    let (heard, prompted) = two_again.hear(at(201), address(9), &recorded[0]);
    assert_eq!((heard, prompted.len()), (Err(Rejection::Session), 1));
    let (heard, answer) = two_again.hear(at(230), address(9), &recorded[1]);
    assert_eq!((heard, answer.len()), (Ok(Heard::Nothing), 1), "a question is answered, once");
    assert!(!two_again.has_met(1));
    // The sender restarts. What it said in its earlier life is over as soon as the present one has been met.
    let mut one_again = Host::start(1, 6, at(300));
    converse(at(300), &mut one_again, &mut two);
    assert_eq!(two.contact(1).incarnation, Some(Incarnation(6)));
    assert_eq!(two.hear(at(301), address(1), &recorded[0]).0, Err(Rejection::Session));
    assert_eq!(two.hear(at(330), address(1), &recorded[1]).0, Err(Rejection::Session));
    assert_eq!(two.contact(1).incarnation, Some(Incarnation(6)), "no way leads back");
}

#[test]
fn an_answer_to_another_question_or_life_meets_nobody() {
    let (mut one, mut two) = (Host::start(1, 5, at(0)), Host::start(2, 5, at(0)));
    let hello = &to(2, &one.tick(at(0)))[0];
    let (_, answer) = two.hear(at(1), address(1), hello);
    // It answers the question of a life that is over.
    let mut one_again = Host::start(1, 6, at(2));
    one_again.tick(at(2));
    assert_eq!(one_again.hear(at(3), address(2), &answer[0].1).0, Ok(Heard::Nothing));
    assert!(!one_again.has_met(2));
    // It comes a second time, when the question is not open any more.
    assert_eq!(one.hear(at(4), address(2), &answer[0].1).0, Ok(Heard::Met(NodeId(2))));
    assert_eq!(one.hear(at(5), address(2), &answer[0].1).0, Err(Rejection::Replayed));
}

#[test]
fn a_member_that_restarts_is_met_again_at_once() {
    let (mut one, _) = acquainted();
    let mut two = Host::start(2, 6, at(500));
    let heard = converse(at(500), &mut one, &mut two);
    assert!(heard.contains(&Heard::Met(NodeId(1))) && heard.contains(&Heard::Met(NodeId(2))));
    let text = one.say(at(501), 2, b"welcome back");
    assert!(two.hear(at(502), address(1), &text).0.is_ok());
}

#[test]
fn a_message_for_an_earlier_life_makes_the_present_one_known() {
    let (mut one, _) = acquainted();
    let text = one.say(at(490), 2, b"are you there");
    let mut two = Host::start(2, 6, at(500));
    // Its first Hellos are lost; the message tells it whom to greet.
    two.tick(at(500));
    let (heard, prompted) = two.hear(at(501), address(1), &text);
    assert_eq!((heard, prompted.len()), (Err(Rejection::Session), 1));
    let (_, answer) = one.hear(at(502), address(2), &prompted[0].1);
    assert_eq!(two.hear(at(503), address(1), &answer[0].1).0, Ok(Heard::Met(NodeId(1))));
}

#[test]
fn answers_to_whom_one_has_not_met_are_limited() {
    let mut one = Host::start(1, 5, at(0));
    let mut two = Host::start(2, 5, at(0));
    let hello = &to(1, &two.tick(at(0)))[0];
    assert_eq!(one.hear(at(0), address(2), hello).1.len(), 1);
    assert_eq!(one.hear(at(19), address(2), hello), (Err(Rejection::Limited), vec![]));
    assert_eq!(one.hear(at(20), address(2), hello).1.len(), 1);
    // Each member has its own limit.
    let hello = &to(1, &Host::start(3, 5, at(0)).tick(at(0)))[0];
    assert_eq!(one.hear(at(21), address(3), hello).1.len(), 1);
}

#[test]
fn recordings_do_not_keep_two_members_from_meeting() {
    let mut former = Host::start(2, 4, at(0));
    let recorded = &to(1, &former.tick(at(0)))[0];
    let (mut one, mut two) = (Host::start(1, 5, at(0)), Host::start(2, 5, at(0)));
    // Somebody sends a recorded Hello every millisecond, from elsewhere, and the way takes 400 ms.
    let mut under_way: Vec<(u64, SocketAddr, Datagram)> = Vec::new();
    for millis in 0..3_000 {
        let (_, misled) = one.hear(at(millis), address(9), recorded);
        assert!(misled.iter().all(|(to, _)| *to == address(9)));
        for host in [&mut one, &mut two] {
            let sent = host.tick(at(millis));
            under_way.extend(sent.into_iter().map(|sent| (millis + 400, host.address, sent)));
        }
        let arrived: Vec<_> = under_way.extract_if(.., |(when, ..)| *when == millis).collect();
        for (_, source, (to, bytes)) in arrived {
            let host = if to == address(1) { &mut one } else { &mut two };
            let (_, answers) = host.hear(at(millis), source, &bytes);
            under_way.extend(answers.into_iter().map(|sent| (millis + 400, host.address, sent)));
        }
    }
    assert!(one.has_met(2) && two.has_met(1));
    assert_eq!(one.contact(2).incarnation, Some(Incarnation(5)));
}

#[test]
fn a_restored_state_is_told_so() {
    let (mut one, _) = acquainted();
    // Incarnation 5 of member 2 has been met. Its disk goes back to what it was, and it starts as 4, or as 5 again.
    for incarnation in [4, 5] {
        let mut identity = identity(2, incarnation);
        identity.session = session(4711);
        let mut restored = Host::with(identity, &keys(&[1]), at(100));
        let heard = converse(at(1_000 * u64::from(incarnation)), &mut one, &mut restored);
        assert!(heard.contains(&Heard::Old(Incarnation(5), NodeId(1))), "{heard:?}");
        assert_eq!(one.contact(2).incarnation, Some(Incarnation(5)));
        assert_ne!(one.peers.peers[0].met.as_ref().unwrap().session, session(4711));
    }
}

#[test]
fn of_two_clones_with_one_incarnation_that_which_was_met_first_goes_on() {
    let (mut one, mut original) = acquainted();
    let mut identity = identity(2, 5);
    identity.session = session(4711);
    let mut clone = Host::with(identity, &keys(&[1]), at(100));
    let heard = converse(at(100), &mut one, &mut clone);
    assert!(heard.contains(&Heard::Old(Incarnation(5), NodeId(1))), "{heard:?}");
    let heard = converse(at(3_000), &mut one, &mut original);
    assert!(!heard.iter().any(|heard| matches!(heard, Heard::Old(..))), "{heard:?}");
}

#[test]
fn a_clone_of_the_life_that_runs_is_met_and_the_original_stops() {
    let (mut one, mut original) = acquainted();
    let mut clone = Host::start(2, 6, at(100));
    clone.address = address(22);
    let heard = converse(at(100), &mut one, &mut clone);
    assert!(heard.contains(&Heard::Met(NodeId(2))), "{heard:?}");
    let text = original.say(at(200), 1, b"I am still here");
    let (heard, prompted) = one.hear(at(200), address(2), &text);
    assert_eq!(heard, Err(Rejection::Session));
    let told = original.hear(at(201), address(1), &prompted[0].1).0;
    assert_eq!(told, Ok(Heard::Old(Incarnation(6), NodeId(1))));
}

#[test]
fn who_restarts_as_it_should_is_never_told_to_stop() {
    let (mut one, _) = acquainted();
    for incarnation in 6..12 {
        let now = at(u64::from(incarnation) * 1_000);
        let mut two = Host::start(2, incarnation, now);
        for pause in [0, 100, 2_200] {
            let now = now.after(Span::from_millis(pause));
            let heard = converse(now, &mut one, &mut two);
            assert!(!heard.iter().any(|heard| matches!(heard, Heard::Old(..))), "{heard:?}");
        }
        assert_eq!(two.contact(1).seen_of_me, Some(Incarnation(incarnation - 1)));
    }
}

#[test]
fn who_has_lost_its_state_learns_which_incarnation_to_go_beyond() {
    let (mut one, _) = acquainted();
    let mut three = Host::start(3, 1, at(0));
    let mut lost = Host::start(2, 0, at(100));
    let heard = converse(at(100), &mut one, &mut lost);
    assert!(!heard.iter().any(|heard| matches!(heard, Heard::Old(..))), "{heard:?}");
    assert_eq!(lost.contact(1).seen_of_me, Some(Incarnation(5)));
    assert_eq!(lost.peers.highest_seen_of_me(), None, "not everybody has answered");
    converse(at(300), &mut lost, &mut three);
    assert_eq!(lost.contact(3).seen_of_me, Some(Incarnation(0)), "who has met none says so");
    assert_eq!(lost.peers.highest_seen_of_me(), Some(Incarnation(5)));
    assert_eq!(one.contact(2).incarnation, Some(Incarnation(5)), "it is not met as it is");
    let mut back = Host::start(2, 6, at(400));
    let heard = converse(at(400), &mut one, &mut back);
    assert!(heard.contains(&Heard::Met(NodeId(2))), "{heard:?}");
}

#[test]
fn a_peer_is_where_its_newest_datagram_came_from() {
    let (mut one, mut two) = acquainted();
    let [first, second, third] = [(); 3].map(|()| one.say(at(10), 2, b"text"));
    two.hear(at(11), address(7), &second).0.unwrap();
    assert_eq!(two.contact(1).address, Some(address(7)));
    two.hear(at(12), address(8), &first).0.unwrap();
    assert_eq!(two.contact(1).address, Some(address(7)), "an older one says nothing new");
    two.hear(at(12), address(8), &second).0.unwrap_err();
    let mut altered = third.clone();
    altered[50] ^= 1;
    two.hear(at(13), address(8), &altered).0.unwrap_err();
    assert_eq!(two.contact(1).address, Some(address(7)), "what is rejected says nothing");
    two.peers.send(at(14), NodeId(1), b"text", &mut two.out).unwrap();
    assert_eq!(two.take()[0].0, address(7));
    let six: SocketAddr = "[2001:db8::7]:7400".parse().unwrap();
    two.hear(at(15), six, &third).0.unwrap();
    assert_eq!(two.contact(1).address, Some(six));
}

#[test]
fn a_member_that_moves_when_it_restarts_is_followed() {
    let (mut one, _) = acquainted();
    let mut two = Host::start(2, 6, at(100));
    two.address = address(22);
    converse(at(100), &mut one, &mut two);
    assert_eq!(one.contact(2).address, Some(address(22)));
}

#[test]
fn who_does_not_answer_is_greeted_in_both_places_and_its_name_resolved() {
    let (mut one, mut two) = acquainted();
    two.address = address(22);
    let text = two.say(at(10), 1, b"from elsewhere");
    one.hear(at(10), address(22), &text).0.unwrap();
    let resolving = |one: &mut Host, now| one.peers.needs_resolving(now).collect::<Vec<_>>();
    assert_eq!(resolving(&mut one, at(11)), [NodeId(3)], "2 was heard just now");
    let greeted = |sent: &[Datagram]| -> Vec<u16> {
        let second = sent.iter().map(|(to, _)| to.port()).filter(|&port| port != 7403);
        second.collect()
    };
    assert_eq!(greeted(&one.tick(at(200))), [7422]);
    assert_eq!(greeted(&one.tick(at(300))), [7422, 7402]);
    assert_eq!(resolving(&mut one, at(3_009)), []);
    assert_eq!(resolving(&mut one, at(3_010)), [NodeId(2)]);
    assert_eq!(resolving(&mut one, at(5_010)), []);
    assert_eq!(resolving(&mut one, at(8_010)), [NodeId(2), NodeId(3)]);
    one.tick(at(8_010));
    one.peers.resolved(at(8_020), NodeId(2), address(32));
    assert_eq!(one.peers.due(), Some(at(8_020)));
    assert_eq!(greeted(&one.tick(at(8_020))), [7422, 7432]);
}

#[test]
fn everybody_is_resolved_first_of_all() {
    let members = [1, 2, 3].map(NodeId);
    let sealer = Sealer::new(&keys(&[1]), CLUSTER);
    let mut peers = Peers::new(identity(1, 1), members, sealer, at(0));
    let mut out = Outbox::new();
    peers.on_time(at(0), &mut out);
    assert_eq!(out.iter().len(), 0, "nobody knows where to send it");
    assert_eq!(peers.needs_resolving(at(0)).collect::<Vec<_>>(), [2, 3].map(NodeId));
    peers.resolved(at(7), NodeId(2), address(2));
    assert_eq!(peers.due(), Some(at(7)));
    peers.on_time(at(7), &mut out);
    assert_eq!(out.iter().map(|(to, _)| to).collect::<Vec<_>>(), [address(2)]);
}

#[test]
fn every_reason_to_reject_is_counted_by_its_name() {
    let (mut one, mut two) = acquainted();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut reject = |host: &mut Host, datagram: &[u8]| {
        let (heard, answers) = host.hear(at(50), address(1), datagram);
        let reason = heard.unwrap_err();
        assert!(answers.is_empty() || reason == Rejection::Session, "{reason:?} is not answered");
        *counts.entry(reason.name()).or_default() += 1;
    };
    let text = one.say(at(49), 2, b"text");
    two.hear(at(49), address(1), &text).0.unwrap();
    reject(&mut two, &text);
    reject(&mut two, &text[..text.len() - 1]);
    reject(&mut two, &text[..60]);
    reject(&mut two, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(4).as_bytes());
    reject(&mut Host::start(3, 1, at(0)), &text);
    let others = |keys: &Keyring, cluster, alter: fn(&mut Envelope)| {
        let mut envelope = Envelope {
            from: NodeId(1),
            to: NodeId(2),
            session: session(106),
            known: Some(session(206)),
            counter: 1_000,
            configuration: 1,
            group: 0,
        };
        alter(&mut envelope);
        let mut datagram = Vec::new();
        let sealer = Sealer::new(keys, cluster);
        sealer.seal(&envelope, Content::Election(b"text"), &mut datagram).unwrap();
        datagram
    };
    reject(&mut two, &others(&keys(&[1]), "red", |_| {}));
    reject(&mut two, &others(&keys(&[2]), CLUSTER, |_| {}));
    reject(&mut two, &others(&keys(&[1]), CLUSTER, |envelope| envelope.from = NodeId(9)));
    reject(&mut two, &others(&keys(&[1]), CLUSTER, |envelope| envelope.from = NodeId(2)));
    reject(&mut two, &others(&keys(&[1]), CLUSTER, |envelope| envelope.group = 7));
    reject(&mut two, &others(&keys(&[1]), CLUSTER, |envelope| envelope.configuration = 7));
    reject(&mut two, &others(&keys(&[1]), CLUSTER, |envelope| envelope.session = session(7)));
    reject(&mut two, &others(&keys(&[1]), CLUSTER, |envelope| envelope.known = None));
    let expected = [
        ("cluster", 1),
        ("configuration", 1),
        ("foreign", 1),
        ("forged", 1),
        ("key", 1),
        ("misdirected", 2),
        ("replayed", 1),
        ("session", 2),
        ("size", 1),
        ("stranger", 2),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    // But for the altered ones that envelope would have counted.
    assert!(two.hear(at(51), address(1), &others(&keys(&[1]), CLUSTER, |_| {})).0.is_ok());
}

#[test]
fn who_is_configured_otherwise_is_known_for_it_until_it_is_heard() {
    let (mut one, mut two) = acquainted();
    let mut changed = Host::with(
        Identity { configuration: 2, session: session(4711), ..identity(1, 6) },
        &keys(&[1]),
        at(10),
    );
    let hello = &to(2, &changed.tick(at(10)))[0];
    assert_eq!(two.hear(at(11), address(1), hello), (Err(Rejection::Configuration), vec![]));
    assert!(two.contact(1).configured_otherwise);
    let text = one.say(at(12), 2, b"text");
    two.hear(at(12), address(1), &text).0.unwrap();
    assert!(!two.contact(1).configured_otherwise);
}

#[test]
fn keys_are_changed_without_a_lost_datagram() {
    let (mut one, mut two) = acquainted();
    let mut exchanged = 0;
    let mut exchange = |one: &mut Host, two: &mut Host, now| {
        let there = one.say(now, 2, b"there");
        let back = two.say(now, 1, b"back");
        assert_eq!(
            two.hear(now, address(1), &there).0.unwrap(),
            Heard::Message(NodeId(1), b"there".to_vec())
        );
        assert_eq!(
            one.hear(now, address(2), &back).0.unwrap(),
            Heard::Message(NodeId(2), b"back".to_vec())
        );
        exchanged += 2;
    };
    exchange(&mut one, &mut two, at(10));
    for (step, ring) in (1..).zip([&[1, 2][..], &[2, 1], &[2]]) {
        // One member is ahead for a while, and what is under way at that moment arrives as well.
        let now = at(step * 3_000);
        let under_way = two.say(now, 1, b"under way");
        one.peers.rekey(&keys(ring));
        if ring != [2] {
            assert!(one.hear(now, address(2), &under_way).0.is_ok());
        }
        exchange(&mut one, &mut two, now);
        two.peers.rekey(&keys(ring));
        exchange(&mut one, &mut two, now);
        assert!(!converse(now.after(Span::from_millis(2_200)), &mut one, &mut two).is_empty());
    }
    assert_eq!(exchanged, 14);
    let late = Sealer::new(&keys(&[1]), CLUSTER);
    one.peers.sealer = late;
    let text = one.say(at(12_000), 2, b"with the old key");
    assert_eq!(two.hear(at(12_000), address(1), &text).0, Err(Rejection::Key));
}

#[test]
fn a_lone_member_has_nobody_to_greet() {
    let sealer = Sealer::new(&Keyring::open_to_all(), CLUSTER);
    let mut peers = Peers::new(identity(1, 1), [NodeId(1)], sealer, at(0));
    let mut out = Outbox::new();
    peers.on_time(at(0), &mut out);
    assert_eq!((peers.due(), out.iter().len(), peers.contacts().len()), (None, 0, 0));
    assert_eq!(peers.highest_seen_of_me(), Some(Incarnation(0)));
}

/// A datagram of somebody who has the key and keeps no rule.
fn any_insider() -> impl Strategy<Value = (Envelope, Option<Hello>)> {
    let few = |most: u64| prop_oneof![0..=most, any::<u64>()];
    let ids = (0..5_u32, 0..5_u32);
    let sessions = (few(700), few(700));
    let rest = (few(3), 0..3_u32, 0..2_u16);
    let hello = proptest::option::of((few(2), few(2), any::<u32>(), 0..9_u32));
    let some = |number: u64| NonZeroU64::new(number);
    (ids, sessions, rest, hello).prop_map(move |(ids, sessions, rest, hello)| {
        let envelope = Envelope {
            from: NodeId(ids.0),
            to: NodeId(ids.1),
            session: session(sessions.0.max(1)),
            known: some(sessions.1).map(Session::new),
            counter: rest.0.max(1),
            configuration: rest.1,
            group: rest.2,
        };
        let hello = hello.map(|(ask, answer, incarnation, seen)| Hello {
            ask: some(ask).map(Challenge::new),
            answer: some(answer).map(Challenge::new),
            incarnation: Incarnation(incarnation),
            seen: Incarnation(seen),
        });
        (envelope, hello)
    })
}

proptest! {
    #[test]
    fn any_bytes_are_rejected_and_not_answered(
        mut bytes in vec(any::<u8>(), 0..400),
        genuine in 0..60_usize,
    ) {
        let (mut one, mut two) = acquainted();
        let text = one.say(at(10), 2, b"text");
        let genuine = genuine.min(bytes.len());
        bytes[..genuine].copy_from_slice(&text[..genuine]);
        let before = format!("{:?}", two.peers);
        let (heard, answers) = two.hear(at(11), address(1), &bytes);
        prop_assert!(heard.is_err() && answers.is_empty());
        prop_assert_eq!(before, format!("{:?}", two.peers), "nothing is remembered of it");
    }

    #[test]
    fn whatever_an_insider_says_is_answered_with_one_hello_at_most(
        said in vec((any_insider(), 0..30_u64), 1..40),
    ) {
        let (mut one, mut two) = acquainted();
        let sealer = Sealer::new(&keys(&[1]), CLUSTER);
        let (mut now, mut greeted) = (10, one.tick(at(0)).len());
        for ((envelope, hello), pause) in said {
            now += pause;
            let content = hello.map_or(Content::Election(b"text"), Content::Hello);
            let mut datagram = Vec::new();
            sealer.seal(&envelope, content, &mut datagram).unwrap();
            let (_, answers) = two.hear(at(now), address(1), &datagram);
            prop_assert!(answers.len() <= 1);
            prop_assert!(answers.iter().all(|(_, bytes)| bytes.len() <= datagram.len().max(118)));
            greeted += answers.len();
        }
        prop_assert_eq!(two.peers.contacts().len(), 2);
        prop_assert!(greeted <= 40);
    }
}
