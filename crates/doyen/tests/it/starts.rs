//! How a node starts and fails to: what a supervisor should repeat, what a person must mend, and what must not get out.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::spawn;

use crate::support::rounds::rounds;
use crate::support::{LIMIT, Plan, Trial, complaint, has_ended, new_folder, program, skip};
use doyen::guardian::lease_file::LeaseFile;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;

/// A cluster of one, which needs no other member to be ready.
fn single() -> Trial {
    Trial::found(&Plan { members: 1, ..Plan::default() })
}

/// Has the shell do something before it becomes the node.
pub(crate) fn after(script: &str) -> Vec<String> {
    ["sh", "-c", &format!("{script}; exec \"$@\""), "sh"].map(str::to_owned).to_vec()
}

/// How a member is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Node,
    Hooks,
    Job,
}

impl Way {
    const ALL: [Self; 3] = [Self::Node, Self::Hooks, Self::Job];

    /// A cluster of one that can be run in this way.
    fn single(self) -> Trial {
        let trial = single();
        if self == Self::Hooks {
            let config = trial.folder_of(1).join("doyen.toml");
            let text = fs::read_to_string(&config).unwrap();
            let hooks = "[hooks]\nleader = [\"true\"]\nnot_leader = [\"true\"]\n\n[[member]]";
            fs::write(&config, text.replacen("[[member]]", hooks, 1)).unwrap();
        }
        trial
    }

    fn run(self, trial: &mut Trial) {
        let lease_file = trial.folder.join("lease");
        let flags = ["--lease-file", lease_file.to_str().unwrap()];
        match self {
            Self::Node => trial.run(1),
            Self::Hooks => trial.run_with(1, &flags),
            Self::Job => {
                trial.run_job(1, &[&flags[..], &["--uncontained"]].concat(), &["sleep", "1000"]);
            }
        }
    }

    /// What it exits with if it cannot start, and a supervisor should try again.
    fn code_of_what_may_pass(self) -> i32 {
        if self == Self::Job { 125 } else { 1 }
    }

    /// It does not start, exits with this code and says why, and what to do.
    fn fails(self, trial: &mut Trial, code: i32, says: &[&str]) {
        let _ = fs::remove_file(trial.folder_of(1).join("log"));
        self.run(trial);
        assert_eq!(trial.wait_for_end(1), Some(code), "{self:?}: {}", trial.log(1));
        for text in says {
            assert!(trial.log(1).contains(text), "{self:?} does not say {text}: {}", trial.log(1));
        }
    }

    fn starts(self, trial: &mut Trial) {
        self.run(trial);
        trial.follow(1, &[1]);
        trial.stop(1);
    }
}

#[test]
fn what_may_pass_is_for_a_supervisor_to_repeat() {
    for way in Way::ALL {
        let mut trial = way.single();
        let code = way.code_of_what_may_pass();

        let taken = UdpSocket::bind(trial.address(1)).unwrap();
        let address = format!("cannot listen on {}", trial.address(1));
        way.fails(&mut trial, code, &[&address, "is this node running already?"]);
        drop(taken);

        let http = trial.url(1).trim_start_matches("http://").to_owned();
        let taken = TcpListener::bind(&http).unwrap();
        let address = format!("cannot serve HTTP on {http}");
        way.fails(&mut trial, code, &[&address, "is this node running already?"]);
        drop(taken);

        let lock = File::create(trial.folder_of(1).join("state/lock")).unwrap();
        lock.lock().unwrap();
        way.fails(&mut trial, code, &["another doyen runs with this state", "stop it first"]);
        drop(lock);

        trial.begin_with(1, after("ulimit -n 24"));
        way.fails(&mut trial, code, &["more file descriptors", "`ulimit -n`", "LimitNOFILE="]);
        trial.begin_with(1, Vec::new());

        way.starts(&mut trial);
    }
    let mut trial = single();
    trial.run_with(1, &["--listen", "192.0.2.1:7661"]);
    assert_eq!(trial.wait_for_end(1), Some(1), "{}", trial.log(1));
    assert!(trial.log(1).contains("cannot listen on 192.0.2.1:7661"), "{}", trial.log(1));
    assert!(trial.log(1).contains("no network interface of this machine has"), "{}", trial.log(1));
}

/// A lease file is locked by the node that writes it, which may be about to end.
#[test]
fn a_lease_file_in_use_may_pass() {
    for way in [Way::Hooks, Way::Job] {
        let mut trial = way.single();
        let file = LeaseFile::create(&trial.folder.join("lease")).unwrap();
        way.fails(&mut trial, way.code_of_what_may_pass(), &["another node writes it"]);
        drop(file);
        way.starts(&mut trial);
    }
}

/// Otherwise a supervisor would restart it endlessly.
#[test]
fn what_a_person_must_mend_is_not_repeated() {
    for way in Way::ALL {
        let mut trial = way.single();
        let [config, key, state] =
            ["doyen.toml", "key", "state/state"].map(|name| trial.folder_of(1).join(name));
        let set_mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };

        set_mode(&config, 0o666);
        way.fails(&mut trial, 2, &[&format!("`chmod go-w {}`", config.display())]);
        let secret = trial.folder_of(1).join("state/admin-secret");
        assert!(!secret.exists(), "{way:?}: nothing is created for such a configuration");
        set_mode(&config, 0o644);

        set_mode(&key, 0o644);
        way.fails(&mut trial, 2, &[&format!("chmod 600 {}", key.display())]);
        set_mode(&key, 0o600);

        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace("algorithm =", "algoritm =")).unwrap();
        way.fails(&mut trial, 2, &["algoritm", "did you mean `algorithm`?"]);
        // A node has a secret only where admin commands come over HTTP.
        fs::write(&config, format!("http_admin = true\n{text}")).unwrap();

        way.starts(&mut trial);
        set_mode(&secret, 0o644);
        way.fails(&mut trial, 2, &["`chmod 600` it, or remove it"]);
        set_mode(&secret, 0o600);

        let aside = state.with_extension("aside");
        fs::rename(&state, &aside).unwrap();
        way.fails(&mut trial, 2, &["there is no state", "`doyen rejoin`"]);
        fs::write(&state, [7; 8192]).unwrap();
        way.fails(&mut trial, 2, &["both copies of the state are damaged", "doyen rejoin`"]);
        fs::rename(&aside, &state).unwrap();

        way.starts(&mut trial);
    }
}

/// Whether it runs with this limit, or else says `why` it does not. It is stopped if it runs.
fn runs_within(way: Way, trial: &mut Trial, begin: &[String], why: &str) -> bool {
    trial.begin_with(1, begin.to_owned());
    let _ = fs::remove_file(trial.folder_of(1).join("log"));
    way.run(trial);
    let runs = trial.wait("it leads or ends", || {
        let ends = has_ended(trial.pid(1));
        (ends || trial.get(1, "/leader").is_some()).then_some(!ends)
    });
    let ended = if runs { trial.stop(1) } else { trial.wait_for_end(1) };
    let log = trial.log(1);
    assert!(runs || log.contains(why), "{way:?} after {begin:?}: {log}");
    assert!(!log.contains("panicked"), "{way:?} after {begin:?}: {log}");
    let expected = match way {
        // The exit code of a command that a signal has ended.
        Way::Job if runs => 143,
        _ if runs => 0,
        _ => way.code_of_what_may_pass(),
    };
    assert_eq!(ended, Some(expected), "{way:?} after {begin:?}: {log}");
    runs
}

#[test]
fn no_limit_of_file_descriptors_makes_it_panic() {
    for _ in 0..passes() {
        // One that does more has more to open, so that fewer limits are enough to see how it fails.
        let step = if rounds() > 1 { 1 } else { 8 };
        for (way, step) in [(Way::Node, 1), (Way::Hooks, step), (Way::Job, step)] {
            let mut trial = way.single();
            let mut within = |limit: &usize| {
                let begin = after(&format!("ulimit -n {limit}"));
                runs_within(way, &mut trial, &begin, "more file descriptors")
            };
            let ran: Vec<usize> = (8..=64).step_by(step).filter(&mut within).collect();
            println!("{way:?} runs from {:?} on", ran.first());
            assert_eq!(ran.last(), Some(&64), "64 are enough");
        }
    }
}

/// How often all limits are tried, one after the other: each is a round of its own.
fn passes() -> u32 {
    rounds().div_ceil(25) as u32
}

/// What a process has said that ends by itself or was told to. It is killed if it does not end.
fn output_in_time(child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (tell, told) = channel();
    spawn(move || tell.send(child.wait_with_output()));
    let output = told.recv_timeout(LIMIT).or_else(|_| {
        let _ = kill_process(pid, Signal::KILL);
        told.recv_timeout(LIMIT)
    });
    output.expect("it has ended").expect("its output can be read")
}

#[test]
fn a_rejoin_that_may_open_too_few_files_may_be_tried_again() {
    let mut trial = single();
    trial.begin_with(1, after("ulimit -n 16"));
    trial.begin_rejoin(1, &[]);
    assert_eq!(trial.wait_for_end(1), Some(1), "{}", trial.log(1));
    assert!(trial.log(1).contains("more file descriptors"), "{}", trial.log(1));
}

#[test]
fn no_limit_of_file_descriptors_makes_a_client_of_locks_panic() {
    for _ in 0..passes() {
        let mut ended = Vec::new();
        for limit in 8..=40 {
            let words = after(&format!("ulimit -n {limit}"));
            let client = Command::new(&words[0])
                .args(&words[1..])
                .args([program(), "lock", "it", "--node", "http://127.0.0.1:1", "--wait", "100ms"])
                .args(["--uncontained", "--", "true"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a shell can be run");
            let output = output_in_time(client);
            let said = complaint(&output);
            assert!(!said.contains("panicked"), "with {limit}: {said}");
            let code = output.status.code();
            assert!(code == Some(4) || said.contains("more file descriptors"), "{limit}: {said}");
            ended.push(code);
        }
        assert_eq!((ended.first(), ended.last()), (Some(&Some(125)), Some(&Some(4))), "{ended:?}");
    }
}

/// Its limit allows for all that it opens, so others of its process have to be open.
#[test]
fn no_number_of_open_files_makes_the_lab_panic() {
    for _ in 0..passes() {
        let open = r#"ulimit -n 300; for i in $(seq "$1"); do exec {fd}</dev/null; done; shift; exec "$@""#;
        let mut ran = Vec::new();
        for open_files in 264..=292 {
            let mut lab = Command::new("bash")
                .args(["-c", open, "bash", &open_files.to_string(), program(), "lab"])
                .args(["--members", "1"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("bash can be run");
            let lines = BufReader::new(lab.stdout.take().unwrap()).lines().map_while(Result::ok);
            let (tell, told) = channel();
            spawn(move || tell.send(lines.into_iter().any(|line| line.starts_with("open "))));
            let runs = told.recv_timeout(LIMIT);
            // One that does neither is killed: what it said is shown.
            let signal = if runs.is_ok() { Signal::TERM } else { Signal::KILL };
            let _ = kill_process(Pid::from_child(&lab), signal);
            let output = output_in_time(lab);
            let runs = runs.unwrap_or_else(|_| panic!("it neither runs nor ends: {output:?}"));
            let said = complaint(&output);
            assert!(!said.contains("panicked"), "with {open_files} open: {said}");
            let expected = if runs { 0 } else { 2 };
            assert_eq!(output.status.code(), Some(expected), "with {open_files} open: {said}");
            ran.push(runs);
        }
        assert_eq!((ran.first(), ran.last()), (Some(&true), Some(&false)), "{ran:?}");
    }
}

/// What the command of a process begins with that belongs to a user without other processes, as all of the trial, and that has
/// this limit of threads; none if this cannot be done here. The kernel does not limit those of root.
fn limited(trial: &Trial, user: u32, threads: u64) -> Option<Vec<String>> {
    let mut begin = by_user(user)?;
    let given =
        Command::new("chown").arg("-R").arg(format!("{user}:{user}")).arg(&trial.folder).status();
    assert!(given.expect("chown can be run").success());
    begin.extend(["prlimit".to_owned(), format!("--nproc={threads}:100")]);
    Some(begin)
}

#[test]
fn no_limit_of_threads_makes_it_panic() {
    for pass in 0..passes() {
        let why = "Resource temporarily unavailable";
        for (way, users) in [(Way::Node, user(100 * pass)), (Way::Job, user(100 * pass + 50))] {
            let mut trial = way.single();
            let mut ran = Vec::new();
            for threads in (1..=12).chain([40]) {
                // Each with another user: guardians of a process that could not start end later.
                let Some(begin) = limited(&trial, users + threads, threads.into()) else { return };
                if runs_within(way, &mut trial, &begin, why) {
                    ran.push(threads);
                }
            }
            println!("{way:?} runs from {:?} on", ran.first());
            assert_eq!(ran.last(), Some(&40), "40 are enough");
        }
    }
    // How a command can be contained is tried in a thread.
    let mut trial = single();
    let Some(begin) = limited(&trial, user(0), 2) else { return };
    trial.begin_with(1, begin);
    trial.run_job(1, &[], &["true"]);
    assert_eq!(trial.wait_for_end(1), Some(125), "{}", trial.log(1));
    assert!(trial.log(1).contains("cannot start a thread"), "{}", trial.log(1));
}

/// What needs a thread while it runs is refused, and possible again when there are more.
#[test]
fn a_node_without_free_threads_rejects_a_reload_and_goes_on() {
    let mut trial = single();
    let user = user(13);
    let Some(begin) = limited(&trial, user, 100) else { return };
    trial.begin_with(1, begin);
    trial.run(1);
    trial.follow(1, &[1]);
    let pid = trial.pid(1).to_string();
    let allow = |threads: u64| {
        let words = limited(&trial, user, threads).expect("as before");
        let allowed = Command::new(&words[0]).args(&words[1..]).args(["--pid", &pid]).output();
        assert!(allowed.as_ref().is_ok_and(|it| it.status.success()), "{allowed:?}");
    };
    allow(1);
    for words in [&["reload"][..], &["keys", "rotate"]] {
        let output = trial.command(1, words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &complaint(&output);
        assert!(said.contains("cannot start a thread"), "{words:?}: {said}");
    }
    allow(100);
    let reloaded = trial.command(1, &["reload"]);
    assert!(reloaded.status.success(), "{}", complaint(&reloaded));
    assert_eq!(trial.stop(1), Some(0), "{}", trial.log(1));
    assert!(!trial.log(1).contains("panicked"), "{}", trial.log(1));
}

#[test]
fn a_configuration_that_others_can_write_is_not_run() {
    let mut trial = single();
    let config = trial.folder_of(1).join("doyen.toml");
    for mode in [0o666, 0o664] {
        fs::set_permissions(&config, fs::Permissions::from_mode(mode)).unwrap();
        trial.run(1);
        assert_eq!(trial.wait_for_end(1), Some(2));
        let advice = format!("`chmod go-w {}`", config.display());
        assert!(trial.log(1).contains(&advice), "{}", trial.log(1));
    }
    fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).unwrap();
    if geteuid().is_root() {
        chown(&config, Some(65_534), None).unwrap();
        trial.run(1);
        assert_eq!(trial.wait_for_end(1), Some(2));
        assert!(trial.log(1).contains("`chown 0 "), "{}", trial.log(1));
        chown(&config, Some(0), None).unwrap();
    }
    trial.run(1);
    trial.follow(1, &[1]);
}

/// A user without processes, even if these tests run twice on this machine.
pub(crate) fn user(number: u32) -> u32 {
    1_000_000 + std::process::id() % 100_000 * 10_000 + number
}

/// What the command of a process begins with that runs as another user; none if this cannot be done here.
pub(crate) fn by_user(id: u32) -> Option<Vec<String>> {
    let id = id.to_string();
    let words = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"].map(str::to_owned);
    let tried = Command::new(&words[0]).args(&words[1..]).args([program(), "help"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skip("not root, or another user cannot run the program here");
        return None;
    }
    Some(words.to_vec())
}

/// Gives entries of a folder to a user.
fn give(folder: &Path, entries: &[&str], user: u32) {
    for entry in entries {
        chown(folder.join(entry), Some(user), Some(user)).expect("root may do that");
    }
}

/// As after an operator has copied the folder of a member that runs as another user.
#[test]
fn a_folder_of_another_user_is_not_used_and_the_error_says_what_to_do() {
    let Some(nobody) = by_user(65_534) else { return };
    let mut trial = single();
    let folder = trial.folder_of(1).to_owned();
    let key = folder.join("key");
    let mut said_by = |user: &[String], start: fn(&mut Trial)| {
        let _ = fs::remove_file(folder.join("log"));
        trial.begin_with(1, user.to_vec());
        start(&mut trial);
        assert_eq!(trial.wait_for_end(1), Some(2), "{}", trial.log(1));
        trial.log(1)
    };
    let rejoin = |trial: &mut Trial| trial.begin_rejoin(1, &[]);

    fs::set_permissions(folder.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let said = said_by(&nobody, rejoin);
    assert!(said.contains("doyen.toml: cannot be read: Permission denied"), "{said}");
    assert!(said.contains("belong to the user that doyen runs as (`chown`)"), "{said}");

    give(&folder, &["", "doyen.toml", "state", "state/state"], 65_534);
    let said = said_by(&nobody, |trial| trial.run(1));
    assert!(said.contains(&format!("cannot read the keys in {}", key.display())), "{said}");
    assert!(said.contains("belong to the user that doyen runs as (`chown`)"), "{said}");

    give(&folder, &["key"], 65_534);
    fs::remove_file(folder.join("state/state")).unwrap();
    let said = said_by(&[], rejoin);
    assert!(said.contains("belongs to the user 65534, and the node runs as that user"), "{said}");
    assert!(said.contains("`sudo -u '#65534' doyen rejoin"), "{said}");
    assert!(!folder.join("state/state").exists(), "root has created no state");
}

#[test]
fn another_user_gives_no_command_though_the_admin_socket_was_opened_to_all() {
    let Some(nobody) = by_user(65_534) else { return };
    let mut trial = single();
    trial.run(1);
    trial.follow(1, &[1]);
    let folder = trial.folder_of(1).to_owned();
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for opened in [folder.parent().unwrap(), &folder, &folder.join("state")] {
        set_mode(opened, 0o755);
    }
    set_mode(&folder.join("state/admin.sock"), 0o666);
    let output = Command::new(&nobody[0])
        .args(&nobody[1..])
        .args([program(), "undrain", "--config"])
        .arg(folder.join("doyen.toml"))
        .output()
        .unwrap();
    let said = complaint(&output);
    let why = "user 65534 may not give commands to this node, which runs as user 0: only that user and root may";
    assert!(!output.status.success() && said.contains(why), "{said}");
    assert_eq!(trial.metric(1, "doyen_admin_calls_total", "wrong-user"), Some(1));
    let line = format!("rejected command `undrain` from admin.sock (uid 65534): {why}");
    assert!(trial.log(1).contains(&line), "{}", trial.log(1));
    let accepted = trial.command(1, &["undrain"]);
    assert!(accepted.status.success(), "{}", complaint(&accepted));
}

#[test]
fn a_new_configuration_is_for_its_owner_to_write_whatever_the_umask() {
    let folder = new_folder();
    let script = format!(
        "umask 0; exec {} init --cluster x --member n1=127.0.0.1:7 --out \"$0\"",
        program()
    );
    let made = Command::new("sh").args(["-c", &script]).arg(folder.join("x")).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let mode = fs::metadata(folder.join("x/n1/doyen.toml")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o644);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_log_filter_that_cannot_be_read_is_an_error() {
    let mut trial = single();
    for (filter, shown) in [("verbose", "verbose"), ("$(printf '\\377')", "\u{fffd}")] {
        trial.begin_with(1, after(&format!("export DOYEN_LOG={filter}")));
        trial.run(1);
        assert_eq!(trial.wait_for_end(1), Some(2), "{}", trial.log(1));
        let error = format!("DOYEN_LOG: `{shown}` is not a level");
        assert!(trial.log(1).contains(&error), "{}", trial.log(1));
    }
}

/// What the only member answers over its admin socket.
fn post(trial: &Trial, path: &str, body: &str) -> String {
    let request = format!(
        "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = UnixStream::connect(trial.folder_of(1).join("state/admin.sock")).unwrap();
    connection.set_read_timeout(Some(LIMIT)).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

/// Whether a line of the log begins as one: a time, a level, a text.
fn is_log_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let has_time = words.next().is_some_and(|time| humantime::parse_rfc3339(time).is_ok());
    let level = words.next().unwrap_or_default();
    has_time && ["ERROR", "WARN", "INFO"].contains(&level) && words.next().is_some()
}

/// A time may have any white space between its parts, and what is no time is repeated in the log.
#[test]
fn a_line_break_in_a_command_begins_no_line_of_the_log() {
    let forged = r#"{"for":"1h\n2026-01-01T00:00:00.000000Z  INFO n1: forged"}"#;
    for format in ["text", "json"] {
        let mut trial = single();
        trial.run_with(1, &["--log-format", format]);
        trial.follow(1, &[1]);
        let accepted = post(&trial, "/v1/pause", r#"{"for":"1h\n30m"}"#);
        assert!(accepted.starts_with("HTTP/1.0 202 "), "{accepted}");
        let rejected = post(&trial, "/v1/pause", forged);
        assert!(rejected.starts_with("HTTP/1.0 400 "), "{rejected}");
        assert_eq!(trial.stop(1), Some(0), "{}", trial.log(1));
        let log = trial.log(1);
        let is_whole = |line: &str| match format {
            "text" => is_log_line(line),
            _ => serde_json::from_str::<Value>(line).is_ok_and(|line| line["message"].is_string()),
        };
        let split: Vec<&str> = log.lines().filter(|line| !is_whole(line)).collect();
        assert_eq!(split, [""; 0], "{log}");
        let with = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert_eq!((with("elections are paused for 1h 30m"), with("forged")), (1, 1), "{log}");
    }
}

#[test]
fn the_journal_gets_priorities_and_no_line_that_a_client_made() {
    let mut trial = single();
    let log = File::create(trial.folder_of(1).join("log")).unwrap().metadata().unwrap();
    let stream = format!("JOURNAL_STREAM={}:{}", log.dev(), log.ino());
    trial.begin_with(1, vec!["env".to_owned(), stream]);
    trial.run(1);
    trial.follow(1, &[1]);
    let answer = post(&trial, "/v1/drain", r#"{"for":"1h\n30m"}"#);
    assert_eq!(trial.stop(1), Some(0), "{}", trial.log(1));
    let log = trial.log(1);
    let has_priority = |line: &str| ["<3>", "<4>", "<6>"].iter().any(|it| line.starts_with(it));
    assert!(log.lines().all(has_priority), "{answer}\n{log}");
    // The journal has a time of its own.
    let has_time = |line: &str| line.get(3..).is_some_and(|rest| rest.starts_with("20"));
    assert!(!log.lines().any(has_time), "{log}");
}

/// How a command ends that is aborted once it is ready. What the kernel would write to a file here, or hand to a program, it
/// reports as dumped.
fn aborted(arguments: &[&str], wait_until_ready: impl FnOnce(&mut Child)) -> (Option<i32>, bool) {
    let folder = new_folder();
    let mut process = Command::new("sh")
        .args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh", program()])
        .args(arguments)
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until_ready(&mut process);
    kill_process(Pid::from_child(&process), Signal::ABORT).unwrap();
    let status = process.wait().unwrap();
    let _ = fs::remove_dir_all(folder);
    (status.signal(), status.core_dumped())
}

#[test]
fn what_has_keys_leaves_no_core_dump() {
    let trial = single();
    let config = trial.folder_of(1).join("doyen.toml");
    let http = trial.url(1).trim_start_matches("http://");
    let node = ["node", "--config", config.to_str().unwrap(), "--http", http];
    let ended = aborted(&node, |_| drop(trial.wait("it runs", || trial.get(1, "/livez"))));
    assert_eq!(ended, (Some(6), false), "node");
    let ended = aborted(&["lab", "--members", "1"], |lab| {
        let mut lines = BufReader::new(lab.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (tell, told) = channel();
        spawn(move || tell.send(lines.any(|line| line.starts_with("open "))));
        assert_eq!(told.recv_timeout(LIMIT), Ok(true), "it runs");
    });
    assert_eq!(ended, (Some(6), false), "lab");
}

/// Whether a process has these bytes anywhere in its memory that it may write; none if this may not be read.
fn has_in_memory(pid: u32, needles: &[&[u8]]) -> Option<bool> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let writable = maps.lines().filter(|line| line.contains(" rw"));
    for range in writable.filter_map(|line| line.split(' ').next()?.split_once('-')) {
        let [begin, end] = [range.0, range.1].map(|it| u64::from_str_radix(it, 16).expect("hex"));
        memory.seek(SeekFrom::Start(begin)).ok()?;
        let mut bytes = vec![0; (end - begin) as usize];
        // Some pages are the kernel's own.
        if memory.read_exact(&mut bytes).is_err() {
            continue;
        }
        let has = |needle: &&[u8]| bytes.windows(needle.len()).any(|window| window == *needle);
        if needles.iter().any(has) {
            return Some(true);
        }
    }
    Some(false)
}

fn key_in(folder: &Path) -> (String, Vec<u8>) {
    let text = fs::read_to_string(folder.join("key")).unwrap();
    let digits = text.lines().find_map(|line| line.strip_prefix("doyen-key-1:")).unwrap();
    let bytes = (0..64).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
    (digits.to_owned(), bytes.collect())
}

/// What it needs of them is derived from them, and they are not.
#[test]
fn the_keys_are_wiped_from_memory() {
    let mut trial = single();
    trial.run(1);
    trial.follow(1, &[1]);
    let (digits, bytes) = key_in(trial.folder_of(1));
    let cluster = b"doyen-loop";
    match has_in_memory(trial.pid(1), &[cluster]) {
        None => return skip("the memory of another process cannot be read here"),
        found => assert_eq!(found, Some(true), "what is there is found"),
    }
    let halves = [&digits.as_bytes()[..24], &digits.as_bytes()[40..], &bytes[..12], &bytes[20..]];
    assert_eq!(has_in_memory(trial.pid(1), &halves), Some(false));
}
