//! The systemd units agree with the program, and with what they are for: a guardian outlives its node.
//!
//! systemd does not run where tests run, so [`Manager`] does what it does for `Type=notify` and `KillMode=control-group`: the
//! same command, the same signals to the same processes in the same order.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::rounds::{Tally, rounds};
use crate::support::{LIMIT, Plan, Trial, complaint, doyen, new_folder, program, skip};
use doyen::guardian::contain::Containment;
use doyen_core::change::{ElectionReason, LeaderChange, TransferReason};
use doyen_core::members::NodeId;
use rustix::process::{Pid, Signal, kill_process};

const NODE: &str = "doyen@.service";
const RUN: &str = "doyen-run@.service";

fn unit(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(name);
    fs::read_to_string(path).expect("the unit")
}

/// Every value of a setting, in order.
fn settings<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let lines = unit.lines().filter_map(|line| line.split_once('='));
    lines.filter(|(name, _)| *name == key).map(|(_, value)| value).collect()
}

fn setting<'a>(unit: &'a str, key: &str) -> &'a str {
    match settings(unit, key)[..] {
        [value] => value,
        ref other => panic!("{key} is set {} times", other.len()),
    }
}

/// The command of the unit, for a member in `folder`: all but the program.
fn command(unit: &str, folder: &Path) -> Vec<String> {
    words(setting(unit, "ExecStart"), folder)
}

/// The words of a command line of a unit, for a member in `folder`: all but the program.
fn words(line: &str, folder: &Path) -> Vec<String> {
    let folder = folder.to_str().expect("a plain path");
    let start = line.replace("/var/lib/doyen/%i", folder);
    let start = start.replace("/run/doyen-run/%i", &format!("{folder}/run"));
    let start = start.replace("/etc/doyen/%i", &format!("{folder}/etc"));
    let words: Vec<String> = start.split_whitespace().map(str::to_owned).collect();
    assert_eq!(words[0], "doyen");
    words[1..].to_vec()
}

/// Codes with which it is not started again.
fn prevented(unit: &str) -> BTreeSet<i32> {
    let codes = setting(unit, "RestartPreventExitStatus").split_whitespace();
    codes.map(|code| code.parse().expect("a number")).collect()
}

#[test]
fn the_units_command_runs_a_member_and_its_stop_is_clean() {
    let (unit, mut trial) = (unit(NODE), Trial::found(&Plan { members: 1, ..Plan::default() }));
    let mut words = command(&unit, trial.folder_of(1));
    words.push("--check".to_owned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let checked = doyen(&words);
    assert!(checked.status.success(), "{}", complaint(&checked));
    // The flags are those that tests run it with.
    assert_eq!(words[..2], ["node", "--config"]);
    assert_eq!(words.len(), 4, "another flag has to be tried here: {words:?}");
    trial.run(1);
    trial.follow(1, &[1]);
    assert_eq!(setting(&unit, "KillSignal"), "SIGTERM");
    assert_eq!(trial.stop(1), Some(0), "a stop is no failure");
}

/// `systemctl reload` says so if it fails, and the service goes on as before.
#[test]
fn a_reload_with_a_damaged_key_file_fails_and_the_node_goes_on_with_its_keys() {
    for name in [NODE, RUN] {
        let (unit, mut trial) =
            (unit(name), Trial::found(&Plan { patient: true, ..Plan::default() }));
        trial.run(1);
        trial.run(3);
        if name == NODE {
            trial.run(2);
        } else {
            let lease_file = trial.folder.join("lease");
            let flags = ["--uncontained", "--lease-file", lease_file.to_str().unwrap()];
            trial.run_job(2, &flags, &["sleep", "1000"]);
        }
        trial.follow(3, &[1, 2, 3]);
        let reload = || {
            Command::new(program())
                .args(words(setting(&unit, "ExecReload"), trial.folder_of(2)))
                .env("DOYEN_HTTP", trial.url(2).trim_start_matches("http://"))
                .stdin(Stdio::null())
                .output()
                .expect("doyen can be run")
        };
        let before = trial.wait_for_status(2);
        let key = trial.folder_of(2).join("key");
        let sound = fs::read(&key).unwrap();
        for damaged in [&sound[..sound.len() / 2], b"", b"\xff\xfe\n"] {
            fs::write(&key, damaged).unwrap();
            let failed = reload();
            let said = complaint(&failed);
            assert_eq!(failed.status.code(), Some(1), "{name}: {failed:?}");
            assert!(
                said.contains(key.to_str().unwrap()) && said.contains("keeps its old"),
                "{said}"
            );
        }
        // What it seals from now on is opened by the others, and it opens what they seal.
        let received = "doyen_datagrams_received_total";
        [1, 2].iter().for_each(|&member| trial.wait_for_rise(member, received, "", 20));
        trial.follow(3, &[1, 2, 3]);
        let after = trial.wait_for_status(2);
        assert_eq!((after.keys, after.incarnation), (before.keys, before.incarnation));
        for member in [1, 3] {
            let rejected = trial.metric(member, "doyen_datagrams_rejected_total", "reason=\"key\"");
            assert_eq!(rejected.unwrap_or(0), 0, "{name}: n{member}");
        }
        fs::write(&key, sound).unwrap();
        let reloaded = reload();
        assert!(reloaded.status.success(), "{name}: {}", complaint(&reloaded));
    }
}

#[test]
fn what_no_restart_mends_is_not_restarted_and_everything_else_is() {
    let unit = unit(NODE);
    assert_eq!(setting(&unit, "Restart"), "on-failure");
    let prevented = prevented(&unit);
    let mut trial = Trial::found(&Plan { members: 1, ..Plan::default() });
    // A wrong configuration, and a state that is gone.
    let config = trial.folder_of(1).join("doyen.toml");
    let sound = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("nonsense = 1\n{sound}")).unwrap();
    trial.run(1);
    let code = trial.wait_for_end(1).expect("it ends by itself");
    assert!(prevented.contains(&code), "{code}: {}", trial.log(1));
    fs::write(&config, sound).unwrap();
    fs::rename(trial.folder_of(1).join("state"), trial.folder.join("away")).unwrap();
    trial.run(1);
    let code = trial.wait_for_end(1).expect("it ends by itself");
    assert!(prevented.contains(&code), "{code}: {}", trial.log(1));
    // That it had to stop (1), a mistake in doyen (101) and a signal are worth another try.
    assert!(prevented.is_disjoint(&BTreeSet::from([0, 1, 101])), "{prevented:?}");
}

/// A job that does not stop has `grace` before it is killed, and the transfer has as long again.
#[test]
fn a_hand_over_is_given_its_time() {
    let example = doyen(&["node", "--example"]);
    let example = String::from_utf8(example.stdout).unwrap();
    let grace = example.lines().find_map(|line| line.strip_prefix("# grace = ")).unwrap();
    let grace = humantime::parse_duration(grace.trim_matches('"')).unwrap();
    for (name, needed) in [(NODE, grace), (RUN, grace * 2)] {
        let stop: u64 = setting(&unit(name), "TimeoutStopSec").parse().unwrap();
        let stop = Duration::from_secs(stop);
        assert!(stop > needed + Duration::from_secs(3), "{name}: {stop:?} for {needed:?}");
    }
}

/// The documentation names the same codes as the program's own help and the unit.
#[test]
fn the_documentation_has_the_exit_codes() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/node.md");
    let docs = fs::read_to_string(docs).unwrap();
    for code in ["| 0 |", "| 1 |", "| 2 |", "| 101 |"] {
        assert!(docs.contains(code), "docs/node.md lacks {code}");
    }
    let code = prevented(&unit(NODE)).into_iter().next().unwrap();
    let line = docs.lines().find(|line| line.starts_with(&format!("| {code} |"))).unwrap();
    assert!(line.contains("not restarted"), "{line}");
}

#[test]
fn systemd_accepts_the_units() {
    for name in [NODE, RUN] {
        let folder = new_folder();
        // An instance of it, with a program that is there.
        let path = folder.join(name.replace('@', "@orders"));
        let named = |text: String, key: &str| {
            text.replace(&format!("{key}=doyen"), &format!("{key}={}", program()))
        };
        let text = ["ExecStart", "ExecReload"].into_iter().fold(unit(name), named);
        fs::write(&path, text).unwrap();
        let verified = Command::new("systemd-analyze")
            .args(["verify", "--man=no", "--recursive-errors=no"])
            .arg(&path)
            .stdin(Stdio::null())
            .output();
        let Ok(verified) = verified else {
            return skip("there is no systemd-analyze here: the units are not verified");
        };
        let said = complaint(&verified);
        let is_about_it = |line: &&str| line.contains("doyen");
        let about_it: Vec<&str> = said.lines().filter(is_about_it).collect();
        assert!(verified.status.success() && about_it.is_empty(), "{said}");
        let _ = fs::remove_dir_all(folder);
    }
}

/// What would kill a guardian with its node, or keep `run` from containing a job.
#[test]
fn the_units_let_the_guardian_finish_and_forbid_nothing_that_run_needs() {
    for name in [NODE, RUN] {
        let unit = unit(name);
        assert_eq!(setting(&unit, "KillMode"), "control-group", "{name}");
        assert_eq!(setting(&unit, "OOMPolicy"), "continue", "{name}");
        let reload = "doyen reload --config /var/lib/doyen/%i/doyen.toml";
        assert_eq!(setting(&unit, "ExecReload"), reload, "{name}");
        assert_eq!(settings(&unit, "SendSIGKILL"), [""; 0], "{name}");
        // Several instances share the folder.
        assert_eq!(setting(&unit, "RuntimeDirectoryPreserve"), "yes", "{name}");
    }
    let (node, run) = (unit(NODE), unit(RUN));
    assert_eq!(setting(&run, "Delegate"), "yes");
    for key in [
        "RestrictNamespaces",
        "ProtectControlGroups",
        "NoNewPrivileges",
        "SystemCallFilter",
        "User",
    ] {
        assert!(!settings(&node, key).is_empty(), "the node is no longer hardened: {key}");
        assert_eq!(settings(&run, key), [""; 0], "{key} binds the job and its guardian");
    }
}

/// What systemd does with a unit: starts its command, waits for its notification, and sends signals to all its processes.
struct Manager {
    main: Child,
    socket: UnixDatagram,
    /// What was received from the main process.
    told: Vec<String>,
}

impl Manager {
    /// Starts the command of a unit as the member of `trial`, with a watchdog.
    fn start(trial: &Trial, member: usize, unit: &str, watchdog: Duration) -> Self {
        let folder = trial.folder_of(member);
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_nonblocking(true).unwrap();
        let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let main = Command::new(program())
            .args(command(unit, folder))
            .env("DOYEN_HTTP", trial.url(member).trim_start_matches("http://"))
            .env("DOYEN_PREEMPTION_POLICY", "immediate")
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("doyen can be run");
        Self { main, socket, told: Vec::new() }
    }

    /// Reads the notifications that have arrived; says how many of them are this one.
    fn count(&mut self, state: &str) -> usize {
        let mut bytes = [0; 512];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..length]);
            self.told.extend(text.lines().map(str::to_owned));
        }
        self.told.iter().filter(|told| *told == state).count()
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.main.id()).expect("a process id")
    }

    /// Waits until no process of `group` is alive, as systemd does until `TimeoutStopSec`; says what is left then.
    fn wait_for_all(&mut self, group: &[i32], patience: Duration) -> Vec<i32> {
        let begun = Instant::now();
        loop {
            let _ = self.main.try_wait();
            let left: Vec<i32> = group.iter().copied().filter(|&pid| is_alive(pid)).collect();
            if left.is_empty() || begun.elapsed() > patience {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // What has ended already cannot be killed, and need not be.
        for pid in processes_of(self.pid()) {
            send(pid, Signal::KILL);
        }
        let _ = self.main.wait();
    }
}

/// A process and all its descendants: what is in the control group of a unit.
fn processes_of(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let tasks = fs::read_dir(format!("/proc/{}/task", found[next]));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        next += 1;
    }
    found
}

/// Whether a process exists and is not a zombie.
fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A process that has ended meanwhile gets nothing.
fn send(pid: i32, signal: Signal) {
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
}

/// Two members that run as they do in other tests, and the best one, which runs a job under its unit and leads.
struct Service {
    trial: Trial,
    manager: Manager,
    starts: PathBuf,
}

impl Service {
    fn start() -> Option<Self> {
        if Containment::available().expect("a thread").is_none() {
            skip("units: no PID namespaces and no cgroup v2 that may be written to");
            return None;
        }
        let mut trial = Trial::found(&Plan { profile: "wan", ..Plan::default() });
        let starts = trial.folder.join("starts");
        let job = trial.folder_of(3).join("etc.job");
        // It takes longer to stop than the guardian takes for everything.
        let script = format!(
            "#!/bin/sh\necho $DOYEN_TOKEN >> {}\ntrap 'sleep 0.2; exit 0' TERM\nwhile :; do sleep 0.1; done\n",
            starts.display()
        );
        fs::write(&job, script).unwrap();
        fs::set_permissions(&job, fs::Permissions::from_mode(0o755)).unwrap();
        trial.run(1);
        trial.run(2);
        let manager = Manager::start(&trial, 3, &unit(RUN), Duration::from_secs(30));
        let service = Self { trial, manager, starts };
        service.trial.wait("the job", || fs::metadata(&service.starts).ok());
        service.trial.follow(3, &[1, 2, 3]);
        Some(service)
    }

    /// Node, guardian, the first process of the job, and the job.
    fn processes(&self) -> Vec<i32> {
        let all = processes_of(self.manager.pid());
        assert!(all.len() >= 4, "node, guardian, init and job: {all:?}");
        all
    }

    /// Why the successor leads.
    fn reason(&self) -> TransferReason {
        let leader = self.trial.agree(&[1, 2]);
        self.trial.wait("a transfer", || {
            self.trial.history(leader).iter().find_map(|entry| match entry.change {
                LeaderChange::BecameLeader {
                    reason: ElectionReason::Transferred { by: NodeId(3), reason },
                    ..
                } => Some(reason),
                _ => None,
            })
        })
    }
}

#[test]
fn a_stop_of_the_service_ends_the_job_and_transfers_leadership() {
    let Some(mut service) = Service::start() else { return };
    let all = service.processes();
    for &pid in &all {
        send(pid, Signal::TERM);
    }
    let left = service.manager.wait_for_all(&all, LIMIT);
    assert_eq!(left, [0; 0], "systemd would have to kill them: {}", service.trial.log(3));
    let code = service.manager.main.wait().unwrap().code().expect("it exits");
    let accepted = unit(RUN);
    let accepted = setting(&accepted, "SuccessExitStatus");
    assert!(code == 0 || accepted == code.to_string(), "{code}: {}", service.trial.log(3));
    assert_eq!(service.reason(), TransferReason::ShuttingDown);
}

#[test]
fn when_the_node_of_the_service_is_killed_its_guardian_finishes_its_work_in_spite_of_sigterm() {
    let mut tally = Tally::new("the node of the unit is killed, and systemd ends the rest");
    for _ in 0..rounds() {
        let Some(mut service) = Service::start() else { return };
        let all = service.processes();
        tally.round(|| {
            send(service.manager.pid(), Signal::KILL);
            service.manager.main.wait().unwrap();
            // Its main process has died: systemd stops the rest of the unit.
            for &pid in &all[1..] {
                send(pid, Signal::TERM);
            }
            let left = service.manager.wait_for_all(&all, LIMIT);
            assert_eq!(left, [0; 0], "systemd would have to kill them: {}", service.trial.log(3));
            assert_eq!(service.reason(), TransferReason::Crashed, "{}", service.trial.log(3));
        });
    }
}

#[test]
fn a_node_says_that_it_is_ready_and_feeds_the_watchdog() {
    let trial = Trial::found(&Plan { members: 1, ..Plan::default() });
    let mut manager = Manager::start(&trial, 1, &unit(NODE), Duration::from_secs(1));
    trial.wait("READY=1", || (manager.count("READY=1") == 1).then_some(()));
    trial.follow(1, &[1]);
    trial.wait("the watchdog", || (manager.count("WATCHDOG=1") >= 5).then_some(()));
    send(manager.pid(), Signal::TERM);
    assert_eq!(manager.main.wait().unwrap().code(), Some(0));
}
