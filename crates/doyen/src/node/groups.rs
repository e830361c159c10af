//! The groups of a member on a real node: timers, riders, and what programs read.
//!
//! The rules are those of [`doyen_core::group`], unchanged. The loop calls this host of theirs from its own thread: it puts a
//! rider on each heartbeat and acknowledgement of the quorum, hands over those that arrive with letters that count, and fires
//! timers, the ends of leases first. Each group has a [`Leadership`] of its own, which compares the deadline of the group's
//! lease with the clock at the call and gives permits; a group that is to move waits for the last of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use doyen_core::algorithm::quorum;
use doyen_core::config::quorum::{MAX_VOTE_LEASE, Preemption};
use doyen_core::group::rider::Rider;
use doyen_core::group::{Config, Effect, Event, GroupId, Groups, Table, Timer};
use doyen_core::lock;
use doyen_core::members::{NodeId, SessionId, Term};
use doyen_core::node::{Body, Packet};
use doyen_core::protocol::{Role, Section};
use doyen_core::registry::AnyMessage;
use doyen_core::session::{Content, Letter};
use doyen_core::time::Span;
use tokio::sync::watch;

use super::log::{LogLine, Logger};
use super::timers::Timers;
use super::waker::CommandReceiver;
use crate::clock::Moment;
use crate::config::Settings;
use crate::files;
use crate::leadership::{FencingToken, Leadership, LeadershipState, Permits, token_of};

/// What a node knows about a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupState {
    /// Its name.
    pub name: String,
    /// The member that leads it, as far as this node knows.
    pub leader: Option<NodeId>,
    /// The fencing token of that lead.
    pub token: Option<FencingToken>,
    /// When this node learned of that.
    pub since: Moment,
    /// The member that leads it if all members are there.
    pub preferred: Option<NodeId>,
}

/// The groups of a node, for the rest of the program. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct GroupReader {
    leaderships: Arc<BTreeMap<String, Leadership>>,
    states: watch::Receiver<Arc<Vec<GroupState>>>,
    changes: Arc<AtomicU64>,
}

impl GroupReader {
    /// Of a node without groups.
    pub(super) fn without_groups() -> Self {
        let (_, states) = watch::channel(Arc::default());
        Self { leaderships: Arc::default(), states, changes: Arc::default() }
    }

    pub(super) fn leadership(&self, name: &str) -> Option<&Leadership> {
        self.leaderships.get(name)
    }

    pub(super) fn states(&self) -> Arc<Vec<GroupState>> {
        self.states.borrow().clone()
    }

    /// How many groups this node leads now.
    pub(super) fn led(&self) -> usize {
        self.leaderships.values().filter(|leadership| leadership.is_leader()).count()
    }

    /// How often this node began or ceased to lead a group.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

/// The file in the state folder with the longest lease of groups that processes of this member may have to wait for.
const LEASE_FILE: &str = "group-lease";

/// How long it sleeps at most before it looks whether it is to stop.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// The lease of groups is shorter than before: members may still lead on a longer one, and a leader with the new lease would not
/// wait long enough for them to end. So this process must wait before it takes part. Members with another lease ignore each
/// other, so a leader with the new one needs the vote of a member that has changed.
#[derive(Debug)]
pub(super) struct ShorterLease {
    file: PathBuf,
    lease: Span,
    wait: Duration,
}

impl ShorterLease {
    /// Notes a lease that is longer than before, at once. One that is shorter is returned, and is noted when it has been waited
    /// for.
    pub(super) fn of(settings: &Settings) -> io::Result<Option<Self>> {
        let Some(config) = &settings.groups else { return Ok(None) };
        let (file, lease) = (settings.state_dir.join(LEASE_FILE), config.lock.lease);
        let before = match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse().map_or(MAX_VOTE_LEASE, Span::from_nanos),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Span::ZERO,
            Err(error) => return Err(error),
        };
        if before > lease {
            let wait = lock::Config { lease: before, ..config.lock }.expiry();
            return Ok(Some(Self { file, lease, wait: Duration::from_nanos(wait.as_nanos()) }));
        }
        if before < lease {
            note_lease(&file, lease)?;
        }
        Ok(None)
    }

    /// Waits, unless the process is to stop: returns whether the lease may be used now.
    pub(super) fn wait(&self, commands: &CommandReceiver, log: &Logger) -> io::Result<bool> {
        let wait = self.wait;
        let text =
            format!("waits {wait:.1?} before it takes part: the lease of groups was longer before");
        log.write(LogLine::info("group-lease-shortened", text));
        let end = Moment::now().after_nanos(wait.as_nanos() as u64);
        loop {
            let left = end.since(Moment::now());
            if left.is_zero() {
                break;
            }
            if commands.has_stop() {
                return Ok(false);
            }
            thread::sleep(left.min(WAIT_STEP));
        }
        note_lease(&self.file, self.lease)?;
        Ok(true)
    }
}

fn note_lease(file: &Path, lease: Span) -> io::Result<()> {
    files::replace(file, 0o600, &format!("{}\n", lease.as_nanos()))
}

/// The term in which this member leads the quorum, if its lease was valid at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseAt {
    /// Before the lease was read.
    pub(super) at: Moment,
    pub(super) term: Option<Term>,
}

/// The host of a member's groups.
#[derive(Debug)]
pub(super) struct GroupHost {
    config: Config,
    groups: Groups,
    timers: Timers<Timer>,
    /// What was last passed on: the term of the quorum's lease, and whether this member would lead groups.
    followed: (Option<Term>, bool),
    /// By place in the list.
    published: Vec<Published>,
    /// The groups that move as soon as no permit runs any more.
    yielding: BTreeSet<GroupId>,
    /// What members are to be told now, without a heartbeat.
    riders: Vec<(NodeId, Rider)>,
    table: Table,
    states: watch::Sender<Arc<Vec<GroupState>>>,
    changes: Arc<AtomicU64>,
    /// It was logged that terms are too high for fencing tokens.
    is_out_of_tokens: bool,
    log: Logger,
}

#[derive(Debug)]
struct Published {
    state: watch::Sender<LeadershipState>,
    permits: Permits,
}

impl GroupHost {
    /// The host, if there are groups, and its readers.
    pub(super) fn new(
        settings: &Settings,
        session: SessionId,
        log: &Logger,
    ) -> (Option<Self>, GroupReader) {
        let groups = settings.groups.as_ref().map_or(&[][..], Config::groups);
        let (mut published, mut leaderships) = (Vec::new(), BTreeMap::new());
        for group in groups {
            let (state, reader) = watch::channel(LeadershipState::default());
            let permits = Permits::default();
            let leadership = Leadership::new(reader, permits.clone());
            leaderships.insert(group.name.to_string(), leadership);
            published.push(Published { state, permits });
        }
        let config = settings.groups.clone();
        let unknown = vec![None; groups.len()];
        let first = config.as_ref().map_or_else(Vec::new, unknown_states);
        let (states, reader) = watch::channel(Arc::new(first));
        let changes = Arc::<AtomicU64>::default();
        let host = config.map(|config| Self {
            groups: Groups::new(settings.me, session, &config),
            config,
            timers: Timers::new(|timer: &Timer| timer.is_lease()),
            followed: (None, true),
            published,
            yielding: BTreeSet::new(),
            riders: Vec::new(),
            table: unknown,
            states,
            changes: Arc::clone(&changes),
            is_out_of_tokens: false,
            log: log.clone(),
        });
        (host, GroupReader { leaderships: Arc::new(leaderships), states: reader, changes })
    }

    /// The quorum has handled an event. `willing`: whether this member would lead groups.
    pub(super) fn follow(&mut self, lease: LeaseAt, willing: bool) {
        let (followed, was_willing) = std::mem::replace(&mut self.followed, (lease.term, willing));
        if was_willing != willing {
            self.handle(lease, Event::Willing(willing));
        } else if followed != lease.term {
            self.handle(lease, Event::Lease);
        }
    }

    pub(super) fn handle(&mut self, lease: LeaseAt, event: Event) {
        let LeaseAt { at, term: lease } = lease;
        let mut out = Vec::new();
        self.groups.handle(&self.config, lease, event, &mut out);
        for effect in &out {
            if let Effect::Ride(to) = *effect {
                let rider = self.groups.ride_heartbeat(&self.config, lease, to);
                self.riders.extend(rider.map(|rider| (to, rider)));
            }
        }
        self.carry_out(at, out);
    }

    /// Whether groups return to a better member, and after which delay: from the next lease of the quorum in a new term on.
    pub(super) fn set_preemption(&mut self, preemption: Preemption, delay: Span) {
        (self.config.preemption, self.config.delay) = (preemption, delay);
    }

    /// What is to be sent now.
    pub(super) fn take_riders(&mut self) -> Vec<(NodeId, Rider)> {
        std::mem::take(&mut self.riders)
    }

    /// What the groups say with this letter.
    pub(super) fn rider(
        &mut self,
        lease: LeaseAt,
        to: NodeId,
        letter: &Letter<Packet<AnyMessage>>,
    ) -> Option<Rider> {
        let Content::Inner(Packet { body: Body::Plain(message), .. }) = &letter.content else {
            return None;
        };
        let AnyMessage::Quorum(message) = message else { return None };
        match message.body {
            quorum::Body::Heartbeat(_) => self.groups.ride_heartbeat(&self.config, lease.term, to),
            quorum::Body::Ack { .. } => {
                let mut out = Vec::new();
                let rider = self.groups.ride_acknowledgement(&self.config, message.term, &mut out);
                self.carry_out(lease.at, out);
                Some(rider)
            }
            _ => None,
        }
    }

    /// When something is to be done next.
    pub(super) fn next_due(&self) -> Option<Moment> {
        // The last permit may have ended long ago: that is no delay.
        let yields = self.yielding.iter().map(|group| self.ends_at(*group).max(Moment::now()));
        self.timers.next_due().into_iter().chain(yields).min()
    }

    /// Ends the leases that are over.
    pub(super) fn expire(&mut self, lease: LeaseAt) {
        while let Some(timer) = self.timers.pop_lease(Moment::now()) {
            self.handle(lease, Event::Timer(timer));
        }
    }

    /// Fires what is due, and lets groups go whose last permit is over.
    pub(super) fn fire(&mut self, lease: LeaseAt) {
        let now = Moment::now();
        while let Some(timer) = self.timers.pop(now) {
            self.handle(lease, Event::Timer(timer));
        }
        let is_over = |group: &&GroupId| self.ends_at(**group) <= now;
        let over: Vec<GroupId> = self.yielding.iter().filter(is_over).copied().collect();
        for group in over {
            self.yielding.remove(&group);
            self.handle(lease, Event::Ended(group));
        }
    }

    /// Whether nothing of this member's groups is left to be handed over. Without a leader no member takes them over.
    pub(super) fn is_over(&self, has_leader: bool) -> bool {
        self.groups.is_quit() || !has_leader
    }

    /// When the last permit of a group is over.
    fn ends_at(&self, group: GroupId) -> Moment {
        self.published[usize::from(group.0)].permits.last_deadline()
    }

    /// Carries out what was decided by a lease that was valid `at` this moment. What a leader grants itself counts from then:
    /// if the process was paused since, another leader may have granted the group meanwhile.
    fn carry_out(&mut self, at: Moment, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Announce { group, section } => self.announce(group, section),
                Effect::Yield(group) => {
                    // No permit is given from now on; then the deadlines of those that were are read.
                    let published = &self.published[usize::from(group.0)];
                    published.state.send_modify(|state| state.role = Some(Role::Retiring));
                    self.yielding.insert(group);
                }
                Effect::SetTimer { timer, after } => {
                    let from = if timer.is_lease() { at } else { Moment::now() };
                    self.timers.arm(timer, from.after(after));
                }
                Effect::CancelTimer(timer) => self.timers.disarm(&timer),
                // By `handle`, which knows the lease.
                Effect::Ride(_) => {}
            }
        }
        self.publish();
    }

    /// A barrier: every later read returns this.
    fn announce(&mut self, group: GroupId, section: Section) {
        let place = usize::from(group.0);
        let name = &self.config.groups()[place].name;
        let Published { state, permits } = &self.published[place];
        let led = state.borrow().lease_deadline.is_some();
        match section {
            Section::Inside(fence) => {
                let Some(token) = token_of(fence) else {
                    if !std::mem::replace(&mut self.is_out_of_tokens, true) {
                        let text = format!(
                            "does not lead group {name}, or any other: term {} is too high for a fencing token. \
                             Create a new cluster with `doyen init`",
                            fence.term
                        );
                        self.log.write(LogLine::error("group-out-of-tokens", text));
                    }
                    return;
                };
                permits.raise_token(token);
                let text = format!("leads group {name}, with fencing token {token}");
                self.log.write(LogLine::info("group-led", text));
            }
            Section::Waiting | Section::Outside if led => {
                self.yielding.remove(&group);
                state.send_modify(|state| {
                    (state.role, state.lease_deadline) = (Some(Role::Follower), None);
                });
                self.log
                    .write(LogLine::info("group-left", format!("no longer leads group {name}")));
            }
            Section::Waiting | Section::Outside => return,
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Publishes the leases of all groups, which are renewed without an announcement, and their leaders.
    fn publish(&mut self) {
        for (place, published) in self.published.iter().enumerate() {
            let group = GroupId(place as u8);
            // A lead without a fencing token is none.
            let fence = self.groups.section(group).fence().filter(|&it| token_of(it).is_some());
            let hold = fence.and_then(|_| self.groups.hold(group));
            let hold = hold.and_then(|timer| self.timers.due_of(&timer));
            let told = self.groups.table()[place].filter(|it| token_of(it.1).is_some());
            let (leader, term) = match fence {
                Some(fence) => (Some(self.groups.member()), fence.term),
                None => (told.map(|(leader, _)| leader), told.map_or(Term(0), |it| it.1.term)),
            };
            let role = match hold {
                Some(_) if self.yielding.contains(&group) => Role::Retiring,
                Some(_) => Role::Leader,
                None => Role::Follower,
            };
            let state = LeadershipState { leader, term, role: Some(role), lease_deadline: hold };
            published.state.send_if_modified(|last| std::mem::replace(last, state) != state);
        }
        if *self.groups.table() != self.table {
            self.publish_table();
        }
    }

    fn publish_table(&mut self) {
        let before = std::mem::replace(&mut self.table, self.groups.table().clone());
        let now = Moment::now();
        self.states.send_modify(|states| {
            for (place, state) in Arc::make_mut(states).iter_mut().enumerate() {
                if self.table[place] != before[place] {
                    state.token = self.table[place].and_then(|(_, fence)| token_of(fence));
                    state.leader =
                        self.table[place].map(|it| it.0).filter(|_| state.token.is_some());
                    state.since = now;
                }
            }
        });
    }
}

fn unknown_states(config: &Config) -> Vec<GroupState> {
    let state = |(place, group): (usize, &doyen_core::group::Group)| GroupState {
        name: group.name.to_string(),
        leader: None,
        token: None,
        since: Moment::now(),
        preferred: config.order(GroupId(place as u8)).first().copied(),
    };
    config.groups().iter().enumerate().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::super::waker;
    use super::*;
    use crate::config::Configuration;
    use crate::scratch::Scratch;

    fn settings(folder: &Path, lease: &str) -> Settings {
        let text = format!(
            "cluster = \"c\"\nid = 1\nstate_dir = \"{}\"\ngroups = [\"a\"]\ngroup_lease = \"{lease}\"\n\
             [[member]]\nid = 1\naddress = \"127.0.0.1:7401\"\n",
            folder.display()
        );
        Configuration::parse("doyen.toml", &text).expect("a configuration").settings
    }

    fn host(settings: &Settings) -> (GroupHost, GroupReader) {
        let log = Logger::start("n1".to_owned()).expect("a thread");
        let (host, reader) = GroupHost::new(settings, SessionId::from_random(1), &log);
        (host.expect("groups"), reader)
    }

    /// The process is paused between the reading of the clock and the arming of timers.
    #[test]
    fn what_a_leader_grants_itself_counts_from_when_its_lease_was_read() {
        let scratch = Scratch::new();
        let (mut host, reader) = host(&settings(&scratch, "9s"));
        let before_pause = Moment::now();
        thread::sleep(Duration::from_millis(20));
        let lease = LeaseAt { at: before_pause, term: Some(Term(1)) };
        host.handle(lease, Event::Lease);
        host.handle(lease, Event::Timer(Timer::Settle));
        assert!(reader.leadership("a").expect("a group").is_leader());
        let deadline = host.published[0].state.borrow().lease_deadline;
        assert_eq!(deadline, Some(before_pause.after(Span::from_millis(9_000))));
    }

    #[test]
    fn a_lead_without_a_fencing_token_is_not_published() {
        let scratch = Scratch::new();
        let (mut host, reader) = host(&settings(&scratch, "9s"));
        for (term, leads) in [(u64::from(u32::MAX), true), (1 << 32, false)] {
            let lease = LeaseAt { at: Moment::now(), term: Some(Term(term)) };
            host.handle(LeaseAt { term: None, ..lease }, Event::Ended(GroupId(0)));
            host.handle(lease, Event::Lease);
            host.handle(lease, Event::Timer(Timer::Settle));
            host.handle(lease, Event::Timer(Timer::Keep));
            assert!(host.groups.section(GroupId(0)).is_inside());
            assert_eq!(reader.leadership("a").expect("a group").is_leader(), leads);
            let state = &reader.states()[0];
            assert_eq!((state.leader.is_some(), state.token.is_some()), (leads, leads));
        }
    }

    #[test]
    fn a_new_preemption_policy_counts_from_the_next_term_on() {
        let scratch = Scratch::new();
        let mut settings = settings(&scratch, "9s");
        let config = settings.groups.as_mut().expect("groups");
        config.preemption = Preemption::Delayed;
        let pace = settings.core.quorum.pace;
        let other = Config::new(config.groups().to_vec(), &[NodeId(1)], config.lock.lease, &pace);
        let mut peer = Groups::new(NodeId(2), SessionId::from_random(2), &other);
        let (mut host, _) = host(&settings);
        let mut returns = |host: &mut GroupHost, term| {
            let lease = LeaseAt { at: Moment::now(), term: Some(Term(term)) };
            host.handle(lease, Event::Lease);
            let rider = peer.ride_acknowledgement(&other, Term(term), &mut Vec::new());
            let (from, session) = (NodeId(2), SessionId::from_random(2));
            host.handle(lease, Event::Rider { from, session, rider });
            host.timers.due_of(&Timer::Steady(from)).is_some()
        };
        assert!(returns(&mut host, 1));
        host.set_preemption(Preemption::Never, Span::ZERO);
        assert!(!returns(&mut host, 2), "nor does what was armed before");
        host.set_preemption(Preemption::Delayed, Span::from_millis(10));
        assert!(returns(&mut host, 3));
    }

    /// Or a new leader might grant what members still lead on the lease that they had.
    #[test]
    fn a_process_whose_groups_have_a_shorter_lease_than_before_waits_for_the_longer_one() {
        let scratch = Scratch::new();
        let shorter = |lease| ShorterLease::of(&settings(&scratch, lease)).unwrap();
        let wait = |lease| shorter(lease).map(|it| it.wait);
        assert_eq!(wait("550ms"), None);
        assert_eq!(wait("9s"), None);
        assert_eq!(wait("550ms"), Some(Duration::from_secs(11)));
        fs::write(scratch.join(LEASE_FILE), "damaged").unwrap();
        assert!(wait("550ms") > Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_process_that_was_stopped_while_it_waited_waits_again() {
        let scratch = Scratch::new();
        let shorter = || ShorterLease::of(&settings(&scratch, "550ms")).unwrap();
        assert!(ShorterLease::of(&settings(&scratch, "600ms")).unwrap().is_none());
        let log = Logger::start("n1".to_owned()).expect("a thread");
        let (sender, mut commands) = waker::channel().expect("a socket pair");
        sender.stop(Duration::ZERO);
        assert!(!shorter().expect("it is shorter").wait(&commands, &log).unwrap());
        commands.wait();
        let begun = Moment::now();
        assert!(shorter().expect("it still waits").wait(&commands, &log).unwrap());
        assert!(Moment::now().since(begun) >= Duration::from_millis(600));
        assert!(shorter().is_none(), "once");
    }
}
