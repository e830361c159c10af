//! What golden scripts cannot show: for any messages of peers, in any order, a member never panics, never sends before it has
//! stored, always announces a change of its view, and never waits for a timer that is not armed.

use std::collections::BTreeSet;
use std::convert::Infallible;

use proptest::collection::vec;
use proptest::prelude::*;

use super::follower::Takeover;
use super::*;
use crate::change::{ElectionReason, LeaderChange, Loss, TransferReason};
use crate::config::quorum::{MAX_VOTE_LEASE, Preemption};
use crate::config::{Mode, Timing};
use crate::host::{Host, apply};
use crate::members::{Incarnation, Members};
use crate::protocol::{AdminCommand, Origin, Refusal};
use crate::time::{Delay, Span};
use crate::wire;

/// The members have attributes, so that the id of a stranger has none, and probe each other.
fn config(members: u32) -> Config {
    let attrs = (1..=members).map(|id| (NodeId(id), i64::from(id) * 10));
    let members = Members::range(1, members).unwrap().with_attrs(attrs).unwrap();
    let timing = Timing::for_transmission(Span::from_millis(1));
    let mut config = Config::new(members, timing, Mode::Hardened);
    config.quorum.probe = Some(Span::from_millis(10));
    config
}

/// A host of one member that checks the member's invariants.
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
    /// The pause that the messages of the others carry.
    others_pause: Option<Pause>,
}

impl Bench {
    fn new(config: Config, id: u32, origin: Origin, disk: Option<Stored>) -> Self {
        let mut out = Effects::new();
        let boot = Boot::new(INCARNATION, disk, origin);
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
            others_pause: None,
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
        bench.hear(
            1,
            1,
            Body::Ack { round: Round(1), rank: RANK, unreachable: Unreachable::default() },
        );
        assert!(bench.member.lease().is_some());
        bench
    }

    fn hear(&mut self, from: u32, term: u64, body: Body) {
        let config = self.config.quorum.config_id(&self.config.members);
        let message = Message { config, term: Term(term), pause: self.others_pause, body };
        self.feed(Event::Message { from: NodeId(from), message });
    }

    fn let_happen(&mut self, happening: Happening) {
        match happening {
            // A member sends itself nothing.
            Happening::Heard(from, ..) if NodeId(from) == self.member.id => {}
            Happening::Heard(from, term, pause, mut body) => {
                self.others_pause = pause;
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
            Happening::Command(command) => self.feed(Event::Command(command)),
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
        assert!(
            !self.member.recovery.is_rejoining(),
            "it stores {stored:?} and may have voted since"
        );
        assert!(stored.term >= before.term, "{before:?} became {stored:?}");
        let changed = stored.voted != before.voted && before.voted.is_some();
        assert!(stored.term > before.term || !changed, "{before:?} became {stored:?}");
        let in_time =
            self.last == Some(Timer::LongestVoteLease) || stored.longest >= before.longest;
        assert!(in_time, "{before:?} became {stored:?}");
    }

    /// What it sends is on its disk by then.
    fn check_words(&self, to: NodeId, message: &Message) {
        let disk = self.disk.unwrap_or_default();
        assert!(self.config.members.contains(to) && to != self.member.id, "{message} to {to}");
        assert_eq!(message.term, disk.term, "{message}");
        match message.body {
            Body::Request { .. } => assert_eq!(disk.voted, Some(self.member.id)),
            Body::Vote => assert_eq!(disk.voted, Some(to)),
            Body::Heartbeat(Heartbeat { vote_lease, .. }) => assert!(disk.longest >= vote_lease),
            Body::Ack { .. } => {
                let lease =
                    self.member.vote_lease().expect("an acknowledgement gives a vote lease");
                assert!(disk.longest >= lease.length);
            }
            _ => {}
        }
    }

    /// Every timer that it waits for is armed, and no other; and a member that is drained for good is no candidate.
    fn check_timers(&self) {
        let member = &self.member;
        if member.is_halted() {
            return;
        }
        let leads = member.leads();
        let is_candidate = matches!(member.role, Role::Candidate(_));
        let is_waiting = member.is_idle()
            && member.may_campaign(&self.config)
            && !member.is_held(&self.config, None);
        let greets = member.recovery.is_rejoining()
            || !member.recovery.unanswered.is_empty() && member.recovery.hellos < MAX_HELLOS;
        let follower = match &member.role {
            Role::Follower(follower) => follower.clone(),
            _ => Follower::default(),
        };
        let asks = matches!(member.role, Role::PreCandidate(_))
            || matches!(follower.takeover, Some(Takeover::Asking(_)));
        let drain = matches!(member.ballot.stored().drained, Some(Drain::For(_)));
        let expected = [
            (Timer::VoteLease, follower.vote_lease.is_some()),
            (Timer::HoldDown, member.recovery.hold_down),
            (Timer::PreVote, asks),
            (Timer::Vote, is_candidate),
            (Timer::Heartbeat, leads),
            (Timer::Confirmation, leads && !member.is_leased()),
            (Timer::Takeover, follower.takeover == Some(Takeover::Waiting)),
            (Timer::Cooldown, follower.cooling_down),
            (Timer::Drain, drain),
            (Timer::Pause, member.is_paused()),
            (Timer::Hello, greets),
            (Timer::Probe, true),
        ];
        // Gaps are counted within a tenure: while one counts, its end is awaited.
        if let Role::Leader(leader) = &member.role
            && leader.gaps > 0
        {
            assert!(self.armed.contains(&Timer::Tenure), "{member:#?}");
        }
        let penalties = self.config.members.iter();
        let penalties =
            penalties.map(|id| (Timer::Penalty(id), member.penalty_of(id).failures > 0));
        for (timer, armed) in expected.into_iter().chain(penalties) {
            assert_eq!(self.armed.contains(&timer), armed, "{timer:?} of {member:#?}");
        }
        // After the last of all terms no member can campaign, and none waits for its turn.
        if member.ballot.term() < Term(u64::MAX) {
            assert_eq!(self.armed.contains(&Timer::Election), is_waiting, "{member:#?}");
        }
        let barred = member.ballot.stored().drained == Some(Drain::Never);
        assert!(!barred || !is_candidate, "{member:#?}");
        let lease = member.lease().or(member.lingering_lease.map(Timer::Lease));
        assert!(lease.is_none_or(|lease| self.armed.contains(&lease)), "{member:#?}");
        assert_eq!(self.view.role.leads(), member.is_leased());
        let leases = self.armed.iter().filter(|timer| matches!(timer, Timer::Lease(_))).count();
        assert!(leads || leases == usize::from(member.lingering_lease.is_some()), "{member:#?}");
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

/// The incarnation of every member here.
const INCARNATION: Incarnation = Incarnation(1);
const RANK: Rank = Rank { eligible: true, attr: 10, failures: 0, failed_in: Term(0) };

fn heartbeat(round: u64, vote_lease: Span) -> Body {
    Body::Heartbeat(Heartbeat {
        round: Round(round),
        vote_lease,
        rank: RANK,
        preference: None,
        reason: ElectionReason::Founded,
        unreachable: Unreachable::default(),
        penalties: Some(Vec::new()),
    })
}

fn welcome(seen: u64, longest: Span) -> Body {
    Body::Welcome { incarnation: INCARNATION, seen: Term(seen), longest, failures: 0 }
}

fn ids() -> impl Strategy<Value = NodeId> {
    prop_oneof![8 => 1..=4u32, 1 => Just(0), 1 => Just(99), 1 => any::<u32>()].prop_map(NodeId)
}

fn terms() -> impl Strategy<Value = Term> {
    prop_oneof![20 => 0..6u64, 1 => any::<u64>(), 1 => Just(u64::MAX)].prop_map(Term)
}

fn spans() -> impl Strategy<Value = Span> {
    let usual = 0..100u64;
    prop_oneof![8 => usual.prop_map(Span::from_millis), 1 => any::<u64>().prop_map(Span::from_nanos)]
}

fn ranks() -> impl Strategy<Value = Rank> {
    let attrs = prop_oneof![8 => -50..=50i64, 1 => any::<i64>()];
    let failures = prop_oneof![8 => Just(0), 1 => any::<u8>()];
    (any::<bool>(), attrs, failures, terms()).prop_map(|(eligible, attr, failures, failed_in)| {
        Rank { eligible, attr, failures, failed_in }
    })
}

fn transfer_reasons() -> impl Strategy<Value = TransferReason> {
    prop::sample::select(vec![
        TransferReason::Outranked,
        TransferReason::Preferred,
        TransferReason::Resigned,
        TransferReason::Requested,
        TransferReason::Drained,
        TransferReason::Crashed,
        TransferReason::Failed,
        TransferReason::ShuttingDown,
    ])
}

fn reasons() -> impl Strategy<Value = ElectionReason> {
    prop_oneof![
        Just(ElectionReason::Founded),
        (prop::option::of(ids()), prop::option::of(losses()))
            .prop_map(|(after, cause)| ElectionReason::Elected { after, cause }),
        (ids(), transfer_reasons())
            .prop_map(|(by, reason)| ElectionReason::Transferred { by, reason }),
    ]
}

fn losses() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::Unreachable),
        Just(Loss::NotRenewed),
        Just(Loss::NotConfirmed),
        transfer_reasons().prop_map(Loss::Transferred),
    ]
}

fn penalties() -> impl Strategy<Value = Option<Vec<(NodeId, Penalty)>>> {
    let penalty = (any::<u8>(), any::<u8>(), terms(), spans(), spans()).prop_map(
        |(failures, streak, failed_in, left, ago)| Penalty {
            failures,
            streak,
            failed_in,
            left,
            ago,
        },
    );
    prop::option::weighted(0.9, vec((ids(), penalty), 0..3))
}

fn pauses() -> impl Strategy<Value = Option<Pause>> {
    let pause = (0..4u64, ids(), spans());
    prop::option::weighted(
        0.3,
        pause.prop_map(|(number, id, left)| Pause { given: (number, id), left }),
    )
}

fn unreachable() -> impl Strategy<Value = Unreachable> {
    vec(ids(), 0..4).prop_map(Unreachable)
}

fn rounds() -> impl Strategy<Value = Round> {
    prop_oneof![8 => 0..8u64, 1 => any::<u64>()].prop_map(Round)
}

fn incarnations() -> impl Strategy<Value = Incarnation> {
    prop_oneof![8 => Just(INCARNATION), 2 => (0..3u32).prop_map(Incarnation), 1 => any::<u32>().prop_map(Incarnation)]
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
        2 => (0..4u32, ranks(), any::<bool>(), prop::option::of(ids())).prop_map(
            |(number, rank, force, takeover)| Body::PreVote { number, rank, force, takeover }
        ),
        4 => (0..4u32, answers).prop_map(|(number, answer)| Body::PreAnswer { number, answer }),
        2 => prop::option::of(terms()).prop_map(|released| Body::Request { released }),
        4 => Just(Body::Vote),
        4 => (rounds(), spans(), ranks(), preferences(), reasons(), unreachable(), penalties()).prop_map(
            |(round, vote_lease, rank, preference, reason, unreachable, penalties)| {
                Body::Heartbeat(Heartbeat {
                    round, vote_lease, rank, preference, reason, unreachable, penalties
                })
            }
        ),
        4 => (rounds(), ranks(), unreachable())
            .prop_map(|(round, rank, unreachable)| Body::Ack { round, rank, unreachable }),
        3 => Just(Body::Nack),
        1 => ranks().prop_map(|rank| Body::Preempt { rank }),
        2 => (transfer_reasons(), preferences())
            .prop_map(|(reason, preference)| Body::TimeoutNow { reason, preference }),
        1 => (prop::option::of(ids()), losses())
            .prop_map(|(successor, reason)| Body::Release { successor, reason }),
        1 => (incarnations(), any::<bool>()).prop_map(|(incarnation, rejoins)| Body::Hello { incarnation, rejoins }),
        2 => (incarnations(), terms(), spans(), any::<u8>())
            .prop_map(|(incarnation, seen, longest, failures)| Body::Welcome { incarnation, seen, longest, failures }),
        1 => (ranks(), unreachable())
            .prop_map(|(rank, unreachable)| Body::Probe { rank, unreachable }),
        1 => (terms(), any::<u32>(), ids(), spans()).prop_map(|(term, number, member, left)| {
            Body::Prefer { preference: Preference { given: (term, number), member, left } }
        }),
    ]
}

/// What can happen to a member.
#[derive(Clone, Debug)]
enum Happening {
    /// Sender, term, pause and content.
    Heard(u32, When, Option<Pause>, Body),
    /// One of the armed timers fires.
    Due(prop::sample::Index),
    Campaign,
    Command(AdminCommand),
    Retired,
}

/// A term, as seen by the member that learns of it.
#[derive(Clone, Debug)]
enum When {
    Present,
    Earlier,
    Later,
    Any(Term),
}

impl When {
    fn at(&self, present: Term) -> Term {
        match *self {
            Self::Present => present,
            Self::Earlier => Term(present.0.saturating_sub(1)),
            Self::Later => present.next(),
            Self::Any(term) => term,
        }
    }
}

fn orders() -> impl Strategy<Value = AdminCommand> {
    prop_oneof![
        Just(AdminCommand::Resign),
        ids().prop_map(|to| AdminCommand::Transfer { to }),
        (prop::option::of(spans()), any::<bool>())
            .prop_map(|(lasting, never)| AdminCommand::Drain { lasting, never }),
        Just(AdminCommand::Undrain),
        (ids(), spans()).prop_map(|(member, lasting)| AdminCommand::Prefer { member, lasting }),
        any::<i64>().prop_map(AdminCommand::Attribute),
        spans().prop_map(|lasting| AdminCommand::Pause { lasting }),
        Just(AdminCommand::Resume),
        Just(AdminCommand::ShutDown),
    ]
}

fn happenings() -> impl Strategy<Value = Happening> {
    let when = prop_oneof![
        16 => Just(When::Present),
        1 => Just(When::Earlier),
        3 => Just(When::Later),
        1 => terms().prop_map(When::Any),
    ];
    prop_oneof![
        12 => (1..=4u32, when, pauses(), bodies())
            .prop_map(|(from, term, pause, body)| Happening::Heard(from, term, pause, body)),
        6 => any::<prop::sample::Index>().prop_map(Happening::Due),
        1 => Just(Happening::Campaign),
        2 => orders().prop_map(Happening::Command),
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
    fn whatever_happens_a_member_keeps_its_invariants(
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
        pause in pauses(),
        body in bodies(),
    ) {
        let message = Message { config, term, pause, body };
        let encoded = postcard::to_allocvec(&message).unwrap();
        prop_assert_eq!(wire::encoded_len(&message), encoded.len(), "{}", message);
    }

    /// What the release before can say arrives as it was sent, and the rest is left out.
    #[test]
    fn messages_pass_between_releases(term in terms(), pause in pauses(), body in bodies()) {
        let message = Message { config: 7, term, pause, body };
        let old = |message: &Message| {
            postcard::to_allocvec(&message::earlier::Message::from(message.clone())).unwrap()
        };
        let read: message::earlier::Message = postcard::from_bytes(&old(&message)).unwrap();
        let read = Message::from(read);
        prop_assert_eq!(read.pause, None);
        prop_assert_eq!(protocol::name_of(&read), protocol::name_of(&message));
        prop_assert_eq!(read.commitments(), message.commitments(), "what binds is never left out");
    }
}

#[test]
fn a_vote_lease_beyond_the_limit_is_not_given() {
    let mut bench = Bench::follower();
    let more = Span::from_nanos(MAX_VOTE_LEASE.as_nanos() + 1);
    bench.hear(3, 1, heartbeat(1, more));
    assert_eq!(bench.sent, []);
    bench.hear(3, 1, heartbeat(1, MAX_VOTE_LEASE));
    assert!(matches!(bench.sent[..], [(NodeId(3), Message { body: Body::Ack { .. }, .. })]));
    assert_eq!(bench.disk.unwrap().longest, MAX_VOTE_LEASE);
}

#[test]
fn the_hold_down_of_a_member_that_rejoins_is_limited() {
    let mut bench = Bench::new(config(3), 1, Origin::Rejoining, None);
    bench.hear(2, 7, welcome(3, Span::from_nanos(u64::MAX)));
    assert!(bench.member.recovery.is_rejoining(), "3 has not answered");
    bench.hear(3, 5, welcome(9, Span::ZERO));
    let stored = bench.disk.unwrap();
    assert_eq!((stored.term, stored.voted), (Term(9), Some(NodeId(1))));
    assert_eq!(stored.longest, MAX_VOTE_LEASE);
}

#[test]
fn a_member_that_is_set_up_again_starts_above_the_floor() {
    let floor = Stored { term: Term(41), ..Stored::default() };
    let mut bench = Bench::new(config(1), 1, Origin::Founding { leader: None }, Some(floor));
    bench.feed(Event::Timer(Timer::Election));
    assert_eq!((bench.view.role, bench.view.term), (protocol::Role::Leader, Term(42)));
}

#[test]
fn an_unreachable_member_is_not_next() {
    let leader = Origin::Founding { leader: Some(NodeId(5)) };
    let mut bench = Bench::new(config(5), 1, leader, None);
    let next = |bench: &Bench| {
        bench.member.next_leader(&bench.config, |one, other| bench.member.receives(one, other))
    };
    assert_eq!(next(&bench), Some(NodeId(4)));
    // The others have not reported yet that 4 is unreachable.
    bench.feed(Event::Timer(Timer::Unreachable(NodeId(4))));
    assert_eq!(next(&bench), Some(NodeId(3)));
    // A host may know more: nothing has ever come from 3.
    let host_knows = |bench: &Bench| {
        let met = |one, other| (one, other) != (NodeId(1), NodeId(3));
        let receives = |one, other| met(one, other) && bench.member.receives(one, other);
        bench.member.next_leader(&bench.config, receives)
    };
    assert_eq!(host_knows(&bench), Some(NodeId(2)));
    let unreachable = Unreachable([3, 4].map(NodeId).to_vec());
    bench.hear(2, 1, Body::Probe { rank: RANK, unreachable });
    assert_eq!(host_knows(&bench), None, "1 and 2 are no majority");
}

#[test]
fn reachability_and_succession_can_be_shown() {
    let mut config = config(4);
    config.quorum.witnesses = [NodeId(1)].into_iter().collect();
    let mut bench = Bench::new(config, 2, Origin::Founding { leader: Some(NodeId(4)) }, None);
    let line = |bench: &Bench| bench.member.succession(&bench.config);
    assert_eq!(line(&bench), [4, 3, 2].map(NodeId));
    let next = |bench: &Bench| {
        bench.member.next_leader(&bench.config, |one, other| bench.member.receives(one, other))
    };
    assert_eq!(next(&bench), Some(NodeId(3)));

    // 3 reports that it receives only from 4; unknown ids are ignored.
    let unreachable = Unreachable(vec![NodeId(1), NodeId(2), NodeId(99)]);
    bench.hear(3, 1, Body::Probe { rank: RANK, unreachable });
    let member = &bench.member;
    assert!(!member.receives(NodeId(3), NodeId(2)) && member.receives(NodeId(3), NodeId(4)));
    assert!(member.receives(NodeId(2), NodeId(3)) && member.receives(NodeId(3), NodeId(99)));
    assert!(!member.reaches_majority(&bench.config, NodeId(3)));
    assert_eq!(next(&bench), None, "without the leader no member reaches a majority");
    assert_eq!(member.rank_of(&bench.config, NodeId(3)), RANK);

    bench.feed(Event::Timer(Timer::Unreachable(NodeId(1))));
    assert!(!bench.member.receives(NodeId(2), NodeId(1)));
    bench.feed(Event::Timer(Timer::VoteLease));
    let failures = |bench: &Bench, id| bench.member.failures_of(NodeId(id));
    assert_eq!((failures(&bench, 4), line(&bench)[2]), (1, NodeId(4)));
    assert_eq!((bench.member.reason(), bench.member.preference()), (None, None));
    assert_eq!(Bench::leader().member.reason(), Some(ElectionReason::Founded));

    // The failures that a member reports count, once.
    let rank = Rank { failures: 2, failed_in: Term(1), ..RANK };
    for _ in 0..2 {
        bench.hear(3, 1, Body::Probe { rank, unreachable: Unreachable::default() });
    }
    bench.hear(4, 1, Body::Probe { rank: RANK, unreachable: Unreachable::default() });
    assert_eq!((failures(&bench, 3), failures(&bench, 4)), (2, 1));
    assert_eq!(line(&bench)[2], NodeId(3));
}

#[test]
fn a_heartbeat_that_was_never_sent_renews_nothing() {
    let mut bench = Bench::leader();
    let lease = bench.member.lease();
    bench.hear(
        2,
        1,
        Body::Ack { round: Round(u64::MAX), rank: RANK, unreachable: Unreachable::default() },
    );
    assert_eq!(bench.member.lease(), lease);
    bench.feed(Event::Command(AdminCommand::Transfer { to: NodeId(2) }));
    assert_eq!(bench.notices, [Notice::Refused(Refusal::Unfit(NodeId(2)))], "nor is it heard");
    bench.feed(Event::Timer(Timer::Lease(Round(1))));
    assert_eq!(bench.member.lease(), None);
}

/// Its guardian says that it has died: no other evidence is needed. Its next process counts again.
#[test]
fn a_leader_whose_guardian_released_the_lease_is_unreachable_at_once() {
    let (leader, crashed) = (NodeId(3), TransferReason::Crashed);
    let release = Body::Release { successor: None, reason: Loss::Transferred(crashed) };
    let chosen = Body::TimeoutNow { reason: crashed, preference: None };
    for told in [release, chosen] {
        let mut bench = Bench::follower();
        bench.hear(3, 1, told);
        assert!(!bench.member.receives(NodeId(2), leader));
        bench.hear(3, 1, Body::Probe { rank: RANK, unreachable: Unreachable::default() });
        assert!(bench.member.receives(NodeId(2), leader));
    }
    let mut bench = Bench::follower();
    let resigned = Loss::Transferred(TransferReason::Resigned);
    bench.hear(3, 1, Body::Release { successor: None, reason: resigned });
    assert!(bench.member.receives(NodeId(2), leader), "it lives");
}

/// What is shown must not say that a majority is reachable while none answers: three probes take longer than a lease.
#[test]
fn members_that_do_not_answer_are_silent_at_once() {
    let silent = |bench: &Bench| [1, 2, 3].map(|id| bench.member.is_silent(NodeId(id)));
    let ack = |round| Body::Ack { round, rank: RANK, unreachable: Unreachable::default() };
    let mut bench = Bench::leader();
    bench.feed(Event::Timer(Timer::Heartbeat));
    bench.hear(2, 1, ack(Round(2)));
    assert_eq!(silent(&bench), [false; 3], "two heartbeats may be under way");
    bench.feed(Event::Timer(Timer::Heartbeat));
    bench.feed(Event::Timer(Timer::Heartbeat));
    assert_eq!(silent(&bench), [true, false, false]);
    bench.feed(Event::Timer(Timer::Heartbeat));
    assert_eq!(silent(&bench), [true, true, false]);
    let lease = bench.member.lease().expect("a lease");
    bench.feed(Event::Timer(lease));
    bench.feed(Event::Timer(Timer::Confirmation));
    assert_eq!((bench.view.leader, silent(&bench)), (None, [true, true, false]));
    bench.hear(1, 1, Body::Probe { rank: RANK, unreachable: Unreachable::default() });
    assert_eq!(silent(&bench), [false, true, false]);
    assert!(bench.member.receives(NodeId(3), NodeId(2)), "no rule depends on it");

    let mut bench = Bench::follower();
    bench.feed(Event::Timer(Timer::VoteLease));
    bench.feed(Event::Timer(Timer::Election));
    bench.hear(1, 1, Body::PreAnswer { number: 1, answer: Answer::No });
    bench.feed(Event::Timer(Timer::PreVote));
    assert_eq!(silent(&bench), [false, false, true]);
}

/// A tenure is counted from the first gap on even where nothing else depends on how long a leader has led.
#[test]
fn gaps_far_apart_do_not_add_up_without_penalties_and_preemption() {
    let mut config = config(3);
    (config.quorum.preemption, config.quorum.penalty_decay) = (Preemption::Never, Span::ZERO);
    let mut bench = Bench::new(config, 3, Origin::Founding { leader: Some(NodeId(3)) }, None);
    let acknowledge = |bench: &mut Bench| {
        bench.feed(Event::Timer(Timer::Heartbeat));
        let Role::Leader(leader) = &bench.member.role else { panic!("it leads") };
        let round = leader.newest;
        bench.hear(2, 1, Body::Ack { round, rank: RANK, unreachable: Unreachable::default() });
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
fn ids_of_strangers_are_ignored() {
    let nobody = NodeId(99);
    let mut bench = Bench::follower();
    bench.hear(1, 1, Body::PreVote { number: 1, rank: RANK, force: false, takeover: Some(nobody) });
    let refusal = Body::PreAnswer { number: 1, answer: Answer::No };
    assert_eq!(bench.sent[0].1.body, refusal);
    let reason = Loss::Transferred(TransferReason::Requested);
    bench.hear(3, 1, Body::Release { successor: Some(nobody), reason });
    assert_eq!(bench.view.leader, None);

    let mut bench = Bench::leader();
    let refused = |bench: &Bench| matches!(bench.notices[..], [Notice::Refused(_)]);
    bench.feed(Event::Command(AdminCommand::Transfer { to: nobody }));
    assert!(refused(&bench));
    bench.feed(Event::Command(AdminCommand::Prefer {
        member: nobody,
        lasting: Span::from_millis(9),
    }));
    assert!(refused(&bench));
}

/// A peer that claims to be in the last of all terms leaves no terms for the others. That ends the elections, as
/// it must; it breaks nothing else.
#[test]
fn after_the_last_term_no_member_campaigns_and_nothing_breaks() {
    let mut bench = Bench::follower();
    bench.hear(1, u64::MAX, heartbeat(1, Span::from_millis(20)));
    assert_eq!(bench.view.leader, Some(NodeId(1)));
    bench.feed(Event::Timer(Timer::VoteLease));
    bench.feed(Event::Timer(Timer::Election));
    let number = bench.member.question;
    bench.hear(3, u64::MAX, Body::PreAnswer { number, answer: Answer::Yes });
    assert_eq!(bench.notices, [Notice::OutOfTerms]);
    assert_eq!(bench.sent, []);
    let reason = TransferReason::Resigned;
    bench.hear(3, u64::MAX, Body::TimeoutNow { reason, preference: None });
    assert!(!bench.sent.iter().any(|(_, message)| matches!(message.body, Body::Request { .. })));
}

/// The pause in force, as the member shows it: its number and the time that is left, in milliseconds.
fn paused(bench: &Bench) -> Option<(u64, u64)> {
    let pause = bench.member.pause_in_force()?;
    Some((pause.given.0, pause.left.as_nanos() / 1_000_000))
}

fn asks(bench: &Bench) -> bool {
    bench.sent.iter().any(|(_, message)| matches!(message.body, Body::PreVote { .. }))
}

const A_SECOND: Span = Span::from_millis(1000);

fn pause_of(number: u64, by: u32, left: Span) -> Option<Pause> {
    Some(Pause { given: (number, NodeId(by)), left })
}

#[test]
fn a_pause_is_stored_and_told_to_all_by_any_member() {
    let mut bench = Bench::follower();
    bench.feed(Event::Command(AdminCommand::Resume));
    assert_eq!(bench.notices, [Notice::Refused(Refusal::NotPaused)]);
    bench.feed(Event::Command(AdminCommand::Pause { lasting: A_SECOND }));
    assert_eq!(paused(&bench), Some((1, 1000)));
    assert!(bench.disk.is_some_and(|disk| protocol::Durable::is_paused(&disk)));
    assert_eq!(bench.notices, [Notice::Paused { by: NodeId(2), left: A_SECOND }]);
    assert_eq!(bench.sent.len(), 2, "to every other member");
    assert!(bench.sent.iter().all(|(_, message)| message.pause == pause_of(1, 2, A_SECOND)));

    bench.feed(Event::Timer(Timer::VoteLease));
    assert!(!bench.armed.contains(&Timer::Election), "it does not wait for its turn");
    bench.feed(Event::Campaign);
    assert!(!asks(&bench), "nor campaigns at the request of a program");
    bench.feed(Event::Timer(Timer::Pause));
    assert_eq!((paused(&bench), &bench.notices[..]), (None, &[Notice::Resumed { by: None }][..]));
    bench.feed(Event::Timer(Timer::Election));
    assert!(asks(&bench), "and campaigns when the time is over");
}

#[test]
fn a_pause_is_counted_down_in_steps_that_survive_a_restart() {
    let mut bench = Bench::follower();
    bench.feed(Event::Command(AdminCommand::Pause { lasting: A_SECOND * 25 }));
    bench.feed(Event::Timer(Timer::Pause));
    assert_eq!(paused(&bench), Some((1, 15_000)));
    let disk = bench.disk;
    let mut bench = Bench::new(config(3), 2, Origin::Joining, disk);
    assert_eq!(paused(&bench), Some((1, 15_000)));
    bench.feed(Event::Timer(Timer::Pause));
    bench.feed(Event::Timer(Timer::Pause));
    assert_eq!(paused(&bench), None);
}

/// The order of the pauses is that of their numbers, then that of the members; of one pause the shorter time counts.
#[test]
fn the_latest_pause_counts_whatever_arrives_last() {
    let mut bench = Bench::follower();
    let mut hears = |pause| {
        bench.others_pause = pause;
        bench.hear(1, 1, Body::Nack);
        paused(&bench)
    };
    assert_eq!(hears(pause_of(3, 1, A_SECOND)), Some((3, 1000)));
    assert_eq!(hears(pause_of(2, 3, A_SECOND * 2)), Some((3, 1000)), "an earlier one");
    assert_eq!(hears(None), Some((3, 1000)));
    assert_eq!(hears(pause_of(3, 3, A_SECOND * 2)), Some((3, 2000)), "two at once: the higher id");
    assert_eq!(hears(pause_of(3, 3, A_SECOND)), Some((3, 1000)), "less of it is left");
    assert_eq!(hears(pause_of(3, 3, A_SECOND * 2)), Some((3, 1000)), "late");
    assert_eq!(hears(pause_of(9, 99, A_SECOND * 2)), Some((3, 1000)), "99 is not a member");
    assert_eq!(hears(pause_of(4, 1, Span::ZERO)), None, "resumed elsewhere");
    assert_eq!(hears(pause_of(3, 3, A_SECOND)), None, "late again");
    bench.feed(Event::Command(AdminCommand::Pause { lasting: A_SECOND }));
    assert_eq!(paused(&bench), Some((5, 1000)));
}

#[test]
fn a_candidate_that_learns_of_a_pause_from_a_vote_does_not_lead() {
    let mut bench = Bench::follower();
    bench.feed(Event::Timer(Timer::VoteLease));
    bench.feed(Event::Timer(Timer::Election));
    let number = bench.member.question;
    bench.hear(1, 1, Body::PreAnswer { number, answer: Answer::Yes });
    assert!(matches!(bench.member.role, Role::Candidate(_)));
    bench.others_pause = pause_of(1, 1, A_SECOND);
    bench.hear(1, 2, Body::Vote);
    assert!(matches!(bench.member.role, Role::Follower(_)), "{:?}", bench.member.role);
}

#[test]
fn while_elections_are_paused_a_transfer_works_and_a_crash_hands_nothing_over() {
    let timeout_now = |reason| {
        let mut bench = Bench::follower();
        bench.others_pause = pause_of(1, 3, A_SECOND);
        bench.hear(3, 1, Body::TimeoutNow { reason, preference: None });
        bench
    };
    let mut bench = timeout_now(TransferReason::Requested);
    assert!(matches!(bench.member.role, Role::Candidate(_)));
    // Its requests are lost. It is still the successor.
    bench.feed(Event::Timer(Timer::Vote));
    bench.feed(Event::Timer(Timer::Election));
    assert!(asks(&bench));
    let number = bench.member.question;
    bench.hear(1, 2, Body::PreAnswer { number, answer: Answer::Yes });
    let requests = Body::Request { released: Some(Term(1)) };
    assert!(bench.sent.iter().all(|(_, message)| message.body == requests), "{:?}", bench.sent);

    let mut bench = timeout_now(TransferReason::Crashed);
    assert!(matches!(bench.member.role, Role::Follower(Follower { leader: None, .. })));
    let reason = Loss::Transferred(TransferReason::Crashed);
    let left =
        Notice::Changed(LeaderChange::LeaderLeft { leader: NodeId(3), term: Term(1), reason });
    assert!(bench.notices.contains(&left), "the successor reports it: {:?}", bench.notices);
    let mut other = Bench::follower();
    other.others_pause = pause_of(1, 3, A_SECOND);
    other.hear(3, 1, Body::Release { successor: Some(NodeId(1)), reason });
    assert!(other.notices.contains(&left), "and every other member: {:?}", other.notices);
    assert!(!bench.armed.contains(&Timer::Election));
    bench.feed(Event::Command(AdminCommand::Resume));
    bench.feed(Event::Timer(Timer::Election));
    assert!(asks(&bench));
}

#[test]
fn a_leader_without_a_majority_says_why_it_steps_down() {
    let mut bench = Bench::leader();
    let lease = bench.member.lease().expect("a lease");
    bench.feed(Event::Timer(lease));
    bench.feed(Event::Timer(Timer::Confirmation));
    let told = Body::Release { successor: None, reason: Loss::NotRenewed };
    assert_eq!(bench.sent.iter().filter(|(_, message)| message.body == told).count(), 2);
    assert_eq!(bench.member.failures_of(NodeId(3)), 0, "its followers may have been stopped");

    let mut follower = Bench::follower();
    follower.hear(3, 1, told);
    let (leader, term) = (NodeId(3), Term(1));
    let left = LeaderChange::LeaderLeft { leader, term, reason: Loss::NotRenewed };
    assert_eq!(follower.notices, [Notice::Changed(left)]);
    assert_eq!(follower.member.failures_of(leader), 0);

    // Another member leads: a majority was there without this one.
    bench.hear(2, 2, heartbeat(1, Span::from_millis(20)));
    assert_eq!(bench.member.failures_of(NodeId(3)), 1);
    let rank = |bench: &Bench| match &bench.sent[0].1.body {
        Body::Ack { rank, .. } => *rank,
        other => panic!("{other:?}"),
    };
    assert_eq!((rank(&bench).failures, rank(&bench).failed_in), (1, Term(1)), "it reports that");
}

#[test]
fn followers_count_the_failures_that_their_leader_counts() {
    let mut bench = Bench::follower();
    let penalty = Penalty {
        failures: 1,
        streak: 1,
        failed_in: Term(1),
        left: Span::from_millis(40),
        ago: Span::from_millis(20),
    };
    let beat = |penalties: &[(NodeId, Penalty)]| {
        let Body::Heartbeat(beat) = heartbeat(1, Span::from_millis(20)) else { panic!() };
        Body::Heartbeat(Heartbeat { penalties: Some(penalties.to_vec()), ..beat })
    };
    bench.hear(3, 1, beat(&[(NodeId(1), penalty), (NodeId(99), penalty)]));
    assert_eq!(bench.member.penalty_of(NodeId(1)), penalty);
    assert_eq!(bench.member.penalty_of(NodeId(99)), Penalty::default());
    assert!(bench.armed.contains(&Timer::Penalty(NodeId(1))));
    bench.hear(3, 1, beat(&[]));
    assert_eq!(bench.member.failures_of(NodeId(1)), 0);
    assert!(!bench.armed.contains(&Timer::Penalty(NodeId(1))));
    // A late report of the same failure does not count again.
    let rank = Rank { failures: 1, failed_in: Term(1), ..RANK };
    bench.hear(1, 1, Body::Probe { rank, unreachable: Unreachable::default() });
    assert_eq!(bench.member.failures_of(NodeId(1)), 0);
}

/// No heartbeat says how much time passes while there is no leader.
#[test]
fn without_a_leader_the_time_of_penalties_goes_on() {
    let mut bench = Bench::follower();
    let times = |left, ago| (Span::from_millis(left), Span::from_millis(ago));
    let (left, ago) = times(40, 20);
    let penalty = Penalty { failures: 1, streak: 1, failed_in: Term(1), left, ago };
    let Body::Heartbeat(beat) = heartbeat(1, Span::from_millis(20)) else { panic!() };
    let penalties = Some(vec![(NodeId(1), penalty)]);
    bench.hear(3, 1, Body::Heartbeat(Heartbeat { penalties, ..beat }));
    let counted = |bench: &Bench| {
        let Penalty { left, ago, .. } = bench.member.penalty_of(NodeId(1));
        (left, ago)
    };
    bench.feed(Event::Timer(Timer::Probe));
    assert_eq!(counted(&bench), times(40, 20), "the leader counts");
    bench.feed(Event::Timer(Timer::VoteLease));
    bench.feed(Event::Timer(Timer::Probe));
    assert_eq!(counted(&bench), times(30, 30));
}
