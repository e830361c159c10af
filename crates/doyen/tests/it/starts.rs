//! How a node starts and fails to: what a supervisor should repeat, what a person must mend, and what must not get out.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Plan, Trial, new_folder, program, skip};
use doyen::guardian::lease_file::LeaseFile;
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// A cluster of one, which needs no other member to be ready.
fn single() -> Trial {
    Trial::found(&Plan { members: 1, ..Plan::default() })
}

/// Has the shell do something before it becomes the node.
fn after(script: &str) -> Vec<String> {
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

#[test]
fn no_limit_of_file_descriptors_makes_it_panic() {
    let mut trial = single();
    let mut fewest = None;
    for limit in 8..=64 {
        trial.begin_with(1, after(&format!("ulimit -n {limit}")));
        let _ = fs::remove_file(trial.folder_of(1).join("log"));
        trial.run(1);
        let runs = trial.wait("it runs or says why it does not", || {
            let says = trial.log(1).contains("more file descriptors");
            let runs = !says && trial.get(1, "/livez").is_some();
            (says || runs).then_some(runs)
        });
        let ended = if runs { trial.stop(1) } else { trial.wait_for_end(1) };
        let expected = if runs { 0 } else { 1 };
        assert_eq!(ended, Some(expected), "with {limit}: {}", trial.log(1));
        assert!(!trial.log(1).contains("panicked"), "with {limit}: {}", trial.log(1));
        fewest = fewest.or(runs.then_some(limit));
    }
    println!("it runs from {fewest:?} on");
    assert!(fewest.is_some(), "64 are enough");
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

/// As after an operator has copied the folder of a member that runs as another user.
#[test]
fn a_folder_of_another_user_is_not_used_and_the_error_says_what_to_do() {
    if !geteuid().is_root() {
        return skip("not root: the folder cannot be given to another user");
    }
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let tried = Command::new(nobody[0]).args(&nobody[1..]).args([program(), "help"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return skip("another user cannot run the program here");
    }
    let mut trial = single();
    let folder = trial.folder_of(1).to_owned();
    let key = folder.join("key");
    let mut said_by = |user: &[&str], start: fn(&mut Trial)| {
        let _ = fs::remove_file(folder.join("log"));
        trial.begin_with(1, user.iter().map(|&word| word.to_owned()).collect());
        start(&mut trial);
        assert_eq!(trial.wait_for_end(1), Some(2), "{}", trial.log(1));
        trial.log(1)
    };
    let rejoin = |trial: &mut Trial| trial.begin_rejoin(1, &[]);
    let give = |path: &Path| chown(path, Some(65_534), Some(65_534)).expect("root may do that");

    fs::set_permissions(folder.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let said = said_by(&nobody, rejoin);
    assert!(said.contains("doyen.toml: cannot be read: Permission denied"), "{said}");
    assert!(said.contains("belong to the user that doyen runs as (`chown`)"), "{said}");

    for entry in ["", "doyen.toml", "state", "state/state"] {
        give(&folder.join(entry));
    }
    let said = said_by(&nobody, |trial| trial.run(1));
    assert!(said.contains(&format!("cannot read the keys in {}", key.display())), "{said}");
    assert!(said.contains("belong to the user that doyen runs as (`chown`)"), "{said}");

    give(&key);
    fs::remove_file(folder.join("state/state")).unwrap();
    let said = said_by(&[], rejoin);
    assert!(said.contains("belongs to the user 65534, and the node runs as that user"), "{said}");
    assert!(said.contains("`sudo -u '#65534' doyen rejoin"), "{said}");
    assert!(!folder.join("state/state").exists(), "root has created no state");
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

#[test]
fn the_journal_gets_priorities_and_no_line_that_a_client_made() {
    let mut trial = single();
    let log = File::create(trial.folder_of(1).join("log")).unwrap().metadata().unwrap();
    let stream = format!("JOURNAL_STREAM={}:{}", log.dev(), log.ino());
    trial.begin_with(1, vec!["env".to_owned(), stream]);
    trial.run(1);
    trial.follow(1, &[1]);
    let body = r#"{"for":"1h\n30m"}"#;
    let request = format!(
        "POST /v1/drain HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = UnixStream::connect(trial.folder_of(1).join("state/admin.sock")).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert_eq!(trial.stop(1), Some(0), "{}", trial.log(1));
    let log = trial.log(1);
    let has_priority = |line: &str| ["<3>", "<4>", "<6>"].iter().any(|it| line.starts_with(it));
    assert!(log.lines().all(has_priority), "{answer}\n{log}");
    // The journal has a time of its own.
    let has_time = |line: &str| line.get(3..).is_some_and(|rest| rest.starts_with("20"));
    assert!(!log.lines().any(has_time), "{log}");
}

#[test]
fn it_leaves_no_core_dump() {
    let trial = single();
    // What the kernel would write to a file here, or hand to a program, it reports as dumped.
    let folder = new_folder();
    let mut node = Command::new("sh")
        .args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh", program(), "node", "--config"])
        .arg(trial.folder_of(1).join("doyen.toml"))
        .args(["--http", trial.url(1).trim_start_matches("http://")])
        .current_dir(&folder)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    trial.wait("it runs", || trial.get(1, "/livez"));
    kill_process(Pid::from_child(&node), Signal::ABORT).unwrap();
    let status = node.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
    let _ = fs::remove_dir_all(folder);
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
