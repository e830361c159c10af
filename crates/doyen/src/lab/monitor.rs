//! What the lab knows about its cluster: processes, answers, leases, faults, and intervals of leadership.
//!
//! Several threads report here, each under one short lock: the main thread what happens to processes, a thread for each
//! member what its node publishes, another one the lease files. Times are boot-clock times of the events themselves where
//! the nodes publish them. Everything that is kept is bounded.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use doyen::clock::Moment;
use doyen::guardian::lease_file::{Lease, LeaseReader};
use doyen::node::status::{Entry, Status};
use doyen_core::change::{LeaderChange, StepDownReason};
use doyen_core::config::quorum::Profile;
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use serde::Serialize;

use super::leadership::{Campaign, End, Leadership};
use super::relay::Cuts;
use crate::local::member::{Ending, ProcessChange};

/// For how long leaderships and marks are kept.
const KEPT: Duration = Duration::from_secs(600);

/// How many lines of the log are kept.
const MOST_LINES: usize = 500;

/// How many marks are kept.
const MOST_MARKS: usize = 1000;

/// A node that has not answered after this long has a problem.
const LATE: Duration = Duration::from_secs(5);

/// How much of the end of a log file is read.
const LOG_TAIL: u64 = 4096;

/// The signal of a process that was killed.
const SIGKILL: i32 = 9;

/// What does not change while the lab runs.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) began: Moment,
    pub(crate) algorithm: Algorithm,
    pub(crate) profile: Profile,
    pub(crate) names: Vec<String>,
    /// Where each member listens for datagrams, and where it serves HTTP.
    pub(crate) addresses: Vec<String>,
    pub(crate) urls: Vec<String>,
    /// Where each member writes its log.
    pub(crate) logs: Vec<PathBuf>,
}

impl Setup {
    /// For tests: `count` members without processes.
    #[cfg(test)]
    pub(crate) fn of_test(algorithm: Algorithm, count: usize) -> Self {
        let names: Vec<String> = (1..=count).map(|id| format!("n{id}")).collect();
        Self {
            began: Moment::from_nanos(0),
            algorithm,
            profile: Profile::Lan,
            addresses: names.clone(),
            urls: names.clone(),
            logs: vec!["/nowhere".into(); count],
            names,
        }
    }

    /// Microseconds from the beginning of the lab.
    pub(crate) fn micros(&self, at: Moment) -> u64 {
        super::leadership::micros(self.began, at)
    }

    /// How many members must agree on a leader.
    pub(crate) fn needed(&self) -> usize {
        if self.algorithm.has_leases() { self.names.len() / 2 + 1 } else { 1 }
    }

    /// Whether leaderships are measured by lease files. Elsewhere than on Linux there are none.
    pub(crate) fn measures_leases(&self) -> bool {
        cfg!(target_os = "linux") && self.algorithm.has_leases()
    }
}

/// What the process of a member does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It runs, and has not answered yet.
    Starting,
    Up,
    Paused,
    /// It was ended, or never started.
    Down,
    /// It ended by itself.
    Failed,
}

impl State {
    pub(crate) fn has_process(self) -> bool {
        matches!(self, Self::Starting | Self::Up | Self::Paused)
    }
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) state: State,
    pub(crate) since: Moment,
    pub(crate) pid: Option<i32>,
    /// The last line of its log, if it has failed or does not start.
    pub(crate) log_tail: Option<String>,
    /// How many times its process has been started.
    pub(crate) start: u64,
    /// What its node published last; none since its process ended.
    pub(crate) status: Option<Status>,
    /// How often its nodes have published something: rises with every status that counts.
    published: u64,
    /// The lease that its file shows.
    pub(crate) lease: Option<Lease>,
    lease_file: Option<LeaseReader>,
    /// The incarnation and the number of the last change that it reported.
    reported: (u32, u64),
    /// When it noticed that a leader was gone.
    lost_contact: Option<Moment>,
    /// How it came to lead, and in which term.
    campaign: Option<(u64, Campaign)>,
}

/// Something that happened to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) member: usize,
    pub(crate) at: Moment,
    pub(crate) kind: MarkKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MarkKind {
    Killed,
    Ended,
    Paused,
    Continued,
    Started,
}

/// A line of the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Line {
    /// Its number; numbers rise by one.
    pub(crate) n: u64,
    pub(crate) at_us: u64,
    pub(crate) member: Option<String>,
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LineKind {
    Leader,
    Fault,
    Suspect,
    Vote,
    Operator,
    Start,
    Other,
}

/// What has changed since it was published last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changed {
    /// Something that is worth showing at once.
    pub(crate) at_once: bool,
    pub(crate) timeline: bool,
}

#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) setup: Setup,
    pub(crate) members: Vec<Member>,
    pub(crate) leadership: Leadership,
    pub(crate) marks: VecDeque<Mark>,
    pub(crate) lines: VecDeque<Line>,
    pub(crate) cuts: Cuts,
    /// The groups of the last partition, until links are changed otherwise.
    pub(crate) partition: Option<Vec<Vec<usize>>>,
    pub(crate) changed: Changed,
    next_line: u64,
}

impl Monitor {
    /// `lease_files`: that of each member, where there are any.
    pub(crate) fn new(setup: Setup, lease_files: Vec<Option<LeaseReader>>) -> Self {
        let member = |lease_file| Member {
            state: State::Down,
            since: setup.began,
            pid: None,
            log_tail: None,
            start: 0,
            status: None,
            published: 0,
            lease: None,
            lease_file,
            reported: (0, 0),
            lost_contact: None,
            campaign: None,
        };
        Self {
            members: lease_files.into_iter().map(member).collect(),
            setup,
            leadership: Leadership::default(),
            marks: VecDeque::new(),
            lines: VecDeque::new(),
            cuts: Cuts::new(),
            partition: None,
            changed: Changed { at_once: true, timeline: true },
            next_line: 1,
        }
    }

    /// Adds a line to the log. `member`: the member that it is about.
    pub(crate) fn log(
        &mut self,
        at: Moment,
        member: Option<usize>,
        kind: LineKind,
        text: impl Into<String>,
    ) {
        let member = member.map(|member| self.setup.names[member].clone());
        let (n, at_us, text) = (self.next_line, self.setup.micros(at), text.into());
        self.next_line += 1;
        self.lines.push_back(Line { n, at_us, member, text, kind });
        if self.lines.len() > MOST_LINES {
            self.lines.pop_front();
        }
        self.changed.at_once = true;
    }

    /// The process of a member has started.
    pub(crate) fn started(&mut self, member: usize, at: Moment, pid: i32) {
        let it = &mut self.members[member];
        (it.state, it.since, it.pid) = (State::Starting, at, Some(pid));
        it.start += 1;
        (it.status, it.log_tail) = (None, None);
        self.mark(member, at, MarkKind::Started);
        self.log(at, Some(member), LineKind::Start, format!("started (pid {pid})"));
    }

    /// Something happened to the process of a member.
    pub(crate) fn process(&mut self, member: usize, at: Moment, change: ProcessChange) {
        let it = &mut self.members[member];
        let pid = it.pid.unwrap_or_default();
        let (state, mark, text) = match change {
            ProcessChange::Paused => {
                (State::Paused, MarkKind::Paused, format!("paused (pid {pid}, SIGSTOP)"))
            }
            ProcessChange::Continued => {
                let state = if it.status.is_some() { State::Up } else { State::Starting };
                (state, MarkKind::Continued, format!("continued (pid {pid}, SIGCONT)"))
            }
            ProcessChange::Ended(Ending::Signal(signal)) => {
                let verb = if signal == SIGKILL { "killed" } else { "ended" };
                (State::Down, MarkKind::Killed, format!("{verb} (pid {pid}, signal {signal})"))
            }
            ProcessChange::Ended(Ending::Code(0)) => {
                (State::Down, MarkKind::Ended, format!("stopped (pid {pid})"))
            }
            ProcessChange::Ended(ending) => {
                (State::Failed, MarkKind::Ended, format!("ended by itself (pid {pid}, {ending})"))
            }
        };
        (it.state, it.since) = (state, at);
        if let ProcessChange::Ended(_) = change {
            (it.pid, it.status, it.lease) = (None, None, None);
            (it.lost_contact, it.campaign) = (None, None);
            let failed = state == State::Failed;
            it.log_tail = failed.then(|| last_line(&self.setup.logs[member]));
            self.changed.timeline |= self.leadership.end(member, at, End::Died);
        }
        self.mark(member, at, mark);
        let kind = if state == State::Up { LineKind::Start } else { LineKind::Fault };
        self.log(at, Some(member), kind, text);
    }

    fn mark(&mut self, member: usize, at: Moment, kind: MarkKind) {
        self.marks.push_back(Mark { member, at, kind });
        if self.marks.len() > MOST_MARKS {
            self.marks.pop_front();
        }
        self.changed = Changed { at_once: true, timeline: true };
    }

    /// The lease file of a member shows this.
    pub(crate) fn lease(&mut self, member: usize, at: Moment, lease: Option<Lease>) {
        let it = &mut self.members[member];
        if !it.state.has_process() || !self.setup.measures_leases() {
            return; // what a dead leader left behind is no leadership
        }
        it.lease = lease;
        let news = match lease {
            Some(lease) if at < lease.deadline => {
                let news = self.leadership.lead(member, lease.term, at, Some(lease.deadline));
                if let Some((_, campaign)) =
                    it.campaign.as_ref().filter(|(term, _)| news && *term == lease.term)
                {
                    self.leadership.explain(member, lease.term, campaign.clone());
                }
                news
            }
            _ => self.leadership.end(member, at, End::GivenUp),
        };
        self.changed.timeline |= news;
        self.changed.at_once |= news;
    }

    /// Detects what follows from the passing of time alone: leases that were not renewed, nodes that do not start.
    pub(crate) fn expire(&mut self, now: Moment) {
        let over = |(member, deadline): (usize, Option<Moment>)| {
            deadline.filter(|&deadline| deadline <= now).map(|_| member)
        };
        let current = self.leadership.current().map(|it| (it.member, it.deadline));
        let over: Vec<usize> = current.filter_map(over).collect();
        for member in over {
            // The thread that reads the files may be late; what they show counts.
            let shown = self.members[member].lease_file.as_ref().and_then(|it| it.read().ok()?);
            match shown.filter(|lease| now < lease.deadline) {
                Some(lease) => self.lease(member, now, Some(lease)),
                None => {
                    self.members[member].lease = None;
                    self.changed.at_once |= self.leadership.end(member, now, End::Lapsed);
                    self.changed.timeline = true;
                }
            }
        }
        for (it, log) in self.members.iter_mut().zip(&self.setup.logs) {
            let is_late = it.state == State::Starting && now.since(it.since) >= LATE;
            if is_late && it.log_tail.is_none() {
                it.log_tail = Some(last_line(log));
            }
        }
        let horizon = Moment::from_nanos(now.as_nanos().saturating_sub(KEPT.as_nanos() as u64));
        self.leadership.forget(horizon);
        while self.marks.front().is_some_and(|mark| mark.at < horizon) {
            self.marks.pop_front();
        }
    }

    /// The node of a member has published its status, after these changes, to one who asked the process with this start
    /// number. Returns false if another process has been started since: then it may be either's, and counts for neither.
    pub(crate) fn snapshot(
        &mut self,
        member: usize,
        start: u64,
        at: Moment,
        status: Status,
        changes: &[Entry],
    ) -> bool {
        let is_current = self.members[member].start == start;
        if is_current {
            self.report(member, start, status.incarnation.0, changes);
            self.status(member, at, status);
        }
        is_current
    }

    fn status(&mut self, member: usize, at: Moment, status: Status) {
        let it = &mut self.members[member];
        if !it.state.has_process() {
            return; // it was sent before the process ended
        }
        it.published += 1;
        if it.state == State::Starting {
            (it.state, it.since, it.log_tail) = (State::Up, at, None);
        }
        let before = it.status.replace(status);
        self.note_operator(member, at, before);
        if !self.setup.measures_leases() {
            self.claim(member, at);
        }
        self.changed.at_once = true;
    }

    /// What a refresh of a member must know when it asks: how many statuses its node had published. None if there is nothing
    /// to refresh.
    pub(crate) fn before_refresh(&self, member: usize) -> Option<u64> {
        let it = &self.members[member];
        (it.state == State::Up && it.status.is_some()).then_some(it.published)
    }

    /// What changes all the time, such as round-trip times, has been measured again. The answer may have been overtaken: by a
    /// status that the node has published since it was asked, or by its end.
    pub(crate) fn refresh(&mut self, member: usize, asked: u64, status: Status) {
        if self.before_refresh(member) == Some(asked) {
            self.members[member].status = Some(status);
        }
    }

    /// Where leases are not measured, a member leads as long as it says so.
    fn claim(&mut self, member: usize, at: Moment) {
        let Some(status) = &self.members[member].status else { return };
        let news = match status.role.leads() {
            true => self.leadership.lead(member, status.term.0, at, None),
            false => self.leadership.end(member, at, End::GivenUp),
        };
        self.changed.timeline |= news;
    }

    /// Logs what operators changed, as the node itself tells it.
    fn note_operator(&mut self, member: usize, at: Moment, before: Option<Status>) {
        let Some(before) = before else { return };
        let Some(now) = &self.members[member].status else { return };
        let priority =
            |status: &Status| status.member(status.id).map_or(0, |member| member.priority);
        let mut texts = Vec::new();
        if priority(&before) != priority(now) {
            texts.push(format!("has priority {}", priority(now)));
        }
        match (before.drained, now.drained) {
            (false, true) => texts.push("is drained".to_owned()),
            (true, false) => texts.push("is no longer drained".to_owned()),
            _ => {}
        }
        for text in texts {
            self.log(at, Some(member), LineKind::Operator, text);
        }
    }

    /// The node of a member reports changes of leadership, as the process with this start number. Those that it has reported
    /// already are ignored.
    pub(crate) fn report(
        &mut self,
        member: usize,
        start: u64,
        incarnation: u32,
        entries: &[Entry],
    ) {
        let mut last = match self.members[member].reported {
            (same, number) if same == incarnation => number,
            (later, _) if later > incarnation => return,
            _ => 0,
        };
        // A node also keeps what it recorded in earlier starts: that has been reported.
        let is_new = |entry: &&Entry| entry.number > last && entry.incarnation.0 == incarnation;
        for entry in entries.iter().filter(is_new) {
            self.change(member, start, entry);
        }
        last = entries.iter().map(|entry| entry.number).chain([last]).max().unwrap_or(last);
        self.members[member].reported = (incarnation, last);
    }

    fn change(&mut self, member: usize, start: u64, entry: &Entry) {
        let at = Moment::from_nanos(entry.at_boot_us * 1000);
        let it = &mut self.members[member];
        let measured = self.setup.measures_leases();
        let kind = match entry.change {
            LeaderChange::BecameLeader { term, reason } => {
                let campaign = Campaign {
                    reason: Some(reason),
                    why: reason_of(&entry.text),
                    lost_contact: it.lost_contact.take(),
                    campaign_us: entry.campaign_us,
                };
                it.campaign = Some((term.0, campaign.clone()));
                if !measured && it.start == start && it.state.has_process() {
                    self.changed.timeline |= self.leadership.lead(member, term.0, at, None);
                }
                self.leadership.explain(member, term.0, campaign);
                self.changed.timeline = true;
                LineKind::Leader
            }
            LeaderChange::SteppedDown { reason, .. } => {
                if !measured && it.start == start {
                    self.changed.timeline |= self.leadership.end(member, at, End::GivenUp);
                }
                if let StepDownReason::Contested = reason {
                    it.lost_contact = Some(at);
                }
                LineKind::Leader
            }
            LeaderChange::LostContact { .. } | LeaderChange::LeaderLeft { .. } => {
                it.lost_contact = Some(at);
                LineKind::Suspect
            }
            LeaderChange::ElectionStarted { .. } => {
                it.lost_contact = Some(at);
                LineKind::Vote
            }
            LeaderChange::Follows { .. } | LeaderChange::RegainedContact { .. } => {
                it.lost_contact = None;
                LineKind::Other
            }
            LeaderChange::LeaseLapsed { .. } | LeaderChange::LeaseResumed { .. } => {
                LineKind::Leader
            }
        };
        self.log(at, Some(member), kind, &entry.text);
    }

    /// Whether the link between two members is cut, in one direction at least.
    pub(crate) fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cuts.contains(&(one, other)) || self.cuts.contains(&(other, one))
    }

    /// The place of the member with this id: ids count from 1.
    pub(crate) fn place_of(&self, id: NodeId) -> Option<usize> {
        (id.0 as usize).checked_sub(1).filter(|&place| place < self.members.len())
    }
}

/// What follows the colon in `became leader (term 2): elected after n5 became unreachable; downtime 0.8 ms`: the lab measures
/// the downtime itself.
fn reason_of(text: &str) -> String {
    let reason = text.split_once(": ").map_or(text, |(_, reason)| reason);
    reason.split("; downtime").next().unwrap_or(reason).to_owned()
}

/// The last line of a file that is not empty.
fn last_line(path: &Path) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("its log is empty").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn monitor() -> Monitor {
        let setup = Setup::of_test(Algorithm::Quorum, 3);
        let mut monitor = Monitor::new(setup, (0..3).map(|_| None).collect());
        (0..3).for_each(|place| monitor.started(place, ms(1), 100 + place as i32));
        monitor
    }

    fn lease(deadline: u64, term: u64) -> Option<Lease> {
        Some(Lease { deadline: ms(deadline), term })
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_lease_that_a_dead_leader_left_behind_is_no_leadership() {
        let mut monitor = monitor();
        monitor.lease(2, ms(10), lease(240, 1));
        let killed = ProcessChange::Ended(Ending::Signal(SIGKILL));
        monitor.process(2, ms(50), killed);
        monitor.lease(2, ms(51), lease(280, 1));
        assert_eq!(monitor.leadership.current().count(), 0);
        assert_eq!(monitor.members[2].state, State::Down);
        let ends: Vec<_> = monitor.leadership.intervals().map(|it| it.to).collect();
        assert_eq!(ends, [Some((ms(50), End::Died))]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_lease_ends_at_its_deadline() {
        let mut monitor = monitor();
        monitor.lease(2, ms(10), lease(240, 1));
        monitor.expire(ms(239));
        assert!(monitor.leadership.leads(2).is_some());
        monitor.expire(ms(300));
        let ends: Vec<_> = monitor.leadership.intervals().map(|it| it.to).collect();
        assert_eq!(ends, [Some((ms(240), End::Lapsed))]);
        monitor.lease(2, ms(310), lease(300, 1));
        assert!(monitor.leadership.leads(2).is_none(), "one that is over begins nothing");
    }

    /// What the node of n1 publishes in its `incarnation`th process.
    fn status(incarnation: u32, role: &str, term: u64) -> Status {
        serde_json::from_value(serde_json::json!({
            "cluster": "trial", "algorithm": "bully", "version": "0.1.0", "id": 1, "name": "n1",
            "incarnation": incarnation, "role": role, "leader": null, "term": term, "lease": null, "why": null,
            "rejoining": false, "drained": false, "drained_remaining_ms": null, "preference": null, "next": null,
            "succession": [], "members": [],
        }))
        .expect("a status")
    }

    #[test]
    fn a_status_that_a_dead_process_sent_does_not_count_for_the_next_one() {
        let mut monitor = monitor();
        monitor.setup.algorithm = Algorithm::Bully;
        let first = monitor.members[0].start;
        assert!(monitor.snapshot(0, first, ms(2), status(1, "leader", 1), &[]));
        assert!(monitor.leadership.leads(0).is_some());
        monitor.process(0, ms(3), ProcessChange::Ended(Ending::Signal(SIGKILL)));
        let is_current = monitor.snapshot(0, first, ms(3), status(1, "leader", 1), &[]);
        assert!(is_current, "no other process has been started");
        monitor.started(0, ms(4), 200);
        assert!(!monitor.snapshot(0, first, ms(5), status(1, "leader", 1), &[]));
        assert_eq!(monitor.members[0].state, State::Starting, "the new one has not answered");
        assert_eq!((monitor.leadership.current().count(), &monitor.members[0].status), (0, &None));
        assert!(monitor.snapshot(0, first + 1, ms(6), status(2, "follower", 1), &[]));
        assert_eq!(monitor.members[0].state, State::Up);
    }

    #[test]
    fn a_refresh_that_was_overtaken_changes_nothing() {
        let mut monitor = monitor();
        let start = monitor.members[0].start;
        let term = |monitor: &Monitor| monitor.members[0].status.as_ref().map(|it| it.term.0);
        assert_eq!(monitor.before_refresh(0), None, "it has not answered yet");
        monitor.snapshot(0, start, ms(2), status(1, "follower", 1), &[]);
        let asked = monitor.before_refresh(0).expect("it is up");
        monitor.snapshot(0, start, ms(3), status(1, "follower", 2), &[]);
        monitor.refresh(0, asked, status(1, "follower", 1));
        assert_eq!(term(&monitor), Some(2), "the answer was older");
        let asked = monitor.before_refresh(0).expect("it is up");
        monitor.refresh(0, asked, status(1, "follower", 3));
        assert_eq!(term(&monitor), Some(3), "nothing came in between");
        monitor.process(0, ms(4), ProcessChange::Ended(Ending::Signal(SIGKILL)));
        monitor.refresh(0, asked, status(1, "follower", 4));
        assert_eq!(term(&monitor), None, "a dead process has no status");
    }

    #[test]
    fn a_process_that_ends_by_itself_has_failed_and_one_that_was_stopped_has_not() {
        let mut monitor = monitor();
        let mut end = |place, ending| {
            monitor.process(place, ms(9), ProcessChange::Ended(ending));
            (monitor.members[place].state, monitor.members[place].log_tail.is_some())
        };
        assert_eq!(end(0, Ending::Code(2)), (State::Failed, true));
        assert_eq!(end(1, Ending::Code(0)), (State::Down, false));
        assert_eq!(end(2, Ending::Signal(15)), (State::Down, false));
    }

    #[test]
    fn the_log_is_bounded_and_its_numbers_rise() {
        let mut monitor = monitor();
        for round in 0..2 * MOST_LINES as u64 {
            monitor.log(ms(round), None, LineKind::Other, "again");
        }
        assert_eq!(monitor.lines.len(), MOST_LINES);
        let numbers: Vec<u64> = monitor.lines.iter().map(|line| line.n).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }

    #[test]
    fn a_reason_is_what_follows_the_colon() {
        let text = "became leader (term 3): n4 transferred leadership (resigned); downtime 0.8 ms";
        assert_eq!(reason_of(text), "n4 transferred leadership (resigned)");
        let text = "became leader (term 1): elected; no previous leader known";
        assert_eq!(reason_of(text), "elected; no previous leader known");
    }
}
