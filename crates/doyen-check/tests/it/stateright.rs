//! The same protocols in another checker, [`stateright`]: both count the same states. And where they differ: runs that
//! never end.
//!
//! The other checker is given the shipped state machines themselves, see [`Group`]: members, links that keep the order,
//! armed timers that expire at any moment. It has nothing of this crate's engine but its results to be compared with.
//!
//! A claim that something holds at last is broken by a loop in which it never does. `stateright` looks for the ends of
//! paths only and does not see it, which its documentation admits; [`Loop`] is the smallest such case. Which loops count
//! is a matter of fairness: those that a run could stay in for ever.

use std::collections::BTreeMap;
use std::convert::Infallible;

use doyen_check::budget::Budget;
use doyen_check::property::Property;
use doyen_check::search::space::{Claim, Space, Successors};
use doyen_check::search::{self, Limits, Plan, Violation};
use doyen_check::{Explorable, Rules, Scene, Timers};
use doyen_core::algorithm::bully::Bully;
use doyen_core::algorithm::chang_roberts::ChangRoberts;
use doyen_core::algorithm::ring_all_ids::RingAllIds;
use doyen_core::algorithm::ring_list::RingList;
use doyen_core::config::{Config, Mode, Timing};
use doyen_core::host::{Host, apply};
use doyen_core::members::{Incarnation, Members, NodeId};
use doyen_core::protocol::{Boot, Effects, Event, Notice, Origin, Protocol, View};
use doyen_core::time::{Delay, Span};
use stateright::{Checker, Model};

/// Members of a textbook algorithm who have all started, as a model of the other checker.
struct Group {
    config: Config,
    initiators: Vec<NodeId>,
    /// How often a member's timers may expire.
    expiries: u8,
}

/// A state of all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole<P: Protocol> {
    members: Vec<Single<P>>,
    /// By receiver and sender, in order of sending; no entry where nothing is under way.
    links: BTreeMap<(NodeId, NodeId), Vec<P::Message>>,
}

/// A member, its armed timers, and how many of them may still expire.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Single<P: Protocol> {
    state: P,
    timers: Vec<P::Timer>,
    expiries: u8,
}

/// What can happen.
#[derive(Clone, PartialEq, Debug)]
enum Happening<T> {
    Deliver { to: NodeId, from: NodeId },
    Expire { member: NodeId, timer: T },
}

/// The group as a model of `P`.
struct GroupOf<P> {
    group: Group,
    algorithm: std::marker::PhantomData<fn() -> P>,
}

impl Group {
    /// Members 1 to `count`, of whom these have called an election; ids fall clockwise.
    fn new(count: u32, initiators: &[u32], expiries: u8) -> Self {
        let falling: Vec<NodeId> = (1..=count).rev().map(NodeId).collect();
        let members = Members::range(1, count).and_then(|members| members.with_ring(falling));
        let timing = Timing::for_transmission(Span::from_millis(1));
        let config = Config::new(members.expect("a ring of all"), timing, Mode::Textbook);
        let initiators = initiators.iter().copied().map(NodeId).collect();
        Self { config, initiators, expiries }
    }

    fn place(&self, id: NodeId) -> usize {
        self.config.members.position(id).expect("a member")
    }

    fn begin<P: Protocol<Config = Config>>(&self) -> Whole<P> {
        let mut whole = Whole { members: Vec::new(), links: BTreeMap::new() };
        for id in self.config.members.iter() {
            let origin = Origin::Founding { leader: None };
            let boot = Boot::new(Incarnation(1), None, origin);
            let mut out = Effects::new();
            let state = P::start(id, &self.config, boot, &mut out);
            whole.members.push(Single { state, timers: Vec::new(), expiries: self.expiries });
            self.carry_out(&mut whole, id, out);
        }
        for &id in &self.initiators {
            self.tell(&mut whole, id, Event::Campaign);
        }
        whole
    }

    fn tell<P: Protocol<Config = Config>>(
        &self,
        whole: &mut Whole<P>,
        id: NodeId,
        event: Event<P::Message, P::Timer>,
    ) {
        let mut out = Effects::new();
        whole.members[self.place(id)].state.handle(&self.config, event, &mut out);
        self.carry_out(whole, id, out);
    }

    fn carry_out<P: Protocol<Config = Config>>(
        &self,
        whole: &mut Whole<P>,
        id: NodeId,
        mut out: Effects<P>,
    ) {
        let Whole { members, links } = whole;
        let timers = &mut members[self.place(id)].timers;
        let Ok(()) = apply(out.drain(), &mut MemberHost::<P> { id, timers, links });
    }
}

/// The host of one member, for one event. Nothing is stored: nobody crashes.
struct MemberHost<'w, P: Protocol> {
    id: NodeId,
    timers: &'w mut Vec<P::Timer>,
    links: &'w mut BTreeMap<(NodeId, NodeId), Vec<P::Message>>,
}

impl<P: Protocol> Host<P> for MemberHost<'_, P> {
    type Error = Infallible;

    fn persist(&mut self, _: P::Durable) -> Result<(), Infallible> {
        Ok(())
    }

    fn send(&mut self, to: NodeId, message: P::Message) -> Result<(), Infallible> {
        self.links.entry((to, self.id)).or_default().push(message);
        Ok(())
    }

    fn arm(&mut self, timer: P::Timer, _: Delay) {
        if !self.timers.contains(&timer) {
            self.timers.push(timer);
            self.timers.sort_unstable();
        }
    }

    fn cancel(&mut self, timer: P::Timer) {
        self.timers.retain(|&armed| armed != timer);
    }

    fn announce(&mut self, _: View) {}

    fn inform(&mut self, _: Notice) -> Result<(), Infallible> {
        Ok(())
    }
}

impl<P: Protocol<Config = Config>> Model for GroupOf<P> {
    type State = Whole<P>;
    type Action = Happening<P::Timer>;

    fn init_states(&self) -> Vec<Whole<P>> {
        vec![self.group.begin()]
    }

    fn actions(&self, whole: &Whole<P>, actions: &mut Vec<Self::Action>) {
        actions.extend(whole.links.keys().map(|&(to, from)| Happening::Deliver { to, from }));
        for (id, member) in self.group.config.members.iter().zip(&whole.members) {
            let ready = member.timers.iter().filter(|_| member.expiries > 0);
            actions.extend(ready.map(|&timer| Happening::Expire { member: id, timer }));
        }
    }

    fn next_state(&self, whole: &Whole<P>, action: Self::Action) -> Option<Whole<P>> {
        let mut next = whole.clone();
        match action {
            Happening::Deliver { to, from } => {
                let link = next.links.get_mut(&(to, from))?;
                let message = link.remove(0);
                if link.is_empty() {
                    next.links.remove(&(to, from));
                }
                self.group.tell(&mut next, to, Event::Message { from, message });
            }
            Happening::Expire { member, timer } => {
                let single = &mut next.members[self.group.place(member)];
                single.timers.retain(|&armed| armed != timer);
                single.expiries -= 1;
                self.group.tell(&mut next, member, Event::Timer(timer));
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        // Without a property it would not explore at all; this one is never met.
        vec![stateright::Property::sometimes("never", |_, _| false)]
    }
}

/// The states that the other checker counts, and those that this one does.
fn counts<P>(group: Group) -> [u64; 2]
where
    P: Protocol<Config = Config> + Explorable + 'static,
    P::Message: 'static,
{
    let (config, initiators, expiries) =
        (group.config.clone(), group.initiators.clone(), group.expiries);
    let model = GroupOf::<P> { group, algorithm: std::marker::PhantomData };
    let theirs = model.checker().spawn_bfs().join().unique_state_count() as u64;
    let scene = Scene { initiators, ..Scene::new(&config.members) };
    let timers = Timers::Free { expiries };
    // What is never broken here, so that everything is explored.
    let properties = vec![Property::TermsNeverFall];
    let rules = Rules {
        budget: Budget::default(),
        timers,
        fifo: true,
        properties,
        from: None,
        scope: None,
    };
    let report = doyen_check::explore::<P>(&config, &scene, &rules, &plan(), &|_| true);
    assert_eq!((report.limit, report.violation), (None, None));
    [theirs, report.progress.states]
}

fn plan() -> Plan {
    Plan { reduce: false, threads: 1, limits: Limits::default() }
}

#[test]
fn both_count_the_same_states_of_chang_roberts() {
    let all: Vec<u32> = (1..=8).collect();
    for (members, states) in [(6, 435), (8, 4_870)] {
        let group = Group::new(members, &all[..members as usize], 0);
        assert_eq!(counts::<ChangRoberts>(group), [states, states]);
    }
}

#[test]
fn both_count_the_same_states_of_other_rings() {
    let [theirs, ours] = counts::<RingAllIds>(Group::new(4, &[1, 3], 0));
    assert_eq!(theirs, ours);
    assert!(ours > 100, "{ours}");
    let [theirs, ours] = counts::<RingList>(Group::new(3, &[1], 0));
    assert_eq!(theirs, ours);
    assert!(ours > 10, "{ours}");
}

#[test]
fn both_count_the_same_states_of_bully_with_timers() {
    let [theirs, ours] = counts::<Bully>(Group::new(3, &[1], 1));
    assert_eq!(theirs, ours);
    assert!(ours > 10, "{ours}");
}

/// A toy: numbers and the steps between them. A step's name is where it leads.
#[derive(Clone, Copy)]
struct Loop {
    /// From, to, and whether it must be taken at last.
    steps: &'static [(u32, u32, bool)],
}

/// What never comes.
const NINE: u32 = 9;

impl Space for Loop {
    type Worker = ();
    type Step = (u32, u32);

    fn worker(&self) {}

    fn start(&self) -> Vec<u32> {
        vec![0]
    }

    fn steps(
        &self,
        (): &mut (),
        state: &[u32],
        _reduce: bool,
        out: &mut Successors<(u32, u32)>,
    ) -> bool {
        out.clear();
        for &(from, to, _) in self.steps.iter().filter(|step| step.0 == state[0]) {
            out.add((from, to), None, |words| words.push(to));
        }
        false
    }

    fn fingerprint(&self, (): &mut (), state: &[u32]) -> u64 {
        u64::from(state[0]) + 1
    }

    fn observation(&self, (): &mut (), state: &[u32]) -> u32 {
        state[0]
    }

    fn claims(&self) -> &[Claim] {
        &[Claim::Rests]
    }

    fn holds(&self, _claim: usize, observation: u32) -> bool {
        observation == NINE
    }

    /// Steps to the same place are one, wherever they start.
    fn fairness(&self, (from, to): (u32, u32)) -> Option<(u32, u32)> {
        let is_it = |&&(one, other, _): &&(u32, u32, bool)| (one, other) == (from, to);
        self.steps.iter().find(is_it).filter(|step| step.2).map(|_| (NINE, to))
    }
}

impl Model for Loop {
    type State = u32;
    type Action = u32;

    fn init_states(&self) -> Vec<u32> {
        vec![0]
    }

    fn actions(&self, state: &u32, actions: &mut Vec<u32>) {
        actions.extend(self.steps.iter().filter(|step| step.0 == *state).map(|step| step.1));
    }

    fn next_state(&self, _state: &u32, action: u32) -> Option<u32> {
        Some(action)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::eventually("nine", |_, &state| state == NINE)]
    }
}

fn explore(toy: Loop) -> Option<Violation<(u32, u32)>> {
    let found = search::search(&toy, &plan(), &|_| true);
    assert_eq!(found.limit, None);
    found.violation
}

#[test]
fn a_loop_that_the_other_checker_misses_is_found() {
    let toy = Loop { steps: &[(0, 1, true), (1, 0, true)] };
    let checker = toy.checker().spawn_bfs().join();
    assert_eq!(checker.unique_state_count(), 2);
    assert_eq!(checker.discovery("nine"), None);
    let found = explore(toy).expect("nine never comes");
    assert_eq!(found.claim, 0);
    assert_eq!((found.path, found.cycle), (vec![], vec![(0, 1), (1, 0)]));
}

#[test]
fn a_loop_that_a_fair_step_leaves_is_no_violation() {
    // From both states of the loop the step to nine stays possible: it is taken at last.
    let toy = Loop { steps: &[(0, 1, true), (1, 0, true), (0, NINE, true), (1, NINE, true)] };
    assert_eq!(explore(toy), None);
}

#[test]
fn a_loop_that_only_a_fault_leaves_is_a_violation() {
    let toy = Loop { steps: &[(0, 1, true), (1, 0, true), (0, NINE, false), (1, NINE, false)] };
    let found = explore(toy).expect("no fault need ever happen");
    assert_eq!(found.cycle.len(), 2);
}

#[test]
fn a_step_that_is_possible_only_now_and_then_need_not_be_taken() {
    // Weak fairness: in state one the step to nine is not possible.
    let toy = Loop { steps: &[(0, 1, true), (1, 0, true), (0, NINE, true)] };
    assert!(explore(toy).is_some());
}
