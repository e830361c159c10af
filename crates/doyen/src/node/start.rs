//! Starting a node: state, keys, socket, then the loop in a thread of its own.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use doyen_core::layers::Layers;
use doyen_core::members::{Incarnation, Term};
use doyen_core::node::NodeConfig;
use doyen_core::protocol::{Boot, Origin, Role};
use doyen_core::registry::{Algorithm, AnyConfig, AnyDurable};
use doyen_core::session::{Kept, Roster, SessionConfig, SessionId};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};
use tokio::sync::oneshot;

use super::board::Board;
use super::host::Host;
use super::journal::{Journal, Line};
use super::machine::Machine;
use super::network::Network;
use super::status::{MemberStatus, Status};
use super::store::{Saved, Store, StoreError};
use super::{Failure, Handle, attribute, bell};
use crate::config::{ConfigError, Configuration, Settings};
use crate::key::Keyring;

/// A node that runs.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    ended: oneshot::Receiver<Result<(), Failure>>,
}

impl Running {
    /// How to talk to it.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for its end: because it was told to stop, or had to.
    pub async fn ended(self) -> Result<(), Failure> {
        self.ended.await.unwrap_or(Err(Failure::Panicked))
    }
}

/// What a disk holds, if it can be read. Version 1 of the state file knew nothing of sessions.
fn read(algorithm: Algorithm, saved: &Saved, incarnation: Incarnation) -> Option<Kept<AnyDurable>> {
    let (Saved::Kept(bytes) | Saved::Bare(bytes)) = saved;
    let mut encoded = postcard::Deserializer::from_bytes(bytes);
    match saved {
        Saved::Kept(_) => algorithm.read_kept(&mut encoded).ok(),
        Saved::Bare(_) => {
            let inner = Some(algorithm.read_durable(&mut encoded).ok()?);
            Some(Kept { incarnation, rejoining: false, roster: Roster::default(), inner })
        }
    }
}

/// Whether a member's state is there and sound, or lost if it is to `rejoin`. Changes nothing.
fn check_state(settings: &Settings, rejoin: bool) -> Result<(), StoreError> {
    let can_read =
        |saved: &Saved| read(settings.algorithm, saved, Incarnation::default()).is_some();
    let is_lost = || Store::is_lost(&settings.state_dir, &settings.owner(), can_read);
    match rejoin {
        true if is_lost()? => Ok(()),
        true => Err(StoreError::Sound(settings.state_dir.clone())),
        false => Store::check(&settings.state_dir, &settings.owner(), can_read),
    }
}

/// Whether a trace can be begun, as far as its folder goes. Changes nothing.
fn check_trace(settings: &Settings) -> Result<(), Failure> {
    let Some(path) = &settings.trace else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = folder.map_or(Ok(()), |folder| fs::read_dir(folder).map(drop));
    entries.map_err(|error| Failure::Trace { path: path.clone(), error })
}

impl Settings {
    /// Whether what the values name is there and sound: the keys, the folder of the trace, and the state unless it is
    /// lost and this member is to `rejoin`.
    pub fn check(&self, rejoin: bool) -> Result<(), ConfigError> {
        let keys = self.key_file.as_deref().map(Keyring::read);
        let keys = keys.and_then(Result::err).map(|error| format!("key_file: {error}"));
        let state = check_state(self, rejoin).err().map(|error| format!("state_dir: {error}"));
        let trace = check_trace(self).err().map(|error| format!("trace: {error}"));
        let problems: Vec<String> = keys.into_iter().chain(state).chain(trace).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ConfigError { problems, warnings: Vec::new() }),
        }
    }
}

/// Starts a node. `rejoin`: its state is lost, and its operator says that it may come back nevertheless. A state that is
/// sound is never given up for that.
pub fn start(configuration: Configuration, rejoin: bool) -> Result<Running, Failure> {
    let system = |what| move |error| Failure::System { what, error };
    let text = configuration.report.to_string();
    let settings = Arc::new(configuration.settings);
    check_trace(&settings)?;
    check_state(&settings, rejoin)?;
    if rejoin && settings.members.len() == 1 && settings.algorithm == Algorithm::Quorum {
        return Err(Failure::NobodyToAsk);
    }
    let journal = Journal::start(settings.own().name.clone())
        .map_err(system("start a thread for the log"))?;
    let (requests, inbox) = bell::pair().map_err(system("make a socket pair"))?;
    let mut random = random()?;
    let session = SessionId::from_random(random.next_u64());
    let network = Network::open(&settings, session, requests.clone())?;
    let (board, readers) = Board::new(status_before(&settings), journal.clone());
    let handle = Handle::new(readers, requests.clone(), settings.key_file.clone());
    let (end, ended) = oneshot::channel();
    attribute::start(&settings.attribute, requests, journal.clone())
        .map_err(system("start a thread to measure"))?;
    let (store, start) = match rejoin {
        true => {
            let (store, incarnation) = Store::rejoin(&settings.state_dir, &settings.owner())?;
            (store, Boot::new(incarnation, None, Origin::Rejoining))
        }
        false => {
            let opened = Store::open(&settings.state_dir, &settings.owner())?;
            let origin = opened.origin();
            (opened.store, Boot::new(opened.incarnation, opened.durable, origin))
        }
    };
    let start = Boot { session, time_of_day: time_of_day(), ..start };
    let body = move || {
        let machine = Machine::new((settings, text), network, store, board, inbox);
        let result = host(machine, start, random);
        if let Err(failure) = &result {
            journal.write(Line::Error(failure.to_string()));
        }
        journal.finish();
        // If nobody waits for the end, nobody needs to know.
        let _ = end.send(result);
    };
    thread::Builder::new()
        .name("doyen-loop".to_owned())
        .spawn(body)
        .map_err(system("start the loop's thread"))?;
    Ok(Running { handle, ended })
}

/// The loop's thread.
fn host(machine: Machine, start: Boot<Saved>, random: Pcg64Mcg) -> Result<(), Failure> {
    let Boot { incarnation, durable, origin, session, time_of_day } = start;
    let unreadable = || StoreError::Unreadable(machine.settings.state_dir.clone());
    let durable = match durable {
        None => None,
        Some(saved) => {
            let algorithm = machine.settings.algorithm;
            Some(read(algorithm, &saved, incarnation).ok_or_else(unreadable)?)
        }
    };
    let boot = Boot { incarnation, durable, origin, session, time_of_day };
    let (id, config) = (machine.settings.me, process(&machine.settings));
    Host::start(id, config, boot, machine, random)?.run()
}

/// The time of day in seconds since 1970, as far as this machine knows it.
fn time_of_day() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// What runs: the algorithm, and what lies beneath it.
pub(super) fn process(settings: &Settings) -> SessionConfig<NodeConfig<AnyConfig>> {
    let layers = Layers::of_node(settings.algorithm, settings.core.timing);
    let mut inner = settings.core.clone();
    inner.timing.transmission = layers.transmission();
    layers.process(AnyConfig { algorithm: settings.algorithm, inner })
}

/// A generator that no other process shares.
fn random() -> Result<Pcg64Mcg, Failure> {
    let mut seed = [0; 16];
    let failed = |error: getrandom::Error| Failure::System {
        what: "draw random numbers",
        error: std::io::Error::other(error.to_string()),
    };
    getrandom::fill(&mut seed).map_err(failed)?;
    Ok(Pcg64Mcg::from_seed(seed))
}

/// What is known before anything has happened.
pub(super) fn status_before(settings: &Settings) -> Status {
    let members = settings.members.iter().map(|member| MemberStatus {
        id: member.id,
        name: member.name.clone(),
        address: member.address.clone(),
        seen_at: None,
        priority: member.priority,
        witness: member.witness,
        heard: member.id == settings.me,
        configured_otherwise: false,
        silent_ms: None,
        rtt_us: None,
        misses: None,
        eligible: !member.witness,
        losses: 0,
    });
    Status {
        cluster: settings.cluster.clone(),
        algorithm: settings.algorithm.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        id: settings.me,
        name: settings.own().name.clone(),
        incarnation: Incarnation::default(),
        role: Role::Follower,
        leader: None,
        term: Term::default(),
        lease: None,
        why: None,
        rejoining: false,
        drained: false,
        never_leads: false,
        drained_remaining_ms: None,
        preference: None,
        next: None,
        line: Vec::new(),
        members: members.collect(),
    }
}
