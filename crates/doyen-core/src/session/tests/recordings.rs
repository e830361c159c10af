//! What an attacker does who has recorded letters and plays them back, from any address: each of the rules against that is
//! taken away, and missed.

use super::*;

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const THREE: NodeId = NodeId(3);

/// The rules as they are, and without `rule`.
fn with_and_without(rule: Rule) -> [Rules; 2] {
    [Rules::default(), Rules::default().without(rule)]
}

/// The numbers of all letters from one member to another.
fn letters(world: &World, from: NodeId, to: NodeId) -> Vec<usize> {
    let is_one = |&number: &usize| (world.sent[number].1, world.sent[number].2) == (from, to);
    (0..world.sent.len()).filter(is_one).collect()
}

/// One of many addresses of an attacker.
fn attacker_at(port: usize) -> SocketAddr {
    SocketAddr::new(attacker().ip(), 1_000 + port as u16)
}

/// Three members that have met, each of which has sent the others a message.
fn talking(rules: Rules) -> World {
    let mut world = World::with(rules);
    world.settle();
    for place in 0..MEMBERS as usize {
        world.happen(place, Event::Campaign);
    }
    world.settle();
    world
}

/// The same after some restarts of a member, each of which has left letters behind.
fn after_restarts(of: NodeId, rules: Rules) -> World {
    let mut world = talking(rules);
    for _ in 0..3 {
        world.restart(of, false);
        world.settle();
        world.happen(of.0 as usize - 1, Event::Campaign);
        world.settle();
    }
    world
}

/// Everything that was sent since, and all that follows from it, arrives without loss and without a timer.
fn deliver_all_since(world: &mut World, mut next: usize) {
    while next < world.sent.len() {
        world.deliver(next);
        next += 1;
    }
}

/// Whether `one` has met the present process of `other`, where it is.
fn has_met(world: &World, one: NodeId, other: NodeId) -> bool {
    let [one, other] = [one, other].map(|id| &world.hosts[id.0 as usize - 1]);
    one.process.contact(other.id).is_some_and(|contact| {
        contact.met.session == other.process.session && contact.address == Some(other.address)
    })
}

/// Lets the attacker play back letters within 20 ms, each from many addresses. All of them have been received before.
fn play_back(world: &mut World, recorded: &[usize]) {
    let received = world.settled;
    for number in recorded.iter().copied().filter(|&number| number < received) {
        for port in 0..10 {
            let before = world.sent.len();
            world.deliver_from(Some(attacker_at(port)), number);
            assert!(world.sent.len() <= before + 1, "one recording causes one answer at most");
        }
    }
}

/// The letter that a member has sent last to another one.
fn last_letter(world: &World, from: NodeId, to: NodeId) -> usize {
    *letters(world, from, to).last().unwrap()
}

fn questions_to_the_attacker(world: &World) -> Vec<Challenge> {
    let to_attacker = world.sent.iter().filter(|(.., mail)| mail.at == Some(attacker()));
    let asked = to_attacker.filter_map(|(.., mail)| match &mail.content {
        Content::Greeting(greeting) => greeting.ask,
        _ => None,
    });
    asked.collect()
}

#[test]
fn replayed_letters_of_earlier_processes_do_not_delay_a_restart() {
    let (away, own) = (Some(attacker()), Some(address(THREE, 0)));
    for (source, moves) in [(away, false), (None, false), (own, false), (away, true)] {
        let meet = with_and_without(Rule::PromptersApart).map(|rules| {
            let mut world = after_restarts(THREE, rules);
            let recorded = [letters(&world, THREE, ONE), letters(&world, ONE, THREE)].concat();
            let next = world.sent.len();
            world.restart(THREE, moves);
            // All of them arrive again and again within 20 ms, before anything that the new process sends.
            for _ in 0..20 {
                recorded.iter().for_each(|&number| world.deliver_from(source, number));
            }
            deliver_all_since(&mut world, next);
            has_met(&world, ONE, THREE) && has_met(&world, THREE, ONE)
        });
        assert_eq!(meet, [true, false], "from {source:?}, moves: {moves}");
    }
}

/// From the present process of 2 to earlier ones of 1: until 2 restarts, S3 allows to meet their sender.
#[test]
fn recordings_from_elsewhere_delay_no_restart_where_the_member_is_expected() {
    let mut world = after_restarts(ONE, Rules::default());
    let recorded = letters(&world, TWO, ONE);
    play_back(&mut world, &recorded);
    let next = world.sent.len();
    world.restart(TWO, false);
    deliver_all_since(&mut world, next);
    assert!(has_met(&world, ONE, TWO));
}

#[test]
fn a_replayed_rejoin_delays_no_restart() {
    let mut world = talking(Rules::default());
    world.replace(THREE);
    world.settle();
    let is_stateless = |&number: &usize| match &world.sent[number].3.content {
        Content::Greeting(greeting) => greeting.incarnation == Incarnation::default(),
        _ => false,
    };
    let recorded: Vec<usize> =
        letters(&world, THREE, ONE).into_iter().filter(is_stateless).collect();
    assert!(!recorded.is_empty());
    for (source, moves) in
        [(attacker(), false), (world.hosts[2].address, false), (attacker(), true)]
    {
        let next = world.sent.len();
        world.restart(THREE, moves);
        for _ in 0..20 {
            recorded.iter().for_each(|&number| world.deliver_from(Some(source), number));
        }
        deliver_all_since(&mut world, next);
        assert!(has_met(&world, ONE, THREE), "from {source}, moves: {moves}");
        world.settle();
    }
}

#[test]
fn recordings_are_answered_at_a_limited_rate() {
    let [most, unlimited] = with_and_without(Rule::AnswersAreLimited).map(|rules| {
        let mut world = after_restarts(THREE, rules);
        let recorded = letters(&world, THREE, ONE);
        let before = world.sent.len();
        play_back(&mut world, &recorded);
        let played = recorded.len() * 10;
        assert!(played > 200, "only {played}: this shows little");
        world.sent.len() - before
    });
    // Of six kinds.
    assert!((1..=6 * 4).contains(&most) && unlimited > 100, "{most}, and {unlimited} without");
}

/// However many of them arrive between a question and its answer.
#[test]
fn recordings_of_earlier_processes_close_no_open_question() {
    let mut world = after_restarts(THREE, Rules::default());
    let last = world.hosts[2].process.session;
    let mut recorded = letters(&world, THREE, ONE);
    recorded.retain(|&number| {
        let mail = &world.sent[number].3;
        mail.inner().is_some() && mail.session != last
    });
    world.restart(THREE, true);
    let greeting = last_letter(&world, THREE, ONE);
    world.deliver(greeting);
    let answer = last_letter(&world, ONE, THREE);
    assert_eq!(world.sent[answer].3.at, Some(world.hosts[2].address), "it is asked where it is");
    play_back(&mut world, &recorded);
    world.deliver(answer);
    let answered = last_letter(&world, THREE, ONE);
    world.deliver(answered);
    assert!(has_met(&world, ONE, THREE));
}

#[test]
fn recordings_do_not_keep_a_member_from_moving() {
    let moves = with_and_without(Rule::PromptersApart).map(|rules| {
        let mut world = after_restarts(ONE, rules);
        // From the present process of 2 to earlier ones of 1.
        let recorded = letters(&world, TWO, ONE);
        world.hosts[1].address = address(TWO, 9);
        play_back(&mut world, &recorded);
        let next = world.sent.len();
        world.happen(1, Event::Campaign);
        deliver_all_since(&mut world, next);
        has_met(&world, ONE, TWO)
    });
    assert_eq!(moves, [true, false]);
}

#[test]
fn a_letter_from_another_address_diverts_nothing_until_a_question_is_answered_from_there() {
    let diverted = with_and_without(Rule::AddressIsProven).map(|rules| {
        let mut world = talking(rules);
        let before = world.hosts[0].process.contact(TWO).unwrap();
        for _ in 0..5 {
            world.happen(1, Event::Campaign);
            let number = last_letter(&world, TWO, ONE);
            world.deliver_from(Some(attacker()), number);
        }
        let after = world.hosts[0].process.contact(TWO).unwrap();
        assert_eq!(after.accepted, before.accepted + 5, "the letters themselves count");
        let asked = questions_to_the_attacker(&world).len();
        assert_eq!(asked, if after.address == before.address { 4 } else { 0 }, "as S6 allows");
        // A peer that is really there answers.
        world.hosts[1].address = address(TWO, 9);
        world.settle();
        assert!(world.have_all_met());
        after.address == Some(attacker())
    });
    assert_eq!(diverted, [false, true]);
}

/// The attacker's was first.
#[test]
fn a_member_that_moves_is_asked_though_another_address_is_asked_too() {
    let mut world = talking(Rules::default());
    world.happen(1, Event::Campaign);
    let number = last_letter(&world, TWO, ONE);
    world.deliver_from(Some(attacker()), number);
    world.hosts[1].address = address(TWO, 9);
    let next = world.sent.len();
    world.happen(1, Event::Campaign);
    deliver_all_since(&mut world, next);
    assert!(has_met(&world, ONE, TWO));
}

/// Every process numbers its questions from one on, so an earlier process of the same member has asked the same one.
#[test]
fn a_recorded_answer_to_an_earlier_process_diverts_nothing() {
    let diverted = with_and_without(Rule::AnswerIsForItsSession).map(|rules| {
        let mut world = talking(rules);
        let earlier = world.hosts[0].process.session;
        let answer = last_letter(&world, TWO, ONE);
        world.restart(ONE, false);
        world.settle();
        world.happen(1, Event::Campaign);
        let number = last_letter(&world, TWO, ONE);
        world.deliver_from(Some(attacker()), number);
        let open = questions_to_the_attacker(&world)[0];
        let (incarnation, seen) = (Incarnation(1), Incarnation::default());
        let greeting =
            Greeting { ask: None, answer: Some(open), incarnation, seen, wants_roster: false };
        let recorded = &mut world.sent[answer].3;
        recorded.known = Some(earlier);
        recorded.content = Content::Greeting(greeting);
        world.deliver_from(Some(attacker()), answer);
        world.hosts[0].process.contact(TWO).unwrap().address == Some(attacker())
    });
    assert_eq!(diverted, [false, true]);
}

/// It is stored which session of 2 was met, so S3 allows to meet it; whether it is still there, only an answer shows.
#[test]
fn a_recorded_greeting_takes_no_members_place() {
    let met = with_and_without(Rule::ProvenSession).map(|rules| {
        let mut world = talking(rules);
        let recorded = letters(&world, TWO, ONE)[0];
        world.restart(ONE, false);
        world.deliver_from(Some(attacker()), recorded);
        world.hosts[0].process.contact(TWO).is_some()
    });
    assert_eq!(met, [false, true]);
}

#[test]
fn a_question_that_is_not_answered_is_closed() {
    let mut world = talking(Rules::default());
    world.happen(1, Event::Campaign);
    let number = last_letter(&world, TWO, ONE);
    world.deliver_from(Some(attacker()), number);
    let close = Timer::Close(TWO);
    for round in 0..2 {
        assert!(
            !world.hosts[0].process.peers.get(&TWO).unwrap().places.is_empty(),
            "round {round}"
        );
        assert!(world.hosts[0].armed.remove(&close), "round {round}");
        world.happen(0, Event::Timer(close));
    }
    assert!(world.hosts[0].process.peers.get(&TWO).unwrap().places.is_empty());
    assert!(!world.hosts[0].armed.contains(&close));
}
