//! Keeps what runs under the lease in step with the lease: a command (`doyen run`), hooks, or both.
//!
//! The node runs in this process, and the command and the hooks run under a [guardian](doyen::guardian), which ends them
//! before the lease is over. This file decides when they start and stop. It kills nothing itself, except a guardian that
//! does not answer, and what that guardian leaves behind.

mod options;

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use doyen::clock::Moment;
use doyen::config::Configuration;
use doyen::guardian::control::{Killed, Report, Request};
use doyen::guardian::{CANNOT_EXECUTE, FAILED, Guardian, Hook, Hooks, NOT_FOUND, Plan};
use doyen::node::Handle;
use doyen::node::status::{Job as JobStatus, JobPart};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tracing::{info, warn};

use super::change_hook::ChangeHook;
use super::lease_holder::{Attachment, Held, Node, Position};
use super::node::{ConfigFlags, Started};
use super::terminal::span;
pub(super) use options::{Supervision, check_hooks, create_lease_file, folder_in_memory};

/// A command that runs for this long has started well.
const STARTED_WELL: Duration = Duration::from_secs(10);
/// How long a command that fails at once waits to be started again: at first, and at most.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
/// A guardian may leave this many questions in a row unanswered.
const MOST_UNANSWERED: u32 = 4;

/// Runs a node, and what is to run under its lease, until it is told to end or has to. Returns the exit code. What keeps it
/// from starting is the outer error. `flags`: where the configuration is read again.
pub(super) fn serve(
    configuration: Configuration,
    flags: &ConfigFlags,
    options: &Supervision,
) -> Result<Result<i32>> {
    let lease_file = create_lease_file(&options.lease_file)?;
    let handover = options.handover.try_clone()?;
    let started = super::node::start(configuration, flags, Some(lease_file), Some(handover))?;
    let Started { running, server, reloader, changes } = started;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = running.handle().clone();
    let supervisor = Supervisor::new(Node::own(handle.clone()), options, Some(changes.hooks))?;
    let ended = runtime.block_on(async {
        tokio::spawn(reloader.serve());
        tokio::spawn(ChangeHook::run(changes.change_hook, handle));
        supervisor.supervise(None, async { Ok(running.ended().await?) }).await
    });
    runtime.shutdown_background();
    if ended.is_ok() {
        server.stop();
    }
    Ok(ended)
}

/// Runs hooks under the lease of a node that has run without any, until `ended`, the end of the node. `signals`: those that
/// have come since then count.
pub(super) async fn serve_from_now_on(
    handle: Handle,
    hooks: watch::Receiver<Hooks>,
    options: &Supervision,
    signals: Signals,
    ended: impl Future<Output = Result<()>>,
) -> Result<()> {
    let supervisor = Supervisor::new(Node::own(handle), options, Some(hooks))?;
    supervisor.supervise(Some(signals), ended).await.map(drop)
}

/// Runs the command under the lease of a node that runs in another process of this machine. Returns what [`serve`] does.
pub(super) fn serve_beside(node: Attachment, options: &Supervision) -> Result<Result<i32>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let supervisor = Supervisor::new(Node::Other(node), options, None)?;
    Ok(runtime.block_on(supervisor.supervise(None, std::future::pending())))
}

/// Runs the command under a lock, once. Returns its exit code.
pub(super) async fn serve_under(lock: Node, options: &Supervision) -> Result<i32> {
    Supervisor::new(lock, options, None)?.supervise(None, std::future::pending()).await
}

/// How far the command has come.
enum Job {
    /// It does not run, and is not started before this time.
    Idle { not_before: Instant },
    /// The guardian has not said yet that nothing is left of an earlier start. Until it does, a lease stays here.
    Clearing { held: Option<Held> },
    /// It runs under the lease, since this time.
    Runs { held: Held, since: Instant, stopping: bool },
}

struct Supervisor<'a> {
    node: Node,
    options: &'a Supervision,
    /// The hooks, as they may change; none of a node in another process.
    hooks: Option<watch::Receiver<Hooks>>,
    /// The hooks that the guardian has.
    current: Hooks,
    /// No hooks are wanted any more. The guardian keeps those that it has until what they did is undone.
    drops_hooks: bool,
    guardian: Arc<Guardian>,
    reports: mpsc::UnboundedReceiver<Report>,
    job: Job,
    /// What the status of the node shows.
    shown: JobStatus,
    /// How often the command has ended soon after its start.
    failures: u32,
    /// How often the hook for a member that does not lead has failed in a row.
    hook_failures: u32,
    /// The exit code of the command, once doyen is to end.
    code: Option<i32>,
    /// The signal that ends doyen.
    ends_by: Option<i32>,
    /// How many questions the guardian has not answered.
    unanswered: u32,
}

pub(super) struct Signals {
    ending: [(i32, Signal); 2],
    passed: [(i32, Signal); 3],
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
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
    pub(super) async fn next(&mut self) -> (i32, bool) {
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
    fn new(
        node: Node,
        options: &'a Supervision,
        hooks: Option<watch::Receiver<Hooks>>,
    ) -> Result<Self> {
        let (guardian, reports) = start_guardian(&node, options, &options.hooks)?;
        let shown = JobStatus { command: !options.command.is_empty(), failure: None };
        node.show(&shown);
        Ok(Self {
            node,
            options,
            hooks,
            current: options.hooks.clone(),
            drops_hooks: false,
            guardian,
            reports,
            job: Job::Clearing { held: None },
            shown,
            failures: 0,
            hook_failures: 0,
            code: None,
            ends_by: None,
            unanswered: 0,
        })
    }

    /// Runs the command whenever this member leads, until doyen is told to end or the node has to. `ended`: the end of the
    /// node in this process, if there is one. After an error this process must end at once.
    async fn supervise(
        mut self,
        signals: Option<Signals>,
        ended: impl Future<Output = Result<()>>,
    ) -> Result<i32> {
        let code = self.run(signals, ended).await;
        if code.is_err() {
            self.abandon();
        }
        code
    }

    /// Leaves what runs to the guardian, which ends it when this process is gone. So nothing here may release the lease or
    /// the lock that it runs under, as dropping it would: the guardian does so then, or it expires.
    fn abandon(self) {
        let _ = ManuallyDrop::new((self.job, self.node));
    }

    async fn run(
        &mut self,
        signals: Option<Signals>,
        ended: impl Future<Output = Result<()>>,
    ) -> Result<i32> {
        let mut signals = signals.map_or_else(Signals::new, Ok)?;
        let mut term = 0;
        tokio::pin!(ended);
        // How often the guardian is asked whether it is there.
        let mut pings = tokio::time::interval(self.options.lease / 4);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let Position { leads, retires, term: current } = self.node.position();
            if leads && current != term {
                term = current;
                self.wait_after_a_lapse(term);
            }
            self.step(leads, retires)?;
            if self.node.is_lost() && !matches!(self.job, Job::Runs { .. }) {
                warn!(event = "lock-lost", "the lock was lost");
                self.code.get_or_insert(FAILED.into());
            }
            if self.is_done() {
                return Ok(self.finish());
            }
            let wake = match self.job {
                Job::Idle { not_before } if leads && !self.is_ending() && self.has_work() => {
                    not_before
                }
                _ => Instant::now() + Duration::from_secs(3600),
            };
            tokio::select! {
                ended = &mut ended => {
                    ended?;
                    return Ok(self.finish());
                }
                () = self.node.changed() => {}
                () = sleep_until(wake) => {}
                report = self.reports.recv() => self.on_report(report)?,
                _ = pings.tick() => self.ping()?,
                hooks = changed(&mut self.hooks) => self.on_hooks(hooks),
                (signal, ends) = signals.next() => self.on_signal(signal, ends)?,
            }
        }
    }

    /// Whether there is anything to run under the lease.
    fn has_work(&self) -> bool {
        !self.options.command.is_empty() || !self.current.is_none()
    }

    /// Other hooks are to be run from now on. Where there were none, this is like a start: the guardian first runs the one
    /// for a member that does not lead.
    fn on_hooks(&mut self, hooks: Hooks) {
        self.drops_hooks = hooks.is_none() && !self.current.is_none();
        if self.drops_hooks {
            return;
        }
        if self.current.is_none() && !hooks.is_none() && matches!(self.job, Job::Idle { .. }) {
            self.job = Job::Clearing { held: None };
        }
        self.use_hooks(hooks);
    }

    fn use_hooks(&mut self, hooks: Hooks) {
        self.ask(&Request::Hooks(hooks.clone()));
        self.current = hooks;
    }

    fn is_ending(&self) -> bool {
        self.ends_by.is_some() || self.code.is_some()
    }

    /// Whether there is nothing left to do: a node in this process says so itself.
    fn is_done(&self) -> bool {
        self.node.ends_with_command() && self.is_ending() && !matches!(self.job, Job::Runs { .. })
    }

    /// Ends the guardian. Returns the exit code.
    fn finish(&self) -> i32 {
        if let Err(error) = self.guardian.finish() {
            warn!(event = "guardian-not-told", reason = %error, "the guardian cannot be told to end: {error}");
        }
        self.exit_code()
    }

    fn exit_code(&self) -> i32 {
        self.code.or(self.ends_by.map(|signal| 128 + signal)).unwrap_or(0)
    }

    /// A leader that was not given leadership by the last one starts nothing before that one's guardian has had its margin.
    fn wait_after_a_lapse(&mut self, term: u64) {
        if let (false, Job::Idle { not_before }) = (self.node.was_transferred(term), &mut self.job)
        {
            *not_before = (*not_before).max(Instant::now() + self.options.margin);
        }
    }

    /// Starts or stops the command, if it is time.
    fn step(&mut self, leads: bool, retires: bool) -> Result<()> {
        if self.drops_hooks && matches!(self.job, Job::Idle { .. }) {
            self.drops_hooks = false;
            self.use_hooks(Hooks::default());
        }
        if let Job::Runs { since, .. } = self.job
            && self.failures > 0
            && since.elapsed() >= STARTED_WELL
        {
            self.failures = 0;
            self.show_success(JobPart::Command);
        }
        let may_start = leads && self.has_work() && !self.is_ending();
        // A command continues, and what hooks did is undone when it has ended; hooks alone have nothing to wait for.
        let ends = retires
            || self.ends_by.is_some()
            || (self.drops_hooks && self.options.command.is_empty());
        match &mut self.job {
            Job::Idle { not_before } if may_start && Instant::now() >= *not_before => self.start(),
            Job::Clearing { held: held @ None } if leads && !self.current.is_none() => {
                *held = self.node.begin()?.map(|(held, ..)| held);
                Ok(())
            }
            Job::Runs { stopping, .. } if !*stopping && ends => {
                *stopping = true;
                let grace = self.options.grace.as_nanos() as u64;
                if !self.options.command.is_empty() {
                    let grace = span(self.options.grace);
                    info!(
                        event = "command-stopping",
                        "stopping the command: SIGTERM, then SIGKILL after {grace}"
                    );
                }
                self.ask(&Request::Stop { grace });
                Ok(())
            }
            Job::Idle { .. } | Job::Clearing { .. } | Job::Runs { .. } => Ok(()),
        }
    }

    fn start(&mut self) -> Result<()> {
        let Some((held, term, token)) = self.node.begin()? else {
            self.job = Job::Idle { not_before: Instant::now() + BACK_OFF[0] };
            return Ok(());
        };
        let what = match self.options.command.is_empty() {
            true => Hook::Leader.name(),
            false => "the command",
        };
        info!(event = "starting", term, token, "starting {what} (term {term}, token {token})");
        self.ask(&Request::Start { term, token });
        self.job = Job::Runs { held, since: Instant::now(), stopping: false };
        Ok(())
    }

    /// Asks the guardian for something. One that cannot be asked is dead, which its reports say, or answers no questions.
    fn ask(&self, request: &Request) {
        if let Err(error) = self.guardian.ask(request) {
            warn!(event = "guardian-not-told", reason = %error, "the guardian cannot be told: {error}");
        }
    }

    fn on_report(&mut self, report: Option<Report>) -> Result<()> {
        match report {
            Some(Report::Started { pid: Some(pid) }) => {
                self.show_success(JobPart::Start);
                info!(event = "command-started", pid, "started the command (process {pid})");
            }
            Some(Report::Started { pid: None }) => {
                self.failures = 0;
                self.show_success(JobPart::Start);
                info!(event = "hook-succeeded", "{} succeeded", Hook::Leader.name());
            }
            Some(Report::Ready) => self.become_idle(BACK_OFF[0]),
            Some(Report::HookFailed { hook: Hook::NotLeader, why }) => {
                self.hook_failures += 1;
                let name = Hook::NotLeader.name();
                self.show_failure(JobPart::NotLeader, format!("{name} {why}"));
                warn!(
                    event = "hook-failed", reason = %why,
                    "{} {why} (failure {}); until it succeeds, a lease of this member is not given up and nothing is started: running it again",
                    Hook::NotLeader.name(),
                    self.hook_failures
                );
            }
            Some(Report::HookFailed { hook: Hook::Leader, why }) => {
                warn!(event = "hook-failed", reason = %why, "{} {why}", Hook::Leader.name());
            }
            Some(Report::NotStarted { why, failed }) => {
                self.become_idle(BACK_OFF[0]);
                match failed {
                    true => {
                        warn!(event = "not-started", reason = %why, "not started: {why}");
                        self.show_failure(JobPart::Start, why);
                        self.fail();
                    }
                    false => info!(event = "not-started", reason = %why, "not started: {why}"),
                }
            }
            Some(Report::Ended { code, killed, at }) => {
                self.on_end(code, killed, Moment::from_nanos(at));
            }
            Some(Report::Pong) => self.unanswered = 0,
            None => self.replace_guardian()?,
        }
        Ok(())
    }

    /// The command has ended, `at` this time, and all of its processes are gone.
    fn on_end(&mut self, code: i32, killed: Option<Killed>, at: Moment) {
        let Job::Runs { since, stopping, .. } = self.job else { return };
        self.become_idle(Duration::ZERO);
        let ago = ended_ago(Moment::now().since(at), &self.current);
        match killed {
            Some(Killed::Lease { late, took }) => {
                let [late, took] = [late, took].map(Duration::from_nanos);
                let text = ended_for_the_lease(self.options.margin, late, took);
                warn!(event = "command-killed", reason = "lease", "{text}{ago}");
                // A lock that could not be kept may be another's soon, even if it is kept after all.
                if let Node::Lock { .. } = self.node {
                    self.code = Some(FAILED.into());
                }
                return;
            }
            Some(Killed::Grace) => {
                let grace = span(self.options.grace);
                warn!(
                    event = "command-killed",
                    reason = "grace",
                    "the command did not stop within {grace} and was killed{ago}"
                );
            }
            None if self.options.command.is_empty() => {
                info!(event = "hook-succeeded", "{} succeeded", Hook::NotLeader.name());
            }
            None if code > 128 => {
                info!(
                    event = "command-ended",
                    code,
                    "signal {} ended the command{ago}",
                    code - 128
                );
            }
            None if code == 0 => {
                info!(event = "command-ended", code, "the command ended with exit code 0{ago}");
            }
            None => {
                warn!(
                    event = "command-ended",
                    code, "the command ended with exit code {code}{ago}"
                );
            }
        }
        if self.ends_by.is_some() {
            self.code = Some(code);
        }
        if stopping {
            return;
        }
        if self.options.once {
            self.code = Some(code);
            self.node.stop(self.options.grace);
            return;
        }
        if [CANNOT_EXECUTE, NOT_FOUND].map(i32::from).contains(&code) {
            warn!(
                event = "command-not-executable",
                code, "the command cannot be executed on this member"
            );
        }
        if since.elapsed() >= STARTED_WELL {
            self.failures = 0;
            self.show_success(JobPart::Command);
        }
        let how = match code {
            129.. => format!("signal {} ended the command", code - 128),
            _ => format!("the command ended with exit code {code}"),
        };
        self.show_failure(JobPart::Command, how);
        self.fail();
    }

    fn show_failure(&mut self, of: JobPart, text: String) {
        self.shown.fail(of, text);
        self.node.show(&self.shown);
    }

    fn show_success(&mut self, of: JobPart) {
        self.shown.succeed(of);
        self.node.show(&self.shown);
    }

    /// Nothing runs, and nothing is started before this time has passed. The lease is no longer held.
    fn become_idle(&mut self, wait: Duration) {
        if std::mem::take(&mut self.hook_failures) > 0 {
            self.show_success(JobPart::NotLeader);
            info!(event = "hook-succeeded", "{} succeeded", Hook::NotLeader.name());
        }
        let idle = Job::Idle { not_before: Instant::now() + wait };
        if let Job::Runs { held, .. } | Job::Clearing { held: Some(held) } =
            std::mem::replace(&mut self.job, idle)
        {
            held.release();
        }
    }

    /// Nothing runs. The command is tried again after longer and longer waits, but not without limit.
    fn fail(&mut self) {
        self.failures += 1;
        let wait = (BACK_OFF[0] * 2_u32.saturating_pow(self.failures.saturating_sub(1).min(20)))
            .min(BACK_OFF[1]);
        self.job = Job::Idle { not_before: Instant::now() + wait };
        if self.options.give_up_after.is_none_or(|most| self.failures < most) {
            info!(event = "start-delayed", "starting it again in {}", span(wait));
        } else {
            self.failures = 0;
            warn!(
                event = "giving-up-leadership",
                "what runs under the lease keeps failing: giving up leadership"
            );
            self.node.resign();
        }
    }

    fn on_signal(&mut self, signal: i32, ends: bool) -> Result<()> {
        if !ends {
            // A reload is for doyen: the signal reaches the command only if there is no node in this process.
            let is_reload = signal == SignalKind::hangup().as_raw_value();
            if !(is_reload && self.node.reload()) {
                let _ = self.guardian.ask(&Request::Signal(signal));
            }
            return Ok(());
        }
        if self.ends_by.is_some() {
            bail!("stopped at once, without a transfer of leadership, by a second signal");
        }
        self.ends_by = Some(signal);
        info!(event = "stopping", "stopping; a second signal stops immediately");
        // The command has its grace first.
        self.node.stop(self.options.grace * 2);
        Ok(())
    }

    /// Asks the guardian whether it is there. One that has not answered for some turns is stopped or hangs: it is killed, and
    /// the kernel ends the command with it. Turns count, not time: after a stall of this process the answers still wait.
    fn ping(&mut self) -> Result<()> {
        if self.unanswered >= MOST_UNANSWERED {
            warn!(
                event = "guardian-hangs",
                "the guardian does not answer: killing it and the command"
            );
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
        warn!(event = "guardian-died", "the guardian died; starting a new one");
        self.guardian.end_what_is_left().context("the command survives its guardian")?;
        (self.guardian, self.reports) = start_guardian(&self.node, self.options, &self.current)?;
        self.unanswered = 0;
        // What the dead one has set up is left to undo: until then the lease stays here.
        let before = std::mem::replace(&mut self.job, Job::Clearing { held: None });
        if let Job::Runs { held, .. } | Job::Clearing { held: Some(held) } = before {
            self.job = Job::Clearing { held: Some(held) };
        }
        Ok(())
    }
}

/// That everything was ended because of the lease, and whether that was in time.
fn ended_for_the_lease(margin: Duration, late: Duration, took: Duration) -> String {
    let over = (late + took).saturating_sub(margin);
    let how = match over {
        Duration::ZERO => "the lease was about to end: everything under it was ended".to_owned(),
        over => format!("the lease had ended {} before everything under it was ended", span(over)),
    };
    format!("{how}; the guardian was {} late and took {}", span(late), span(took))
}

/// When the command ended, if it is told late: one of these hooks was run first.
fn ended_ago(ago: Duration, hooks: &Hooks) -> String {
    match hooks.not_leader.is_empty() {
        _ if ago < Duration::from_secs(1) => String::new(),
        true => format!("; that was {} ago", span(ago)),
        false => {
            format!("; that was {} ago, before {} succeeded", span(ago), Hook::NotLeader.name())
        }
    }
}

/// Waits for other hooks; forever if they cannot change.
async fn changed(hooks: &mut Option<watch::Receiver<Hooks>>) -> Hooks {
    if let Some(hooks) = hooks
        && hooks.changed().await.is_ok()
    {
        return hooks.borrow_and_update().clone();
    }
    std::future::pending().await
}

/// Starts a guardian and a thread that reads what it reports.
fn start_guardian(
    node: &Node,
    options: &Supervision,
    hooks: &Hooks,
) -> Result<(Arc<Guardian>, mpsc::UnboundedReceiver<Report>)> {
    let plan = Plan {
        lease_file: &options.lease_file,
        handover: &options.handover,
        lock: node.lock(),
        margin: options.margin,
        containment: &options.containment,
        hooks,
        log_format: options.log_format,
        command: &options.command,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guardian_that_was_later_than_its_margin_says_that_the_lease_had_ended() {
        let told = |late, took| {
            let [margin, late, took] = [100, late, took].map(Duration::from_millis);
            ended_for_the_lease(margin, late, took)
        };
        let in_time = "the lease was about to end: everything under it was ended; the guardian was 60 ms late and took 40 ms";
        assert_eq!(told(60, 40), in_time);
        let over = "the lease had ended 1.3 s before everything under it was ended; the guardian was 1.4 s late and took 20 ms";
        assert_eq!(told(1400, 20), over);
    }

    #[test]
    fn an_end_that_is_told_late_says_when_it_was() {
        let told = |millis, hooks: &Hooks| ended_ago(Duration::from_millis(millis), hooks);
        let hooks = Hooks { not_leader: vec!["true".to_owned()], ..Hooks::default() };
        assert_eq!(told(999, &hooks), "");
        assert_eq!(told(5200, &hooks), "; that was 5.2 s ago, before hooks.not_leader succeeded");
        assert_eq!(told(5200, &Hooks::default()), "; that was 5.2 s ago");
    }
}
