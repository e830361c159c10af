use super::*;
use crate::algorithm::testing;
use crate::config::Mode;
use crate::members::Incarnation;

fn member(id: u32, config: &Config) -> Sequencer {
    let boot = Boot::new(Incarnation(1), None, Origin::Founding { leader: None });
    Sequencer::start(NodeId(id), config, boot, &mut Effects::new())
}

fn handle(member: &mut Sequencer, config: &Config, event: Event<Message, NoTimer>) -> Vec<String> {
    let mut out = Effects::new();
    member.handle(config, event, &mut out);
    out.into_messages().map(|(to, message)| format!("{to}: {message}")).collect()
}

fn told(member: &mut Sequencer, config: &Config, from: u32, message: Message) -> Vec<String> {
    handle(member, config, Event::Message { from: NodeId(from), message })
}

fn name(client: u32, number: u32) -> Multicast {
    Multicast { client: NodeId(client), number }
}

#[test]
fn no_two_members_ever_use_the_same_term() {
    let config = testing::config(3, Mode::Textbook);
    let mut terms = std::collections::BTreeSet::new();
    for owner in 1..=3 {
        let mut last = Term(0);
        for _ in 0..10 {
            let next = config.members.next_term_of(NodeId(owner), last);
            assert!(next > last && next.0 - last.0 <= 3, "{owner}: {last} {next}");
            assert!(terms.insert(next), "{next} is dealt out twice");
            last = next;
        }
        assert_eq!(
            config.members.next_term_of(NodeId(owner), Term(4)).0,
            [7, 5, 6][owner as usize - 1]
        );
    }
}

#[test]
fn an_eager_leader_delivers_before_any_other_member_has_it() {
    let config = testing::config(3, Mode::Textbook);
    let mut leader = member(1, &config);
    let sent = handle(&mut leader, &config, Event::Request);
    assert_eq!(sent, ["2: ORDER term=1 1=1.1", "3: ORDER term=1 1=1.1"]);
    assert_eq!(leader.delivered.sequence, [name(1, 1)]);
}

#[test]
fn a_stable_leader_delivers_what_a_majority_has() {
    let config = testing::config(3, Mode::Hardened);
    let mut leader = member(1, &config);
    handle(&mut leader, &config, Event::Request);
    assert_eq!(leader.delivered.sequence, []);
    let sent = told(&mut leader, &config, 3, Message::Ack { term: Term(1), position: 1 });
    assert_eq!(sent, ["2: COMMIT term=1 below=1", "3: COMMIT term=1 below=1"]);
    assert_eq!(leader.delivered.sequence, [name(1, 1)]);
}

#[test]
fn the_latest_log_wins_and_a_member_that_delivered_otherwise_is_reset() {
    let config = testing::config(3, Mode::Textbook);
    let mut second = member(2, &config);
    let order = Message::Order { term: Term(1), position: 1, message: name(1, 1) };
    told(&mut second, &config, 1, order);
    assert_eq!(second.delivered.sequence, [name(1, 1)]);
    let sent = handle(&mut second, &config, Event::PeerDown(NodeId(1)));
    assert_eq!(sent, ["1: COLLECT term=2", "3: COLLECT term=2"]);
    // The log of a later term counts, though it is no longer than the own one.
    let other = Message::Log { term: Term(2), installed: Term(2), log: vec![name(3, 1)] };
    let sent = told(&mut second, &config, 3, other);
    assert_eq!(sent, ["1: INSTALL term=2 [3.1]", "3: INSTALL term=2 [3.1]"]);
    assert_eq!(second.delivered, Deliveries { sequence: vec![name(3, 1)], resets: 1 });
}

#[test]
fn a_member_that_has_answered_a_later_term_accepts_nothing_of_an_earlier_one() {
    let config = testing::config(3, Mode::Hardened);
    let mut third = member(3, &config);
    let sent = told(&mut third, &config, 2, Message::Collect { term: Term(2) });
    assert_eq!(sent, ["2: LOG term=2 installed=1 []"]);
    let order = Message::Order { term: Term(1), position: 1, message: name(1, 1) };
    assert_eq!(told(&mut third, &config, 1, order), [""; 0]);
    let install = Message::Install { term: Term(1), log: vec![name(1, 1)] };
    assert_eq!(told(&mut third, &config, 1, install), [""; 0]);
    assert_eq!(third.kept.log, []);
}

#[test]
fn a_member_that_comes_back_while_logs_are_collected_is_asked_for_its_own() {
    for mode in [Mode::Textbook, Mode::Hardened] {
        let config = testing::config(3, mode);
        let mut second = member(2, &config);
        // The stable leader waits for a majority, the eager one for 3.
        handle(&mut second, &config, Event::PeerDown(NodeId(1)));
        let sent = handle(&mut second, &config, Event::PeerUp(NodeId(1)));
        assert_eq!(sent, ["1: COLLECT term=2"], "the first one went to a process that has died");
        for from in [3, 1] {
            let log = Message::Log { term: Term(2), installed: Term(1), log: Vec::new() };
            told(&mut second, &config, from, log);
        }
        assert_eq!(second.view().role, Role::Leader);
        let sent = handle(&mut second, &config, Event::PeerUp(NodeId(3)));
        assert_eq!(sent, ["3: INSTALL term=2 []"]);
    }
}
