//! The guardian's process: one loop that waits for its node, its job, and the end of the lease.

use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeWriter, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use doyen_core::algorithm::quorum::rules::Rules;
use doyen_core::handover::{Duty, Remains, Work};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal, setsid,
};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::contain::{Cgroup, Containment};
use super::control::{Channel, Killed, Report, Request};
use super::handle::INIT;
use super::init::code_of;
use super::lease_file::{Lease, LeaseReader};
use super::{Datagram, FAILED, Handover, sys};
use crate::clock::Moment;

/// How long the kernel may take to end the processes of a cgroup, or an init that has been killed.
pub(super) const ENDING: Duration = Duration::from_secs(10);

/// The pauses before each sending of the last datagrams.
const RELEASES: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(5), Duration::from_millis(50)];

/// What a guardian is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Options {
    /// The descriptor of its end of the control channel.
    pub(super) control: RawFd,
    /// The descriptor of a pidfd of the node.
    pub(super) node: RawFd,
    /// The descriptor of the memory that it shares with the node.
    pub(super) handover: RawFd,
    /// The lease file.
    pub(super) lease_file: PathBuf,
    /// How long before the deadline it begins to kill.
    pub(super) margin: Duration,
    /// What holds the tree together.
    pub(super) containment: Containment,
    /// The command and its arguments.
    pub(super) command: Vec<OsString>,
}

/// Guards the command until the node is gone or has closed the channel, and the command with it.
pub(super) fn run(options: Options) -> io::Result<()> {
    let control = Channel::new(sys::take_inherited(options.control)?);
    let node = sys::take_inherited(options.node)?;
    let handover = Handover::inherited(sys::take_inherited(options.handover)?);
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
    let _ = fs::write("/proc/self/oom_score_adj", "-900");
    Guardian { options, control, node, handover, lease, timer, deadline: None, job: None }.watch()
}

struct Guardian {
    options: Options,
    control: Channel,
    node: OwnedFd,
    handover: Handover,
    lease: LeaseReader,
    timer: OwnedFd,
    /// The deadline of the lease, as far as it was read.
    deadline: Option<Lease>,
    job: Option<Job>,
}

/// A command that runs.
struct Job {
    pid: Pid,
    init: OwnedFd,
    cgroup: Option<Cgroup>,
    /// The thread that started it: the kernel ends a process that asks for it when this thread ends.
    parent: JoinHandle<io::Result<i32>>,
    term: u64,
    /// When SIGKILL follows SIGTERM.
    kill_at: Option<Moment>,
    killed: Option<Killed>,
}

impl Guardian {
    fn watch(mut self) -> io::Result<()> {
        loop {
            self.read_lease();
            self.arm()?;
            let [asked, died, ended, due] = self.wait()?;
            if ended {
                self.reap()?;
            }
            if due {
                self.look_at_the_time()?;
            }
            if died {
                return self.survive();
            }
            if asked {
                match self.control.receive()? {
                    Some(Request::Finish) => return self.end_job(),
                    Some(request) => self.handle(request)?,
                    // A process that dies closes its files before its pidfd says so.
                    None => return self.survive(),
                }
            }
        }
    }

    /// Waits until the node asks for something, the node dies, the job ends, or the time has come.
    fn wait(&self) -> io::Result<[bool; 4]> {
        let mut fds = vec![
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(&self.node, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        fds.extend(self.job.as_ref().map(|job| PollFd::new(&job.init, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok([is_ready(0), is_ready(1), is_ready(3), is_ready(2)])
    }

    /// When the tree of this job must begin to end, for want of a lease.
    fn last_moment(&self) -> Moment {
        let margin = self.options.margin.as_nanos() as u64;
        let deadline = self.deadline.map_or(0, |lease| lease.deadline.as_nanos());
        Moment::from_nanos(deadline.saturating_sub(margin).max(1))
    }

    fn arm(&self) -> io::Result<()> {
        let due = self.job.as_ref().map(|job| {
            let lease = self.last_moment();
            job.kill_at.map_or(lease, |kill_at| kill_at.min(lease))
        });
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

    fn handle(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Finish => Ok(()),
            Request::Ping => self.report(&Report::Pong),
            Request::Start { term, token } => {
                let report = match self.start(term, token) {
                    Ok(pid) => Report::Started { pid: pid.as_raw_nonzero().get() },
                    Err(error) => Report::NotStarted { why: error.to_string() },
                };
                self.report(&report)
            }
            Request::Signal(number) => {
                if let (Some(job), Some(signal)) = (&self.job, Signal::from_named_raw(number)) {
                    let _ = pidfd_send_signal(&job.init, signal);
                }
                Ok(())
            }
            Request::Stop { grace } => {
                if let Some(job) = &mut self.job {
                    let _ = pidfd_send_signal(&job.init, Signal::TERM);
                    job.kill_at.get_or_insert(Moment::now().after_nanos(grace));
                }
                Ok(())
            }
        }
    }

    /// Tells the node. One that does not listen is hung: its lease will end.
    fn report(&self, report: &Report) -> io::Result<()> {
        match self.control.send(report) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            // Its end is noticed by the pidfd.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    fn start(&mut self, term: u64, token: u64) -> io::Result<Pid> {
        if self.job.is_some() {
            return Err(io::Error::other("the command runs already"));
        }
        self.check_lease(term)?;
        let cgroup = match &self.options.containment.cgroups {
            Some(folder) => Some(Cgroup::create(folder, token)?),
            None => None,
        };
        let (pid, mut gate, parent) = self.spawn(term, token)?;
        let init = pidfd_open(pid, PidfdFlags::empty())?;
        // From here on a gate that is dropped ends what was started.
        if let Some(cgroup) = &cgroup {
            cgroup.add(pid.as_raw_nonzero().get())?;
        }
        self.check_lease(term)?;
        gate.write_all(b"!")?;
        self.job = Some(Job { pid, init, cgroup, parent, term, kill_at: None, killed: None });
        Ok(pid)
    }

    /// What cannot be read is being written, or its writer hangs: the last deadline that was read holds.
    fn read_lease(&mut self) {
        if let Ok(lease) = self.lease.read() {
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

    /// Starts init, behind its gate, from a thread that lives as long as it does.
    fn spawn(
        &self,
        term: u64,
        token: u64,
    ) -> io::Result<(Pid, PipeWriter, JoinHandle<io::Result<i32>>)> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("doyen-init").process_group(0);
        command.arg(INIT).arg(reader.as_raw_fd().to_string());
        command.args(&self.options.command);
        command.env("DOYEN_TERM", term.to_string()).env("DOYEN_TOKEN", token.to_string());
        command.env("DOYEN_LEASE_FILE", &self.options.lease_file);
        let namespace = self.options.containment.namespace;
        let (tell, told) = mpsc::channel();
        let parent = thread::Builder::new().name("job".to_owned()).spawn(move || {
            let started = start_in(namespace, &mut command, &reader);
            drop(reader);
            let mut child = match started {
                Ok(child) => child,
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return Ok(FAILED.into());
                }
            };
            let _ = tell.send(Ok(Pid::from_child(&child)));
            child.wait().map(code_of)
        })?;
        let pid = told.recv().map_err(io::Error::other)??;
        Ok((pid, writer, parent))
    }

    /// The command has ended, and perhaps others of its tree have not.
    fn reap(&mut self) -> io::Result<()> {
        let Some(job) = self.job.take() else { return Ok(()) };
        let code = job.parent.join().map_err(|_| io::Error::other("a thread panicked"))??;
        if let Some(cgroup) = &job.cgroup {
            cgroup.end(ENDING)?;
        }
        self.report(&Report::Ended { code, killed: job.killed })
    }

    /// The lease may have been renewed, or the time to stop may be over.
    fn look_at_the_time(&mut self) -> io::Result<()> {
        let before = self.last_moment();
        self.read_lease();
        let (now, last) = (Moment::now(), self.last_moment());
        let Some(job) = &mut self.job else { return Ok(()) };
        let of_its_term = self.deadline.is_some_and(|lease| lease.term == job.term);
        if !of_its_term || now >= last {
            let due = if of_its_term { last } else { before };
            let late = now.as_nanos().saturating_sub(due.as_nanos());
            job.killed = Some(Killed::Lease { late, took: 0 });
        } else if job.kill_at.is_some_and(|kill_at| now >= kill_at) {
            job.killed = Some(Killed::Grace);
        } else {
            return Ok(());
        }
        job.kill();
        self.wait_for_the_end(now)?;
        self.reap()
    }

    /// Waits until init, which has been killed, is gone.
    fn wait_for_the_end(&mut self, since: Moment) -> io::Result<()> {
        let Some(job) = &mut self.job else { return Ok(()) };
        let seconds = Timespec { tv_sec: ENDING.as_secs() as i64, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&job.init, PollFlags::IN)], Some(&seconds))?;
        if ended == 0 {
            return Err(io::Error::other(format!("process {} does not end", job.pid)));
        }
        if let Some(Killed::Lease { took, .. }) = &mut job.killed {
            *took = Moment::now().as_nanos() - since.as_nanos();
        }
        Ok(())
    }

    fn end_job(&mut self) -> io::Result<()> {
        if let Some(job) = &self.job {
            job.kill();
            self.wait_for_the_end(Moment::now())?;
            self.reap()?;
        }
        Ok(())
    }

    /// The node is dead: ends its job, and releases its lease as soon as nothing relies on it any more. The core decides
    /// when that is.
    fn survive(&mut self) -> io::Result<()> {
        let died = Moment::now();
        self.read_lease();
        let lease = self.deadline.map_or(died, |lease| lease.deadline);
        // Programs of this machine must not begin anything more under this lease.
        let is_closed = self.lease.close(&self.options.lease_file);
        let permit = self.handover.permit().unwrap_or(lease).min(lease);
        let hooks = if is_closed.is_ok() { Work::Over } else { Work::Unknown };
        let mut left = Remains { lease, permit, job: Work::Due, hooks };
        loop {
            match left.duty(Moment::now(), Rules::default()) {
                Duty::EndJob => {
                    left.job = Work::Unknown;
                    self.end_job()?;
                    left.job = Work::Over;
                    // A program outside the tree may hold a lock on the file, and act until the lease is over.
                    left.permit = self.lease.wait_until_unused(lease).max(permit);
                }
                Duty::Wait(until) => thread::sleep(until.since(Moment::now())),
                Duty::Release if self.node_is_dead(lease) => return self.release(died),
                Duty::Release => return Ok(()),
                Duty::RunHooks | Duty::Nothing => return self.end_job(),
            }
        }
    }

    /// Waits until the node is dead, at most until `deadline`. A node that is stopped is not.
    fn node_is_dead(&self, deadline: Moment) -> bool {
        let wait = deadline.since(Moment::now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.node, PollFlags::IN)], Some(&wait)).is_ok_and(|dead| dead > 0)
    }

    /// Sends the last datagrams of the dead node, from a socket of its own; a few times, because some may get lost.
    fn release(&self, died: Moment) -> io::Result<()> {
        let datagrams = self.handover.datagrams()?;
        let Some(first) = datagrams.first() else { return Ok(()) };
        let any: IpAddr = match first.address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        for pause in RELEASES {
            thread::sleep(pause);
            for Datagram { address, bytes } in &datagrams {
                // One that cannot be sent is like one that is lost.
                let _ = socket.send_to(bytes, address);
            }
            if pause.is_zero() {
                let after = Moment::now().since(died);
                eprintln!(
                    "doyen: the node died; the guardian ended its job and released its lease {after:.1?} later"
                );
            }
        }
        Ok(())
    }
}

impl Job {
    /// Ends the whole tree; of one that nothing contains, its process group.
    fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.kill();
        }
        // Init leads the group. While it is not reaped, its number belongs to no other process.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
    }
}

fn start_in(namespace: bool, command: &mut Command, gate: &io::PipeReader) -> io::Result<Child> {
    if namespace {
        sys::new_pid_namespace()?;
    }
    fcntl_setfd(gate.as_fd(), FdFlags::empty())?;
    command.spawn()
}
