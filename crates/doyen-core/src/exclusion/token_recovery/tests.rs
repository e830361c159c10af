//! Every schedule of a ring of three, with the cases of the reference program (P): two members want to enter once, the token
//! may be lost, members may look for it at any time, and may crash.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::*;
use crate::algorithm::testing;
use crate::config::Mode;
use crate::members::Incarnation;
use crate::protocol::{Boot, Effects, Event, Origin, Protocol};

/// What may happen, and how often.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Budget {
    /// Who wants to enter, once.
    requests: BTreeSet<u32>,
    /// Who looks for the token without being told that anything is wrong, once.
    searches: BTreeSet<u32>,
    losses: u32,
    crashes: u32,
    /// How often a crashed member is started again.
    restarts: u32,
}

impl Budget {
    fn new(searches: &[u32], losses: u32, crashes: u32) -> Self {
        let searches = searches.iter().copied().collect();
        Self { requests: BTreeSet::from([1, 2]), searches, losses, crashes, restarts: 0 }
    }
}

/// Everything at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    /// None, if it has crashed.
    members: Vec<Option<TokenRecovery>>,
    /// Messages under way, in no order: sender, receiver, message.
    sent: BTreeSet<(u32, u32, Order)>,
    /// Which crashes have been reported to whom, and their ends not yet.
    reported: BTreeSet<(u32, u32)>,
    left: Budget,
}

/// A message that can be sorted. No two equal ones are ever under way on a link.
type Order = (u8, u64, bool);

fn ordered(message: Message) -> Order {
    match message {
        Message::Token { generation } => (0, generation.0, false),
        Message::Probe { generation } => (1, generation.0, false),
        Message::Have { generation, holds } => (2, generation.0, holds),
        Message::Adopt { generation } => (3, generation.0, false),
    }
}

fn message((kind, generation, holds): Order) -> Message {
    let generation = Term(generation);
    match kind {
        0 => Message::Token { generation },
        1 => Message::Probe { generation },
        2 => Message::Have { generation, holds },
        _ => Message::Adopt { generation },
    }
}

type Happening = Event<Message, NoTimer>;

impl State {
    fn start(config: &Config, left: Budget) -> Self {
        let mut state =
            Self { members: Vec::new(), sent: BTreeSet::new(), reported: BTreeSet::new(), left };
        for id in config.members.iter() {
            let mut out = Effects::new();
            let boot = Boot::new(Incarnation(1), None, Origin::Founding { leader: None });
            state.members.push(Some(TokenRecovery::start(id, config, boot, &mut out)));
            state.send(id.0, out);
        }
        state
    }

    fn send(&mut self, from: u32, out: Effects<TokenRecovery>) {
        for (to, message) in out.into_messages() {
            self.sent.insert((from, to.0, ordered(message)));
        }
    }

    fn member(&self, id: u32) -> Option<&TokenRecovery> {
        self.members[id as usize - 1].as_ref()
    }

    /// The state after something has happened to a live member.
    fn after(&self, config: &Config, id: u32, event: Happening) -> Self {
        let mut next = self.clone();
        let mut out = Effects::new();
        if let Some(member) = &mut next.members[id as usize - 1] {
            member.handle(config, event, &mut out);
        }
        next.send(id, out);
        next
    }

    fn is_inside(&self, id: u32) -> bool {
        self.member(id).is_some_and(|member| member.view().section.is_inside())
    }

    fn next(&self, config: &Config) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        let live = || (1..=3).filter(|&id| self.member(id).is_some());
        for id in live() {
            if self.left.requests.contains(&id) {
                let mut next = self.after(config, id, Event::Request);
                next.left.requests.remove(&id);
                all.push((format!("{id} wants to enter"), next));
            }
            if self.left.searches.contains(&id) {
                let mut next = self.after(config, id, Event::Campaign);
                next.left.searches.remove(&id);
                all.push((format!("{id} looks for the token"), next));
            }
            if self.is_inside(id) {
                all.push((format!("{id} leaves"), self.after(config, id, Event::Exit)));
            }
            if self.left.crashes > 0 {
                let mut next = self.clone();
                next.members[id as usize - 1] = None;
                next.left.crashes -= 1;
                next.sent.retain(|&(_, to, _)| to != id);
                all.push((format!("{id} crashes"), next));
            }
            for back in live().filter(|&back| self.reported.contains(&(id, back))) {
                let mut next = self.after(config, id, Event::PeerUp(NodeId(back)));
                next.reported.remove(&(id, back));
                all.push((format!("{id} is told that {back} is up"), next));
            }
            for dead in (1..=3).filter(|&peer| self.member(peer).is_none()) {
                if !self.reported.contains(&(id, dead)) {
                    let mut next = self.after(config, id, Event::PeerDown(NodeId(dead)));
                    next.reported.insert((id, dead));
                    all.push((format!("{id} is told that {dead} is down"), next));
                }
            }
        }
        for dead in (1..=3).filter(|&id| self.member(id).is_none() && self.left.restarts > 0) {
            // A process that is started again is noticed as one that has crashed before.
            if live().all(|id| self.reported.contains(&(id, dead))) {
                let mut next = self.clone();
                let boot = Boot::new(Incarnation(2), None, Origin::Joining);
                let mut out = Effects::new();
                let member = TokenRecovery::start(NodeId(dead), config, boot, &mut out);
                next.members[dead as usize - 1] = Some(member);
                next.reported.retain(|&(id, _)| id != dead);
                next.left.restarts -= 1;
                next.send(dead, out);
                all.push((format!("{dead} starts again"), next));
            }
        }
        for &(from, to, order) in &self.sent {
            let mut without = self.clone();
            without.sent.remove(&(from, to, order));
            let text = message(order).to_string();
            let event = Event::Message { from: NodeId(from), message: message(order) };
            all.push((format!("{text} {from}>{to}"), without.after(config, to, event)));
            let is_token = order.0 == 0;
            // What a crashed member has sent may be lost with it.
            let may_be_lost = self.member(from).is_none() || is_token && self.left.losses > 0;
            if may_be_lost {
                without.left.losses -= u32::from(self.member(from).is_some());
                all.push((format!("{text} {from}>{to} is lost"), without));
            }
        }
        all
    }

    /// What must never be.
    fn flaw(&self) -> Option<&'static str> {
        if (1..=3).filter(|&id| self.is_inside(id)).count() > 1 {
            return Some("two are inside");
        }
        let usable = |member: &TokenRecovery| {
            let Recovery { token, probed, .. } = *member.algorithm();
            token.filter(|_| token >= probed)
        };
        let held = self.members.iter().flatten().filter_map(usable).map(|it| it.0);
        let under_way = self.sent.iter().filter(|it| it.2.0 == 0).map(|it| it.2.1);
        let mut generations: Vec<u64> = held.chain(under_way).collect();
        let count = generations.len();
        generations.sort_unstable();
        generations.dedup();
        (generations.len() < count).then_some("two tokens of one generation")
    }

    /// Whether a search never ends: nothing happens any more, and the latest search still waits for answers.
    fn is_stuck(&self, config: &Config) -> bool {
        let live = || self.members.iter().flatten().map(Member::algorithm);
        let latest = live().filter_map(|it| it.search.as_ref()).map(|it| it.generation).max();
        let is_latest = latest.is_some() && latest >= live().filter_map(|it| it.probed).max();
        is_latest && self.next(config).is_empty()
    }

    /// Whether no token is left that could ever be used, though nothing is under way any more that would make one.
    fn is_tokenless(&self) -> bool {
        let holds = |member: &TokenRecovery| member.algorithm().token.is_some();
        self.left.searches.is_empty()
            && self.sent.is_empty()
            && !self.members.iter().flatten().any(holds)
    }
}

/// The states that can be reached, and the shortest way to a flaw.
fn explore(
    without: Option<Reliance>,
    left: &Budget,
) -> (usize, Option<(&'static str, Vec<String>)>) {
    let mut config = testing::config(3, Mode::Textbook);
    config.exclusion.without = without;
    let start = State::start(&config, left.clone());
    let mut from: Vec<(usize, String)> = vec![(0, String::new())];
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    let mut open = VecDeque::from([(0, start)]);
    while let Some((number, state)) = open.pop_front() {
        let is_calm = left.losses + left.crashes == 0;
        let flaw = state.flaw().or((is_calm && state.is_tokenless()).then_some("no token is left"));
        let flaw = flaw.or(state.is_stuck(&config).then_some("a search never ends"));
        if let Some(flaw) = flaw {
            let (mut path, mut at) = (Vec::new(), number);
            while at != 0 {
                path.push(from[at].1.clone());
                at = from[at].0;
            }
            path.reverse();
            return (numbers.len(), Some((flaw, path)));
        }
        for (step, next) in state.next(&config) {
            if !numbers.contains_key(&next) {
                let new = from.len();
                from.push((number, step));
                numbers.insert(next.clone(), new);
                open.push_back((new, next));
            }
        }
    }
    (numbers.len(), None)
}

#[test]
fn never_two_inside_and_one_token_a_generation_whatever_is_lost_and_whoever_looks_for_it() {
    let explored = [
        Budget::new(&[2, 3], 1, 0),
        Budget::new(&[2], 1, 1),
        // A search without need never loses the token.
        Budget::new(&[2, 3], 0, 0),
        // A search ends, though a member that was asked has come back without knowing that.
        Budget { restarts: 1, ..Budget::new(&[], 0, 1) },
    ];
    for budget in explored {
        let (states, flaw) = explore(None, &budget);
        assert_eq!(flaw, None, "{budget:?}");
        assert!(states > 500, "{budget:?} leads to {states} states only");
    }
}

#[test]
fn nothing_that_the_recovery_relies_on_can_be_left_out() {
    for reliance in [
        Reliance::OldTokenIsDropped,
        Reliance::AllAnswer,
        Reliance::HolderAnswers,
        Reliance::GenerationsDiffer,
        Reliance::OnlyAdoptRaises,
        Reliance::PinnedStays,
    ] {
        let budget = match reliance {
            Reliance::OnlyAdoptRaises => Budget::new(&[2], 0, 1),
            Reliance::PinnedStays => Budget::new(&[2], 0, 0),
            _ => Budget::new(&[2, 3], 0, 0),
        };
        let (_, flaw) = explore(Some(reliance), &budget);
        assert!(flaw.is_some(), "nothing notices that {reliance:?} is missing");
    }
}

/// A member that has not heard of the crash passes the new token to the crashed one. Every such token is replaced if one of
/// the others is told to look for it, and those who wait enter.
#[test]
fn a_search_replaces_a_token_that_was_passed_to_a_crashed_member() {
    let config = testing::config(3, Mode::Textbook);
    let start = State::start(&config, Budget::new(&[], 0, 1));
    let mut known = HashSet::from([start.clone()]);
    let mut open = vec![start];
    let mut lost = 0;
    while let Some(state) = open.pop() {
        let next = state.next(&config);
        let (live, dead): (Vec<u32>, Vec<u32>) =
            (1..=3).partition(|&id| state.member(id).is_some());
        let is_reported = |dead: &u32| live.iter().all(|&id| state.reported.contains(&(id, *dead)));
        if state.is_tokenless() && !dead.is_empty() && dead.iter().all(is_reported) {
            lost += 1;
            let mut state = state.after(&config, live[0], Event::Campaign);
            let waits = |state: &State, id| {
                state.member(id).is_some_and(|it| it.view().section == Section::Waiting)
            };
            for _ in 0..50 {
                let Some((from, to, order)) = state.sent.pop_first() else { break };
                let event = Event::Message { from: NodeId(from), message: message(order) };
                state = state.after(&config, to, event);
                for id in live.iter().copied().filter(|&id| state.is_inside(id)).collect::<Vec<_>>()
                {
                    state = state.after(&config, id, Event::Exit);
                }
            }
            assert!(
                !state.is_tokenless() && live.iter().all(|&id| !waits(&state, id)),
                "{state:?}"
            );
        }
        for (_, next) in next {
            if known.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    assert!(lost > 0, "a token is lost although the crash is reported");
}
