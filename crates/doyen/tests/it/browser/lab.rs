//! A running `doyen lab`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support;

/// The program, its nodes and its page. Everything ends with it.
pub(crate) struct Lab {
    process: Child,
    /// The printed address, with the key.
    pub(crate) address: String,
    /// `http://127.0.0.1:PORT`.
    pub(crate) origin: String,
}

impl Lab {
    /// Starts it with these flags besides.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut process = Command::new(support::program())
            .args(["lab", "--port", "0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("doyen can be run");
        let out = BufReader::new(process.stdout.take().expect("its output"));
        let mut lines = out.lines().map(|line| line.expect("text"));
        let address = lines.find_map(|line| {
            let at = line.find("http://127.0.0.1:")?;
            line[at..].split_whitespace().next().map(str::to_owned)
        });
        // Whatever else it prints is read, so that it never waits for its output.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.expect("doyen lab prints its address");
        let origin = address.split("/#").next().expect("an origin").to_owned();
        Self { process, address, origin }
    }

    /// The address of a view: `#/sim/…`, with the key.
    pub(crate) fn view(&self, place: &str) -> String {
        format!("{}/{place}", self.origin)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ctrl-C; waits for its end.
    pub(crate) fn interrupt(mut self) {
        signal(self.process.id(), Signal::INT);
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.process.try_wait().expect("its state").is_none() {
            assert!(Instant::now() < deadline, "doyen lab does not end by Ctrl-C");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(self.process.id(), Signal::TERM);
            let _ = self.process.wait();
        }
    }
}

/// Sends a signal to a process that this test knows by its id.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    let _ = kill_process(pid, signal);
}

/// The processes that `parent` has started and that still run.
pub(crate) fn descendants(parent: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        // Each thread has a list of those that it started.
        let threads =
            std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
        let lists: Vec<String> = lists.map(Result::unwrap_or_default).collect();
        lists
            .iter()
            .flat_map(|list| list.split_whitespace())
            .filter_map(|pid| pid.parse().ok())
            .collect()
    };
    let mut found = children(parent);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
}
