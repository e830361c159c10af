//! A node without a cluster: what its loop would publish is set by the test, what it would be asked for is written down.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use doyen::api::{self, Admin, Limits, ServeError, Server};
use doyen::leadership::Reign;
use doyen::node::clock::Moment;
use doyen::node::stand_in::{Questions, StandIn};
use doyen::node::status::{Counters, Entry, Lease, MemberStatus, Status};
use doyen::node::{Handle, NotDone, Request};
use doyen_core::change::{ElectionReason, LeaderChange};
use doyen_core::members::{Incarnation, NodeId, Term};
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

/// How the stand-in answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manners {
    pub(crate) refusal: Option<NotDone>,
    /// It does not answer, and keeps whoever asks waiting.
    pub(crate) is_stuck: bool,
    /// It ends instead of answering.
    pub(crate) ends: bool,
}

/// What a node is to the HTTP interface.
pub(crate) struct Fake {
    pub(crate) folder: Folder,
    /// Nothing once the loop has ended.
    published: Option<StandIn>,
    handle: Handle,
    pub(crate) counters: Arc<Counters>,
    pub(crate) manners: Arc<Mutex<Manners>>,
    asked: Arc<Mutex<Vec<String>>>,
    server: Option<Server>,
}

impl Fake {
    /// A follower of `n3` among three, in term 7.
    pub(crate) fn follower() -> Self {
        Self::serving(follower_of_n3(), Limits::default())
    }

    /// The leader of three, in term 7, with a lease of a minute.
    pub(crate) fn leader() -> Self {
        let fake = Self::serving(follower_of_n3(), Limits::default());
        fake.lead(Span::from_millis(60_000));
        fake
    }

    pub(crate) fn serving(status: Status, limits: Limits) -> Self {
        let folder = Folder::new();
        let (published, handle, questions) = StandIn::new(status).expect("a stand-in");
        let counters = Arc::clone(&published.counters);
        let manners = Arc::new(Mutex::new(Manners::default()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (of_loop, written) = (manners.clone(), asked.clone());
        thread::spawn(move || obey(questions, &of_loop, &written));
        let server = start(handle.clone(), folder.path(), limits, 0).expect("a server");
        let published = Some(published);
        Self { folder, published, handle, counters, manners, asked, server: Some(server) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.as_ref().expect("it runs").address()
    }

    pub(crate) fn token(&self) -> String {
        let file = self.folder.path().join(api::TOKEN_FILE);
        std::fs::read_to_string(file).expect("a token").trim().to_owned()
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
        let server = start(self.handle.clone(), self.folder.path(), Limits::default(), port);
        self.server = Some(server.expect("a server"));
    }

    /// What the loop has been asked for since this was last called.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("nobody panics"))
    }

    /// The loop refuses whatever it is ordered from now on.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.fail(NotDone::Refused(refusal));
    }

    /// The loop does nothing of what it is asked for from now on.
    pub(crate) fn fail(&self, why: NotDone) {
        self.manners.lock().expect("nobody panics").refusal = Some(why);
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
        self.reign(|reign| {
            reign.leader = Some(NodeId(1));
            reign.role = Some(Role::Leader);
            reign.until = Some(until);
        });
    }

    fn published(&self) -> &StandIn {
        self.published.as_ref().expect("the loop has not ended")
    }

    /// The loop announces something else.
    pub(crate) fn reign(&self, change: impl FnOnce(&mut Reign)) {
        self.published().reign.send_modify(change);
    }

    /// The loop publishes another snapshot, and announces what has changed of who leads.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut Status)) {
        self.published().status.send_modify(|status| change(Arc::make_mut(status)));
        let Status { leader, term, role, .. } = **self.published().status.borrow();
        self.reign(|reign| (reign.leader, reign.term, reign.role) = (leader, term, Some(role)));
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
    api::start(handle, listener, &Admin::new(folder), limits)
}

/// A server whose state folder is this; it is not of this world for long.
pub(crate) fn try_start(folder: &Path) -> Result<Server, ServeError> {
    let (_published, handle, _questions) = StandIn::new(follower_of_n3()).expect("a stand-in");
    start(handle, folder, Limits::default(), 0)
}

/// The stand-in for the loop: it writes down what it is asked for, and answers.
fn obey(questions: Questions, manners: &Mutex<Manners>, asked: &Mutex<Vec<String>>) {
    let note = |what: String| asked.lock().expect("nobody panics").push(what);
    let mut unanswered = Vec::new();
    for request in questions {
        let manners = manners.lock().expect("nobody panics").clone();
        let Manners { refusal, is_stuck, ends } = manners;
        if ends {
            return;
        }
        if is_stuck {
            unanswered.push(request);
            continue;
        }
        let answer = refusal.map_or(Ok(()), Err);
        let answered = match request {
            Request::Command(command, sender) => {
                note(command.to_string());
                sender.send(answer).is_ok()
            }
            Request::Campaign(sender) => {
                note("campaign".to_owned());
                sender.send(answer).is_ok()
            }
            Request::Keys(_, sender) => {
                note("reload keys".to_owned());
                sender.send(answer).is_ok()
            }
            Request::Resolved { .. } | Request::Stop { .. } => return,
        };
        assert!(answered, "somebody waits for the answer");
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
            reason: ElectionReason::Elected { after: None },
        },
    };
    let (told, dead_air_us) = match number {
        1 => ("; nobody led for 1.5 ms", Some(1500)),
        _ => ("", None),
    };
    let text = format!("{change}{told}");
    Entry { number, at_unix_ms: 1_767_225_600_000 + number * 1000, text, change, dead_air_us }
}

pub(crate) fn follower_of_n3() -> Status {
    Status {
        cluster: "test".to_owned(),
        algorithm: "quorum".to_owned(),
        version: "0.1.0".to_owned(),
        id: NodeId(1),
        name: "n1".to_owned(),
        incarnation: Incarnation(4),
        role: Role::Follower,
        leader: Some(NodeId(3)),
        term: Term(7),
        lease: None,
        why: Some("elected; no previous leader known".to_owned()),
        rejoining: false,
        drained: false,
        never_leads: false,
        drained_remaining_ms: None,
        preference: None,
        next: Some(NodeId(2)),
        line: vec![NodeId(3), NodeId(2), NodeId(1)],
        members: (1..=3).map(member).collect(),
    }
}

fn member(id: u32) -> MemberStatus {
    let other = id != 1;
    MemberStatus {
        id: NodeId(id),
        name: format!("n{id}"),
        address: format!("192.0.2.{id}:7070"),
        seen_at: other.then(|| format!("192.0.2.{id}:7070")),
        priority: i64::from(id) * 10,
        witness: false,
        heard: true,
        configured_otherwise: false,
        silent_ms: other.then_some(12),
        rtt_us: other.then_some(310),
        misses: Some(Vec::new()),
        eligible: true,
        losses: 0,
    }
}
