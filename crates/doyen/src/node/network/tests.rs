use std::time::Duration;

use doyen_core::session::Challenge;

use super::super::status::Status;
use super::super::wire::{GREETING, MAGIC, OVERHEAD};
use super::peer::{Asked, MOST_ASKED, REJECTED};
use super::*;
use crate::config::Configuration;

/// As docs/operations.md says. If a question were sent in the earlier version alone, one lost datagram could make two
/// nodes speak that for good.
#[test]
fn versions_are_negotiated_as_documented() {
    assert_eq!(VERSION, EARLIEST + 1, "two versions are read");
    let (id, session) = (NodeId(2), SessionId::from_random(7));
    let versions = |met: Option<u8>, asked: Option<u8>, asks| {
        let peer = Peer { met: met.map(|version| (session, version)), ..Peer::default() };
        let current = |version| Current { from: id, session, version };
        peer.versions(id, Some(session), asks, asked.map(current)).to_vec()
    };
    // Questions.
    assert_eq!(versions(None, None, true), [VERSION, EARLIEST]);
    assert_eq!(versions(Some(EARLIEST), None, true), [VERSION, EARLIEST]);
    assert_eq!(versions(None, Some(EARLIEST), true), [VERSION, EARLIEST]);
    assert_eq!(versions(None, Some(VERSION), true), [VERSION]);
    assert_eq!(versions(Some(VERSION), Some(EARLIEST), true), [VERSION]);
    // Answers to a session that has not been met.
    assert_eq!(versions(None, Some(EARLIEST), false), [EARLIEST]);
    assert_eq!(versions(None, Some(VERSION), false), [VERSION]);
    // All else.
    assert_eq!(versions(Some(EARLIEST), None, false), [EARLIEST]);
    assert_eq!(versions(Some(VERSION), None, false), [VERSION]);
    assert_eq!(versions(Some(EARLIEST), Some(VERSION), false), [VERSION]);
    assert_eq!(versions(Some(VERSION), Some(EARLIEST), false), [VERSION]);
}

/// SECURITY.md has the numbers.
#[test]
fn an_answer_to_a_recording_is_hardly_longer_than_what_caused_it() {
    let greeting = OVERHEAD + GREETING;
    assert_eq!((OVERHEAD, greeting), (94, 119));
    let (id, session) = (NodeId(2), SessionId::from_random(7));
    let unmet = Peer::default();
    for version in [EARLIEST, VERSION] {
        let current = Some(Current { from: id, session, version });
        let sent = |asks| unmet.versions(id, Some(session), asks, current).len() * greeting;
        assert_eq!(sent(false), greeting, "as long as the greeting that it answers");
        assert!(sent(true) <= 2 * greeting && 2 * greeting < 3 * OVERHEAD);
    }
}

#[test]
fn a_challenge_is_remembered_though_others_are_sent() {
    let challenge = |number: u64| Challenge(number.try_into().unwrap());
    let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
    let mut peer = Peer::default();
    for number in 1..=4 {
        peer.ask(challenge(number), second(number));
    }
    peer.ask(challenge(1), second(5));
    let first = Asked { challenge: challenge(1), at: second(1), repeated: true };
    assert_eq!((peer.asked[0], peer.asked.len()), (first, MOST_ASKED));
    peer.ask(challenge(5), second(6));
    let left: Vec<Challenge> = peer.asked.iter().map(|asked| asked.challenge).collect();
    assert_eq!(left, [2, 3, 4, 5].map(challenge));
}

#[test]
fn datagrams_of_a_lost_member_arrive_only_while_the_same_process_sends_them() {
    let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
    let arrives = |met: u64, seen: u64, now: u64| {
        let (met_at, last_seen) = (Some(second(met)), Some(second(seen)));
        Peer { met_at, last_seen, ..Peer::default() }.arrives(second(10), second(now))
    };
    assert!(arrives(1, 60, 62));
    assert!(!arrives(1, 9, 12), "before it was lost");
    assert!(!arrives(1, 60, 66), "it was powered off later");
    assert!(!arrives(59, 60, 62), "it has just restarted");
    assert!(!Peer::default().arrives(second(10), second(12)));
}

fn local() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    socket
}

/// Of member 1, without keys; member 2 has this socket.
fn network_beside(peer: &UdpSocket, session: SessionId) -> Network {
    let (port, other) = (local().local_addr().unwrap().port(), peer.local_addr().unwrap());
    let text = format!(
        "cluster = \"c\"\nid = 1\nstate_dir = \"/tmp\"\n\
         [[member]]\nid = 1\naddress = \"127.0.0.1:{port}\"\n\
         [[member]]\nid = 2\naddress = \"{other}\"\n"
    );
    let settings = Configuration::parse("doyen.toml", &text).expect("a configuration").settings;
    let (commands, _received) = super::super::waker::channel().expect("a socket pair");
    let log = Logger::start("n1".to_owned()).expect("a thread");
    let keys = Keyring::open_to_all();
    Network::open(&Arc::new(settings), session, &keys, commands, &log).unwrap()
}

#[test]
fn a_member_that_speaks_another_version_is_shown_as_that() {
    let peer = local();
    let mut network = network_beside(&peer, SessionId::from_random(1));
    let mut datagram = vec![0; OVERHEAD];
    datagram[..2].copy_from_slice(&MAGIC);
    datagram[2] = VERSION + 1;
    let to = network.socket.local_addr().expect("an address");
    peer.send_to(&datagram, ("127.0.0.1", to.port())).expect("it is sent");
    let counters = Counters::default();
    let dropped = (0..1000).find_map(|_| match network.receive(&counters).expect("a socket") {
        Received::Rejected(dropped) => Some(dropped),
        _ => {
            std::thread::sleep(Duration::from_millis(10));
            None
        }
    });
    let dropped = dropped.expect("a datagram");
    let from = Some((NodeId(2), OwnDatagrams::Missing));
    assert_eq!((dropped.reason, dropped.member), (Rejection::Version, from));
    let shown = |reachable: &[u32]| {
        let mut status = Status::initial(&network.settings);
        status.set_network(&network, &reachable.iter().copied().map(NodeId).collect());
        status.members[1].rejected.clone()
    };
    assert_eq!(shown(&[1]).as_deref(), Some("version"));
    assert_eq!(shown(&[1, 2]), None, "the address proves nothing");
}

#[test]
fn a_long_rider_travels_apart_from_its_letter() {
    use doyen_core::algorithm::quorum;
    use doyen_core::group::GroupId;
    use doyen_core::group::rider::{Body, Claims};
    use doyen_core::members::Term;
    use doyen_core::node;

    let peer = local();
    let (mine, theirs) = (SessionId::from_random(1), SessionId::from_random(2));
    let mut network = network_beside(&peer, mine);
    network.peers.get_mut(&NodeId(2)).expect("a peer").met = Some((theirs, VERSION));
    let message =
        quorum::Message { config: 7, term: Term(3), pause: None, body: quorum::Body::Nack };
    let body = node::Body::Plain(AnyMessage::Quorum(message));
    let packet = Packet { from: Incarnation(1), to: Incarnation(2), body };
    let content = session::Content::Inner(packet);
    let letter = Letter { at: None, session: mine, known: Some(theirs), counter: 1, content };
    let mut lengths = |groups: usize, datagrams: usize| -> Vec<usize> {
        let claims = Claims { left: vec![GroupId(0); groups], ..Claims::default() };
        let rider = Rider { list: 5, term: Term(3), body: Body::Claims(claims) };
        network.send(NodeId(2), &letter, Some(&rider), &Counters::default());
        let mut buffer = [0; LIMIT];
        (0..datagrams).map(|_| peer.recv(&mut buffer).expect("a datagram")).collect()
    };
    let alone = lengths(0, 1)[0];
    assert!(lengths(900, 1)[0] <= UNFRAGMENTED);
    let long = lengths(1_500, 2);
    assert!(long[0] < alone && long[1] > 1_500, "the letter, and then its rider: {long:?}");
}

/// A recording from before a change of the configuration must not make a healthy member look misconfigured.
#[test]
fn only_an_answer_shows_that_a_member_is_configured_otherwise() {
    let (me, them, mine) = (NodeId(1), NodeId(2), SessionId::from_random(7));
    let challenge = |number: u64| Challenge(number.try_into().unwrap());
    let greeting = |ask: Option<u64>, answer: Option<u64>| Greeting {
        ask: ask.map(challenge),
        answer: answer.map(challenge),
        incarnation: Incarnation(3),
        seen: Incarnation(0),
        wants_roster: false,
    };
    let envelope = Envelope {
        from: them,
        to: me,
        session: SessionId::from_random(8),
        known: Some(mine),
        counter: 1,
        configuration: 99,
        group: 0,
    };
    let earlier = Envelope { known: Some(SessionId::from_random(6)), ..envelope };
    let mut peer = Peer::default();
    peer.ask(challenge(4), Moment::now());
    peer.ask(challenge(5), Moment::now());
    let mut mismatches = |envelope, content| {
        let admitted = peer.admit(
            me,
            1,
            mine,
            &Opened { version: VERSION, envelope, content },
            &Counters::default(),
        );
        assert_eq!(admitted, Err(Rejection::Configuration));
        assert_eq!(peer.rejected(Moment::now()).is_some(), peer.config_mismatch);
        peer.config_mismatch
    };
    assert!(!mismatches(envelope, Content::Election(b"text")));
    assert!(!mismatches(envelope, Content::Greeting(greeting(Some(4), None))));
    assert!(!mismatches(envelope, Content::Greeting(greeting(None, Some(3)))), "an earlier one");
    assert!(!mismatches(earlier, Content::Greeting(greeting(None, Some(4)))), "a recording");
    assert!(mismatches(envelope, Content::Greeting(greeting(None, Some(4)))));
}

#[test]
fn the_newest_rejection_is_shown_for_a_while() {
    let at = Moment::now();
    let later = at.after_nanos(REJECTED.as_nanos() as u64);
    let mismatch = Peer {
        config_mismatch: true,
        rejected: Some((Rejection::Configuration, at)),
        ..Peer::default()
    };
    assert_eq!(mismatch.rejected(at), Some(Rejection::Configuration));
    assert_eq!(mismatch.rejected(later), None, "it may have gone");
    let key = Peer { rejected: Some((Rejection::Key, later)), ..mismatch };
    assert_eq!(key.rejected(later), Some(Rejection::Key));
}

#[test]
fn a_member_that_has_gone_is_no_longer_logged_as_configured_otherwise() {
    let mut network = network_beside(&local(), SessionId::from_random(1));
    let at = Moment::now();
    let peer = network.peers.get_mut(&NodeId(2)).expect("a peer");
    (peer.config_mismatch, peer.rejected) = (true, Some((Rejection::Configuration, at)));
    assert_eq!(network.config_mismatches(at), [NodeId(2)]);
    assert_eq!(network.config_mismatches(at.after_nanos(REJECTED.as_nanos() as u64)), []);
}

/// What an earlier process sent, or what was sent to one, is not passed on.
#[test]
fn packets_are_relayed_between_present_processes_only() {
    let (me, them) = (NodeId(1), NodeId(2));
    let [mine, earlier, theirs] = [7, 6, 8].map(SessionId::from_random);
    let mut peer = Peer::default();
    let admit_number = |peer: &mut Peer, session, known, counter| {
        let envelope =
            Envelope { from: them, to: me, session, known, counter, configuration: 1, group: 0 };
        let content = Content::Relay(b"text");
        let opened = Opened { version: VERSION, envelope, content };
        peer.admit(me, 1, mine, &opened, &Counters::default())
    };
    let admit = |peer: &mut Peer, session, known| admit_number(peer, session, known, 1);
    assert_eq!(admit(&mut peer, theirs, Some(mine)), Err(Rejection::Session), "not met");
    peer.met = Some((theirs, VERSION));
    assert_eq!(admit(&mut peer, theirs, Some(mine)), Ok(()));
    assert_eq!(admit(&mut peer, theirs, Some(earlier)), Err(Rejection::Session));
    assert_eq!(admit(&mut peer, theirs, None), Err(Rejection::Session));
    assert_eq!(admit(&mut peer, earlier, Some(mine)), Err(Rejection::Session));
    assert_eq!(admit(&mut peer, theirs, Some(mine)), Err(Rejection::Replayed));
    assert_eq!(admit_number(&mut peer, theirs, Some(mine), 3), Ok(()));
    assert_eq!(admit_number(&mut peer, theirs, Some(mine), 2), Ok(()), "overtaken");
    assert_eq!(admit_number(&mut peer, theirs, Some(mine), 3), Err(Rejection::Replayed));
    assert_eq!((peer.last_seen, peer.accepted), (None, 0), "the election does not see them");
}

#[test]
fn what_is_dropped_between_datagrams_of_a_member_is_not_its_own() {
    use OwnDatagrams::{Arrive, Missing, Undecided};

    let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
    let mut peer = Peer::default();
    assert_eq!(peer.reject(Rejection::Version, second(1)), Missing, "it was never seen");
    assert_eq!(peer.rejected(second(2)), Some(Rejection::Version));
    let mut peer = Peer { last_seen: Some(second(100)), ..Peer::default() };
    let mut reject = |seen, reason, now| {
        peer.last_seen = Some(second(seen));
        peer.reject(reason, second(now))
    };
    // It is restarted with another key: what it sends is dropped, and nothing else arrives.
    assert_eq!(reject(100, Rejection::Key, 101), Undecided);
    assert_eq!(reject(100, Rejection::Key, 102), Undecided);
    assert_eq!(reject(100, Rejection::Key, 106), Missing);
    // Another process sends from its address.
    assert_eq!(reject(200, Rejection::Key, 201), Undecided);
    assert_eq!(reject(202, Rejection::Replayed, 203), Undecided, "a duplicate proves nothing");
    assert_eq!(reject(202, Rejection::Key, 203), Arrive);
    assert_eq!(reject(300, Rejection::Key, 301), Undecided, "the last one was long ago");
}

#[test]
fn the_algorithm_decides_which_members_are_reachable_once_they_were_seen() {
    let second = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
    let (seen, now) = (second(10), second(20));
    let peer = |last_seen| Peer { last_seen, ..Peer::default() };
    let known = peer(Some(seen));
    assert!(known.is_reachable(now, Some(true)), "it may wait longer than the host");
    assert!(!known.is_reachable(seen, Some(false)), "or less long");
    assert!(known.is_reachable(second(15), None));
    assert!(!known.is_reachable(second(16), None));
    assert!(!peer(None).is_reachable(now, Some(true)), "it was never seen");
    let mismatch = Peer { config_mismatch: true, ..peer(Some(seen)) };
    assert!(!mismatch.is_reachable(seen, Some(true)));
}
