//! The guardian's process: one loop that waits for its node, its job and its hooks, and the end of the lease.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Signal, setsid};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::Handover;
use super::contain::Containment;
use super::control::{Channel, Killed, Report, Request};
use super::hook::{Hook, Hooks, Occasion, RunningHook};
use super::job::{ENDING, Job, Order};
use super::lease_file::{Lease, LeaseReader};
use super::log::LogFormat;
use crate::clock::{self, Moment};
use crate::{files, sys};

/// How long a hook that failed waits to be run again.
const HOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long to wait before it is asked again whether the guardian of an earlier start has ended.
const GUARDIAN_AGAIN: Duration = Duration::from_millis(50);

/// Where a process reads and writes how readily the kernel ends it when memory is short.
pub(super) const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// What a guardian is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Options {
    /// The descriptor of its end of the control channel.
    pub(super) control: RawFd,
    /// The descriptor of a pidfd of the node.
    pub(super) node: RawFd,
    /// The descriptor of the memory that it shares with the node.
    pub(super) handover: RawFd,
    /// The descriptor of a lock on the lease file of a node that is not its parent.
    pub(super) lock: Option<RawFd>,
    /// The lease file.
    pub(super) lease_file: PathBuf,
    /// How long before the deadline it begins to kill.
    pub(super) margin: Duration,
    /// What holds the tree together.
    pub(super) containment: Containment,
    /// What is run besides the command.
    pub(super) hooks: Hooks,
    pub(super) log_format: LogFormat,
    /// The command and its arguments; empty if there are only hooks.
    pub(super) command: Vec<OsString>,
}

/// Guards the command until the node is gone or has closed the channel, and the command with it.
pub(super) fn run(options: Options) -> io::Result<()> {
    let control = Channel::new(sys::take_inherited(options.control)?);
    let node = sys::take_inherited(options.node)?;
    let handover = Handover::inherited(sys::take_inherited(options.handover)?);
    let lock = options.lock.map(sys::take_inherited).transpose()?;
    let lease = LeaseReader::open(&options.lease_file)?;
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
    // SIGTERM from a supervisor that stops the whole service is for the node, which tells the guardian what to do.
    let _caught = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ])?;
    let _ = setsid();
    // As far as it is allowed: without, it is later when the machine is short of memory or time.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let _ = sys::prefer_in_scheduling();
    let oom_score = fs::read_to_string(OOM_SCORE).unwrap_or_default().trim().to_owned();
    let _ = fs::write(OOM_SCORE, "-900");
    let guardian = Guardian {
        options,
        control,
        node,
        handover,
        lock,
        lease,
        timer,
        oom_score,
        deadline: None,
        phase: Phase::Idle,
        unsent: None,
        alone: None,
        leaving_since: None,
    };
    guardian.watch()
}

pub(super) struct Guardian {
    pub(super) options: Options,
    control: Channel,
    pub(super) node: OwnedFd,
    pub(super) handover: Handover,
    /// Held until it ends: a transfer of the node that writes the lease file waits for it.
    pub(super) lock: Option<OwnedFd>,
    pub(super) lease: LeaseReader,
    timer: OwnedFd,
    oom_score: String,
    /// The deadline of the lease, as far as it was read.
    pub(super) deadline: Option<Lease>,
    pub(super) phase: Phase,
    /// The report that the node could not be given, because it does not read.
    unsent: Option<Report>,
    /// A lock that only one guardian of this node has.
    alone: Option<fs::File>,
    /// Since when the hook for a member that does not lead has been run, until it succeeds.
    leaving_since: Option<Moment>,
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum Phase {
    /// This member does not lead, and nothing is left to do about that.
    Idle,
    /// The hook for a leader runs; `stops` if the job is not to be started any more.
    Entering { start: Start, hook: RunningHook, stops: bool, lapsed: bool },
    /// The job runs, or the hook has succeeded if there is no job.
    Active(Active),
    /// The hook for a member that does not lead runs, or is run again at a time. `report`: what the node is told then.
    Leaving { left: Left, hook: Option<RunningHook>, again_at: Moment },
}

/// What is left to do and to say after the end of something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Left {
    last: Start,
    /// Why it ended, for the hook.
    reason: &'static str,
    /// What the node is told when the hook has succeeded.
    report: Option<Report>,
}

/// A start under a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Start {
    term: u64,
    token: u64,
}

/// How the watch ends.
enum End {
    /// The node ends as planned.
    Told,
    /// The node is dead, or dying.
    Died,
}

#[derive(Debug)]
pub(super) struct Active {
    start: Start,
    job: Option<Job>,
    /// When SIGKILL follows SIGTERM, or is repeated.
    kill_at: Option<Moment>,
    /// Why it has been killed, and when.
    killed: Option<(Killed, Moment)>,
}

impl Guardian {
    fn watch(mut self) -> io::Result<()> {
        match self.watch_until_the_end() {
            Ok(End::Told) => self.end_all("stopped"),
            Ok(End::Died) => self.survive(),
            Err(error) => {
                // Whatever went wrong, nothing may survive the guardian.
                let _ = self.end_all("crashed");
                Err(error)
            }
        }
    }

    fn watch_until_the_end(&mut self) -> io::Result<End> {
        self.leave(Left { last: Start::default(), reason: "started", report: Some(Report::Ready) });
        loop {
            self.read_lease();
            self.arm()?;
            let [asked, died, ended, due] = self.wait()?;
            if ended {
                self.on_end()?;
            }
            if due {
                self.on_time()?;
            }
            if died {
                return Ok(End::Died);
            }
            if asked {
                match self.control.receive()? {
                    Some(Request::Finish) => return Ok(End::Told),
                    Some(request) => self.handle(request),
                    // A process that dies closes its files before its pidfd says so.
                    None => return Ok(End::Died),
                }
            }
        }
    }

    /// Waits until the node asks for something, the node dies, the job or a hook ends, or the time has come.
    fn wait(&self) -> io::Result<[bool; 4]> {
        let mut fds = vec![
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(&self.node, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        let child = self.phase.child();
        fds.extend(child.as_ref().map(|child| PollFd::new(child, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok([is_ready(0), is_ready(1), is_ready(3), is_ready(2)])
    }

    /// When everything under the lease must begin to end if the lease is not renewed.
    fn last_moment(&self) -> Moment {
        let margin = self.options.margin.as_nanos() as u64;
        let deadline = self.deadline.map_or(0, |lease| lease.deadline.as_nanos());
        Moment::from_nanos(deadline.saturating_sub(margin).max(1))
    }

    fn arm(&self) -> io::Result<()> {
        let lease = self.last_moment();
        let due = match &self.phase {
            Phase::Idle => None,
            Phase::Entering { hook, lapsed: true, .. } => Some(hook.kill_at),
            Phase::Entering { hook, .. } => Some(hook.kill_at.min(lease)),
            Phase::Active(Active { kill_at, killed: Some(_), .. }) => *kill_at,
            Phase::Active(active) => Some(active.kill_at.map_or(lease, |at| at.min(lease))),
            Phase::Leaving { hook: Some(hook), .. } => Some(hook.kill_at),
            Phase::Leaving { again_at, .. } => Some(*again_at),
        };
        let nanos = due.map_or(0, Moment::as_nanos);
        let it_value = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval: none, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }

    fn handle(&mut self, request: Request) {
        let nothing_runs = Report::Ended { code: 0, killed: None, at: Moment::now().as_nanos() };
        match (request, &mut self.phase) {
            (Request::Ping, _) => {
                if let Some(unsent) = self.unsent.take() {
                    self.report(unsent);
                }
                self.report(Report::Pong);
            }
            // The first ones, after a start without any.
            (Request::Hooks(hooks), Phase::Idle)
                if self.options.hooks.is_none() && !hooks.is_none() =>
            {
                self.options.hooks = hooks;
                let (last, report) = (Start::default(), Some(Report::Ready));
                self.leave(Left { last, reason: "started", report });
            }
            // What runs already ends as it began.
            (Request::Hooks(hooks), _) => self.options.hooks = hooks,
            (Request::Start { term, token }, Phase::Idle) => self.enter(Start { term, token }),
            (Request::Start { .. }, _) => {
                let why = "what was started before has not ended".to_owned();
                self.report(Report::NotStarted { why, failed: false });
            }
            (Request::Signal(number), Phase::Active(Active { job: Some(job), .. })) => {
                Signal::from_named_raw(number).into_iter().for_each(|signal| job.signal(signal));
            }
            (Request::Stop { .. }, Phase::Entering { stops, .. }) => *stops = true,
            (Request::Stop { grace }, Phase::Active(Active { job: Some(job), kill_at, .. })) => {
                job.signal(Signal::TERM);
                kill_at.get_or_insert(Moment::now().after_nanos(grace));
            }
            (Request::Stop { .. }, Phase::Active(Active { start, job: None, .. })) => {
                let last = *start;
                self.leave(Left { last, reason: "stopped", report: Some(nothing_runs) });
            }
            (Request::Stop { .. }, Phase::Idle) => self.report(nothing_runs),
            _ => {}
        }
    }

    /// Tells the node. One that does not listen is told again when it asks; one that is dead is noticed by the pidfd.
    fn report(&mut self, report: Report) {
        let is_full = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        if self.control.send(&report).is_err_and(is_full) && report != Report::Pong {
            self.unsent = Some(report);
        }
    }

    /// This member leads: runs the hook for that, then the job.
    fn enter(&mut self, start: Start) {
        if let Err(error) = self.check_lease(start.term) {
            return self.leave_unstarted(start, error.to_string(), false);
        }
        match self.run_hook(Hook::Leader, start, "elected") {
            Ok(Some(hook)) => {
                self.phase = Phase::Entering { start, hook, stops: false, lapsed: false };
            }
            Ok(None) => self.activate(start),
            Err(error) => self.leave_unstarted(start, error.to_string(), true),
        }
    }

    fn activate(&mut self, start: Start) {
        let has_lease = self.check_lease(start.term);
        let job = match self.options.command.is_empty() {
            _ if has_lease.is_err() => has_lease.map(|()| None),
            true => Ok(None),
            false => self.start_job(start).map(Some),
        };
        match job {
            Ok(job) => {
                let pid = job.as_ref().map(Job::pid);
                self.phase = Phase::Active(Active { start, job, kill_at: None, killed: None });
                self.report(Report::Started { pid });
            }
            Err(error) => {
                let failed = self.check_lease(start.term).is_ok();
                self.leave_unstarted(start, error.to_string(), failed);
            }
        }
    }

    fn start_job(&mut self, Start { term, token }: Start) -> io::Result<Job> {
        let (options, oom_score) = (self.options.clone(), self.oom_score.clone());
        let order = Order {
            command: &options.command,
            containment: &options.containment,
            term,
            token,
            lease_file: &options.lease_file,
            oom_score: &oom_score,
            log_format: options.log_format,
        };
        Job::start(order, || self.check_lease(term))
    }

    fn leave_unstarted(&mut self, last: Start, why: String, failed: bool) {
        let report = Some(Report::NotStarted { why, failed });
        self.leave(Left { last, reason: "stopped", report });
    }

    /// Nothing runs under the lease any more: runs the hook for that, and tells the node when it has succeeded.
    fn leave(&mut self, left: Left) {
        if !self.is_alone() {
            return self.leave_later(left, GUARDIAN_AGAIN);
        }
        self.leaving_since.get_or_insert_with(Moment::now);
        match self.run_hook(Hook::NotLeader, left.last, left.reason) {
            Ok(None) => {
                (self.phase, self.leaving_since) = (Phase::Idle, None);
                left.report.into_iter().for_each(|report| self.report(report));
            }
            Ok(hook) => {
                self.phase = Phase::Leaving { left, hook, again_at: Moment::default() };
            }
            Err(error) => self.fail_to_leave(left, error.to_string()),
        }
    }

    fn fail_to_leave(&mut self, left: Left, why: String) {
        self.leave_later(left, HOOK_AGAIN);
        self.report(Report::HookFailed { hook: Hook::NotLeader, why });
    }

    fn leave_later(&mut self, left: Left, wait: Duration) {
        let again_at = Moment::now().after_nanos(wait.as_nanos() as u64);
        self.phase = Phase::Leaving { left, hook: None, again_at };
    }

    /// Whether the guardian of an earlier start of this node has ended: hooks run one at a time.
    fn is_alone(&mut self) -> bool {
        if self.options.hooks.is_none() || self.alone.is_some() {
            return true;
        }
        let path = files::beside(&self.options.lease_file, ".guardian");
        // Where there is no such file to be had, there is nothing to wait for.
        let Ok(file) = fs::File::create(path) else { return true };
        let is_alone = file.try_lock().is_ok();
        self.alone = is_alone.then_some(file);
        is_alone
    }

    pub(super) fn run_hook(
        &self,
        hook: Hook,
        Start { term, token }: Start,
        reason: &str,
    ) -> io::Result<Option<RunningHook>> {
        let (lease_file, oom_score) = (&self.options.lease_file, self.oom_score.as_str());
        let log_format = self.options.log_format;
        let occasion = Occasion { term, token, reason, lease_file, oom_score, log_format };
        RunningHook::start(&self.options.hooks, hook, occasion)
    }

    /// What cannot be read is being written, or its writer hangs: the last deadline that was read holds. A node that is not
    /// the parent shows no lease before it transfers leadership, and waits for the lock: the last deadline holds then, too.
    pub(super) fn read_lease(&mut self) {
        if let Ok(lease) = self.lease.read()
            && (lease.is_some() || self.lock.is_none())
        {
            self.deadline = lease;
        }
    }

    /// Whether the lease of this term lasts for longer than the margin.
    fn check_lease(&mut self, term: u64) -> io::Result<()> {
        self.deadline = self.lease.read()?;
        match self.deadline {
            Some(lease) if lease.term == term && Moment::now() < self.last_moment() => Ok(()),
            _ => Err(io::Error::other(format!("the lease of term {term} is over, or about to be"))),
        }
    }

    /// The job or a hook has ended.
    fn on_end(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::Entering { start, hook, stops, lapsed } => match hook.finish() {
                _ if lapsed => {
                    let why = format!("the lease of term {} was about to end", start.term);
                    let report = Some(Report::NotStarted { why, failed: false });
                    self.leave(Left { last: start, reason: "lease-lapsed", report });
                }
                Ok(()) if stops => {
                    self.leave_unstarted(start, "it is to stop".to_owned(), false);
                }
                Ok(()) => self.activate(start),
                Err(why) => {
                    let text = format!("{} {why}", Hook::Leader.name());
                    self.report(Report::HookFailed { hook: Hook::Leader, why });
                    self.leave_unstarted(start, text, true);
                }
            },
            Phase::Active(Active { start, job, killed, .. }) => {
                let code = job.map_or(Ok(0), Job::reap)?;
                let killed = killed.map(|(killed, at)| match killed {
                    Killed::Lease { late, .. } => {
                        Killed::Lease { late, took: Moment::now().as_nanos() - at.as_nanos() }
                    }
                    Killed::Grace => Killed::Grace,
                });
                let reason = match killed {
                    Some(Killed::Lease { .. }) => "lease-lapsed",
                    _ => "stopped",
                };
                let report = Some(Report::Ended { code, killed, at: Moment::now().as_nanos() });
                self.leave(Left { last: start, reason, report });
            }
            Phase::Leaving { left, hook, .. } => match hook.map_or(Ok(()), RunningHook::finish) {
                Ok(()) => {
                    self.leaving_since = None;
                    left.report.into_iter().for_each(|report| self.report(report));
                }
                Err(why) => self.fail_to_leave(left, why),
            },
        }
        Ok(())
    }

    /// The lease may have been renewed; the time to stop, or of a hook, may be over.
    fn on_time(&mut self) -> io::Result<()> {
        let before = self.last_moment();
        self.read_lease();
        let (now, last) = (Moment::now(), self.last_moment());
        let lapse_of = |start: Start| {
            let is_its_own = self.deadline.is_some_and(|lease| lease.term == start.term);
            let due = if is_its_own { last } else { before };
            let late = now.as_nanos().saturating_sub(due.as_nanos());
            (!is_its_own || now >= last).then_some(Killed::Lease { late, took: 0 })
        };
        let repeat_at = now.after_nanos(ENDING.as_nanos() as u64);
        match &mut self.phase {
            Phase::Idle => {}
            Phase::Entering { start, hook, lapsed, .. } => {
                *lapsed = lapse_of(*start).is_some();
                if *lapsed || now >= hook.kill_at {
                    hook.kill();
                    hook.kill_at = repeat_at;
                }
            }
            Phase::Active(Active { start, job, kill_at, killed }) => {
                let is_stopped = kill_at.is_some_and(|kill_at| now >= kill_at);
                let why = lapse_of(*start).or(is_stopped.then_some(Killed::Grace));
                if let Some(why) = why.filter(|_| killed.is_none()) {
                    *killed = Some((why, now));
                } else if !(is_stopped && killed.is_some()) {
                    return Ok(());
                }
                // Its end is noticed; one that does not end is killed again.
                *kill_at = Some(repeat_at);
                match job {
                    Some(job) => job.kill(),
                    None => return self.on_end(),
                }
            }
            Phase::Leaving { hook: Some(hook), .. } => {
                if now >= hook.kill_at {
                    hook.kill();
                    hook.kill_at = repeat_at;
                }
            }
            Phase::Leaving { left, again_at, .. } => {
                if now >= *again_at {
                    let left = left.clone();
                    self.leave(left);
                }
            }
        }
        Ok(())
    }

    pub(super) fn runs_a_job(&self) -> bool {
        matches!(self.phase, Phase::Active(Active { job: Some(_), .. }))
    }

    /// Ends what runs, the job or a hook, and confirms that. Returns the start that it was of.
    pub(super) fn end_job(&mut self) -> io::Result<Start> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => Ok(Start::default()),
            Phase::Entering { start, hook, .. } => {
                hook.kill();
                let _ = hook.finish();
                Ok(start)
            }
            Phase::Active(Active { start, job, .. }) => {
                if let Some(job) = job {
                    job.kill();
                    job.wait()?;
                    job.reap()?;
                }
                Ok(start)
            }
            Phase::Leaving { hook, left, .. } => {
                if let Some(hook) = hook {
                    hook.kill();
                    let _ = hook.finish();
                }
                Ok(left.last)
            }
        }
    }

    /// The node ends as planned: so does everything that runs here.
    pub(super) fn end_all(&mut self, reason: &str) -> io::Result<()> {
        let is_idle = matches!(self.phase, Phase::Idle);
        let last = self.end_job()?;
        let since = self.leaving_since.unwrap_or_else(Moment::now);
        if !is_idle && let Some(hook) = self.run_hook(Hook::NotLeader, last, reason)? {
            let timeout = hook.kill_at;
            hook.finish_by(timeout).map_err(|why| gave_up(&why, Moment::now().since(since)))?;
        }
        Ok(())
    }
}

/// Why a guardian ends although its last try of the hook for a member that does not lead has failed.
fn gave_up(why: &str, after: Duration) -> io::Error {
    io::Error::other(format!(
        "gave up on {} after {}: it {why}; what it has not undone must be undone by hand",
        Hook::NotLeader.name(),
        clock::with_unit(after)
    ))
}

impl Phase {
    /// The process whose end it waits for.
    fn child(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Entering { hook, .. } | Self::Leaving { hook: Some(hook), .. } => {
                Some(hook.as_fd())
            }
            Self::Active(Active { job: Some(job), .. }) => Some(job.as_fd()),
            Self::Idle | Self::Active(_) | Self::Leaving { .. } => None,
        }
    }
}
