//! What a simulation of whole clusters (`tests/it/group.rs` in doyen-check) does not show: the order of members, the size of
//! riders, and single steps.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::rider::{Answers, Entry, Told};
use super::*;
use crate::config::quorum::Profile;

fn group(name: &str) -> Group {
    Group { name: name.parse().unwrap(), preferred: Vec::new() }
}

fn ids(members: u32) -> Vec<NodeId> {
    (1..=members).map(NodeId).collect()
}

fn config(groups: usize) -> Config {
    let groups = (0..groups).map(|number| group(&format!("g{number:03}"))).collect();
    let pace = Profile::Lan.settings().pace;
    let mut config = Config::new(groups, &ids(3), Span::from_millis(520), &pace);
    (config.preemption, config.delay) = (Preemption::Delayed, Span::from_millis(10_000));
    config
}

/// As in section H of the oracle.
#[test]
fn a_member_that_leaves_moves_exactly_its_own_groups_to_all_others() {
    let (all, without): (Vec<NodeId>, Vec<NodeId>) =
        (ids(7), ids(7).into_iter().filter(|id| id.0 != 4).collect());
    let (mut load, mut gained) = (BTreeMap::<NodeId, u32>::new(), BTreeMap::<NodeId, u32>::new());
    for number in 0..7_000 {
        let group = group(&format!("group-{number}"));
        let [before, after] = [&all, &without].map(|members| order(&group, members)[0]);
        *load.entry(before).or_default() += 1;
        assert_eq!(before != after, before == NodeId(4));
        if before != after {
            *gained.entry(after).or_default() += 1;
        }
    }
    assert!(load.len() == 7 && load.values().all(|count| (900..1_100).contains(count)), "{load:?}");
    assert!(gained.len() == 6 && gained.values().all(|&count| count > 120), "{gained:?}");
}

/// M25: with one order of the members for all groups, one member leads them all.
#[test]
fn one_order_for_all_groups_puts_them_on_one_member() {
    let led = |preferred: &[NodeId]| -> BTreeSet<NodeId> {
        let group =
            |number| Group { preferred: preferred.to_vec(), ..group(&format!("g{number}")) };
        (0..100).map(|number| order(&group(number), &ids(5))[0]).collect()
    };
    let highest_first: Vec<NodeId> = ids(5).into_iter().rev().collect();
    assert_eq!(led(&highest_first), BTreeSet::from([NodeId(5)]));
    assert_eq!(led(&[]), ids(5).into_iter().collect(), "scores spread them");
}

#[test]
fn preferred_members_come_first_and_scores_never_change() {
    let preferred = vec![NodeId(2), NodeId(5)];
    let order = order(&Group { preferred, ..group("orders") }, &ids(5));
    assert_eq!(order[..2], [NodeId(2), NodeId(5)]);
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>().len(), 5);
    let name = "orders".parse().unwrap();
    let scores = [1, 2].map(|id| score(&name, NodeId(id)));
    assert_eq!(
        scores,
        [7_333_435_369_517_928_805, 3_955_326_300_051_779_398],
        "other versions compute the same"
    );
}

#[test]
fn a_group_that_is_kept_takes_less_than_eight_bytes_in_both_directions_together() {
    let entries = |count: u8| {
        let entry = |group| Entry { group: GroupId(group), age: 0, number: 100 + u64::from(group) };
        (0..count).map(entry).collect::<Vec<_>>()
    };
    let length = |count| {
        let round = Round(1 << 40);
        let claims = Claims { round, held: entries(count), ..Claims::default() };
        let answers = Answers { round, held: entries(count), ..Answers::default() };
        [Body::Claims(claims), Body::Answers(answers)].map(|body| {
            postcard::to_allocvec(&Rider { list: 7, term: Term(3), body }).unwrap().len()
        })
    };
    let (one, many) = (length(1), length(101));
    assert!((many[0] - one[0]) + (many[1] - one[1]) < 100 * 8, "{one:?} {many:?}");
}

/// The leader of term 1 among three members, and what it and another member make of each other.
struct Pair {
    config: Config,
    leader: Groups,
    member: Groups,
    effects: Vec<Effect>,
}

const LEASE: Option<Term> = Some(Term(1));

impl Pair {
    fn new(groups: usize) -> Self {
        let config = config(groups);
        let new = |id| Groups::new(NodeId(id), SessionId::from_random(u64::from(id)), &config);
        let (leader, member) = (new(1), new(2));
        let mut pair = Self { leader, member, config, effects: Vec::new() };
        pair.lead(Event::Lease);
        pair
    }

    fn lead(&mut self, event: Event) {
        self.leader.handle(&self.config, LEASE, event, &mut self.effects);
    }

    fn follow(&mut self, event: Event) {
        self.member.handle(&self.config, None, event, &mut self.effects);
    }

    fn claims(&mut self) -> Rider {
        self.member.ride_acknowledgement(&self.config, Term(1), &mut self.effects)
    }

    fn hear(&mut self, rider: Rider) {
        let session = SessionId::from_random(2);
        self.lead(Event::Rider { from: NodeId(2), session, rider });
    }

    fn answers(&mut self) -> Rider {
        self.leader.ride_heartbeat(&self.config, LEASE, NodeId(2)).expect("it has a lease")
    }

    fn tell(&mut self, rider: Rider) {
        let session = SessionId::from_random(1);
        self.follow(Event::Rider { from: NodeId(1), session, rider });
    }

    /// A heartbeat and its acknowledgement.
    fn exchange(&mut self) {
        let claims = self.claims();
        self.hear(claims);
        let answers = self.answers();
        self.tell(answers);
    }

    fn led(groups: &Groups) -> usize {
        groups.holder_sections().filter(Section::is_inside).count()
    }
}

impl Groups {
    fn holder_sections(&self) -> impl Iterator<Item = Section> {
        (0..self.table().len()).map(|place| self.section(GroupId::at(place)))
    }
}

#[test]
fn a_new_leader_gives_nothing_before_it_has_settled() {
    let mut pair = Pair::new(20);
    pair.exchange();
    assert_eq!((Pair::led(&pair.leader), Pair::led(&pair.member)), (0, 0));
    pair.lead(Event::Timer(Timer::Settle));
    pair.exchange();
    let (own, others) = (Pair::led(&pair.leader), Pair::led(&pair.member));
    assert!(own + others == 20 && own > 0 && others > 0, "{own} {others}");
    let led = |id| pair.member.table().iter().flatten().filter(|it| it.0 == NodeId(id)).count();
    // The member has the table of the moment at which it was answered.
    assert_eq!((led(1), led(2)), (own, others));
}

#[test]
fn the_timer_of_a_round_is_armed_before_the_rider_leaves_and_once_for_all_groups() {
    let mut pair = Pair::new(20);
    pair.effects.clear();
    let Rider { body: Body::Claims(claims), .. } = pair.claims() else { panic!("claims") };
    let armed = |effect: &&Effect| matches!(effect, Effect::SetTimer { timer: Timer::Hold(round), .. } if *round == claims.round);
    assert_eq!(pair.effects.iter().filter(armed).count(), 1);
}

#[test]
fn what_is_late_or_about_another_list_does_not_count() {
    let mut pair = Pair::new(20);
    pair.lead(Event::Timer(Timer::Settle));
    let late = pair.claims();
    pair.exchange();
    let before = pair.leader.clone();
    pair.hear(late);
    assert_eq!(Pair::led(&pair.leader), Pair::led(&before));
    let claims = pair.claims();
    let other = Rider { list: claims.list ^ 1, ..claims.clone() };
    pair.hear(other);
    let group = GroupId(200);
    let body = Body::Claims(Claims { left: vec![group], ..Claims::default() });
    pair.hear(Rider { body, ..claims.clone() });
    let body = Body::Claims(Claims {
        held: vec![Entry { group: GroupId(0), age: 9, number: 1 }],
        ..Claims::default()
    });
    pair.hear(Rider { body, ..claims });
    assert_eq!(pair.leader.table(), before.table());
}

#[test]
fn a_member_that_was_paused_beyond_its_lease_asks_again_and_gets_a_new_fence() {
    let mut pair = Pair::new(1);
    // The leader is unwilling, so that the member gets it in any case.
    pair.lead(Event::Willing(false));
    pair.lead(Event::Timer(Timer::Settle));
    pair.exchange();
    let before = pair.member.section(GroupId(0)).fence().expect("it leads the group");
    let hold = pair.member.hold(GroupId(0)).expect("a lease");
    pair.follow(Event::Timer(hold));
    assert_eq!(pair.member.section(GroupId(0)), Section::Outside);
    assert!(!pair.member.is_quit(), "the leader has not heard");
    pair.exchange();
    assert!(pair.member.is_quit());
    pair.exchange();
    let after = pair.member.section(GroupId(0)).fence().expect("it leads the group again");
    assert!(after > before, "{after} {before}");
}

#[test]
fn who_leads_is_forgotten_without_a_leader_and_told_again() {
    let mut pair = Pair::new(20);
    pair.lead(Event::Timer(Timer::Settle));
    pair.exchange();
    let told = pair.member.table().clone();
    assert!(told.iter().all(Option::is_some));
    let after = pair.config.lock.expiry();
    assert!(pair.effects.contains(&Effect::SetTimer { timer: Timer::Stale, after }));
    pair.follow(Event::Timer(Timer::Stale));
    assert!(pair.member.table().iter().all(Option::is_none));
    pair.exchange();
    assert_eq!(*pair.member.table(), told);
}

#[test]
fn a_group_returns_when_its_holder_has_ended_its_work() {
    let mut pair = Pair::new(20);
    pair.lead(Event::Timer(Timer::Settle));
    assert_eq!(Pair::led(&pair.leader), 20, "no other member has answered");
    pair.exchange();
    assert_eq!(Pair::led(&pair.member), 0, "nothing is free");
    pair.effects.clear();
    pair.lead(Event::Timer(Timer::Steady(NodeId(2))));
    let yields: Vec<GroupId> = pair
        .effects
        .iter()
        .filter_map(|effect| if let Effect::Yield(group) = effect { Some(*group) } else { None })
        .collect();
    assert_eq!(yields.len(), 4, "a few at a time");
    pair.exchange();
    assert_eq!(Pair::led(&pair.member), 0, "their work has not ended");
    pair.lead(Event::Ended(yields[0]));
    assert!(!pair.leader.section(yields[0]).is_inside());
    pair.exchange();
    assert!(pair.member.section(yields[0]).is_inside());
    assert_eq!(Pair::led(&pair.member), 1);
}

/// Those that acknowledge the first heartbeat first, before there is a majority, are answered as soon as the others.
#[test]
fn what_is_shown_before_the_first_lease_counts_when_it_is_there() {
    let mut pair = Pair::new(20);
    pair.lead(Event::Timer(Timer::Settle));
    pair.exchange();
    let led = Pair::led(&pair.member);
    let mut next = Groups::new(NodeId(3), SessionId::from_random(3), &pair.config);
    let mut out = Vec::new();
    let rider = pair.member.ride_acknowledgement(&pair.config, Term(2), &mut out);
    let (from, session) = (NodeId(2), SessionId::from_random(2));
    next.handle(&pair.config, None, Event::Rider { from, session, rider }, &mut out);
    next.handle(&pair.config, Some(Term(2)), Event::Lease, &mut out);
    let answers = next.ride_heartbeat(&pair.config, Some(Term(2)), NodeId(2)).unwrap();
    let Body::Answers(Answers { held, settling, .. }) = answers.body else { panic!("answers") };
    assert_eq!((held.len(), settling), (led, true));
}

fn any_rider() -> impl Strategy<Value = (u32, Rider)> {
    let entry = (any::<u8>(), 0..4_u64, any::<u64>()).prop_map(|(group, age, number)| Entry {
        group: GroupId(group),
        age,
        number,
    });
    let groups = || vec(any::<u8>().prop_map(GroupId), 0..4);
    let numbers = (0..4_u64, any::<bool>(), 0..3_u64);
    let lists = (vec(entry, 0..6), groups(), groups());
    let header = (1..=3_u32, 0..4_u64, any::<bool>());
    (header, numbers, lists).prop_map(|((from, term, is_call), (round, flag, seen), lists)| {
        let (round, (held, left, yields)) = (Round(round), lists);
        let leads = held.iter().map(|entry| (NodeId(from), *entry)).collect();
        let table = flag.then_some(Told { version: seen, leads });
        let body = match is_call {
            true => Body::Claims(Claims { round, willing: flag, seen, held, left }),
            false => {
                let (gone, settling, number) = (left, flag, seen);
                Body::Answers(Answers { number, round, held, gone, yields, settling, table })
            }
        };
        (from, Rider { list: config(256).list, term: Term(term), body })
    })
}

proptest! {
    /// With as many groups as there may be.
    #[test]
    fn no_rider_makes_a_member_panic_or_answer_more_than_a_datagram_holds(
        riders in vec((any_rider(), 0..3_u64), 1..20),
    ) {
        let config = config(256);
        let mut groups = Groups::new(NodeId(1), SessionId::from_random(9), &config);
        let mut out = Vec::new();
        for ((from, rider), term) in riders {
            let lease = (term > 0).then_some(Term(term));
            let session = SessionId::from_random(u64::from(from));
            groups.handle(&config, lease, Event::Rider { from: NodeId(from), session, rider }, &mut out);
            groups.handle(&config, lease, Event::Timer(Timer::Settle), &mut out);
            let answers = groups.ride_heartbeat(&config, lease, NodeId(from));
            let claims = groups.ride_acknowledgement(&config, Term(term), &mut out);
            let longest = [answers, Some(claims)].into_iter().flatten()
                .map(|rider| postcard::to_allocvec(&rider).unwrap().len())
                .max();
            // Numbers of strangers may be long; a datagram has room for 8 KiB.
            prop_assert!(longest < Some(7_500), "{longest:?}");
        }
    }
}
