//! `doyen run -- COMMAND`: one copy of a command in the whole cluster, on the member that leads.
//!
//! The node runs in this process, and the command beneath a [guardian](doyen::guardian), which ends it before the lease is
//! over. This file decides when the command starts and stops; it never kills anything itself, except a guardian that
//! does not answer.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use doyen::config::{Configuration, Settings};
use doyen::guardian::contain::Containment;
use doyen::guardian::control::{Killed, Report, Request};
use doyen::guardian::lease_file::LeaseFile;
use doyen::guardian::{CANNOT_EXECUTE, FAILED, Guardian, Handover, NOT_FOUND, Plan};
use doyen::leadership::FencingToken;
use doyen::node::{Handle, Running, Work};
use doyen_core::change::{ElectionReason, LeaderChange};
use doyen_core::protocol::{AdminCommand, Role};
use rustix::fs::{Access, access};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tracing::{info, warn};

use super::Answer;
use super::client::parse_time;
use super::node::MemberFlags;

/// The shortest margin that is chosen without being asked for: less than this the operating system does not promise.
const SHORTEST_MARGIN: Duration = Duration::from_millis(50);
/// A command that runs for this long has started well.
const STARTED_WELL: Duration = Duration::from_secs(10);
/// How long a command that fails at once waits to be started again: at first, and at most.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
/// So many questions in a row may a guardian leave unanswered.
const MOST_UNANSWERED: u32 = 4;

/// Run a command on exactly one member: the leader
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen run --config orders/n1/doyen.toml -- ./job --verbose
  doyen run --once -- ./migrate

The command runs on the member that holds the lease. Its environment has DOYEN_TERM, DOYEN_TOKEN (a fencing token: higher at
every start, in the whole cluster) and DOYEN_LEASE_FILE. All of its processes are gone before another member can hold a
lease, even if doyen is killed, stopped or hangs. On a transfer of leadership it gets SIGTERM, and SIGKILL after --grace.

Exit: the exit code of the command (--once, or stopped by a signal), 128 + n if signal n ended it; 125 doyen
failed, 126 or 127 the command cannot be executed, 2 wrong usage.")]
pub(crate) struct Run {
    #[command(flatten)]
    member: MemberFlags,

    /// End when the command ends, with its exit code, instead of starting it again
    #[arg(long)]
    once: bool,

    /// How long before the end of a lease the command is killed [default: a fifth of the lease, at least 50ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    margin: Option<Duration>,

    /// How long the command has to stop after SIGTERM [default: the setting `grace`]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    grace: Option<Duration>,

    /// Give up leadership after this many consecutive failures [default: never]
    #[arg(long, value_name = "COUNT")]
    give_up_after: Option<u32>,

    /// Run the command without containment: processes that leave its process group survive
    #[arg(long)]
    uncontained: bool,

    /// The lease file [default: in /run/doyen, `XDG_RUNTIME_DIR` or /dev/shm]
    #[arg(long, value_name = "FILE")]
    lease_file: Option<PathBuf>,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    pub(super) fn run(&self) -> Result<Answer> {
        let configuration = self.member.load()?;
        let settings = &configuration.settings;
        if let Some(code) = cannot_execute(&self.command[0]) {
            let _ = writeln!(io::stderr(), "doyen: cannot execute {}", self.command[0].display());
            return Ok(Answer::Code(code));
        }
        let (lease, margin) = lease_and_margin(settings, self.margin)?;
        let containment = self.containment()?;
        let path = match &self.lease_file {
            Some(path) => path.clone(),
            None => default_lease_file(settings)?,
        };
        let lease_file = LeaseFile::create(&path)
            .with_context(|| format!("cannot create the lease file {}", path.display()))?;
        let grace = self.grace.unwrap_or(settings.grace);
        let log = self.member.start_log()?;
        say_what_is_contained(&containment);
        let handover = Handover::create().context("cannot share memory with the guardian")?;
        let job =
            JobOptions { lease, margin, containment, grace, lease_file: path, handover, run: self };
        let ended = serve(configuration, self.member.rejoin, lease_file, &job);
        log.finish();
        Ok(Answer::Code(match ended {
            Ok(code) => u8::try_from(code).unwrap_or(FAILED),
            Err(error) => {
                let _ = writeln!(io::stderr(), "doyen: {error:#}");
                FAILED
            }
        }))
    }

    fn containment(&self) -> Result<Containment> {
        if self.uncontained {
            return Ok(Containment::default());
        }
        let available = Containment::available();
        if available.is_none() {
            bail!(
                "cannot contain the command: PID namespaces need root (CAP_SYS_ADMIN), and no cgroup v2 is writable (systemd: \
                 Delegate=yes). With --uncontained, processes that leave its process group survive it"
            );
        }
        Ok(available)
    }
}

/// The exit code if there is no such program here, or it is not executable.
pub(super) fn cannot_execute(program: &OsStr) -> Option<u8> {
    let is_file = |path: &PathBuf| path.is_file();
    let candidates: Vec<PathBuf> = match program.as_bytes().contains(&b'/') {
        true => vec![program.into()],
        false => std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join(program))
            .collect(),
    };
    let files: Vec<PathBuf> = candidates.into_iter().filter(is_file).collect();
    let is_executable = |path: &PathBuf| access(path, Access::EXEC_OK).is_ok();
    match files.iter().any(is_executable) {
        true => None,
        false if files.is_empty() => Some(NOT_FOUND),
        false => Some(CANNOT_EXECUTE),
    }
}

/// The length of a lease, and the margin, if that leaves enough of it.
fn lease_and_margin(settings: &Settings, asked: Option<Duration>) -> Result<(Duration, Duration)> {
    if !settings.algorithm.has_leases() {
        bail!(
            "algorithm: {} has no leases, so two members may lead at once; `doyen run` needs `quorum`",
            settings.algorithm
        );
    }
    let pace = settings.core.quorum.pace;
    let [lease, heartbeat] =
        [pace.lease(), pace.heartbeat].map(|it| Duration::from_nanos(it.as_nanos()));
    let margin = asked.unwrap_or_else(|| (lease / 5).max(SHORTEST_MARGIN));
    // Two heartbeats may get lost before the command is killed.
    if margin + heartbeat * 3 > lease {
        bail!(
            "the margin does not fit the lease: {margin:?} + 3 × heartbeat ({heartbeat:?}) is longer than the lease ({lease:?}). \
             Use a slower timing.profile, or a shorter --margin"
        );
    }
    Ok((lease, margin))
}

/// A file on a file system in memory that programs of this machine can find.
fn default_lease_file(settings: &Settings) -> Result<PathBuf> {
    let runtime =
        std::env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("doyen"));
    let shared =
        Path::new("/dev/shm").join(format!("doyen-{}", rustix::process::getuid().as_raw()));
    let folders = [Some(PathBuf::from("/run/doyen")), runtime, Some(shared)];
    let name = format!("{}-{}.lease", settings.cluster, settings.own().name);
    let usable = |folder: &PathBuf| {
        std::fs::create_dir_all(folder).is_ok() && access(folder, Access::WRITE_OK).is_ok()
    };
    let folder = folders.into_iter().flatten().find(usable);
    let folder = folder
        .ok_or_else(|| anyhow!("no folder in memory for the lease file; give --lease-file"))?;
    Ok(folder.join(name))
}

fn say_what_is_contained(containment: &Containment) {
    match (containment.namespace, &containment.cgroups) {
        (true, _) => {
            info!("commands run in a PID namespace: the kernel kills all their processes together");
        }
        (false, Some(_)) => warn!(
            "the command runs in a cgroup without a PID namespace: if doyen and its guardian are both killed at once, it survives them"
        ),
        (false, None) => {
            warn!(
                "the command is not contained: processes that leave its process group survive it"
            );
        }
    }
}

struct JobOptions<'a> {
    lease: Duration,
    margin: Duration,
    containment: Containment,
    grace: Duration,
    lease_file: PathBuf,
    handover: Handover,
    run: &'a Run,
}

fn serve(
    configuration: Configuration,
    rejoin: bool,
    lease_file: LeaseFile,
    options: &JobOptions<'_>,
) -> Result<i32> {
    let handover = options.handover.try_clone()?;
    let started = super::node::start(configuration, rejoin, Some((lease_file, handover)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = started.running.handle().clone();
    let ended = runtime.block_on(async {
        let supervisor = Supervisor::new(handle, options)?;
        supervisor.supervise(started.running).await
    });
    runtime.shutdown_background();
    if let (Ok(_), Some(server)) = (&ended, started.server) {
        server.stop();
    }
    ended
}

/// How far the command has come.
enum Job {
    /// It does not run, and is not started before this time.
    Idle { not_before: Instant },
    /// It runs under this work, since this time.
    Runs { _work: Work, since: Instant, stopping: bool },
}

struct Supervisor<'a> {
    handle: Handle,
    options: &'a JobOptions<'a>,
    guardian: Arc<Guardian>,
    reports: mpsc::UnboundedReceiver<Report>,
    job: Job,
    /// How often the command has ended soon after its start.
    failures: u32,
    /// The exit code of the command, once doyen is to end.
    code: Option<i32>,
    /// The signal that ends doyen.
    ends_by: Option<i32>,
    /// How many questions the guardian has not answered.
    unanswered: u32,
}

struct Signals {
    ending: [(i32, Signal); 2],
    passed: [(i32, Signal); 3],
}

impl Signals {
    fn new() -> Result<Self> {
        let stream = |kind: SignalKind| signal(kind).map(|it| (kind.as_raw_value(), it));
        Ok(Self {
            ending: [stream(SignalKind::terminate())?, stream(SignalKind::interrupt())?],
            passed: [
                stream(SignalKind::hangup())?,
                stream(SignalKind::user_defined1())?,
                stream(SignalKind::user_defined2())?,
            ],
        })
    }

    /// The next signal, and whether doyen is to end.
    async fn next(&mut self) -> (i32, bool) {
        let [(term, terminate), (int, interrupt)] = &mut self.ending;
        let [(hup, hang_up), (usr1, user1), (usr2, user2)] = &mut self.passed;
        tokio::select! {
            _ = terminate.recv() => (*term, true),
            _ = interrupt.recv() => (*int, true),
            _ = hang_up.recv() => (*hup, false),
            _ = user1.recv() => (*usr1, false),
            _ = user2.recv() => (*usr2, false),
        }
    }
}

impl<'a> Supervisor<'a> {
    fn new(handle: Handle, options: &'a JobOptions<'a>) -> Result<Self> {
        let (guardian, reports) = start_guardian(options)?;
        Ok(Self {
            handle,
            options,
            guardian,
            reports,
            job: Job::Idle { not_before: Instant::now() },
            failures: 0,
            code: None,
            ends_by: None,
            unanswered: 0,
        })
    }

    /// Runs the command whenever this member leads, until doyen is told to end or the node has to.
    async fn supervise(mut self, running: Running) -> Result<i32> {
        let mut signals = Signals::new()?;
        let mut announced = self.handle.leadership().watch();
        let mut term = 0;
        let ended = running.ended();
        tokio::pin!(ended);
        // How often the guardian is asked whether it is there.
        let mut pings = tokio::time::interval(self.options.lease / 4);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let state = *announced.borrow_and_update();
            let leads = state.is_leader();
            if leads && state.term.0 != term {
                term = state.term.0;
                self.wait_after_a_lapse(term);
            }
            self.step(leads, state.role == Some(Role::Retiring))?;
            let wake = match self.job {
                Job::Idle { not_before } if leads => not_before,
                _ => Instant::now() + Duration::from_secs(3600),
            };
            tokio::select! {
                ended = &mut ended => {
                    ended?;
                    return Ok(self.exit_code());
                }
                _ = announced.changed() => {}
                () = sleep_until(wake) => {}
                report = self.reports.recv() => self.on_report(report)?,
                _ = pings.tick() => self.ping()?,
                (signal, ends) = signals.next() => self.on_signal(signal, ends)?,
            }
        }
    }

    fn exit_code(&self) -> i32 {
        self.code.or(self.ends_by.map(|signal| 128 + signal)).unwrap_or(0)
    }

    /// A leader that was not given leadership by the last one starts nothing before that one's guardian has had its margin.
    fn wait_after_a_lapse(&mut self, term: u64) {
        let history = self.handle.history();
        let is_transferred = history.iter().rev().any(|entry| {
            matches!(entry.change, LeaderChange::BecameLeader { term: of, reason: ElectionReason::Transferred { .. } }
                if of.0 == term)
        });
        if let (false, Job::Idle { not_before }) = (is_transferred, &mut self.job) {
            *not_before = (*not_before).max(Instant::now() + self.options.margin);
        }
    }

    /// Starts or stops the command, if it is time.
    fn step(&mut self, leads: bool, retires: bool) -> Result<()> {
        let is_ending = self.ends_by.is_some() || self.code.is_some();
        match &mut self.job {
            Job::Idle { not_before } if leads && Instant::now() >= *not_before && !is_ending => {
                self.start()
            }
            Job::Runs { stopping, .. } if !*stopping && (retires || self.ends_by.is_some()) => {
                *stopping = true;
                let grace = self.options.grace.as_nanos() as u64;
                info!("stopping the command: SIGTERM, then SIGKILL after {:?}", self.options.grace);
                self.guardian.ask(&Request::Stop { grace }).context("the guardian does not answer")
            }
            Job::Idle { .. } | Job::Runs { .. } => Ok(()),
        }
    }

    fn start(&mut self) -> Result<()> {
        let Some(work) = self.handle.begin_work() else { return Ok(()) };
        let term = work.term().0;
        let Some(FencingToken(token)) = work.next_token() else {
            bail!("there are no fencing tokens left in term {term}");
        };
        info!("starting the command (term {term}, token {token})");
        self.guardian
            .ask(&Request::Start { term, token })
            .context("the guardian does not answer")?;
        self.job = Job::Runs { _work: work, since: Instant::now(), stopping: false };
        Ok(())
    }

    fn on_report(&mut self, report: Option<Report>) -> Result<()> {
        match report {
            Some(Report::Started { pid }) => info!("started the command, beneath process {pid}"),
            Some(Report::NotStarted { why }) => {
                warn!("the command was not started: {why}");
                self.job = Job::Idle { not_before: Instant::now() + BACK_OFF[0] };
            }
            Some(Report::Ended { code, killed }) => self.on_end(code, killed),
            Some(Report::Pong) => self.unanswered = 0,
            None => self.replace_guardian()?,
        }
        Ok(())
    }

    /// The command has ended, and all of its processes are gone.
    fn on_end(&mut self, code: i32, killed: Option<Killed>) {
        let ran = std::mem::replace(&mut self.job, Job::Idle { not_before: Instant::now() });
        let Job::Runs { since, stopping, .. } = ran else { return };
        match killed {
            Some(Killed::Lease { late, took }) => {
                let [late, took] = [late, took].map(Duration::from_nanos);
                warn!(
                    "the command was killed because the lease was about to end; the guardian was {late:.1?} late and took {took:.1?}"
                );
                return;
            }
            Some(Killed::Grace) => {
                warn!("the command did not stop within {:?} and was killed", self.options.grace);
            }
            None if code > 128 => info!("signal {} ended the command", code - 128),
            None => info!("the command ended with exit code {code}"),
        }
        if self.ends_by.is_some() {
            self.code = Some(code);
        }
        if stopping {
            return;
        }
        if self.options.run.once {
            self.code = Some(code);
            self.handle.stop(self.options.grace);
            return;
        }
        if [CANNOT_EXECUTE, NOT_FOUND].map(i32::from).contains(&code) {
            warn!("the command cannot be executed on this member");
        }
        self.failures = if since.elapsed() < STARTED_WELL { self.failures + 1 } else { 0 };
        let wait = (BACK_OFF[0] * 2_u32.saturating_pow(self.failures.saturating_sub(1).min(20)))
            .min(BACK_OFF[1]);
        self.job = Job::Idle { not_before: Instant::now() + wait };
        if self.options.run.give_up_after.is_none_or(|most| self.failures < most) {
            info!("starting it again in {wait:?}");
        } else {
            self.failures = 0;
            warn!("the command keeps failing: giving up leadership");
            let handle = self.handle.clone();
            tokio::spawn(async move {
                if let Err(error) = handle.command(AdminCommand::Resign).await {
                    warn!("leadership was not given up: {error}");
                }
            });
        }
    }

    fn on_signal(&mut self, signal: i32, ends: bool) -> Result<()> {
        if !ends {
            let _ = self.guardian.ask(&Request::Signal(signal));
            return Ok(());
        }
        if self.ends_by.is_some() {
            bail!("stopped at once, without a transfer of leadership, by a second signal");
        }
        self.ends_by = Some(signal);
        info!("stopping; a second signal stops immediately");
        // The command has its grace first.
        self.handle.stop(self.options.grace * 2);
        Ok(())
    }

    /// Asks the guardian whether it is there. One that has not answered for some turns is stopped or hangs: it is killed, and
    /// the kernel ends the command with it. Turns count, not time: after a stall of this process the answers still wait.
    fn ping(&mut self) -> Result<()> {
        if self.unanswered >= MOST_UNANSWERED {
            warn!("the guardian does not answer: killing it and the command");
            self.unanswered = 0;
            return self.guardian.kill().context("cannot kill the guardian");
        }
        self.unanswered += 1;
        // If the channel is full, the guardian does not read: that shows in the next turns.
        let _ = self.guardian.ask(&Request::Ping);
        Ok(())
    }

    /// The guardian is gone, and the command with it.
    fn replace_guardian(&mut self) -> Result<()> {
        warn!("the guardian died; starting a new one");
        self.guardian.end_what_is_left().context("the command survives its guardian")?;
        (self.guardian, self.reports) = start_guardian(self.options)?;
        self.unanswered = 0;
        self.job = Job::Idle { not_before: Instant::now() + BACK_OFF[0] };
        Ok(())
    }
}

/// Starts a guardian and a thread that reads what it reports.
fn start_guardian(
    options: &JobOptions<'_>,
) -> Result<(Arc<Guardian>, mpsc::UnboundedReceiver<Report>)> {
    let plan = Plan {
        lease_file: &options.lease_file,
        handover: &options.handover,
        margin: options.margin,
        containment: &options.containment,
        command: &options.run.command,
    };
    let guardian =
        Guardian::start(Path::new("/proc/self/exe"), &plan).context("cannot start the guardian")?;
    let guardian = Arc::new(guardian);
    let (tell, reports) = mpsc::unbounded_channel();
    let its = Arc::clone(&guardian);
    std::thread::Builder::new().name("guardian".to_owned()).spawn(move || {
        while let Ok(Some(report)) = its.report() {
            if tell.send(report).is_err() {
                return;
            }
        }
    })?;
    Ok((guardian, reports))
}
