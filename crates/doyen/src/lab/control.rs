//! The main thread: it owns the processes and the network, makes the faults, and learns what happens to the processes.
//!
//! Faults name a member, and only children of this process are ever signalled.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use doyen::clock::Moment;
use doyen_sim::words::listed;
use rustix::process::{Pid, Signal};
use tokio::sync::oneshot;

use super::faults::Fault;
use super::monitor::{LineKind, State};
use super::relay::{Cuts, Link, Relay};
use super::shared::Shared;
use crate::local::member::{Member, ProcessChange};

/// How often processes are checked, in case a signal gets lost.
const LOOK: Duration = Duration::from_millis(100);

/// How long a signal may take until it has its effect.
const EFFECT: Duration = Duration::from_millis(200);

/// How long nodes may take to stop.
const STOP: Duration = Duration::from_secs(3);

/// What the main thread waits for.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something happened to a process, or the lab shall end.
    Look,
    /// A fault, and where its result goes: what was done, or why it was not.
    Fault(Fault, oneshot::Sender<Result<String, String>>),
}

#[derive(Debug)]
pub(crate) struct Controller {
    members: Vec<Member>,
    relay: Relay,
    shared: Arc<Shared>,
    cuts: Cuts,
    partition: Option<Vec<Vec<usize>>>,
    /// Those that are started again when they have stopped.
    restarting: BTreeSet<usize>,
}

impl Controller {
    pub(crate) fn new(members: Vec<Member>, relay: Relay, shared: Arc<Shared>) -> Self {
        let restarting = BTreeSet::new();
        Self { members, relay, shared, cuts: Cuts::new(), partition: None, restarting }
    }

    /// The highest priority first: the member that should lead is ready first.
    pub(crate) fn start_all(&mut self) -> Result<()> {
        (0..self.members.len()).rev().try_for_each(|place| self.start(place).map(drop))
    }

    /// Asks all nodes to stop, and waits.
    pub(crate) fn stop_all(&mut self) {
        self.members.iter().for_each(Member::stop);
        let deadline = Instant::now() + STOP;
        self.members.iter_mut().for_each(|member| member.wait(deadline));
    }

    /// Runs until `ends` is true.
    pub(crate) fn run(&mut self, events: &Receiver<Event>, ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            match events.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Disconnected) => return,
                // The caller has gone, or was told that there is no answer: then nothing may happen any more.
                Ok(Event::Fault(_, answer)) if answer.is_closed() => {}
                Ok(Event::Fault(fault, answer)) => {
                    let result = self.make(&fault).map_err(|error| format!("{error:#}"));
                    // The caller may have gone.
                    let _ = answer.send(result);
                }
                Ok(Event::Look) | Err(RecvTimeoutError::Timeout) => {}
            }
            self.look_at_all();
        }
    }

    fn look_at_all(&mut self) {
        for place in 0..self.members.len() {
            while self.look(place).is_some() {}
        }
    }

    /// Notices what has happened to the process of a member.
    fn look(&mut self, place: usize) -> Option<ProcessChange> {
        let change = self.members[place].change()?;
        let at = Moment::now();
        self.shared.with(|monitor| monitor.process(place, at, change));
        if matches!(change, ProcessChange::Ended(_))
            && self.restarting.remove(&place)
            && let Err(error) = self.start(place)
        {
            let text = format!("cannot be started: {error:#}");
            self.shared.with(|monitor| monitor.log(at, Some(place), LineKind::Fault, text));
        }
        Some(change)
    }

    fn start(&mut self, place: usize) -> Result<Pid> {
        let pid = self.members[place].start()?;
        let (at, raw) = (Moment::now(), pid.as_raw_nonzero().get());
        self.shared.with(|monitor| monitor.started(place, at, raw));
        Ok(pid)
    }

    fn make(&mut self, fault: &Fault) -> Result<String> {
        match fault {
            Fault::Kill(name) => self.kill(name),
            Fault::Pause(name) => self.signal(name, Signal::STOP, "paused"),
            Fault::Continue(name) => self.signal(name, Signal::CONT, "continued"),
            Fault::Restart(name) => self.restart(name),
            Fault::Cut { link, both } => self.change_link(link, *both, true),
            Fault::Mend { link, both } => self.change_link(link, *both, false),
            Fault::Partition(groups) => self.part(groups),
            Fault::Heal => {
                self.set_links(Cuts::new(), None);
                Ok(self.log_fault("all links healed".to_owned()))
            }
        }
    }

    fn place(&self, name: &str) -> Result<usize> {
        let place = self.members.iter().position(|member| member.name == name);
        place.ok_or_else(|| {
            let names: Vec<&str> = self.members.iter().map(|it| &*it.name).collect();
            anyhow!("there is no member `{name}`; there are {}", listed(&names))
        })
    }

    /// Sends a signal and waits for its effect, so that what follows finds it.
    fn signal(&mut self, name: &str, signal: Signal, done: &str) -> Result<String> {
        let place = self.place(name)?;
        let state = self.shared.with(|monitor| monitor.members[place].state);
        match (signal, state) {
            (Signal::STOP, State::Paused) => bail!("{name} is paused already"),
            (Signal::CONT, State::Starting | State::Up) => bail!("{name} is not paused"),
            _ => {}
        }
        let pid = self.members[place].signal(signal)?;
        let begun = Instant::now();
        while self.look(place).is_none() && begun.elapsed() < EFFECT {
            thread::sleep(Duration::from_micros(100));
        }
        Ok(format!("{name} {done} (pid {}, signal {})", pid.as_raw_nonzero(), signal.as_raw()))
    }

    /// One that was to be started again stays down.
    fn kill(&mut self, name: &str) -> Result<String> {
        let place = self.place(name)?;
        self.restarting.remove(&place);
        self.signal(name, Signal::KILL, "killed")
    }

    fn restart(&mut self, name: &str) -> Result<String> {
        let place = self.place(name)?;
        if self.members[place].pid().is_none() {
            let pid = self.start(place)?;
            return Ok(format!("{name} started (pid {})", pid.as_raw_nonzero()));
        }
        if !self.restarting.insert(place) {
            bail!("{name} is being restarted already");
        }
        self.members[place].stop();
        Ok(format!("{name} stops, and starts again"))
    }

    fn change_link(&mut self, link: &[String; 2], both: bool, cut: bool) -> Result<String> {
        let (from, to) = (self.place(&link[0])?, self.place(&link[1])?);
        if from == to {
            bail!("{} has no link to itself", link[0]);
        }
        let mut cuts = self.cuts.clone();
        let links: &[Link] = if both { &[(from, to), (to, from)] } else { &[(from, to)] };
        for link in links {
            match cut {
                true => cuts.insert(*link),
                false => cuts.remove(link),
            };
        }
        let partition = self.partition.take().filter(|groups| between(groups).is_subset(&cuts));
        self.set_links(cuts, partition);
        let (way, done) = (if both { "and" } else { "to" }, if cut { "cut" } else { "mended" });
        Ok(self.log_fault(format!("link from {} {way} {} {done}", link[0], link[1])))
    }

    fn part(&mut self, names: &[Vec<String>]) -> Result<String> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for group in names.iter().filter(|group| !group.is_empty()) {
            let places = group.iter().map(|name| self.place(name));
            groups.push(places.collect::<Result<_>>()?);
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = groups.iter().flatten().find(|&&place| !seen.insert(place)) {
            bail!("{} is in two groups", self.members[*twice].name);
        }
        let rest: Vec<usize> = (0..self.members.len()).filter(|it| !seen.contains(it)).collect();
        groups.extend((!rest.is_empty()).then_some(rest));
        if groups.len() < 2 {
            bail!("a partition needs two groups");
        }
        let text = groups.iter().map(|group| {
            let names: Vec<&str> = group.iter().map(|&place| &*self.members[place].name).collect();
            format!("{{{}}}", names.join(", "))
        });
        let text = listed(&text.collect::<Vec<_>>());
        self.set_links(between(&groups), Some(groups));
        Ok(self.log_fault(format!("partition: {text}")))
    }

    fn set_links(&mut self, cuts: Cuts, partition: Option<Vec<Vec<usize>>>) {
        self.relay.change(|shared| shared.clone_from(&cuts));
        self.shared.with(|monitor| {
            monitor.cuts.clone_from(&cuts);
            monitor.partition.clone_from(&partition);
        });
        (self.cuts, self.partition) = (cuts, partition);
    }

    fn log_fault(&self, text: String) -> String {
        let at = Moment::now();
        self.shared.with(|monitor| monitor.log(at, None, LineKind::Fault, &*text));
        text
    }
}

/// The links between different groups.
fn between(groups: &[Vec<usize>]) -> Cuts {
    let mut cuts = Cuts::new();
    for (number, group) in groups.iter().enumerate() {
        for other in groups.iter().enumerate().filter(|(other, _)| *other != number) {
            for &from in group {
                cuts.extend(other.1.iter().map(|&to| (from, to)));
            }
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc::sync_channel;

    use doyen_core::registry::Algorithm;

    use super::super::monitor::{Monitor, Setup};
    use super::super::relay::Sockets;
    use super::*;

    /// One member, n1, which is not a node but sleeps.
    fn controller() -> Controller {
        let setup = Setup { began: Moment::now(), ..Setup::of_test(Algorithm::Quorum, 1) };
        let member = Member::running(1, Command::new("sleep").arg("60"));
        let relay = Sockets::bind(0).expect("sockets").forward(Vec::new());
        let shared = Shared::new(Monitor::new(setup, vec![None]));
        Controller::new(vec![member], relay.expect("a relay"), shared)
    }

    #[test]
    fn a_restart_that_is_under_way_is_not_asked_for_again_and_a_kill_cancels_it() {
        let mut controller = controller();
        let restart = Fault::Restart("n1".to_owned());
        controller.make(&restart).expect("it runs");
        let again = controller.make(&restart).expect_err("it is under way");
        assert_eq!(again.to_string(), "n1 is being restarted already");
        controller.make(&Fault::Kill("n1".to_owned())).expect("it has not been waited for");
        assert!(controller.restarting.is_empty(), "who kills a member wants it down");
        controller.stop_all();
    }

    #[test]
    fn a_fault_that_no_one_waits_for_any_more_is_not_made() {
        let mut controller = controller();
        let (events, waiting) = sync_channel(2);
        let (gone, _) = oneshot::channel();
        let (answer, mut answered) = oneshot::channel();
        let partition = Fault::Partition(vec![vec!["n9".to_owned()]]);
        events.send(Event::Fault(Fault::Heal, gone)).expect("room");
        events.send(Event::Fault(partition, answer)).expect("room");
        drop(events);
        controller.run(&waiting, &AtomicBool::new(false));
        let lines = controller.shared.with(|monitor| monitor.lines.len());
        assert_eq!(lines, 0, "the first one would have been logged");
        assert!(answered.try_recv().is_ok_and(|answer| answer.is_err()), "the second is answered");
        controller.stop_all();
    }
}
