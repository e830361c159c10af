//! `doyen node`: one member, until it is told to stop.
//!
//! The election has a thread of its own; this one serves HTTP and waits for signals. SIGTERM and SIGINT make the node
//! transfer leadership and stop, a second one stops it at once, SIGHUP makes it read its configuration, its keys and its
//! admin secret again.

mod log;

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use doyen::api::{self, Admin, Limits, SecretError, ServeError};
use doyen::clock;
use doyen::config::{self, Configuration, Env, Override, Settings};
use doyen::guardian::lease_file::LeaseFile;
use doyen::guardian::{Handover, LogFormat};
use doyen::node::{self, Builder, Failure, Handle, Running};
use tokio::runtime;
use tokio::signal::unix::SignalKind;
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::Answer;
use super::admin_socket::LocalAdmin;
use super::change_hook::ChangeHook;
use super::lease_holder::{Attachment, NoNodeYet};
use super::reload::{HookChanges, Reloader, reload_by_signal};
use super::service;
use super::supervise::{self, Signals, Supervision};
use super::system;
use super::terminal::count;
pub(super) use log::Log;

/// The file descriptors of a node with a guardian, and a few connections.
const NODE_FILES: usize = 40;

/// How long a node takes to answer the `doyen run` that is attached to it.
const ATTACHED_TIMEOUT: Duration = Duration::from_secs(3);

/// Run one member of a cluster
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen init --cluster orders --member n1=10.0.0.1:7400 --member n2=10.0.0.2:7400 \\
             --member n3=10.0.0.3:7400
  doyen node --config orders/n1/doyen.toml --check
  doyen node --config orders/n1/doyen.toml
  doyen node --example > doyen.toml

Precedence: flags, DOYEN_* variables, ./doyen.toml, the user's file, the system's file.

Exit: 0 stopped as told, or valid (--check); 1 it had to stop, was stopped by a second signal, or cannot start for a
reason that may pass (an address that is not there yet, a port that is in use, a full disk): start it again; 2 it
cannot start: the configuration, the keys or the state are wrong.")]
pub(crate) struct Node {
    #[command(flatten)]
    member: MemberFlags,

    /// Print every setting and where it comes from, and exit
    #[arg(long)]
    print_config: bool,

    /// Print a configuration with every setting, its default and an explanation, and exit
    #[arg(long, exclusive = true)]
    example: bool,

    /// Check configuration, keys and state, and exit
    #[arg(long)]
    check: bool,

    /// End when stdin is closed, so that the parent process leaves no node behind
    #[arg(long, hide = true)]
    while_stdin_is_open: bool,
}

/// The configuration of a member, and how its process logs.
#[derive(Args, Clone, Debug)]
pub(super) struct ConfigFlags {
    /// The configuration file [default: ./doyen.toml]
    #[arg(long, short, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    #[command(flatten)]
    overrides: Overrides,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

/// How a process logs.
#[derive(Args, Clone, Debug)]
pub(super) struct LogFlags {
    /// Format of the log
    #[arg(long = "log-format", value_enum, default_value_t, value_name = "FORMAT")]
    format: LogFormat,
}

impl LogFlags {
    /// Starts to log what `filter` says.
    pub(super) fn start(&self, filter: &str) -> Result<Log> {
        Log::start(self.format, filter)
    }

    /// The same, for a guardian.
    pub(super) fn format(&self) -> LogFormat {
        self.format
    }
}

impl ConfigFlags {
    pub(super) fn load(&self) -> Result<Configuration> {
        Ok(Configuration::load(self.config.as_deref(), &self.overrides.0, &Env::of_process())?)
    }

    /// Prepares the process for a node with these settings: its file descriptors, its log.
    fn prepare(&self, settings: &Settings) -> Result<Log> {
        system::check_free_files(NODE_FILES)?;
        self.log.start(&settings.log)
    }

    /// Prepares the process, and serves with a log that is written to its end.
    pub(super) fn prepare_and_serve(
        &self,
        configuration: Configuration,
        serve: impl FnOnce(Configuration) -> Result<Answer>,
    ) -> Result<Answer> {
        let log = self.prepare(&configuration.settings)?;
        let served = serve(configuration);
        log.finish();
        served
    }
}

/// Reports an error that may pass, and returns this code.
pub(super) fn unless_it_may_pass(served: Result<Answer>, answer: Answer) -> Result<Answer> {
    match served {
        Err(error) if may_pass(&error) => {
            system::complain(&error);
            Ok(answer)
        }
        served => served,
    }
}

/// The arguments of every command that runs a member.
#[derive(Args, Debug)]
pub(crate) struct MemberFlags {
    #[command(flatten)]
    pub(super) config: ConfigFlags,

    /// Publish the lease in this file, for other programs of this machine [default with hooks and for `run`: in /run/doyen,
    /// `XDG_RUNTIME_DIR` or /dev/shm]
    #[arg(long, value_name = "FILE")]
    pub(super) lease_file: Option<PathBuf>,
}

impl MemberFlags {
    /// Runs the node and its HTTP server to the end. What keeps it from starting is an error; a node that had to stop is a
    /// negative answer.
    fn serve(&self, configuration: Configuration) -> Result<Answer> {
        let settings = &configuration.settings;
        let ended = match settings.hooks.is_none() {
            true => self.serve_alone(configuration)?,
            false => {
                let supervision = self.supervision(settings, settings.margin)?;
                supervise::serve(configuration, &self.config, &supervision)?.map(drop)
            }
        };
        Ok(match ended {
            Ok(()) => {
                info!(event = "stopped", "stopped");
                Answer::Yes
            }
            Err(why) => {
                system::complain(&why);
                match why.downcast_ref() {
                    Some(Failure::Panicked) => Answer::Panicked,
                    _ => Answer::No,
                }
            }
        })
    }

    /// What hooks need, with this margin.
    pub(super) fn supervision(&self, settings: &Settings, margin: Duration) -> Result<Supervision> {
        let format = self.config.log.format();
        Supervision::new(settings, self.lease_file.as_deref(), format, margin)
    }

    /// Runs a node under whose lease nothing runs, unless a reload adds hooks. What keeps it from starting is the outer error.
    fn serve_alone(&self, configuration: Configuration) -> Result<Result<()>> {
        let grace = configuration.settings.grace;
        supervise::check_hooks(&configuration.settings)?;
        let lease_file =
            self.lease_file.as_deref().map(supervise::create_lease_file).transpose()?;
        let started = start(configuration, &self.config, lease_file, None)?;
        let Started { running, server, mut reloader, changes } = started;
        let begun = reloader.may_add_hooks(self.lease_file.clone());
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(async {
            let handle = running.handle().clone();
            tokio::spawn(reloader.serve());
            tokio::spawn(ChangeHook::run(changes.change_hook, handle.clone()));
            let ended = async { Ok(running.ended().await?) };
            tokio::pin!(ended);
            // The same before and after hooks are added, so that no signal comes in between.
            let mut signals = Signals::new()?;
            match until_the_end(&mut ended, &handle, grace, begun, &mut signals).await? {
                None => Ok(()),
                Some(it) => {
                    supervise::serve_from_now_on(handle, changes.hooks, &it, signals, ended).await
                }
            }
        });
        // A thread may be reading keys from a disk that does not answer.
        runtime.shutdown_background();
        if ended.is_ok() {
            server.stop();
        }
        Ok(ended)
    }

    /// The way to the node that runs here with these settings.
    pub(super) fn attach(&self, settings: &Settings, lease_file: &Path) -> Result<Attachment> {
        let admin = LocalAdmin::of(&settings.state_dir, ATTACHED_TIMEOUT);
        Ok(Attachment::new(lease_file, admin, settings.me)?)
    }
}

/// The flags that override a setting, from the schema of the configuration.
#[derive(Clone, Debug)]
struct Overrides(Vec<Override>);

impl Args for Overrides {
    fn augment_args(command: Command) -> Command {
        command.args(config::flags().map(|flag| {
            Arg::new(flag.key).long(flag.name).value_name(flag.value_name).help(flag.help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = config::flags().filter_map(|flag| {
            let value = matches.get_one::<String>(flag.key)?.clone();
            Some(Override { key: flag.key, value })
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Node {
    pub(super) fn run(&self) -> Result<Answer> {
        if self.example {
            io::stdout().write_all(config::example().as_bytes())?;
            return Ok(Answer::Yes);
        }
        let configuration = self.member.config.load()?;
        if self.print_config {
            write!(io::stdout(), "{}", configuration.report)?;
        }
        if self.check {
            self.check(&configuration)?;
        }
        if self.print_config || self.check {
            return Ok(Answer::Yes);
        }
        let served = self.member.config.prepare_and_serve(configuration, |configuration| {
            if self.while_stdin_is_open {
                end_with_stdin()?;
            }
            self.member.serve(configuration)
        });
        unless_it_may_pass(served, Answer::No)
    }

    fn check(&self, configuration: &Configuration) -> Result<()> {
        let settings = &configuration.settings;
        if let Some(problem) = &configuration.exposed {
            bail!("{problem}");
        }
        settings.check()?;
        supervise::check_hooks(settings)?;
        for warning in &configuration.warnings {
            writeln!(io::stderr(), "doyen: warning: {warning}")?;
        }
        let valid = match settings.key_file.is_some() {
            true => "keys and state are valid",
            false => "state is valid",
        };
        writeln!(io::stdout(), "{}; {valid}", introduction(settings))?;
        Ok(())
    }
}

fn introduction(settings: &Settings) -> String {
    let Settings { cluster, algorithm, listen, members, .. } = settings;
    let (name, members) = (&settings.own().name, count(members.len() as u64, "member"));
    format!("{name} of cluster {cluster}: {members}, {algorithm}, listens on {listen}")
}

/// A node that runs, and its HTTP server.
pub(super) struct Started {
    pub(super) running: Running,
    pub(super) server: api::Server,
    pub(super) reloader: Reloader,
    pub(super) changes: HookChanges,
}

/// HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Unserved {
    text: String,
    error: io::Error,
}

/// Whether what keeps a node from starting may pass by itself.
fn may_pass(error: &anyhow::Error) -> bool {
    let of_secret = |error: &SecretError| match error {
        SecretError::Io { error, .. } | SecretError::Socket { error, .. } => node::may_pass(error),
        _ => false,
    };
    if let Some(failure) = error.downcast_ref::<Failure>() {
        failure.may_pass()
    } else if let Some(unserved) = error.downcast_ref::<Unserved>() {
        node::may_pass(&unserved.error)
    } else if let Some(error) = error.downcast_ref::<SecretError>() {
        of_secret(error)
    } else if let Some(ServeError::Secret(error)) = error.downcast_ref() {
        of_secret(error)
    } else if let Some(ServeError::Io(error)) = error.downcast_ref() {
        node::may_pass(error)
    } else {
        error.is::<NoNodeYet>() || error.downcast_ref().is_some_and(node::may_pass)
    }
}

/// Starts the node and its HTTP server. `flags`: where its configuration is read again; `handover`: what it shares with its
/// guardian, if it has one.
pub(super) fn start(
    configuration: Configuration,
    flags: &ConfigFlags,
    lease_file: Option<LeaseFile>,
    handover: Option<Handover>,
) -> Result<Started> {
    // Before anything is created in the name of a configuration that others may have written.
    if let Some(problem) = &configuration.exposed {
        return Err(Failure::Exposed(problem.clone()).into());
    }
    let http = configuration.settings.http;
    let admin = Admin::of(&configuration.settings);
    let listener = http.map(|address| {
        TcpListener::bind(address).map_err(|error| {
            let hint = node::hint_if_taken(&error);
            Unserved { text: format!("cannot serve HTTP on {address}: {error}{hint}"), error }
        })
    });
    let listener = listener.transpose()?;
    // A node that cannot be commanded must not join. A folder without a state is none for a secret or a socket.
    let has_state = configuration.settings.state_dir.join("state").exists();
    let prepared = has_state.then(|| admin.clone().prepare()).transpose()?;
    log_warnings(&configuration);
    let introduction = introduction(&configuration.settings);
    let current = configuration.clone();
    let builder = Builder::new(configuration).lease_file(lease_file).handover(handover);
    let running = builder.start()?;
    info!(event = "started", "{introduction}");
    if let Some(http) = http {
        info!(event = "http-started", address = %http, "status, health and metrics: http://{http}/");
    }
    let handle = running.handle().clone();
    let prepared = prepared.map_or_else(|| admin.prepare(), Ok)?;
    let server = api::start(handle.clone(), listener, prepared, Limits::default())?;
    service::notify_of(handle.clone()).context("cannot notify the service manager")?;
    let (reloader, changes) = Reloader::new(handle, server.secret(), flags.clone(), current);
    Ok(Started { running, server, reloader, changes })
}

fn log_warnings(configuration: &Configuration) {
    for warning in &configuration.warnings {
        warn!(event = "configuration-warning", "{warning}");
    }
    if let Some(warning) = system::scarce_files(NODE_FILES + Limits::default().files() as usize) {
        warn!(event = "few-descriptors", "{warning}");
    }
    let has_leases = configuration.settings.algorithm.has_leases();
    if let Some(caveat) = clock::caveat().filter(|_| has_leases) {
        warn!(event = "clock-caveat", "{caveat}");
    }
}

/// Waits for the node's end, and passes signals on to it; or until hooks are to run under its lease, as a reload says.
async fn until_the_end(
    ended: &mut (impl Future<Output = Result<()>> + Unpin),
    handle: &Handle,
    grace: Duration,
    begun: oneshot::Receiver<Supervision>,
    signals: &mut Signals,
) -> Result<Option<Supervision>> {
    let begun = async {
        match begun.await {
            Ok(supervision) => supervision,
            // What reloads has ended, as the node will.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::pin!(begun);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = &mut *ended => return ended.map(|()| None),
            supervision = &mut begun, if !stopping => return Ok(Some(supervision)),
            (signal, ends) = signals.next() => {
                if signal == SignalKind::hangup().as_raw_value() {
                    tokio::spawn(reload_by_signal(handle.clone()));
                }
                if !ends {
                    continue;
                }
            }
        }
        if stopping {
            bail!("stopped at once, without a transfer of leadership, by a second signal");
        }
        stopping = true;
        handle.stop(grace);
        info!(
            event = "stopping",
            "stopping; a leader transfers leadership first; a second signal stops it at once"
        );
    }
}

/// `doyen cluster` and `doyen lab` hold the other end of stdin.
fn end_with_stdin() -> io::Result<()> {
    // A stopped process reads nothing, and must end nevertheless. If this fails, a running node still ends.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let end = || {
        let mut byte = [0];
        while matches!(io::stdin().read(&mut byte), Ok(1)) {}
        std::process::exit(1);
    };
    std::thread::Builder::new().name("doyen-stdin".to_owned()).spawn(end).map(drop)
}
