//! A node without a cluster: the test decides what it publishes, and the commands that it receives are recorded.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use doyen::api::{self, Admin, Limits, ServeError, Server};
use doyen::clock::Moment;
use doyen::leadership::LeadershipState;
use doyen::node::counters::Counters;
use doyen::node::relay::RelayError;
use doyen::node::status::{Entry, Lease, MemberRole, MemberStatus, Status};
use doyen::node::testing::{Commands, FakeNode};
use doyen::node::{Command, CommandError, Handle};
use doyen_core::change::{ElectionReason, LeaderChange};
use doyen_core::members::{Incarnation, NodeId, SessionId, Term};
use doyen_core::protocol::{Refusal, Role};
use doyen_core::time::Span;

/// A folder of its own, removed in the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("api-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the fake node answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manners {
    pub(crate) error: Option<CommandError>,
    /// It does not answer, and keeps the caller waiting.
    pub(crate) is_stuck: bool,
    /// It ends instead of answering.
    pub(crate) ends: bool,
    /// The way of packets to another member, if there is one.
    pub(crate) relay: Option<Relay>,
}

/// Takes packets on their way to a process of another member, and says to which one they went.
#[derive(Clone)]
pub(crate) struct Relay(pub(crate) Arc<Take>);

type Take = dyn Fn(Option<SessionId>, Vec<u8>) -> Result<SessionId, RelayError> + Send + Sync;

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Relay")
    }
}

/// What a node is to the HTTP interface.
pub(crate) struct Fake {
    pub(crate) folder: Folder,
    /// None once the loop has ended.
    published: Option<FakeNode>,
    handle: Handle,
    pub(crate) counters: Arc<Counters>,
    pub(crate) manners: Arc<Mutex<Manners>>,
    received: Arc<Mutex<Vec<String>>>,
    server: Option<Server>,
}

impl Fake {
    /// A follower of `n3` among three, in term 7.
    pub(crate) fn follower() -> Self {
        Self::serving(follower_of_n3(), patient())
    }

    /// The leader of three, in term 7, with a lease of a minute.
    pub(crate) fn leader() -> Self {
        let fake = Self::serving(follower_of_n3(), patient());
        fake.lead(Span::from_millis(60_000));
        fake
    }

    pub(crate) fn serving(status: Status, limits: Limits) -> Self {
        let folder = Folder::new();
        let (published, handle, commands) = FakeNode::new(status).expect("a fake node");
        let counters = Arc::clone(&published.counters);
        let manners = Arc::new(Mutex::new(Manners::default()));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (of_loop, recorded) = (manners.clone(), received.clone());
        thread::spawn(move || answer(commands, &of_loop, &recorded));
        let server = start(handle.clone(), folder.path(), limits, 0).expect("a server");
        let published = Some(published);
        Self { folder, published, handle, counters, manners, received, server: Some(server) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.as_ref().and_then(Server::address).expect("it runs")
    }

    pub(crate) fn secret(&self) -> String {
        let file = self.folder.path().join(api::SECRET_FILE);
        std::fs::read_to_string(file).expect("a secret").trim().to_owned()
    }

    /// The node ends, and the server does not.
    pub(crate) fn end_loop(&mut self) {
        self.published = None;
    }

    /// The server ends.
    pub(crate) fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }

    /// The server ends and another begins at the same address; something happens in between.
    pub(crate) fn restart(&mut self, meanwhile: impl FnOnce(&Self)) {
        let port = self.address().port();
        self.stop();
        meanwhile(self);
        let server = start(self.handle.clone(), self.folder.path(), patient(), port);
        self.server = Some(server.expect("a server"));
    }

    /// The commands that the loop has received since the last call.
    pub(crate) fn received(&self) -> Vec<String> {
        std::mem::take(&mut self.received.lock().expect("no panic"))
    }

    /// The member rejects every command from now on.
    pub(crate) fn reject(&self, refusal: Refusal) {
        self.fail(CommandError::Rejected(refusal));
    }

    /// Every command fails from now on.
    pub(crate) fn fail(&self, error: CommandError) {
        self.manners.lock().expect("no panic").error = Some(error);
    }

    /// The node leads from now on, with a lease of this length.
    pub(crate) fn lead(&self, lease: Span) {
        let until = Moment::now().after(lease);
        self.publish(|status| {
            status.leader = Some(status.id);
            status.role = Role::Leader;
            let remaining_ms = lease.as_nanos() / 1_000_000;
            status.lease = Some(Lease { until: until.as_nanos(), remaining_ms });
        });
        self.announce(|state| {
            state.leader = Some(NodeId(1));
            state.role = Some(Role::Leader);
            state.lease_deadline = Some(until);
        });
    }

    pub(crate) fn published(&self) -> &FakeNode {
        self.published.as_ref().expect("the loop has not ended")
    }

    /// The loop announces another leadership state.
    pub(crate) fn announce(&self, change: impl FnOnce(&mut LeadershipState)) {
        self.published().leadership.send_modify(change);
    }

    /// The loop publishes another snapshot, and announces its leader.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut Status)) {
        self.published().status.send_modify(|status| {
            let status = Arc::make_mut(status);
            status.taken_at = Moment::now();
            change(status);
        });
        let Status { leader, term, role, .. } = **self.published().status.borrow();
        self.announce(|state| (state.leader, state.term, state.role) = (leader, term, Some(role)));
    }

    /// The loop publishes the history with these numbers.
    pub(crate) fn remember(&self, numbers: std::ops::RangeInclusive<u64>) {
        let entries = numbers.map(entry).collect();
        self.published().history.send_replace(Arc::new(entries));
    }
}

fn start(handle: Handle, folder: &Path, limits: Limits, port: u16) -> Result<Server, ServeError> {
    let mut bound = None;
    // Another test may have been starting a process when the port was closed, which holds it for a moment.
    let free = || {
        bound = TcpListener::bind(("127.0.0.1", port)).ok();
        bound.is_some()
    };
    assert!(comes_true(free), "port {port} is free");
    let listener = bound.expect("it is bound");
    let admin = Admin::new(folder).over_http().prepare()?;
    api::start(handle, Some(listener), admin, limits)
}

/// The usual limits for a node that publishes only when a test has it do so.
pub(crate) fn patient() -> Limits {
    Limits { snapshot_timeout: Duration::from_secs(60), ..Limits::default() }
}

/// Tries to start a server with this state folder.
pub(crate) fn try_start(folder: &Path) -> Result<Server, ServeError> {
    let (_published, handle, _commands) = FakeNode::new(follower_of_n3()).expect("a fake node");
    start(handle, folder, Limits::default(), 0)
}

/// In place of the loop: records the commands, and answers them.
fn answer(commands: Commands, manners: &Mutex<Manners>, received: &Mutex<Vec<String>>) {
    let note = |what: String| received.lock().expect("no panic").push(what);
    let mut unanswered = Vec::new();
    for command in commands {
        let manners = manners.lock().expect("no panic").clone();
        let Manners { error, is_stuck, ends, relay } = manners;
        if ends {
            return;
        }
        if is_stuck {
            unanswered.push(command);
            continue;
        }
        let answer = error.map_or(Ok(()), Err);
        let answered = match command {
            Command::Admin { command, answer: sender, .. } => {
                note(command.to_string());
                sender.send(answer).is_ok()
            }
            Command::Campaign(sender) => {
                note("campaign".to_owned());
                sender.send(answer).is_ok()
            }
            Command::Retime(_, sender) | Command::Guard { answer: sender, .. } => {
                sender.send(answer).is_ok()
            }
            Command::UseKeys(_, sender) => {
                note("reload keys".to_owned());
                sender.send(answer).is_ok()
            }
            Command::Relay { session, bytes, answer: sender, .. } => {
                let unmet = Err(RelayError::Unmet);
                let sent = relay.map_or(unmet, |Relay(relay)| relay(session, bytes));
                // A caller that has given up does not wait.
                let _ = sender.send(sent);
                true
            }
            Command::AddressResolved { .. } | Command::Stop { .. } => return,
        };
        assert!(answered, "the caller waits for the answer");
    }
}

/// Whether something comes true within a few seconds.
pub(crate) fn comes_true(mut question: impl FnMut() -> bool) -> bool {
    (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        question()
    })
}

pub(crate) fn entry(number: u64) -> Entry {
    let term = Term(number);
    let change = match number % 2 {
        0 => LeaderChange::LostContact { leader: NodeId(3), term },
        _ => LeaderChange::Follows {
            leader: NodeId(3),
            term,
            reason: ElectionReason::Elected { after: None, cause: None },
        },
    };
    let (downtime, downtime_us) = match number {
        1 => ("; downtime 1.5 ms", Some(1500)),
        _ => ("", None),
    };
    let text = format!("{change}{downtime}");
    let at_unix_ms = 1_767_225_600_000 + number * 1000;
    let at_boot_us = number * 1_000_000;
    let (incarnation, campaign_us) = (Incarnation(4), None);
    Entry { number, at_unix_ms, at_boot_us, text, change, incarnation, downtime_us, campaign_us }
}

pub(crate) fn follower_of_n3() -> Status {
    Status {
        cluster: "test".to_owned(),
        algorithm: "quorum".to_owned(),
        version: "0.1.0".to_owned(),
        configuration: "0badcafe".to_owned(),
        keys: vec!["11223344".to_owned(), "aabbccdd".to_owned()],
        id: NodeId(1),
        name: "n1".to_owned(),
        incarnation: Incarnation(4),
        role: Role::Follower,
        leader: Some(NodeId(3)),
        last_leader: None,
        term: Term(7),
        lease: None,
        work_ms: None,
        retiring_ms: None,
        named_successor: None,
        moved_by: None,
        history_problem: None,
        job: None,
        why: Some("elected; no previous leader known".to_owned()),
        rejoining: false,
        drained: false,
        never_leads: false,
        drained_remaining_ms: None,
        preference: None,
        pause: None,
        preemption: None,
        stranger: None,
        next: Some(NodeId(2)),
        succession: vec![NodeId(3), NodeId(2), NodeId(1)],
        members: (1..=3).map(member).collect(),
        learns_within_ms: 4000,
        taken_at: Moment::now(),
    }
}

fn member(id: u32) -> MemberStatus {
    let other = id != 1;
    MemberStatus {
        id: NodeId(id),
        name: format!("n{id}"),
        address: format!("192.0.2.{id}:7070"),
        observed_address: other.then(|| format!("192.0.2.{id}:7070")),
        role: if id == 3 { MemberRole::Leader } else { MemberRole::Follower },
        priority: i64::from(id) * 10,
        witness: false,
        reachable: true,
        config_mismatch: false,
        rejected: None,
        unreachable_ms: None,
        arrives: false,
        last_seen_ms: other.then_some(12),
        rtt_us: other.then_some(310),
        unreachable: Some(Vec::new()),
        eligible: true,
        recent_failures: 0,
        penalty_remaining_ms: None,
        failed_ms_ago: None,
        notices: Vec::new(),
    }
}
