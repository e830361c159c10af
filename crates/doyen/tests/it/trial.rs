//! `doyen cluster` where no terminal is: in scripts, and with orders from a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::{LIMIT, doyen, program};
use rustix::process::{Pid, Signal, kill_process};

/// A cluster that runs, and what it says.
struct Cluster {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Cluster {
    fn start(arguments: &[&str], stdin: Stdio) -> Self {
        let mut child = Command::new(program())
            .arg("cluster")
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .spawn()
            .expect("doyen can be run");
        let (say, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| drop(say.send(line)));
        });
        Self { child, lines, said: Vec::new() }
    }

    /// Waits for a line with these words in it.
    fn says(&mut self, words: &str) -> String {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            let Ok(line) = self.lines.recv_timeout(Duration::from_millis(100)) else { continue };
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
        panic!("it does not say `{words}`, but {:#?}", self.said);
    }

    fn type_in(stdin: &mut ChildStdin, line: &str) {
        writeln!(stdin, "{line}").expect("it listens");
    }

    /// How it ends.
    fn end(&mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end; it said {:#?}", self.said);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be. Its members end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell gives a script's background job an empty input.
#[test]
fn a_cluster_whose_input_is_empty_runs_until_a_signal_and_says_where_it_is() {
    let mut cluster = Cluster::start(&["--members", "1"], Stdio::null());
    let heading = cluster.says("doyen cluster: ");
    assert!(heading.contains("1 member, quorum"), "{heading}");
    let member = cluster.says("n1      pid ");
    let url = member.split_whitespace().last().expect("an address").to_owned();
    let folder = cluster.says("folder  ");
    let folder = PathBuf::from(folder.split_whitespace().nth(1).expect("a path"));
    assert!(folder.join("n1/doyen.toml").exists());
    let ask = cluster.says("ask     doyen status --node ");
    assert!(url.starts_with(ask.split_whitespace().last().expect("an address")), "{ask} {url}");
    cluster.says("end of input: the cluster runs until SIGTERM or SIGINT");
    cluster.says("n1 leads in term 1: it has the highest priority");
    let status = doyen(&["status", "--node", url.trim_end_matches('/')]);
    assert!(status.status.success(), "{}", support::complaint(&status));
    kill_process(Pid::from_child(&cluster.child), Signal::TERM).expect("it runs");
    assert_eq!(cluster.end(), Some(0));
    assert!(!folder.exists(), "the folder goes with it");
}

#[test]
fn members_go_by_number_too_and_status_shows_them() {
    let mut cluster = Cluster::start(&["--members", "3"], Stdio::piped());
    let mut stdin = cluster.child.stdin.take().expect("a pipe");
    cluster.says(" leads in term ");
    Cluster::type_in(&mut stdin, "kill 3");
    cluster.says("n3 killed");
    Cluster::type_in(&mut stdin, "kill 9");
    cluster.says("there is no member `9`; there are n1, n2, n3");
    Cluster::type_in(&mut stdin, "status");
    cluster.says("member  process   role");
    cluster.says("n1 ");
    let killed = loop {
        let line = cluster.says("n3 ");
        if line.contains("killed") {
            break line;
        }
    };
    assert!(killed.starts_with("n3"), "{killed}");
    Cluster::type_in(&mut stdin, "quit");
    assert_eq!(cluster.end(), Some(0));
}
