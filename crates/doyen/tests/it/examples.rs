//! The examples as they are shipped, each on three members: `cargo test` has built them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Plan, Trial, free_address, skip};
use rustix::process::{Pid, Signal, kill_process};

/// Three processes of an example, one for each member.
struct Example {
    trial: Trial,
    program: PathBuf,
    children: Vec<(Vec<String>, Child)>,
}

impl Example {
    /// `arguments`: what follows the configuration of a member.
    fn start(
        name: &'static str,
        profile: &'static str,
        arguments: impl Fn(&Trial, usize) -> Vec<String>,
    ) -> Self {
        let test = std::env::current_exe().expect("this program");
        let program = test.ancestors().nth(2).expect("a target folder").join("examples").join(name);
        assert!(program.exists(), "{}: run `cargo build --examples` first", program.display());
        let trial = Trial::found(&Plan { profile, ..Plan::default() });
        let mut example = Self { trial, program, children: Vec::new() };
        for member in example.trial.everybody() {
            let config = example.trial.folder_of(member).join("doyen.toml");
            let mut all = vec![config.display().to_string()];
            all.extend(arguments(&example.trial, member));
            let child = example.spawn(&all);
            example.children.push((all, child));
        }
        example
    }

    fn spawn(&self, arguments: &[String]) -> Child {
        let mut command = Command::new(&self.program);
        let log = self.trial.folder.join("log");
        let log = fs::File::options().create(true).append(true).open(log).expect("a log");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().expect("it starts")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.trial.folder.join(name)
    }

    /// Stops a process in the orderly way, and starts it again: meanwhile another member leads.
    fn stop(&mut self, number: usize) {
        signal(self.children[number].1.id(), Signal::TERM);
        let status = self.children[number].1.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", self.log());
    }

    fn start_again(&mut self, number: usize) {
        let arguments = self.children[number].0.clone();
        self.children[number].1 = self.spawn(&arguments);
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn wait<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        self.trial.wait(what, look)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        for (_, child) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, signal).expect("it runs");
}

/// The lines of a file that consist of numbers.
fn numbers(path: &Path) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>();
    text.lines().filter_map(line).collect()
}

#[test]
fn the_cron_runs_its_command_on_one_member_at_a_time() {
    let script = r#"
        exec 9> "$0/lock"
        flock -n 9 || echo "$DOYEN_TOKEN" >> "$0/overlaps"
        echo "$DOYEN_TOKEN $PPID" >> "$0/runs"
    "#;
    let mut cron = Example::start("cron", "lan", |trial, _| {
        let folder = trial.folder.display().to_string();
        ["20ms", "sh", "-c", script, &folder].map(str::to_owned).to_vec()
    });
    let runs = cron.path("runs");
    let mut seen = 0;
    for _ in 0..3 {
        let last = cron.wait("five more runs", || {
            let runs = numbers(&runs);
            (runs.len() >= seen + 5).then(|| runs[runs.len() - 1].clone())
        });
        seen = numbers(&runs).len();
        let leader = cron.children.iter().position(|(_, child)| u64::from(child.id()) == last[1]);
        let leader = leader.expect("one of the three");
        cron.stop(leader);
        cron.wait("a run of another member", || {
            numbers(&runs).last().filter(|run| run[0] > last[0]).map(drop)
        });
        cron.start_again(leader);
    }
    let tokens: Vec<u64> = numbers(&runs).iter().map(|run| run[0]).collect();
    assert!(tokens.is_sorted(), "{tokens:?}");
    assert!(!cron.path("overlaps").exists(), "two runs at once");
}

fn sqlite(database: &Path, statements: &str) -> Result<String, String> {
    let output = Command::new("sqlite3")
        .args(["-bail", "-cmd", ".timeout 5000"])
        .arg(database)
        .arg(statements)
        .output()
        .expect("sqlite3 can be run");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn the_database_refuses_writes_of_old_leaders() {
    if Command::new("sqlite3").arg("-version").output().is_err() {
        return skip("fenced_writer: sqlite3 is not installed (`make tools`)");
    }
    let mut writers = Example::start("fenced_writer", "lan", |trial, _| {
        vec![trial.folder.join("journal.db").display().to_string()]
    });
    let database = writers.path("journal.db");
    let journal = || -> Vec<(u64, String)> {
        let rows = sqlite(&database, "SELECT token, author FROM journal ORDER BY rowid;");
        let row = |line: &str| {
            let (token, author) = line.split_once('|')?;
            Some((token.parse().ok()?, author.to_owned()))
        };
        rows.unwrap_or_default().lines().filter_map(row).collect()
    };
    let mut terms = 0;
    for round in 0..4 {
        let (token, author) = writers.wait("five rows of one leader", || {
            let rows = journal();
            let last = rows.last()?.clone();
            (rows.iter().filter(|row| **row == last).count() >= 5).then_some(last)
        });
        let leader: usize = author.trim_start_matches('n').parse().expect("a name");
        // In turn: an orderly end, and a stop past the lease, after which the old leader goes on.
        let pid = writers.children[leader - 1].1.id();
        match round % 2 {
            0 => writers.stop(leader - 1),
            _ => signal(pid, Signal::STOP),
        }
        writers.wait("rows of another leader", || {
            journal().last().filter(|row| row.0 > token).map(drop)
        });
        match round % 2 {
            0 => writers.start_again(leader - 1),
            _ => signal(pid, Signal::CONT),
        }
        let old = sqlite(&database, &format!("INSERT INTO journal VALUES ({token}, 'old');"));
        assert!(old.is_err_and(|why| why.contains("the fencing token is old")), "{token} is old");
        terms += 1;
    }
    let rows = journal();
    assert!(rows.is_sorted_by_key(|row| row.0), "{rows:?}");
    assert!(rows.iter().all(|row| row.1 != "old"));
    let mut tokens: Vec<u64> = rows.iter().map(|row| row.0).collect();
    tokens.dedup();
    assert!(tokens.len() > terms, "{tokens:?}");
}

#[test]
fn the_web_server_accepts_writes_only_where_it_leads() {
    let addresses = [(); 3].map(|()| free_address());
    // With long leases: a busy machine must not move leadership between two requests.
    let mut web = Example::start("web", "wan", |trial, member| {
        vec![addresses[member - 1].clone(), trial.folder.join("value").display().to_string()]
    });
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(std::time::Duration::from_secs(5)))
        .http_status_as_error(false);
    let agent: ureq::Agent = config.build().into();
    let post = |member: usize, value: &str| {
        let mut response = agent.post(format!("http://{}/", addresses[member])).send(value).ok()?;
        Some((response.status().as_u16(), response.body_mut().read_to_string().ok()?))
    };
    let mut last = None;
    for round in 0..3 {
        let value = format!("round {round}");
        let leader = web.wait("a member that accepts a write", || {
            (0..3).find(|&member| post(member, &value).is_some_and(|(status, _)| status == 200))
        });
        assert_ne!(last, Some(leader), "another member leads");
        let others = (0..3).filter(|&member| member != leader && Some(member) != last);
        for other in others {
            let (status, text) = post(other, "from a follower").expect("an answer");
            assert_eq!(status, 503, "{text}");
            assert!(text.contains(" does not lead; the leader is n"), "{text}");
            let read = agent.get(format!("http://{}/", addresses[other])).call();
            assert_eq!(read.unwrap().body_mut().read_to_string().unwrap(), value);
        }
        if let Some(earlier) = last.replace(leader) {
            web.start_again(earlier);
        }
        web.stop(leader);
    }
    let fence = fs::read_to_string(web.path("value.fence")).expect("the memory of the resource");
    let token: u64 = fence.trim().rsplit(' ').next().unwrap().parse().expect("a token");
    assert!(token >= 3 << 20, "the token of the third term or a later one: {fence}");
}
