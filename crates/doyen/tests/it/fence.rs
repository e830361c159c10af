//! `doyen fence` with real processes: an older holder never acts after a newer one, whoever is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{LIMIT, complaint, new_folder, program};

struct Resource {
    folder: PathBuf,
}

impl Resource {
    fn new() -> Self {
        Self { folder: new_folder() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn fence(&self, token: u64, script: &str) -> Command {
        let mut command = Command::new(program());
        command.arg("fence").arg(self.path("fence")).args(["--token", &token.to_string()]);
        command.args(["--", "sh", "-c", script]).current_dir(&self.folder);
        command.env_remove("DOYEN_TOKEN").stdin(Stdio::null());
        command
    }

    fn run(&self, token: u64, script: &str) -> Output {
        let mut child =
            self.fence(token, script).stderr(Stdio::piped()).spawn().expect("it starts");
        let begun = Instant::now();
        while is_running(&mut child) {
            if begun.elapsed() > LIMIT {
                let _ = child.kill();
                panic!("token {token} still waits for the lock");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        child.wait_with_output().expect("it has ended")
    }

    /// What the commands have written down.
    fn written(&self) -> Vec<u64> {
        let text = fs::read_to_string(self.path("register")).unwrap_or_default();
        text.lines().map(|line| line.parse().expect("a token")).collect()
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < LIMIT, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().expect("it can be waited for").is_none()
}

#[test]
fn the_exit_code_is_the_commands_and_an_old_token_is_refused_with_both_tokens() {
    let resource = Resource::new();
    assert_eq!(resource.run(9, "exit 42").status.code(), Some(42));
    assert_eq!(resource.run(9, "exit 0").status.code(), Some(0), "an equal token");
    let refused = resource.run(8, "touch acted");
    assert_eq!(refused.status.code(), Some(1));
    let why = complaint(&refused);
    assert!(why.contains("fencing token 8 is older than 9"), "{why}");
    assert!(!resource.path("acted").exists(), "a refused command does not run");
    let mut command = resource.fence(0, "");
    let by_environment = Command::new(command.get_program())
        .args(["fence", "fence", "--", "sh", "-c", "echo $DOYEN_TOKEN > seen"])
        .current_dir(&resource.folder)
        .env("DOYEN_TOKEN", "11")
        .status();
    assert!(by_environment.expect("it runs").success());
    assert_eq!(fs::read_to_string(resource.path("seen")).unwrap(), "11\n");
    assert_eq!(command.status().expect("it runs").code(), Some(1), "0 is older than 11");
    // Nothing is remembered of a command that cannot run.
    let mut missing = Command::new(program());
    missing.args(["fence", "fence", "--token", "99", "--", "no-such-program"]);
    assert_eq!(missing.current_dir(&resource.folder).output().unwrap().status.code(), Some(127));
    assert_eq!(fs::read_to_string(resource.path("fence")).unwrap(), "doyen-fence 1 11\n");
}

#[test]
fn a_damaged_file_stops_everything_and_is_left_as_it_is() {
    let resource = Resource::new();
    fs::write(resource.path("fence"), "doyen-fence 1 73\0\0").unwrap();
    let output = resource.run(u64::MAX, "touch acted");
    assert_eq!(output.status.code(), Some(125));
    let why = complaint(&output);
    assert!(
        why.contains("/fence does not hold a fencing token") && why.contains("write `"),
        "{why}"
    );
    assert!(!resource.path("acted").exists());
    assert_eq!(fs::read_to_string(resource.path("fence")).unwrap(), "doyen-fence 1 73\0\0");
}

#[test]
fn of_many_at_once_no_older_one_writes_after_a_newer_one() {
    let resource = Resource::new();
    // Each writes twice, with a pause: together if the lock did not hold.
    let script =
        |token: u64| format!("echo {token} >> register; sleep 0.01; echo {token} >> register");
    let children: Vec<(u64, Child)> = (0..24)
        .map(|number| {
            let token = 1 + number * 7 % 24;
            let mut command = resource.fence(token, &script(token));
            (token, command.stderr(Stdio::null()).spawn().expect("it starts"))
        })
        .collect();
    let mut acted = Vec::new();
    for (token, mut child) in children {
        match child.wait().expect("it ends").code() {
            Some(0) => acted.extend([token, token]),
            code => assert_eq!(code, Some(1), "token {token}"),
        }
    }
    acted.sort_unstable();
    assert_eq!(resource.written(), acted, "in the order of the tokens, each pair together");
    assert_eq!(acted.last(), Some(&24), "the newest is never refused");
}

#[test]
fn a_newer_holder_waits_for_what_a_killed_one_left_behind() {
    let resource = Resource::new();
    let mut old =
        resource.fence(1, "sleep 1000 & echo $! > child; wait").spawn().expect("it starts");
    wait_for(&resource.path("child"));
    let mut new = resource.fence(2, "echo 2 >> register").spawn().expect("it starts");
    // Doyen became the command: only its child is left, and may still act.
    old.kill().expect("it runs");
    old.wait().expect("it ends");
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_running(&mut new), "the child of the older holder is alive");
    let child: i32 = fs::read_to_string(resource.path("child")).unwrap().trim().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).expect("a process");
    rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("it runs");
    assert!(new.wait().expect("it ends").success());
    assert_eq!(resource.written(), [2]);
    assert_eq!(resource.run(1, "echo 1 >> register").status.code(), Some(1));
    assert_eq!(resource.written(), [2]);
}

#[test]
fn a_kill_at_any_moment_forgets_no_token_that_was_acted_on() {
    let resource = Resource::new();
    for token in 1..=40_u64 {
        let script = format!("echo {token} >> register; exec sleep 1000");
        let mut child = resource.fence(token, &script).spawn().expect("it starts");
        // Later in every round, from before the start to after the write; in every fourth one surely after it.
        std::thread::sleep(Duration::from_micros(token * 500));
        let begun = Instant::now();
        while token % 4 == 0 && resource.written().last() != Some(&token) {
            assert!(begun.elapsed() < LIMIT, "token {token} is not written");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let acted = resource.written().last().copied().unwrap_or_default();
        if acted > 0 {
            let refused = resource.run(acted - 1, "touch acted");
            assert_eq!(
                refused.status.code(),
                Some(1),
                "{acted} was acted on: {}",
                complaint(&refused)
            );
        }
    }
    assert!(!resource.path("acted").exists());
    assert!(resource.run(41, "echo 41 >> register").status.success(), "it still works");
    let written = resource.written();
    assert!(written.is_sorted() && written.last() == Some(&41), "{written:?}");
}
