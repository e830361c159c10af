//! A sealed datagram opens unchanged, and nothing else opens.

use super::*;

use proptest::collection::vec;
use proptest::prelude::*;

fn ring(numbers: &[u8]) -> Keyring {
    let line = |number: &u8| format!("doyen-key-1:{}\n", format!("{number:02x}").repeat(32));
    Keyring::parse(&numbers.iter().map(line).collect::<String>()).unwrap()
}

fn sealer() -> Sealer {
    Sealer::new(&ring(&[1]), "blue")
}

fn session(number: u64) -> SessionId {
    SessionId::from_random(number)
}

fn envelope() -> Envelope {
    Envelope {
        from: NodeId(1),
        to: NodeId(2),
        session: session(0x1111),
        known: Some(session(0x2222)),
        counter: 7,
        configuration: 0xc0_ff_ee,
        group: 0,
    }
}

fn greeting() -> Greeting {
    Greeting {
        ask: Some(Challenge(NonZeroU64::new(5).unwrap())),
        answer: None,
        incarnation: Incarnation(3),
        seen: Incarnation(2),
        wants_roster: true,
    }
}

fn roster() -> Roster {
    let met = |number| Met { incarnation: Incarnation(number), session: session(number.into()) };
    [1, 3, 9].map(|number| (NodeId(number), met(number + 1))).into_iter().collect()
}

fn opened(content: Content<'_>) -> Opened<'_> {
    Opened { version: VERSION, envelope: envelope(), content }
}

#[allow(clippy::needless_pass_by_value, reason = "contents are written in place")]
fn sealed(sealer: &Sealer, content: Content<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    sealer.seal(VERSION, &envelope(), &content, &mut out).unwrap();
    out
}

#[test]
fn a_sealed_datagram_opens_unchanged() {
    let contents = [
        Content::Greeting(greeting()),
        Content::Election(b"vote for me"),
        Content::Election(b""),
        Content::Roster(roster()),
        Content::Roster(Roster::default()),
    ];
    for content in contents {
        let mut datagram = sealed(&sealer(), content.clone());
        assert_eq!(datagram.len(), OVERHEAD + content.len());
        assert_eq!(sealer().open(&mut datagram), Ok(opened(content)));
    }
}

/// The plaintext, byte for byte: no version that was ever sent may change.
#[test]
fn the_sealed_bytes_of_every_version_are_golden() {
    let text = |content: Content<'_>| {
        let mut text = Vec::new();
        envelope().write(&mut text);
        content.write(&mut text);
        text.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let envelope = "0100000002000000111100000000000022220000000000000700000000000000eeffc0000000";
    let greeting = "0105000000000000000000000000000000".to_owned() + "0300000002000000";
    assert_eq!(text(Content::Greeting(self::greeting())), format!("{envelope}{greeting}01"));
    assert_eq!(text(Content::Election(b"hi")), format!("{envelope}026869"));
    let one = Met { incarnation: Incarnation(6), session: session(0x77) };
    let roster = [(NodeId(4), one)].into_iter().collect();
    let entry = "04000000060000007700000000000000";
    assert_eq!(text(Content::Roster(roster)), format!("{envelope}03{entry}"));
}

#[test]
fn several_are_sealed_behind_each_other_in_one_buffer() {
    let sealer = sealer();
    let mut out = b"before".to_vec();
    sealer.seal(VERSION, &envelope(), &Content::Election(b"one"), &mut out).unwrap();
    let end = out.len();
    sealer.seal(VERSION, &envelope(), &Content::Election(b"two"), &mut out).unwrap();
    assert_eq!(&out[..6], b"before");
    assert_eq!(sealer.open(&mut out[6..end]), Ok(opened(Content::Election(b"one"))));
    assert_eq!(sealer.open(&mut out[end..]), Ok(opened(Content::Election(b"two"))));
}

#[test]
fn the_same_text_is_never_sealed_into_the_same_bytes() {
    let sealer = sealer();
    let [one, two] = [(); 2].map(|()| sealed(&sealer, Content::Election(b"text")));
    assert_ne!(one[CLEAR..HEADER], two[CLEAR..HEADER]);
    assert_ne!(one[HEADER..], two[HEADER..]);
}

#[test]
fn the_limit_is_kept_on_both_sides() {
    let longest = vec![7; LIMIT - OVERHEAD];
    let mut datagram = sealed(&sealer(), Content::Election(&longest));
    assert_eq!(datagram.len(), LIMIT);
    assert!(sealer().open(&mut datagram).is_ok());

    let too_long = vec![7; LIMIT - OVERHEAD + 1];
    let mut out = b"before".to_vec();
    let refused = sealer().seal(VERSION, &envelope(), &Content::Election(&too_long), &mut out);
    assert_eq!((refused, &out[..]), (Err(Unsealed::TooLong(too_long.len())), &b"before"[..]));
    assert_eq!(sealer().open(&mut vec![0; LIMIT + 1]), Err(Rejection::Size));
    assert_eq!(sealer().open(&mut [0; OVERHEAD - 1]), Err(Rejection::Size));
    assert_eq!(sealer().open(&mut []), Err(Rejection::Size));
}

#[test]
fn every_reason_not_to_open_has_its_name() {
    let open = |alter: fn(&mut Vec<u8>)| {
        let mut datagram = sealed(&sealer(), Content::Election(b"text"));
        alter(&mut datagram);
        sealer().open(&mut datagram).unwrap_err()
    };
    assert_eq!(open(|bytes| bytes[0] = b'G'), Rejection::Foreign);
    assert_eq!(open(|bytes| bytes[2] = VERSION + 1), Rejection::Version);
    assert_eq!(open(|bytes| bytes[2] = EARLIEST - 1), Rejection::Version);
    assert_eq!(
        open(|bytes| bytes[2] = EARLIEST),
        Rejection::Forged,
        "the version is authenticated"
    );
    assert_eq!(open(|bytes| bytes[3] ^= 1), Rejection::Cluster);
    assert_eq!(open(|bytes| bytes[11] ^= 1), Rejection::Key);
    assert_eq!(open(|bytes| bytes[20] ^= 1), Rejection::Forged);
    assert_eq!(open(|bytes| bytes.truncate(OVERHEAD)), Rejection::Forged);
    assert_eq!(open(|bytes| bytes.truncate(OVERHEAD - 1)), Rejection::Size);
    assert_eq!(open(|bytes| bytes.push(0)), Rejection::Forged);

    let mut datagram = sealed(&sealer(), Content::Election(b"text"));
    let before = datagram.clone();
    assert_eq!(Sealer::new(&ring(&[1]), "red").open(&mut datagram), Err(Rejection::Cluster));
    assert_eq!(Sealer::new(&ring(&[2]), "blue").open(&mut datagram), Err(Rejection::Key));
    assert_eq!(datagram, before, "a rejected datagram is unchanged");
}

#[test]
fn the_earlier_version_has_no_relayed_packets() {
    let mut out = Vec::new();
    sealer().seal(EARLIEST, &envelope(), &Content::Relay(b"text"), &mut out).unwrap();
    assert_eq!(sealer().open(&mut out), Err(Rejection::Malformed));
}

#[test]
fn a_sealed_text_that_makes_no_sense_is_malformed() {
    // Sealed by a sender with the key: decoding either succeeds or fails without harm.
    let read_back = |envelope: Envelope, rest: &[u8]| {
        let sealer = sealer();
        let mut out = Vec::new();
        let text = |out: &mut Vec<u8>| {
            envelope.write(out);
            out.extend_from_slice(rest);
        };
        sealer.enclose(VERSION, &mut out, text).unwrap();
        sealer.open(&mut out).map(|opened| matches!(opened.content, Content::Greeting(_)))
    };
    let mut plain = Vec::new();
    Content::Greeting(greeting()).write(&mut plain);
    assert_eq!(read_back(envelope(), &plain), Ok(true));
    assert_eq!(read_back(envelope(), &plain[..plain.len() - 1]), Err(Rejection::Malformed));
    assert_eq!(read_back(envelope(), &[&plain[..], &[0]].concat()), Err(Rejection::Malformed));
    assert_eq!(read_back(envelope(), &[0; 25]), Err(Rejection::Malformed), "there is no kind 0");
    assert_eq!(read_back(envelope(), &[6; 25]), Err(Rejection::Malformed), "there is no kind 6");
    assert_eq!(read_back(envelope(), &[3; 25]), Err(Rejection::Malformed), "half an entry");
    let no_session = [&[KIND_ROSTER][..], &[1; 8], &[0; 8]].concat();
    assert_eq!(read_back(envelope(), &no_session), Err(Rejection::Malformed));
    let mut silent = vec![0; 26];
    silent[0] = KIND_GREETING;
    assert_eq!(read_back(envelope(), &silent), Err(Rejection::Malformed), "it asks nothing");
    let uncounted = Envelope { counter: 0, ..envelope() };
    assert_eq!(read_back(uncounted, &plain), Err(Rejection::Malformed));
}

#[test]
fn the_first_key_seals_and_all_of_them_open() {
    let [old, both, promoted, new] =
        [&[1][..], &[1, 2], &[2, 1], &[2]].map(|keys| Sealer::new(&ring(keys), "blue"));
    let opens = |by: &Sealer, with: &Sealer| {
        let mut datagram = sealed(by, Content::Election(b"text"));
        with.open(&mut datagram).map(|_| ())
    };
    for with in [&old, &both, &promoted] {
        assert_eq!((opens(&old, with), opens(&both, with)), (Ok(()), Ok(())));
    }
    for with in [&both, &promoted, &new] {
        assert_eq!((opens(&promoted, with), opens(&new, with)), (Ok(()), Ok(())));
    }
    assert_eq!(opens(&promoted, &old), Err(Rejection::Key));
    assert_eq!(opens(&both, &new), Err(Rejection::Key));
}

#[test]
fn reasons_have_distinct_names_and_stand_where_their_number_says() {
    for (position, reason) in Rejection::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, position);
        let same = Rejection::ALL.iter().filter(|other| other.name() == reason.name());
        assert_eq!(same.count(), 1);
    }
}

#[test]
fn no_debug_output_shows_a_key() {
    let shown = format!("{:?}", sealer());
    assert!(!shown.contains("[1, 1") && !shown.contains("0101"), "{shown}");
    let derived = ring(&[1]).keys()[0].cipher_key("blue");
    assert!(!shown.contains(&format!("{}, {}", derived[0], derived[1])), "{shown}");
}

fn any_envelope() -> impl Strategy<Value = Envelope> {
    let ids = (any::<u32>(), any::<u32>());
    let numbers = (1..=u64::MAX, any::<u64>(), 1..=u64::MAX);
    (ids, numbers, any::<u32>(), any::<u16>()).prop_map(|(ids, numbers, configuration, group)| {
        Envelope {
            from: NodeId(ids.0),
            to: NodeId(ids.1),
            session: session(numbers.0),
            known: NonZeroU64::new(numbers.1).map(SessionId::new),
            counter: numbers.2,
            configuration,
            group,
        }
    })
}

fn any_greeting() -> impl Strategy<Value = Greeting> {
    let numbers = (1..=u64::MAX, any::<u64>(), any::<u32>(), any::<u32>(), any::<bool>());
    numbers.prop_map(|(ask, answer, own, seen, wants_roster)| Greeting {
        ask: NonZeroU64::new(ask).map(Challenge),
        answer: NonZeroU64::new(answer).map(Challenge),
        incarnation: Incarnation(own),
        seen: Incarnation(seen),
        wants_roster,
    })
}

proptest! {
    #[test]
    fn any_envelope_and_content_survives(
        envelope in any_envelope(),
        greeting in any_greeting(),
        bytes in vec(any::<u8>(), 0..600),
    ) {
        let sealer = sealer();
        for content in [Content::Greeting(greeting), Content::Election(&bytes), Content::Relay(&bytes)] {
            let mut datagram = Vec::new();
            sealer.seal(VERSION, &envelope, &content, &mut datagram).unwrap();
            let opened = Opened { version: VERSION, envelope, content };
            prop_assert_eq!(sealer.open(&mut datagram), Ok(opened));
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed(bytes in vec(any::<u8>(), 0..40), place in any::<prop::sample::Index>()) {
        let sealer = sealer();
        let datagram = sealed(&sealer, Content::Election(&bytes));
        let bit = place.index(datagram.len() * 8);
        let mut altered = datagram.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let refused = altered.clone();
        prop_assert!(sealer.open(&mut altered).is_err());
        prop_assert_eq!(altered, refused, "what does not open is left as it was");
    }

    #[test]
    fn any_bytes_are_refused(mut bytes in vec(any::<u8>(), 0..300), disguise in 0..4_usize) {
        let sealer = sealer();
        let genuine = sealed(&sealer, Content::Election(b""));
        // The deeper the disguise, the further it gets.
        let deep = [0, 3, 11, CLEAR][disguise].min(bytes.len());
        bytes[..deep].copy_from_slice(&genuine[..deep]);
        prop_assert!(sealer.open(&mut bytes).is_err());
    }
}

#[test]
fn every_single_bit_of_a_datagram_counts() {
    let sealer = sealer();
    let datagram = sealed(&sealer, Content::Greeting(greeting()));
    for bit in 0..datagram.len() * 8 {
        let mut altered = datagram.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert!(sealer.open(&mut altered).is_err(), "bit {bit}");
    }
}

/// Members that know no groups read the same message, with or without a rider.
#[test]
fn a_rider_follows_its_message_and_changes_nothing_of_it() {
    use doyen_core::algorithm::quorum;
    use doyen_core::group::rider::{Body, Claims};
    use doyen_core::members::Term;
    use doyen_core::node;

    let message =
        quorum::Message { config: 7, term: Term(3), pause: None, body: quorum::Body::Nack };
    let packet = Packet {
        from: Incarnation(1),
        to: Incarnation(2),
        body: node::Body::Plain(AnyMessage::Quorum(message)),
    };
    let rider = Rider {
        list: 5,
        term: Term(3),
        body: Body::Claims(Claims { seen: 9, ..Claims::default() }),
    };
    let plain = postcard::to_allocvec(&packet).unwrap();
    let ridden = postcard::to_extend(&rider, plain.clone()).unwrap();
    let read = |bytes: &[u8]| {
        let opened = opened(Content::Election(bytes));
        opened.into_letter_and_rider(Algorithm::Quorum, None).unwrap()
    };
    assert_eq!(read(&plain).1, Ok(None));
    assert_eq!(read(&ridden), (read(&plain).0, Ok(Some(rider))));
    let longer = [&ridden[..], &[0]].concat();
    let shorter = &ridden[..ridden.len() - 1];
    for damaged in [&longer[..], shorter] {
        assert_eq!(read(damaged), (read(&plain).0, Err(Rejection::Malformed)));
    }
}
