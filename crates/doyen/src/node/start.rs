//! Starting a node: state, keys, socket, then the loop in a thread of its own.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use doyen_core::algorithm::Algorithm;
use doyen_core::config::Config;
use doyen_core::detector::DetectorConfig;
use doyen_core::link::LinkConfig;
use doyen_core::members::{Epoch, Incarnation};
use doyen_core::node::NodeConfig;
use doyen_core::protocol::{Boot, Origin, Protocol, Role};
use doyen_core::session::{Kept, Roster, SessionConfig, SessionId};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};
use tokio::sync::oneshot;

use super::board::Board;
use super::host::Host;
use super::insight::Tells;
use super::journal::{Journal, Line};
use super::machine::Machine;
use super::network::Network;
use super::status::{MemberStatus, Status};
use super::store::{Saved, Store, StoreError};
use super::{Failure, Handle, attribute, bell};
use crate::config::{ConfigError, Configuration, Settings};
use crate::key::Keyring;

/// Calls a function that is generic over the protocol with the one that an algorithm's name means.
macro_rules! with_protocol {
    ($algorithm:expr, $function:ident ( $($argument:expr),* )) => {{
        use doyen_core::algorithm::{self, Algorithm};
        match $algorithm {
            Algorithm::Bully => $function::<algorithm::bully::Bully>($($argument),*),
            Algorithm::ModifiedBully => {
                $function::<algorithm::modified_bully::ModifiedBully>($($argument),*)
            }
            Algorithm::RingList => $function::<algorithm::ring_list::RingList>($($argument),*),
            Algorithm::RingResilient => {
                $function::<algorithm::ring_resilient::RingResilient>($($argument),*)
            }
            Algorithm::RingActiveList => {
                $function::<algorithm::ring_active_list::RingActiveList>($($argument),*)
            }
            Algorithm::RingAllIds => $function::<algorithm::ring_all_ids::RingAllIds>($($argument),*),
            Algorithm::ChangRoberts => {
                $function::<algorithm::chang_roberts::ChangRoberts>($($argument),*)
            }
            Algorithm::Quorum => $function::<algorithm::quorum::Quorum>($($argument),*),
        }
    }};
}

pub(super) use with_protocol;

/// How many heartbeats in a row the failure detector of a seed's algorithm forgives: datagrams get lost.
const LOST_HEARTBEATS: u32 = 3;

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
fn read<P: Protocol>(saved: &Saved, incarnation: Incarnation) -> Option<Kept<P::Durable>> {
    match saved {
        Saved::Kept(bytes) => postcard::from_bytes(bytes).ok(),
        Saved::Bare(bytes) => {
            let inner = Some(postcard::from_bytes(bytes).ok()?);
            Some(Kept { incarnation, rejoining: false, roster: Roster::default(), inner })
        }
    }
}

fn can_read<P: Protocol<Config = Config>>(saved: &Saved) -> bool {
    read::<P>(saved, Incarnation::default()).is_some()
}

/// Whether a member's state is there and sound, or lost if it is to `rejoin`. Changes nothing.
fn check_state(settings: &Settings, rejoin: bool) -> Result<(), StoreError> {
    let can_read = |saved: &Saved| with_protocol!(settings.algorithm, can_read(saved));
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
        let algorithm = machine.settings.algorithm;
        let result = with_protocol!(algorithm, host(machine, start, random));
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
fn host<P: Protocol<Config = Config> + Tells>(
    machine: Machine,
    start: Boot<Saved>,
    random: Pcg64Mcg,
) -> Result<(), Failure> {
    let Boot { incarnation, durable, origin, session, time_of_day } = start;
    let unreadable = || StoreError::Unreadable(machine.settings.state_dir.clone());
    let durable = match durable {
        None => None,
        Some(saved) => Some(read::<P>(&saved, incarnation).ok_or_else(unreadable)?),
    };
    let boot = Boot { incarnation, durable, origin, session, time_of_day };
    let (id, config) = (machine.settings.me, beneath(&machine.settings));
    Host::<P>::start(id, config, boot, machine, random)?.run()
}

/// The time of day in seconds since 1970, as far as this machine knows it.
fn time_of_day() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// What lies beneath the algorithm. A quorum bears loss and watches over its leader itself. The seeds' algorithms
/// assume reliable channels and a failure detector; their `D` includes two retransmissions.
pub(super) fn beneath(settings: &Settings) -> SessionConfig<NodeConfig<Config>> {
    let mut inner = settings.core.clone();
    let bare = inner.timing;
    let leases = settings.algorithm.has_leases();
    if !leases {
        inner.timing.transmission = bare.transmission * 7 + bare.processing * 3;
    }
    let detector = DetectorConfig { losses: LOST_HEARTBEATS, ..DetectorConfig::for_timing(&bare) };
    let (members, rules) = (inner.members.clone(), inner.quorum.rules);
    let node = NodeConfig {
        members: members.clone(),
        inner,
        filter: true,
        link: (!leases).then(|| LinkConfig::for_round_trip(bare.reply())),
        detector: (!leases).then_some(detector),
    };
    SessionConfig { inner: node, members, upkeep: true, rules }
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
        term: Epoch::default(),
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
