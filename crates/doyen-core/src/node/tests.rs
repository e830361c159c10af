//! Goal: a node gives its algorithm correct information about its peers, and nothing that a peer can send breaks it.

use super::*;

use crate::algorithm::bully::{self, Bully, Message};
use crate::algorithm::leader_tracker::BackgroundTimer;
use crate::config::{Config, Mode, Timing};
use crate::link::Numbered;
use crate::members::Term;
use crate::protocol::{AlgorithmMessage, EffectOf, Message as _, Origin};
use crate::time::Span;

use proptest::collection::vec;
use proptest::prelude::*;

const ME: NodeId = NodeId(1);
const PEER: NodeId = NodeId(2);
const ELECTION: Message = Message::Election { term: Term(0) };
const OK: Message = Message::Ok { term: Term(0) };

type Packets = Vec<(NodeId, Packet<Message>)>;

fn config() -> NodeConfig<Config> {
    let members = Members::range(1, 3).unwrap();
    let timing = Timing::for_transmission(Span::from_millis(1));
    NodeConfig {
        inner: Config::new(members.clone(), timing, Mode::Textbook),
        members,
        filter: true,
        link: None,
        detector: None,
    }
}

fn linked(queue: u16) -> NodeConfig<Config> {
    let link = LinkConfig { queue, ..LinkConfig::for_round_trip(Span::from_millis(2)) };
    NodeConfig { link: Some(link), ..config() }
}

/// A member of the second incarnation.
fn start(config: &NodeConfig<Config>, id: NodeId) -> Node<Bully> {
    let origin = Origin::Founding { leader: Some(NodeId(3)) };
    let boot = Boot::new(Incarnation(2), None, origin);
    Node::start(id, config, boot, &mut Effects::new())
}

fn handle(
    node: &mut Node<Bully>,
    config: &NodeConfig<Config>,
    event: Event<Packet<Message>, Timer<<Bully as Protocol>::Timer>>,
) -> Vec<EffectOf<Node<Bully>>> {
    let mut out = Effects::new();
    node.handle(config, event, &mut out);
    out.drain().collect()
}

fn receive(
    node: &mut Node<Bully>,
    config: &NodeConfig<Config>,
    (from, to): (u32, u32),
    body: Body<Message>,
) -> Vec<EffectOf<Node<Bully>>> {
    let message = Packet { from: Incarnation(from), to: Incarnation(to), body };
    handle(node, config, Event::Message { from: PEER, message })
}

fn packets(effects: &[EffectOf<Node<Bully>>]) -> Packets {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, message } => Some((*to, message.clone())),
        _ => None,
    });
    sent.collect()
}

fn notices(effects: &[EffectOf<Node<Bully>>]) -> Vec<Notice> {
    let notices = effects.iter().filter_map(|effect| match effect {
        Effect::Inform(notice) => Some(*notice),
        _ => None,
    });
    notices.collect()
}

#[test]
fn a_packet_carries_the_incarnations_of_both_ends() {
    let config = config();
    let mut node = start(&config, ME);
    receive(&mut node, &config, (7, 0), Body::Plain(OK));
    let sent = packets(&handle(&mut node, &config, Event::Campaign));
    let mine = Incarnation(2);
    let packet = |to| Packet { from: mine, to: Incarnation(to), body: Body::Plain(ELECTION) };
    assert_eq!(sent, [(PEER, packet(7)), (NodeId(3), packet(0))]);
}

/// 2 answers, crashes and comes back, and then its old answer arrives. If that counted, 1 would wait for an
/// announcement that no member will send.
#[test]
fn an_answer_of_a_former_incarnation_does_not_count() {
    for (filter, waits_in_vain) in [(true, false), (false, true)] {
        let config = NodeConfig { filter, ..config() };
        let mut node = start(&config, ME);
        handle(&mut node, &config, Event::Campaign);
        receive(&mut node, &config, (5, 2), Body::Heartbeat { reachable: true });
        let late = receive(&mut node, &config, (4, 2), Body::Plain(OK));
        assert_eq!(!late.is_empty(), waits_in_vain);
    }
}

/// What a node of the second incarnation sends a peer that addresses the first.
fn correction(peer: u32) -> Packet<Message> {
    Packet { from: Incarnation(2), to: Incarnation(peer), body: Body::Ack { below: 0 } }
}

#[test]
fn a_question_to_a_former_incarnation_is_answered_with_the_present_one_alone() {
    for config in [config(), linked(8)] {
        let mut node = start(&config, NodeId(3));
        let effects = receive(&mut node, &config, (4, 1), Body::Plain(ELECTION));
        assert_eq!(effects, [Effect::Send { to: PEER, message: correction(4) }]);
    }
    let config = config();
    let mut node = start(&config, NodeId(3));
    let effects = receive(&mut node, &config, (4, 2), Body::Plain(ELECTION));
    assert_eq!(packets(&effects)[0].1.body, Body::Plain(OK));
}

#[test]
fn packets_from_or_for_an_incarnation_that_does_not_exist_are_dropped() {
    let config = config();
    let mut node = start(&config, NodeId(3));
    receive(&mut node, &config, (4, 2), Body::Plain(ELECTION));
    assert_eq!(receive(&mut node, &config, (3, 1), Body::Plain(ELECTION)), []);
    assert_eq!(receive(&mut node, &config, (4, 3), Body::Plain(ELECTION)), []);
}

#[test]
fn a_correction_tells_of_the_crash_and_is_not_answered() {
    for config in [config(), linked(8)] {
        let mut node = start(&config, ME);
        receive(&mut node, &config, (4, 2), Body::Ack { below: 1 });
        let effects = receive(&mut node, &config, (5, 2), Body::Ack { below: 0 });
        assert_eq!(notices(&effects), [Notice::Down(PEER), Notice::Up(PEER)]);
        assert_eq!(packets(&effects), []);
    }
}

/// Both have restarted, and a packet between their earlier incarnations is still in flight.
#[test]
fn two_that_restarted_correct_each_other_once() {
    let config = config();
    let [mut one, mut two] = [ME, PEER].map(|id| start(&config, id));
    let packet = |from, to| Packet {
        from: Incarnation(from),
        to: Incarnation(to),
        body: Body::Ack { below: 0 },
    };
    let deliver = |node: &mut Node<Bully>, from, message| {
        packets(&handle(node, &config, Event::Message { from, message }))
    };
    assert_eq!(deliver(&mut one, PEER, packet(1, 1)), [(PEER, packet(2, 1))]);
    assert_eq!(deliver(&mut two, ME, packet(2, 1)), [(ME, packet(2, 2))]);
    assert_eq!(deliver(&mut one, PEER, packet(2, 2)), []);
}

#[test]
fn a_newer_incarnation_is_a_crash_of_the_older() {
    let config = config();
    let mut node = start(&config, ME);
    assert_eq!(receive(&mut node, &config, (4, 0), Body::Plain(OK)), []);
    let effects = receive(&mut node, &config, (5, 0), Body::Plain(OK));
    assert_eq!(notices(&effects), [Notice::Down(PEER), Notice::Up(PEER)]);
}

#[test]
fn with_a_detector_a_newer_incarnation_is_up_when_messages_pass_both_ways() {
    let timing = Timing::for_transmission(Span::from_millis(1));
    let detector = Some(DetectorConfig::for_timing(&timing));
    let config = NodeConfig { detector, ..config() };
    let mut node = start(&config, ME);
    receive(&mut node, &config, (4, 2), Body::Heartbeat { reachable: true });
    let effects = receive(&mut node, &config, (5, 0), Body::Heartbeat { reachable: false });
    assert_eq!(notices(&effects), [Notice::Down(PEER)]);
    let greeting = Packet {
        from: Incarnation(2),
        to: Incarnation(5),
        body: Body::Heartbeat { reachable: true },
    };
    assert_eq!(packets(&effects), [(PEER, greeting)]);
    let effects = receive(&mut node, &config, (5, 2), Body::Heartbeat { reachable: true });
    assert_eq!(notices(&effects), [Notice::Up(PEER)]);
}

#[test]
fn after_a_queue_overflow_a_peer_is_down_until_it_sends() {
    let config = linked(1);
    let mut leader = start(&config, NodeId(3));
    let question = |number| Body::First(Numbered { number, base: number, message: ELECTION });
    assert_eq!(packets(&receive(&mut leader, &config, (4, 2), question(1))).len(), 2);
    let effects = receive(&mut leader, &config, (4, 2), question(2));
    assert_eq!(notices(&effects), [Notice::Down(PEER)]);
    assert!(effects.contains(&Effect::CancelTimer(Timer::Resend(PEER))));
    let effects = receive(&mut leader, &config, (4, 2), Body::Ack { below: 1 });
    assert_eq!(notices(&effects), [Notice::Up(PEER)]);
}

#[test]
fn a_peer_that_is_down_gets_every_message_once() {
    let mut config = linked(8);
    config.inner.mode = Mode::Hardened;
    let mut leader = start(&config, NodeId(3));
    handle(&mut leader, &config, Event::PeerDown(PEER));
    let beat = Timer::Inner(bully::Timer::Background(BackgroundTimer::Heartbeat));
    let effects = handle(&mut leader, &config, Event::Timer(beat));
    let told: Vec<NodeId> = packets(&effects).into_iter().map(|(to, _)| to).collect();
    assert_eq!(told, [ME, PEER]);
    assert_ne!(handle(&mut leader, &config, Event::Timer(Timer::Resend(ME))), []);
    assert_eq!(handle(&mut leader, &config, Event::Timer(Timer::Resend(PEER))), []);
}

#[test]
fn retransmissions_are_not_on_the_account_of_the_election() {
    let config = linked(8);
    let mut node = start(&config, ME);
    let first = packets(&handle(&mut node, &config, Event::Campaign));
    let again = handle(&mut node, &config, Event::Timer(Timer::Resend(PEER)));
    let kinds = Node::<Bully>::kinds(&config);
    let kind = |packet| kinds[Node::<Bully>::kind_index(&config, packet)];
    assert_eq!(kind(&first[0].1).name, "ELECTION");
    let resent = &packets(&again)[0].1;
    assert_eq!(kind(resent), resent.kind());
    assert_eq!(resent.kind().name, "RETRANSMIT");
    assert_eq!(resent.to_string(), "RETRANSMIT ELECTION #1");
    let names: Vec<&str> = kinds[Message::KINDS.len()..].iter().map(|kind| kind.name).collect();
    assert_eq!(names, ADDED_NAMES);
}

const ADDED_NAMES: [&str; 3] = ["RETRANSMIT", "ACK", "HEARTBEAT"];

#[test]
fn only_the_algorithm_has_timers_worth_waiting_for() {
    type NodeOfBullies = Node<Bully>;
    assert!(!NodeOfBullies::is_background(Timer::Inner(bully::Timer::Reply)));
    assert!(NodeOfBullies::is_background(Timer::Resend(PEER)));
    assert!(NodeOfBullies::is_background(Timer::Detector(detector::Timer::Beat)));
    assert!(NodeOfBullies::is_background(Timer::Detector(detector::Timer::Suspect(PEER))));
}

fn any_body() -> impl Strategy<Value = Body<Message>> {
    let number = || prop_oneof![0..8_u64, any::<u64>()];
    let numbered = (number(), number()).prop_map(|(number, base)| Numbered {
        number,
        base,
        message: ELECTION,
    });
    prop_oneof![
        Just(Body::Plain(OK)),
        numbered.clone().prop_map(Body::First),
        numbered.prop_map(Body::Again),
        number().prop_map(|below| Body::Ack { below }),
        any::<bool>().prop_map(|reachable| Body::Heartbeat { reachable }),
    ]
}

proptest! {
    #[test]
    fn nothing_a_peer_can_send_breaks_a_node_or_makes_it_grow(
        arrivals in vec((0..6_u32, 0..4_u32, 0..4_u32, any_body()), 0..100)
    ) {
        let timing = Timing::for_transmission(Span::from_millis(1));
        let detector = Some(DetectorConfig::for_timing(&timing));
        let config = NodeConfig { detector, ..linked(4) };
        let mut node = start(&config, ME);
        for (sender, from, to, body) in arrivals {
            let message = Packet { from: Incarnation(from), to: Incarnation(to), body };
            handle(&mut node, &config, Event::Message { from: NodeId(sender), message });
            prop_assert!(node.links.len() <= 3 && node.incarnations.len() <= 3);
        }
    }
}
