//! The lock service over a failover, every schedule of a small case: two clients, leaders of two terms, messages in any order,
//! lost or doubled.
//!
//! Goal: no two clients hold the lock, fences are unique and rise, a resource that checks fences accepts no earlier one
//! after a later one, and a client that shows its ticket in time keeps its place. Method: the state machines of doyen-core,
//! unchanged, in a host that lets every armed timer fire at any time, with one exception, which is what the clocks promise:
//! a timer of a grantor that lasts a lease or longer does not fire before a client's `Hold` that was armed before it has
//! ended. Then each rule is taken away, and must be missed.
//!
//! A host of its own, because the explorer of this crate runs members of one protocol, and these clients are no members.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use doyen_core::lock::client::{self, Client};
use doyen_core::lock::grantor::{self, Caller, Grantor};
use doyen_core::lock::{
    Answer, Call, ClaimId, Config, LockName, Origin, Request, Round, Rule, Verdict,
};
use doyen_core::members::Term;
use doyen_core::protocol::{Fence, Section};

/// What is explored.
#[derive(Clone, Copy)]
struct Scope {
    /// How often each client wants the lock.
    requests: u8,
    /// How often each client calls again, over all its requests.
    keeps: [u8; 2],
    /// How many calls may be doubled.
    doubles: u8,
    /// Whether clients may be paused beyond the end of their leases, and write to a resource.
    pauses: bool,
    /// Whether the resource refuses earlier fences.
    fenced: bool,
    without: Option<Rule>,
    /// No more states than this.
    most: usize,
}

const SCOPE: Scope = Scope {
    requests: 1,
    keeps: [1, 0],
    doubles: 0,
    pauses: false,
    fenced: true,
    without: None,
    most: 250_000,
};

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    clients: [Actor; 2],
    leaders: [Leader; 2],
    /// The lease of the first leader is over, and the second one has its first.
    is_over: bool,
    /// The calls that may still reach each leader: one that never does is lost.
    calls: [BTreeSet<Call>; 2],
    /// How often a call may reach a leader twice.
    doubles: u8,
    /// Every answer that was sent, to be delivered never, once or often.
    answers: BTreeSet<Answer>,
    /// The highest fence under which a client entered, and that the resource accepted.
    entered: Fence,
    accepted: Fence,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Actor {
    client: Client,
    requests: u8,
    keeps: u8,
    /// Timers that are due and have not been handled, because the client is paused.
    overdue: BTreeSet<Round>,
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Leader {
    grantor: Grantor,
    /// Its armed timers, each with the last one of every client that ends first.
    timers: BTreeMap<grantor::Timer, BTreeMap<usize, Round>>,
}

type Step = (String, Result<World, String>);

impl World {
    fn new(scope: &Scope) -> Self {
        let actor = |keeps| Actor {
            client: Client::default(),
            requests: scope.requests,
            keeps,
            overdue: BTreeSet::new(),
        };
        let mut world = Self {
            clients: scope.keeps.map(actor),
            leaders: Default::default(),
            is_over: false,
            calls: Default::default(),
            doubles: scope.doubles,
            answers: BTreeSet::new(),
            entered: Fence::default(),
            accepted: Fence::default(),
        };
        let config = config(scope);
        world.lead(&config, 0, grantor::Event::Lease);
        world.leaders[0].timers.clear();
        world.lead(&config, 0, grantor::Event::Timer(grantor::Timer::Settle));
        world
    }

    /// The timers of clients that have not ended by the clock.
    fn running(&self) -> impl Iterator<Item = (usize, Round)> {
        self.clients.iter().enumerate().flat_map(|(at, actor)| {
            let armed = actor.client.armed().difference(&actor.overdue);
            armed.map(move |&round| (at, round))
        })
    }

    /// Hands a leader an event. The first one has no lease any more once the second one does.
    fn lead(&mut self, config: &Config, at: usize, event: grantor::Event) {
        let holds_lease = if at == 0 { !self.is_over } else { self.is_over };
        let lease = holds_lease.then_some(Term(at as u64 + 1));
        // Those of a client end in the order of their rounds.
        let running: BTreeMap<usize, Round> = self.running().collect();
        let mut out = Vec::new();
        let leader = &mut self.leaders[at];
        leader.grantor.handle(config, lease, event, &mut out);
        for effect in out {
            match effect {
                grantor::Effect::Answer { answer, .. } => {
                    // The others change nothing.
                    if !matches!(answer.verdict, Verdict::NotLeader | Verdict::Released) {
                        self.answers.insert(answer);
                    }
                }
                grantor::Effect::SetTimer { timer, after } => {
                    let is_long = after >= config.expiry();
                    let first = if is_long { running.clone() } else { BTreeMap::new() };
                    leader.timers.insert(timer, first);
                }
                grantor::Effect::CancelTimer(timer) => {
                    leader.timers.remove(&timer);
                }
            }
        }
    }

    /// Hands a client an event.
    fn act(&mut self, config: &Config, at: usize, event: client::Event) -> Result<(), String> {
        let mut out = Vec::new();
        let actor = &mut self.clients[at];
        actor.client.handle(config, event, &mut out);
        for effect in out {
            match effect {
                client::Effect::Call(mut call) => {
                    if call.request == Request::Release {
                        // Whatever its round, it does the same.
                        call.round = Round::default();
                    }
                    for calls in &mut self.calls {
                        calls.insert(call.clone());
                    }
                }
                client::Effect::Announce(Section::Inside(fence)) => {
                    if fence <= self.entered {
                        return Err(format!("fence {fence} after {}", self.entered));
                    }
                    self.entered = fence;
                }
                _ => {}
            }
        }
        let armed = actor.client.armed().clone();
        actor.overdue.retain(|round| armed.contains(round));
        Ok(())
    }

    /// The fence of a client that believes it holds the lock, and whether it does by the clock.
    fn inside(&self, at: usize) -> Option<(Fence, bool)> {
        let Actor { client, overdue, .. } = &self.clients[at];
        let fence = client.section().fence()?;
        let hold = client.hold().filter(|round| !overdue.contains(round));
        Some((fence, hold.is_some()))
    }

    fn check(&self) -> Result<(), String> {
        let holds = |at| matches!(self.inside(at), Some((_, true)));
        if holds(0) && holds(1) {
            return Err("two clients hold the lock".to_owned());
        }
        let mut fences: BTreeMap<Fence, ClaimId> = BTreeMap::new();
        for answer in &self.answers {
            let Verdict::Held(fence) = answer.verdict else { continue };
            if *fences.entry(fence).or_insert(answer.claim) != answer.claim {
                return Err(format!("fence {fence} was given twice"));
            }
        }
        Ok(())
    }

    /// Everything that may happen next.
    fn steps(&self, scope: &Scope) -> Vec<Step> {
        let config = config(scope);
        let mut steps = Vec::new();
        (0..2).for_each(|at| self.steps_of_client(scope, &config, at, &mut steps));
        (0..2).for_each(|at| self.steps_of_leader(&config, at, &mut steps));
        if !self.is_over {
            let mut world = Self { is_over: true, ..self.clone() };
            world.lead(&config, 1, grantor::Event::Lease);
            steps.push(("leader 2 is elected".to_owned(), Ok(world)));
        }
        for (_, step) in &mut steps {
            if let Ok(world) = step {
                world.forget_what_has_ended();
                world.forget_what_cannot_matter(&config);
                if let Err(problem) = world.check() {
                    *step = Err(problem);
                }
            }
        }
        steps
    }

    /// What has ended holds no timer up any more.
    fn forget_what_has_ended(&mut self) {
        let running: BTreeSet<(usize, Round)> = self.running().collect();
        for leader in &mut self.leaders {
            leader.timers.values_mut().for_each(|first| {
                first.retain(|&at, &mut round| running.contains(&(at, round)));
            });
        }
    }

    /// A leader without a lease does nothing any more. An answer in a term that its client has seen, about a claim that is
    /// over or to a call whose time is over, changes nothing.
    fn forget_what_cannot_matter(&mut self, config: &Config) {
        if self.is_over && config.without != Some(Rule::LeaseIsChecked) {
            self.leaders[0] = Leader::default();
            self.calls[0].clear();
        }
        let about_answers = [Rule::EarlierTermsRefused, Rule::HoldFromSending];
        if config.without.is_some_and(|rule| about_answers.contains(&rule)) {
            return;
        }
        let clients = &self.clients;
        self.answers.retain(|answer| {
            let client = &clients[(answer.claim.0 / 10) as usize].client;
            let is_current = client.claim() == Some(answer.claim);
            match answer.verdict {
                _ if answer.term < client.term() => false,
                _ if answer.term > client.term() => true,
                Verdict::Held(_) if is_current => client.armed().contains(&answer.round),
                Verdict::Held(_) => true,
                Verdict::Waiting { .. } => is_current && client.section() == Section::Waiting,
                Verdict::Gone => is_current,
                _ => false,
            }
        });
    }

    fn steps_of_client(&self, scope: &Scope, config: &Config, at: usize, steps: &mut Vec<Step>) {
        let name = ["A", "B"][at];
        let actor = &self.clients[at];
        let mut act = |label: String, event: client::Event, spend: fn(&mut Actor)| {
            let mut world = self.clone();
            spend(&mut world.clients[at]);
            let acted = world.act(config, at, event);
            steps.push((label, acted.map(|()| world)));
        };
        // What is due is handled first.
        if let Some(&round) = actor.overdue.first() {
            let event = client::Event::Timer(client::Timer::Hold(round));
            act(format!("{name} goes on: Hold {}", round.0), event, |_| {});
        } else {
            if actor.client.section().is_outside() && actor.requests > 0 {
                let claim = ClaimId(at as u128 * 10 + u128::from(actor.requests));
                act(format!("{name} asks"), client::Event::Request(claim), |it| it.requests -= 1);
            }
            if actor.client.section().is_inside() {
                act(format!("{name} releases"), client::Event::Exit, |_| {});
            }
            if !actor.client.section().is_outside() && actor.keeps > 0 {
                let event = client::Event::Timer(client::Timer::Keep);
                act(format!("{name} calls again"), event, |it| it.keeps -= 1);
            }
            if let Some(&round) = actor.client.armed().first() {
                let event = client::Event::Timer(client::Timer::Hold(round));
                act(format!("{name}: Hold {} fires", round.0), event, |_| {});
            }
            self.deliver_answers(config, at, steps);
        }
        if scope.pauses {
            self.pause_or_write(scope, at, steps);
        }
    }

    fn deliver_answers(&self, config: &Config, at: usize, steps: &mut Vec<Step>) {
        let own = self.clients[at].client.claim();
        for answer in self.answers.iter().filter(|answer| answer.claim.0 / 10 == at as u128) {
            let mut world = self.clone();
            if own != Some(answer.claim) {
                // A claim that is over is released once, not again and again.
                world.answers.remove(answer);
            }
            let acted = world.act(config, at, client::Event::Answer(answer.clone()));
            let label = format!("{} gets {:?}", ["A", "B"][at], answer.verdict);
            steps.push((label, acted.map(|()| world)));
        }
    }

    fn pause_or_write(&self, scope: &Scope, at: usize, steps: &mut Vec<Step>) {
        let (name, actor) = (["A", "B"][at], &self.clients[at]);
        let next = actor.client.armed().difference(&actor.overdue).next();
        if let Some(&round) = next.filter(|_| actor.client.section().is_inside()) {
            let mut world = self.clone();
            world.clients[at].overdue.insert(round);
            steps.push((format!("{name} is paused beyond Hold {}", round.0), Ok(world)));
        }
        let Some((fence, _)) = self.inside(at) else { return };
        let is_older = fence < self.accepted;
        if is_older && scope.fenced {
            return;
        }
        let world = Self { accepted: self.accepted.max(fence), ..self.clone() };
        let written = match is_older {
            true => Err(format!("a write with fence {fence} after {}", self.accepted)),
            false => Ok(world),
        };
        steps.push((format!("{name} writes with fence {fence}"), written));
    }

    fn steps_of_leader(&self, config: &Config, at: usize, steps: &mut Vec<Step>) {
        for (timer, first) in &self.leaders[at].timers {
            if first.is_empty() {
                let mut world = self.clone();
                world.leaders[at].timers.remove(timer);
                world.lead(config, at, grantor::Event::Timer(timer.clone()));
                steps.push((format!("leader {}: {timer:?} fires", at + 1), Ok(world)));
            }
        }
        for call in &self.calls[at] {
            let mut world = self.clone();
            world.calls[at].remove(call);
            let by = Caller { origin: Origin(call.claim.0), owner: "".into() };
            let event = grantor::Event::Call { lock: lock(), call: call.clone(), by };
            world.lead(config, at, event);
            let step = self.keeps_places(&world, at, call).map(|()| world);
            if let Some(doubles) = self.doubles.checked_sub(1) {
                let doubled = step.clone().map(|mut world| {
                    world.doubles = doubles;
                    world.calls[at].insert(call.clone());
                    world
                });
                steps.push((format!("leader {} gets {call:?}, doubled", at + 1), doubled));
            }
            steps.push((format!("leader {} gets {call:?}", at + 1), step));
        }
    }

    /// A client that shows its ticket to a leader that settles keeps its place; one that comes later is told.
    fn keeps_places(&self, after: &Self, at: usize, call: &Call) -> Result<(), String> {
        let Request::Acquire { ticket: Some(shown) } = call.request else { return Ok(()) };
        let place = |world: &Self| {
            let lock = world.leaders[at].grantor.locks().get(&lock())?;
            let mut waiters = lock.waiters();
            waiters.find(|(_, claim)| claim.id == call.claim).map(|(ticket, _)| ticket)
        };
        let (Some(now), None) = (place(after), place(self)) else { return Ok(()) };
        let grantor = &self.leaders[at].grantor;
        if grantor.settles() && shown.term < grantor.term() {
            return if now == shown { Ok(()) } else { Err("a place was lost".to_owned()) };
        }
        let is_told = |answer: &&Answer| matches!(answer.verdict, Verdict::Waiting { requeued: true, ticket, .. } if ticket == now);
        match after.answers.iter().any(|answer| is_told(&answer)) {
            true => Ok(()),
            false => Err("a place was lost, and its client is not told".to_owned()),
        }
    }
}

fn config(scope: &Scope) -> Config {
    Config { without: scope.without, ..Config::new(100) }
}

fn lock() -> LockName {
    "a".parse().expect("a name")
}

struct Outcome {
    states: usize,
    exhausted: bool,
    /// What was violated, and by which steps.
    violation: Option<String>,
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Visits every state, breadth first.
fn explore(scope: Scope) -> Outcome {
    let start = World::new(&scope);
    let first = fingerprint(&start);
    let mut seen: HashMap<u64, Option<(u64, String)>> = HashMap::from([(first, None)]);
    let mut queue = VecDeque::from([(first, start)]);
    while let Some((from, world)) = queue.pop_front() {
        for (label, step) in world.steps(&scope) {
            let world = match step {
                Ok(world) => world,
                Err(problem) => {
                    let violation = format!("{problem}: {}", path(&seen, from, &label));
                    return Outcome {
                        states: seen.len(),
                        exhausted: false,
                        violation: Some(violation),
                    };
                }
            };
            let number = fingerprint(&world);
            if let Entry::Vacant(place) = seen.entry(number) {
                place.insert(Some((from, label)));
                queue.push_back((number, world));
            }
        }
        if seen.len() > scope.most {
            return Outcome { states: seen.len(), exhausted: false, violation: None };
        }
    }
    Outcome { states: seen.len(), exhausted: true, violation: None }
}

fn path(seen: &HashMap<u64, Option<(u64, String)>>, from: u64, last: &str) -> String {
    let mut steps = vec![last.to_owned()];
    let mut at = from;
    while let Some(Some((before, label))) = seen.get(&at) {
        steps.push(label.clone());
        at = *before;
    }
    steps.reverse();
    steps.join("; ")
}

/// Explores a case, and says how far it got.
fn find_nothing(scope: Scope) -> bool {
    let Scope { requests, keeps, doubles, pauses, .. } = scope;
    let Outcome { states, exhausted, violation } = explore(scope);
    println!(
        "{requests} requests each, {keeps:?} calls again, {doubles} doubled, pauses: {pauses}: {states} states, all: {exhausted}"
    );
    assert_eq!(violation, None);
    exhausted
}

#[test]
fn no_two_clients_hold_a_lock_in_any_schedule() {
    assert!(find_nothing(Scope { keeps: [0, 0], ..SCOPE }), "every schedule");
    for (requests, keeps, doubles) in [(1, [1, 1], 0), (2, [1, 1], 1)] {
        find_nothing(Scope { requests, keeps, doubles, ..SCOPE });
    }
}

/// Two requests each are more than a minute's work: this goes as far as memory allows.
#[test]
#[ignore = "minutes; `make campaign` runs it"]
fn no_two_clients_hold_a_lock_in_millions_of_schedules() {
    let scope = Scope { most: 3_000_000, ..SCOPE };
    assert!(find_nothing(Scope { keeps: [0, 0], doubles: 1, ..scope }), "every schedule");
    for (requests, keeps, doubles) in [(1, [1, 1], 0), (2, [0, 0], 0), (2, [1, 1], 1)] {
        find_nothing(Scope { requests, keeps, doubles, ..scope });
    }
}

#[test]
fn a_resource_that_checks_fences_accepts_no_earlier_holder_after_a_later_one() {
    let scope = Scope { pauses: true, ..SCOPE };
    assert!(find_nothing(Scope { keeps: [0, 0], ..scope }), "every schedule");
    find_nothing(scope);
    let unfenced = explore(Scope { pauses: true, fenced: false, ..SCOPE });
    let violation = unfenced.violation.expect("a write of an earlier holder is accepted");
    assert!(violation.starts_with("a write with fence 1.1 after"), "{violation}");
}

#[test]
fn every_rule_is_missed() {
    for (rule, wanted) in [
        (Rule::HoldFromSending, "two clients hold the lock"),
        (Rule::Settle, "two clients hold the lock"),
        (Rule::SettleToTheEnd, "two clients hold the lock"),
        (Rule::SettleForALease, "two clients hold the lock"),
        (Rule::EarlierTermsRefused, "two clients hold the lock"),
        (Rule::ClaimsAreEntered, "two clients hold the lock"),
        (Rule::PlacesAreKept, "a place was lost"),
        (Rule::LeaseIsChecked, "two clients hold the lock"),
    ] {
        let outcome = explore(Scope { without: Some(rule), ..SCOPE });
        let violation = outcome.violation;
        let violation = violation.unwrap_or_else(|| panic!("{rule:?}: {} states", outcome.states));
        println!("{rule:?}: {violation}");
        assert!(violation.starts_with(wanted), "{rule:?}: {violation}");
    }
    let tested = Rule::ALL.len();
    assert_eq!(tested, 8, "a rule that is added needs a line above");
}
