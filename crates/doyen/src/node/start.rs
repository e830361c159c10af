//! Starts a node: state, keys and socket, then the loop in a thread of its own.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use doyen_core::layers::Layers;
use doyen_core::members::{Incarnation, SessionId};
use doyen_core::node::NodeConfig;
use doyen_core::protocol::{Boot, Origin};
use doyen_core::registry::{Algorithm, AnyConfig, AnyDurable};
use doyen_core::session::{Kept, Roster, SessionConfig};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};
use tokio::sync::oneshot;

use super::groups::{GroupHost, ShorterLease};
use super::host::{Host, Resources};
use super::keys::Keys;
use super::log::{LogLine, Logger};
use super::network::Network;
use super::publish::Publisher;
use super::store::{Saved, Store, StoreError};
use super::trace::Header;
use super::{Failure, Handle, attribute, compared, waker};
use crate::config::{ConfigError, Configuration, Settings};
use crate::guardian::Handover;
use crate::guardian::lease_file::LeaseFile;
use crate::key::{KeyFile, Keyring};

/// A running node.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    ended: oneshot::Receiver<Result<(), Failure>>,
}

impl Running {
    /// The way to the node.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits until it has stopped, because it was told to or had to.
    pub async fn ended(self) -> Result<(), Failure> {
        self.ended.await.unwrap_or(Err(Failure::Panicked))
    }
}

/// Decodes a durable state, if possible. Version 1 of the state file has no sessions.
fn read(algorithm: Algorithm, saved: &Saved, incarnation: Incarnation) -> Option<Kept<AnyDurable>> {
    let decoder = |bytes| postcard::Deserializer::from_bytes(bytes);
    let alone = |inner| {
        let roster = Roster::default();
        Kept { incarnation, rejoining: false, roster, inner: Some(inner) }
    };
    match saved {
        Saved::Kept(bytes) => algorithm.read_kept(&mut decoder(bytes)).ok(),
        Saved::EarlierKept(bytes) => algorithm.read_earlier_kept(&mut decoder(bytes)).ok(),
        Saved::Bare(bytes) => algorithm.read_durable(&mut decoder(bytes)).ok().map(alone),
        Saved::EarlierBare(bytes) => {
            algorithm.read_earlier_durable(&mut decoder(bytes)).ok().map(alone)
        }
    }
}

/// Whether the state can be used; with `rejoin`, whether it is lost. Changes nothing.
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

/// Whether the folder of the trace exists. Changes nothing.
fn check_trace(settings: &Settings) -> Result<(), Failure> {
    let Some(path) = &settings.trace else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = folder.map_or(Ok(()), |folder| fs::read_dir(folder).map(drop));
    entries.map_err(|error| Failure::Trace { path: path.clone(), error })
}

impl Settings {
    /// Whether the files that the settings name can be used: the keys, the folder of the trace, and the state.
    pub fn check(&self) -> Result<(), ConfigError> {
        let keys = self.key_file.as_ref().map(KeyFile::read);
        let keys = keys.and_then(Result::err).map(|error| format!("key_file: {error}"));
        let state = check_state(self, false).err().map(|error| format!("state_dir: {error}"));
        let trace = check_trace(self).err().map(|error| format!("trace: {error}"));
        let problems: Vec<String> = keys.into_iter().chain(state).chain(trace).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ConfigError { problems, warnings: Vec::new() }),
        }
    }
}

/// A node that has not been started.
#[derive(Debug)]
pub struct Builder {
    configuration: Configuration,
    rejoin: bool,
    lease_file: Option<LeaseFile>,
    handover: Option<Handover>,
}

impl Builder {
    /// A node with this configuration, whose state `doyen init` or [`Founding`](crate::init::Founding) created.
    pub fn new(configuration: Configuration) -> Self {
        Self { configuration, rejoin: false, lease_file: None, handover: None }
    }

    /// Whether its state is lost, and its operator allows it to come back without it. A state that can be used is never
    /// given up.
    #[must_use]
    pub fn rejoin(self, rejoin: bool) -> Self {
        Self { rejoin, ..self }
    }

    /// Where it publishes its lease for other programs of this machine.
    #[must_use]
    pub fn lease_file(self, lease_file: impl Into<Option<LeaseFile>>) -> Self {
        Self { lease_file: lease_file.into(), ..self }
    }

    /// Where it keeps ready, for its guardian, what ends its lease if it dies.
    #[must_use]
    pub fn handover(self, handover: impl Into<Option<Handover>>) -> Self {
        Self { handover: handover.into(), ..self }
    }

    /// Starts the node, in threads of its own.
    pub fn start(self) -> Result<Running, Failure> {
        start(self)
    }
}

fn start(builder: Builder) -> Result<Running, Failure> {
    let Builder { configuration, rejoin, lease_file, handover } = builder;
    let system = |what| move |error| Failure::System { what, error };
    if let Some(problem) = configuration.exposed {
        return Err(Failure::Exposed(problem));
    }
    let text = configuration.report.to_string();
    let settings = Arc::new(configuration.settings);
    check_trace(&settings)?;
    // Before the address, which that process has too.
    Store::check_free(&settings.state_dir)?;
    check_state(&settings, rejoin)?;
    if rejoin && settings.members.len() == 1 && settings.algorithm == Algorithm::Quorum {
        return Err(Failure::OnlyMember);
    }
    let log = Logger::start(settings.own().name.clone())
        .map_err(system("start the thread for the log"))?;
    let (sender, commands) = waker::channel().map_err(system("create a socket pair"))?;
    let mut random = random()?;
    let session = SessionId::from_random(random.next_u64());
    let keys = Keyring::of(settings.key_file.as_ref());
    let keys = keys.map_err(|error| Failure::Keys(error.to_string()))?;
    let network = Network::open(&settings, session, &keys, sender.clone(), &log)?;
    let (mut publisher, subscription) =
        Publisher::new(Arc::clone(&settings), log.clone(), lease_file, handover)
            .map_err(system("share memory with the guardian"))?;
    let (keys, drift) =
        (Keys::new(settings.key_file.clone(), &keys), settings.core.quorum.pace.drift);
    let compared = compared::Current::new(&settings);
    let (groups, group_reader) = GroupHost::new(&settings, session, &log);
    let handle = Handle::new(subscription, sender.clone(), keys, compared, drift, group_reader);
    attribute::start(&settings.attribute, sender, log.clone())
        .map_err(system("start the thread that measures the attribute"))?;
    let (store, boot) = open_store(&settings, rejoin)?;
    let written = publisher
        .keep_history(settings.state_dir.clone())
        .map_err(system("start the thread for the history"))?;
    let boot = Boot { session, time_of_day: time_of_day(), ..boot };
    let shorter_lease = ShorterLease::of(&settings)
        .map_err(|error| Failure::Store { path: settings.state_dir.clone(), error })?;
    let (end, ended) = oneshot::channel();
    let body = move || {
        let resources = Resources { settings, network, store, publisher, commands, groups, random };
        let result = run(resources, shorter_lease, boot, text);
        if let Err(failure) = &result {
            log.write(LogLine::error("node-failed", failure.to_string()));
        }
        written.wait();
        log.flush();
        // The receiver may have been dropped.
        let _ = end.send(result);
    };
    thread::Builder::new()
        .name("doyen-loop".to_owned())
        .spawn(body)
        .map_err(system("start the thread of the event loop"))?;
    Ok(Running { handle, ended })
}

fn open_store(settings: &Settings, rejoin: bool) -> Result<(Store, Boot<Saved>), StoreError> {
    let (folder, owner) = (&settings.state_dir, settings.owner());
    if rejoin {
        let (store, incarnation) = Store::rejoin(folder, &owner)?;
        return Ok((store, Boot::new(incarnation, None, Origin::Rejoining)));
    }
    let opened = Store::open(folder, &owner)?;
    let origin = opened.origin();
    Ok((opened.store, Boot::new(opened.incarnation, opened.durable, origin)))
}

/// The thread of the loop.
fn run(
    resources: Resources,
    shorter_lease: Option<ShorterLease>,
    boot: Boot<Saved>,
    text: String,
) -> Result<(), Failure> {
    let Resources { settings, commands, publisher, .. } = &resources;
    if let Some(lease) = shorter_lease {
        let waited = lease.wait(commands, &publisher.log);
        let failed = |error| Failure::Store { path: settings.state_dir.clone(), error };
        if !waited.map_err(failed)? {
            return Ok(());
        }
    }
    let Boot { incarnation, durable, origin, session, time_of_day } = boot;
    let unreadable = || StoreError::Unreadable(settings.state_dir.clone());
    let decode = |saved| read(settings.algorithm, &saved, incarnation).ok_or_else(unreadable);
    let durable = durable.map(decode).transpose()?;
    let boot = Boot { incarnation, durable, origin, session, time_of_day };
    let header = settings.trace.is_some().then(|| Header::new(settings, text, &boot));
    Host::start(process(settings), boot, resources, header)?.run()
}

/// The time of day in seconds since 1970, by this machine's clock.
fn time_of_day() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// The algorithm and the layers below it.
pub(super) fn process(settings: &Settings) -> SessionConfig<NodeConfig<AnyConfig>> {
    let layers = Layers::of_node(settings.algorithm, settings.core.timing);
    let mut inner = settings.core.clone();
    inner.timing.transmission = layers.transmission();
    layers.process(AnyConfig { algorithm: settings.algorithm, inner })
}

/// A random generator, seeded by the operating system.
fn random() -> Result<Pcg64Mcg, Failure> {
    let mut seed = [0; 16];
    let failed = |error: getrandom::Error| Failure::System {
        what: "draw random numbers",
        error: std::io::Error::other(error.to_string()),
    };
    getrandom::fill(&mut seed).map_err(failed)?;
    Ok(Pcg64Mcg::from_seed(seed))
}
