//! What golden scripts cannot show: that whatever a peer sends, in whatever order things happen, a member never panics,
//! never speaks before it has stored, never forgets to announce, and never waits for something that is not armed.

use std::collections::BTreeSet;
use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;

use super::settings::{LONGEST_PROMISE, Preemption};
use super::voter::{self, Voter};
use super::*;
use crate::config::{Mode, Timing};
use crate::host::{Host, apply};
use crate::members::{Incarnation, Members};
use crate::protocol::{Message as _, Order, Origin, Refusal};
use crate::story::Cause;
use crate::time::{Delay, Span};

/// What the members are configured with: attributes, so that an id of nobody has none; a witness; probes.
fn config(members: u32) -> Config {
    let attrs = (1..=members).map(|id| (NodeId(id), i64::from(id) * 10));
    let members = Members::range(1, members).unwrap().with_attrs(attrs).unwrap();
    let timing = Timing::for_transmission(Span::from_millis(1));
    let mut config = Config::new(members, timing, Mode::Hardened);
    config.quorum.probe = Some(Span::from_millis(10));
    config
}

/// A host of one member that watches whether the member keeps to its word.
#[derive(Clone)]
struct Bench {
    config: Config,
    member: Quorum,
    armed: BTreeSet<Timer>,
    disk: Option<Stored>,
    view: View,
    /// What the last event brought about.
    sent: Vec<(NodeId, Message)>,
    notices: Vec<Notice>,
    /// The timer that fired last, if that was the last event.
    last: Option<Timer>,
}

impl Bench {
    fn new(config: Config, id: u32, origin: Origin, disk: Option<Stored>) -> Self {
        let mut out = Effects::new();
        let boot = Boot::new(LIFE, disk, origin);
        let member = Quorum::start(NodeId(id), &config, boot, &mut out);
        let view = member.view();
        let mut bench = Self {
            config,
            member,
            armed: BTreeSet::new(),
            disk,
            view,
            sent: vec![],
            notices: vec![],
            last: None,
        };
        bench.carry_out(&mut out);
        bench
    }

    /// Member 2 of three, following 3 in term 1.
    fn follower() -> Self {
        Self::new(config(3), 2, Origin::Founding { leader: Some(NodeId(3)) }, None)
    }

    /// Member 3 of three, leading in term 1 with a lease.
    fn leader() -> Self {
        let mut bench = Self::new(config(3), 3, Origin::Founding { leader: Some(NodeId(3)) }, None);
        bench.hear(1, 1, Body::Ack { round: Round(1), merit: MERIT, misses: Misses::default() });
        assert!(bench.member.lease().is_some());
        bench
    }

    fn hear(&mut self, from: u32, term: u64, body: Body) {
        let config = self.config.quorum.config_id(&self.config.members);
        let message = Message { config, term: Epoch(term), body };
        self.feed(Event::Message { from: NodeId(from), message });
    }

    fn let_happen(&mut self, happening: Happening) {
        match happening {
            // A member does not hear itself.
            Happening::Heard(from, ..) if NodeId(from) == self.member.id => {}
            Happening::Heard(from, term, mut body) => {
                if let Body::PreAnswer { number, .. } = &mut body {
                    // Mostly the last question is answered.
                    *number = self.member.question.saturating_sub(*number / 3);
                }
                self.hear(from, term.at(self.member.ballot.term()).0, body);
            }
            Happening::Due(_) if self.armed.is_empty() => {}
            Happening::Due(index) => {
                let chosen = *index.get(&Vec::from_iter(self.armed.iter().copied()));
                // Of several leases the oldest ends first.
                let is_lease = |timer: &&Timer| matches!(timer, Timer::Lease(_));
                let oldest = self.armed.iter().find(is_lease).copied();
                let lease = oldest.filter(|_| is_lease(&&chosen));
                self.feed(Event::Timer(lease.unwrap_or(chosen)));
            }
            Happening::Campaign => self.feed(Event::Campaign),
            Happening::Order(order) => self.feed(Event::Order(order)),
            Happening::Retired => self.feed(Event::Retired),
        }
    }

    fn feed(&mut self, event: Event<Message, Timer>) {
        let mut out = Effects::new();
        self.last = None;
        if let Event::Timer(timer) = event {
            self.last = Some(timer);
            assert!(self.armed.remove(&timer), "{timer:?} is not armed");
        }
        self.member.handle(&self.config, event, &mut out);
        self.carry_out(&mut out);
        self.check_timers();
    }

    fn carry_out(&mut self, out: &mut Effects<Quorum>) {
        self.sent.clear();
        self.notices.clear();
        let Ok(()) = apply(out.drain(), self);
        assert_eq!(self.view, self.member.view(), "every change of the view is announced");
        let stored = *self.member.ballot.stored();
        assert_eq!(self.disk.unwrap_or_default(), stored, "everything that matters is stored");
    }

    /// The term never falls, and the vote of a term never changes.
    fn check_stored(&self, stored: Stored) {
        let before = self.disk.unwrap_or_default();
        assert!(self.member.rejoining.is_none(), "it stores {stored:?} and may have voted since");
        assert!(stored.term >= before.term, "{before:?} became {stored:?}");
        let changed = stored.voted != before.voted && before.voted.is_some();
        assert!(stored.term > before.term || !changed, "{before:?} became {stored:?}");
        let in_time = self.last == Some(Timer::Longest) || stored.longest >= before.longest;
        assert!(in_time, "{before:?} became {stored:?}");
    }

    /// What it says is on its disk by then.
    fn check_words(&self, to: NodeId, message: &Message) {
        let disk = self.disk.unwrap_or_default();
        assert!(self.config.members.contains(to) && to != self.member.id, "{message} to {to}");
        assert_eq!(message.term, disk.term, "{message}");
        match message.body {
            Body::Request { .. } => assert_eq!(disk.voted, Some(self.member.id)),
            Body::Vote => assert_eq!(disk.voted, Some(to)),
            Body::Heartbeat { promise, .. } => assert!(disk.longest >= promise),
            Body::Ack { .. } => {
                let promise = self.member.promise.expect("who acknowledges has promised");
                assert!(disk.longest >= promise.length);
            }
            _ => {}
        }
    }

    /// Whatever it waits for is armed, and nothing else is; and nobody stands who is drained.
    fn check_timers(&self) {
        let member = &self.member;
        if matches!(member.duty, Duty::Halted) {
            return;
        }
        let leads = matches!(member.duty, Duty::Lead(_));
        let may_stand = member.is_idle() && member.may_stand(&self.config);
        let greets = member.rejoining.is_some()
            || !member.unanswered.is_empty() && member.hellos < MOST_HELLOS;
        let drain = matches!(member.ballot.stored().drained, Some(Drain::For(_)));
        let expected = [
            (Timer::Promise, member.promise.is_some()),
            (Timer::Quarantine, member.quarantined),
            (Timer::Collection, member.asking.is_some()),
            (Timer::Candidacy, matches!(member.duty, Duty::Stand(_))),
            (Timer::Heartbeat, leads),
            (Timer::Confirmation, leads && !member.is_leased()),
            (Timer::Takeover, member.impatient),
            (Timer::Refrain, member.refrains),
            (Timer::Drain, drain),
            (Timer::Hello, greets),
            (Timer::Probe, true),
        ];
        // Gaps are counted within a tenure: while one counts, its end is awaited.
        if let Duty::Lead(office) = &member.duty
            && office.gaps > 0
        {
            assert!(self.armed.contains(&Timer::Tenure), "{member:#?}");
        }
        for (timer, armed) in expected {
            assert_eq!(self.armed.contains(&timer), armed, "{timer:?} of {member:#?}");
        }
        // After the last of all terms nobody can stand, and waits for nothing.
        if member.ballot.term() < Epoch(u64::MAX) {
            assert_eq!(self.armed.contains(&Timer::Election), may_stand, "{member:#?}");
        }
        let barred = member.ballot.stored().drained == Some(Drain::Never);
        assert!(!barred || !matches!(member.duty, Duty::Stand(_)), "{member:#?}");
        let lease = member.lease().or(member.lingering.map(Timer::Lease));
        assert!(lease.is_none_or(|lease| self.armed.contains(&lease)), "{member:#?}");
        assert_eq!(self.view.role.leads(), member.is_leased());
        let leases = self.armed.iter().filter(|timer| matches!(timer, Timer::Lease(_))).count();
        assert!(leads || leases == usize::from(member.lingering.is_some()), "{member:#?}");
    }
}

impl Host<Quorum> for Bench {
    type Error = Infallible;

    fn persist(&mut self, stored: Stored) -> Result<(), Infallible> {
        self.check_stored(stored);
        self.disk = Some(stored);
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), Infallible> {
        self.check_words(to, &message);
        self.sent.push((to, message));
        Ok(())
    }

    fn arm(&mut self, timer: Timer, _: Delay) {
        self.armed.insert(timer);
    }

    fn cancel(&mut self, timer: Timer) {
        self.armed.remove(&timer);
    }

    fn announce(&mut self, view: View) {
        self.view = view;
    }

    fn inform(&mut self, notice: Notice) -> Result<(), Infallible> {
        self.notices.push(notice);
        Ok(())
    }
}

/// The life of every member here.
const LIFE: Incarnation = Incarnation(1);
const MERIT: Merit = Merit { eligible: true, attr: 10, losses: 0 };

fn heartbeat(round: u64, promise: Span) -> Body {
    Body::Heartbeat {
        round: Round(round),
        promise,
        merit: MERIT,
        preference: None,
        why: Why::Founded,
        misses: Misses::default(),
    }
}

fn welcome(seen: u64, longest: Span) -> Body {
    Body::Welcome { life: LIFE, seen: Epoch(seen), longest, losses: 0 }
}

fn ids() -> impl Strategy<Value = NodeId> {
    prop_oneof![8 => 1..=4u32, 1 => Just(0), 1 => Just(99), 1 => any::<u32>()].prop_map(NodeId)
}

fn terms() -> impl Strategy<Value = Epoch> {
    prop_oneof![20 => 0..6u64, 1 => any::<u64>(), 1 => Just(u64::MAX)].prop_map(Epoch)
}

fn spans() -> impl Strategy<Value = Span> {
    let usual = 0..100u64;
    prop_oneof![8 => usual.prop_map(Span::from_millis), 1 => any::<u64>().prop_map(Span::from_nanos)]
}

fn merits() -> impl Strategy<Value = Merit> {
    let attrs = prop_oneof![8 => -50..=50i64, 1 => any::<i64>()];
    let losses = prop_oneof![8 => Just(0), 1 => any::<u8>()];
    (any::<bool>(), attrs, losses).prop_map(|(eligible, attr, losses)| Merit {
        eligible,
        attr,
        losses,
    })
}

fn causes() -> impl Strategy<Value = Cause> {
    prop::sample::select(vec![
        Cause::Outranked,
        Cause::Preferred,
        Cause::Resigned,
        Cause::Transferred,
        Cause::Drained,
    ])
}

fn whys() -> impl Strategy<Value = Why> {
    prop_oneof![
        Just(Why::Founded),
        prop::option::of(ids()).prop_map(|after| Why::Elected { after }),
        (ids(), causes()).prop_map(|(by, cause)| Why::HandedOver { by, cause }),
    ]
}

fn misses() -> impl Strategy<Value = Misses> {
    vec(ids(), 0..4).prop_map(Misses)
}

fn rounds() -> impl Strategy<Value = Round> {
    prop_oneof![8 => 0..8u64, 1 => any::<u64>()].prop_map(Round)
}

fn lives() -> impl Strategy<Value = Incarnation> {
    prop_oneof![8 => Just(LIFE), 2 => (0..3u32).prop_map(Incarnation), 1 => any::<u32>().prop_map(Incarnation)]
}

fn preferences() -> impl Strategy<Value = Option<Preference>> {
    let preference = (terms(), any::<u32>(), ids(), spans());
    prop::option::weighted(
        0.2,
        preference.prop_map(|(term, number, member, left)| Preference {
            given: (term, number),
            member,
            left,
        }),
    )
}

/// Anything that a peer can say, or say wrongly.
fn bodies() -> impl Strategy<Value = Body> {
    let answers = prop::sample::select(vec![Answer::Yes, Answer::No, Answer::Higher]);
    prop_oneof![
        2 => (0..4u32, merits(), any::<bool>(), prop::option::of(ids())).prop_map(
            |(number, merit, force, takeover)| Body::PreVote { number, merit, force, takeover }
        ),
        4 => (0..4u32, answers).prop_map(|(number, answer)| Body::PreAnswer { number, answer }),
        2 => prop::option::of(terms()).prop_map(|released| Body::Request { released }),
        4 => Just(Body::Vote),
        4 => (rounds(), spans(), merits(), preferences(), whys(), misses()).prop_map(
            |(round, promise, merit, preference, why, misses)| Body::Heartbeat {
                round, promise, merit, preference, why, misses
            }
        ),
        4 => (rounds(), merits(), misses())
            .prop_map(|(round, merit, misses)| Body::Ack { round, merit, misses }),
        3 => Just(Body::Nack),
        1 => merits().prop_map(|merit| Body::Preempt { merit }),
        2 => (causes(), preferences())
            .prop_map(|(cause, preference)| Body::TimeoutNow { cause, preference }),
        1 => prop::option::of(ids()).prop_map(|heir| Body::Release { heir }),
        1 => (lives(), any::<bool>()).prop_map(|(life, rejoins)| Body::Hello { life, rejoins }),
        2 => (lives(), terms(), spans(), any::<u8>())
            .prop_map(|(life, seen, longest, losses)| Body::Welcome { life, seen, longest, losses }),
        1 => (merits(), misses()).prop_map(|(merit, misses)| Body::Probe { merit, misses }),
        1 => (terms(), any::<u32>(), ids(), spans()).prop_map(|(term, number, member, left)| {
            Body::Prefer { preference: Preference { given: (term, number), member, left } }
        }),
    ]
}

/// What can happen to a member.
#[derive(Clone, Debug)]
enum Happening {
    /// From whom, in which term, and what.
    Heard(u32, Term, Body),
    /// One of the armed timers fires.
    Due(prop::sample::Index),
    Campaign,
    Order(Order),
    Retired,
}

/// A term, as seen by the member that hears of it.
#[derive(Clone, Debug)]
enum Term {
    Present,
    Earlier,
    Later,
    Any(Epoch),
}

impl Term {
    fn at(&self, present: Epoch) -> Epoch {
        match *self {
            Self::Present => present,
            Self::Earlier => Epoch(present.0.saturating_sub(1)),
            Self::Later => present.next(),
            Self::Any(term) => term,
        }
    }
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Resign),
        ids().prop_map(|to| Order::Transfer { to }),
        (prop::option::of(spans()), any::<bool>())
            .prop_map(|(lasting, never)| Order::Drain { lasting, never }),
        Just(Order::Undrain),
        (ids(), spans()).prop_map(|(member, lasting)| Order::Prefer { member, lasting }),
        any::<i64>().prop_map(Order::Attribute),
    ]
}

fn happenings() -> impl Strategy<Value = Happening> {
    let when = prop_oneof![
        16 => Just(Term::Present),
        1 => Just(Term::Earlier),
        3 => Just(Term::Later),
        1 => terms().prop_map(Term::Any),
    ];
    prop_oneof![
        12 => (1..=4u32, when, bodies())
            .prop_map(|(from, term, body)| Happening::Heard(from, term, body)),
        6 => any::<prop::sample::Index>().prop_map(Happening::Due),
        1 => Just(Happening::Campaign),
        2 => orders().prop_map(Happening::Order),
        2 => Just(Happening::Retired),
    ]
}

fn origins() -> impl Strategy<Value = Origin> {
    prop::sample::select(vec![
        Origin::Founding { leader: None },
        Origin::Founding { leader: Some(NodeId(2)) },
        Origin::Founding { leader: Some(NodeId(3)) },
        Origin::Joining,
        Origin::Rejoining,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// The checks are those of [`Bench`]. Member 3 of four, of which 4 is a witness.
    #[test]
    fn whatever_happens_a_member_keeps_to_its_word(
        origin in origins(),
        story in vec(happenings(), 1..120),
    ) {
        let mut config = config(4);
        config.quorum.witnesses = [NodeId(4)].into_iter().collect();
        let mut bench = Bench::new(config, 3, origin, None);
        bench.check_timers();
        for happening in story {
            bench.let_happen(happening);
        }
    }

    #[test]
    fn the_computed_size_of_a_message_is_its_size(
        config in any::<u32>(),
        term in terms(),
        body in bodies(),
    ) {
        let message = Message { config, term, body };
        let encoded = postcard::to_allocvec(&message).unwrap();
        prop_assert_eq!(message.encoded_len(), encoded.len(), "{}", message);
    }

    #[test]
    fn the_computed_size_of_a_voters_message_is_its_size(term in terms(), kind in 0..2usize) {
        let message = [voter::Message::Request { term }, voter::Message::Vote { term }][kind];
        prop_assert_eq!(Voter::kind_index(&config(3), &message), kind);
        prop_assert_eq!(message.encoded_len(), postcard::to_allocvec(&message).unwrap().len());
    }
}

#[test]
fn a_promise_beyond_the_limit_is_not_given() {
    let mut bench = Bench::follower();
    let more = Span::from_nanos(LONGEST_PROMISE.as_nanos() + 1);
    bench.hear(3, 1, heartbeat(1, more));
    assert_eq!(bench.sent, []);
    bench.hear(3, 1, heartbeat(1, LONGEST_PROMISE));
    assert!(matches!(bench.sent[..], [(NodeId(3), Message { body: Body::Ack { .. }, .. })]));
    assert_eq!(bench.disk.unwrap().longest, LONGEST_PROMISE);
}

#[test]
fn one_that_rejoins_keeps_still_no_longer_than_anybody_can_have_promised() {
    let mut bench = Bench::new(config(3), 1, Origin::Rejoining, None);
    bench.hear(2, 7, welcome(3, Span::from_nanos(u64::MAX)));
    assert!(bench.member.rejoining.is_some(), "3 has not answered");
    bench.hear(3, 5, welcome(9, Span::ZERO));
    let stored = bench.disk.unwrap();
    assert_eq!((stored.term, stored.voted), (Epoch(9), Some(NodeId(1))));
    assert_eq!(stored.longest, LONGEST_PROMISE);
}

#[test]
fn who_is_set_up_anew_begins_above_the_floor() {
    let floor = Stored { term: Epoch(41), ..Stored::default() };
    let mut bench = Bench::new(config(1), 1, Origin::Founding { leader: None }, Some(floor));
    bench.feed(Event::Timer(Timer::Election));
    assert_eq!((bench.view.role, bench.view.epoch), (Role::Leader, Epoch(42)));
}

#[test]
fn who_is_not_heard_is_not_next() {
    let leader = Origin::Founding { leader: Some(NodeId(5)) };
    let mut bench = Bench::new(config(5), 1, leader, None);
    let next = |bench: &Bench| {
        bench.member.next_in_line(&bench.config, |one, other| bench.member.hears(one, other))
    };
    assert_eq!(next(&bench), Some(NodeId(4)));
    // The others have not said yet that they miss 4 too.
    bench.feed(Event::Timer(Timer::Silence(NodeId(4))));
    assert_eq!(next(&bench), Some(NodeId(3)));
    // A host may know more: nothing has ever come from 3.
    let host_knows = |bench: &Bench| {
        let met = |one, other| (one, other) != (NodeId(1), NodeId(3));
        let hears = |one, other| met(one, other) && bench.member.hears(one, other);
        bench.member.next_in_line(&bench.config, hears)
    };
    assert_eq!(host_knows(&bench), Some(NodeId(2)));
    let misses = Misses([3, 4].map(NodeId).to_vec());
    bench.hear(2, 1, Body::Probe { merit: MERIT, misses });
    assert_eq!(host_knows(&bench), None, "1 and 2 are no majority");
}

#[test]
fn who_hears_whom_and_who_is_next_in_line_can_be_shown() {
    let mut config = config(4);
    config.quorum.witnesses = [NodeId(1)].into_iter().collect();
    let mut bench = Bench::new(config, 2, Origin::Founding { leader: Some(NodeId(4)) }, None);
    let line = |bench: &Bench| bench.member.in_line(&bench.config);
    assert_eq!(line(&bench), [4, 3, 2].map(NodeId));
    let next = |bench: &Bench| {
        bench.member.next_in_line(&bench.config, |one, other| bench.member.hears(one, other))
    };
    assert_eq!(next(&bench), Some(NodeId(3)));

    // 3 hears only 4, and says so; of others than members nobody takes note.
    let misses = Misses(vec![NodeId(1), NodeId(2), NodeId(99)]);
    bench.hear(3, 1, Body::Probe { merit: MERIT, misses });
    let member = &bench.member;
    assert!(!member.hears(NodeId(3), NodeId(2)) && member.hears(NodeId(3), NodeId(4)));
    assert!(member.hears(NodeId(2), NodeId(3)) && member.hears(NodeId(3), NodeId(99)));
    assert!(!member.reaches_majority(&bench.config, NodeId(3)));
    assert_eq!(next(&bench), None, "without the leader nobody reaches a majority");
    assert_eq!(member.merit_of(&bench.config, NodeId(3)), MERIT);

    bench.feed(Event::Timer(Timer::Silence(NodeId(1))));
    assert!(!bench.member.hears(NodeId(2), NodeId(1)));
    bench.feed(Event::Timer(Timer::Promise));
    let losses = |bench: &Bench, id| bench.member.losses_of(&bench.config, NodeId(id));
    assert_eq!((losses(&bench, 4), line(&bench)[2]), (1, NodeId(4)));
    assert_eq!((bench.member.why(), bench.member.preference()), (None, None));
    assert_eq!(Bench::leader().member.why(), Some(Why::Founded));

    // What a member says against itself counts, unless more is known.
    let merit = Merit { losses: 2, ..MERIT };
    bench.hear(3, 1, Body::Probe { merit, misses: Misses::default() });
    bench.hear(4, 1, Body::Probe { merit: MERIT, misses: Misses::default() });
    assert_eq!((losses(&bench, 3), losses(&bench, 4)), (2, 1));
    assert_eq!(line(&bench)[2], NodeId(3));
}

#[test]
fn who_lost_its_disk_and_is_alone_halts() {
    let bench = Bench::new(config(1), 1, Origin::Rejoining, None);
    assert_eq!((&bench.notices[..], bench.disk), (&[Notice::NobodyToAsk][..], None));
    assert!(bench.member.is_halted());
}

#[test]
fn a_heartbeat_that_was_never_sent_renews_nothing() {
    let mut bench = Bench::leader();
    let lease = bench.member.lease();
    bench.hear(2, 1, Body::Ack { round: Round(u64::MAX), merit: MERIT, misses: Misses::default() });
    assert_eq!(bench.member.lease(), lease);
    bench.feed(Event::Order(Order::Transfer { to: NodeId(2) }));
    assert_eq!(bench.notices, [Notice::Refused(Refusal::Unfit(NodeId(2)))], "nor is it heard");
    bench.feed(Event::Timer(Timer::Lease(Round(1))));
    assert_eq!(bench.member.lease(), None);
}

/// A tenure is counted from the first gap on even where nothing else depends on how long a leader has led.
#[test]
fn gaps_far_apart_do_not_add_up_without_penalties_and_preemption() {
    let mut config = config(3);
    (config.quorum.preemption, config.quorum.forgiveness) = (Preemption::Never, Span::ZERO);
    let mut bench = Bench::new(config, 3, Origin::Founding { leader: Some(NodeId(3)) }, None);
    let acknowledge = |bench: &mut Bench| {
        bench.feed(Event::Timer(Timer::Heartbeat));
        let Duty::Lead(office) = &bench.member.duty else { panic!("it leads") };
        let round = office.newest;
        bench.hear(2, 1, Body::Ack { round, merit: MERIT, misses: Misses::default() });
        bench.member.lease().expect("a lease")
    };
    for _ in 0..4 {
        let lease = acknowledge(&mut bench);
        bench.feed(Event::Timer(lease));
        assert_eq!(bench.member.lease(), None);
        acknowledge(&mut bench);
        bench.feed(Event::Timer(Timer::Tenure));
    }
}

#[test]
fn ids_of_nobody_are_nobody() {
    let nobody = NodeId(99);
    let mut bench = Bench::follower();
    bench.hear(
        1,
        1,
        Body::PreVote { number: 1, merit: MERIT, force: false, takeover: Some(nobody) },
    );
    let refusal = Body::PreAnswer { number: 1, answer: Answer::No };
    assert_eq!(bench.sent[0].1.body, refusal);
    bench.hear(3, 1, Body::Release { heir: Some(nobody) });
    assert_eq!(bench.view.leader, None);

    let mut bench = Bench::leader();
    let refused = |bench: &Bench| matches!(bench.notices[..], [Notice::Refused(_)]);
    bench.feed(Event::Order(Order::Transfer { to: nobody }));
    assert!(refused(&bench));
    bench.feed(Event::Order(Order::Prefer { member: nobody, lasting: Span::from_millis(9) }));
    assert!(refused(&bench));
}

/// A peer that claims to be in the last of all terms takes the terms away from everybody. That ends the elections, as
/// it must; it breaks nothing else.
#[test]
fn after_the_last_term_nobody_stands_and_nothing_breaks() {
    let mut bench = Bench::follower();
    bench.hear(1, u64::MAX, heartbeat(1, Span::from_millis(20)));
    assert_eq!(bench.view.leader, Some(NodeId(1)));
    bench.feed(Event::Timer(Timer::Promise));
    bench.feed(Event::Timer(Timer::Election));
    let number = bench.member.question;
    bench.hear(3, u64::MAX, Body::PreAnswer { number, answer: Answer::Yes });
    assert_eq!(bench.notices, [Notice::OutOfTerms]);
    assert_eq!(bench.sent, []);
    let cause = Cause::Resigned;
    bench.hear(3, u64::MAX, Body::TimeoutNow { cause, preference: None });
    assert!(!bench.sent.iter().any(|(_, message)| matches!(message.body, Body::Request { .. })));
}

/// A voter and what is on its disk.
struct Booth {
    config: Config,
    voter: Voter,
    disk: Option<Stored>,
    sent: Vec<(NodeId, voter::Message)>,
}

impl Booth {
    fn new(id: u32, disk: Option<Stored>) -> Self {
        let config = config(3);
        let boot = Boot::new(Incarnation(1), disk, Origin::Joining);
        let voter = Voter::start(NodeId(id), &config, boot, &mut Effects::new());
        Self { config, voter, disk, sent: vec![] }
    }

    fn feed(&mut self, event: Event<voter::Message, voter::Timer>) {
        let mut out = Effects::new();
        self.voter.handle(&self.config, event, &mut out);
        self.sent.clear();
        let Ok(()) = apply(out.drain(), self);
    }

    fn hear(&mut self, from: u32, message: voter::Message) {
        self.feed(Event::Message { from: NodeId(from), message });
    }
}

impl Host<Voter> for Booth {
    type Error = Infallible;

    fn persist(&mut self, stored: Stored) -> Result<(), Infallible> {
        self.disk = Some(stored);
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: voter::Message) -> Result<(), Infallible> {
        self.sent.push((to, message));
        Ok(())
    }

    fn arm(&mut self, _: voter::Timer, _: Delay) {}

    fn cancel(&mut self, _: voter::Timer) {}

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, _: Notice) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn a_voter_votes_once_a_term_and_remembers_it() {
    let term = Epoch(4);
    let (request, vote) = (voter::Message::Request { term }, voter::Message::Vote { term });
    let mut booth = Booth::new(1, None);
    booth.hear(2, request);
    assert_eq!(booth.sent, [(NodeId(2), vote)]);
    booth.hear(3, request);
    assert_eq!(booth.sent, []);
    let mut later = Booth::new(1, booth.disk);
    later.hear(3, request);
    assert_eq!(later.sent, [], "it voted for 2 in its former life");
    later.hear(2, request);
    assert_eq!(later.sent, [(NodeId(2), vote)]);
    later.hear(3, voter::Message::Request { term: Epoch(3) });
    assert_eq!(later.sent, [], "that term is over");
}

#[test]
fn a_voter_leads_with_a_majority_of_its_own_term() {
    let mut booth = Booth::new(1, Some(Stored { term: Epoch(2), ..Stored::default() }));
    booth.feed(Event::Campaign);
    assert_eq!(booth.sent.len(), 2);
    assert_eq!(booth.disk.unwrap().voted, Some(NodeId(1)));
    booth.hear(2, voter::Message::Vote { term: Epoch(2) });
    assert_eq!(booth.voter.view().role, Role::Candidate, "a vote of an earlier term");
    booth.hear(2, voter::Message::Vote { term: Epoch(3) });
    assert_eq!(booth.voter.view().role, Role::Leader);
    booth.hear(3, voter::Message::Request { term: Epoch(8) });
    assert_eq!((booth.voter.view().role, booth.voter.view().epoch), (Role::Follower, Epoch(8)));
}
