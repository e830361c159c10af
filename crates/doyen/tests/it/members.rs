//! The members of a cluster change, step by step as docs/operations.md has it.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::support::{Plan, Trial, complaint, free_port, new_folder, program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// An operator on machines that are one.
struct Operator {
    folder: PathBuf,
    running: Vec<(String, Child)>,
}

impl Operator {
    fn doyen(&self, line: &str) -> Output {
        let words = line.split_whitespace();
        Command::new(program()).args(words).current_dir(&self.folder).output().expect("doyen")
    }

    /// What a command that succeeds says.
    fn succeeds(&self, line: &str) -> String {
        let output = self.doyen(line);
        assert!(output.status.success(), "doyen {line}: {}", complaint(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn init(&self, out: &str, floor: u64, members: &[(&str, u16)]) {
        let floor = if floor == 0 { String::new() } else { format!("--term-floor {floor}") };
        let members =
            members.iter().map(|(name, port)| format!("--member {name}=127.0.0.1:{port}"));
        let members = members.collect::<Vec<_>>().join(" ");
        let said = self.succeeds(&format!("init --cluster orders --out {out} {floor} {members}"));
        assert!(!said.contains("rejoin"), "all of them would wait for each other: {said}");
    }

    fn start(&mut self, member: &str) {
        let child = Command::new(program())
            .args(["node", "--while-stdin-is-open", "--config"])
            .arg(format!("{member}/doyen.toml"))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        self.running.push((member.to_owned(), child.expect("a node can be started")));
    }

    /// Starts the members of a new cluster, and waits until all of them follow one leader.
    fn start_all(&mut self, out: &str, members: &[(&str, u16)]) {
        for (name, _) in members {
            self.start(&format!("{out}/{name}"));
        }
        for (name, _) in members {
            self.succeeds(&format!("wait --ready --timeout 60s --config {out}/{name}/doyen.toml"));
        }
    }

    fn stop(&mut self, is_meant: impl Fn(&str) -> bool) {
        for (_, child) in self.running.extract_if(.., |(member, _)| is_meant(member)) {
            let mut child = child;
            kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
            child.wait().expect("it ends");
        }
    }

    fn status(&self, member: &str) -> Value {
        let text = self.succeeds(&format!("status --json --config {member}/doyen.toml"));
        serde_json::from_str(&text).expect("JSON")
    }

    /// Replaces a cluster by one with other members. Its terms continue.
    fn replace(&mut self, old: &str, new: &str, members: &[(&str, u16)]) {
        let term = self.status(&format!("{old}/n1"))["term"].as_u64().expect("a term");
        self.stop(|_| true);
        self.init(new, term + 1000, members);
        self.start_all(new, members);
        let status = self.status(&format!("{new}/n1"));
        assert!(status["term"].as_u64() > Some(term + 1000), "{status}");
        let list = status["members"].as_array().expect("members");
        assert_eq!(list.len(), members.len());
        assert!(list.iter().all(|member| member["reachable"] == true), "{status}");
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            // One that has ended already cannot be killed, and need not be.
            let _ = child.kill();
            let _ = child.wait();
        }
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

#[test]
fn members_are_added_and_removed_and_a_machine_is_replaced_as_documented() {
    let [p1, p2, p3, p4] = [(); 4].map(|()| free_port("127.0.0.1"));
    let three = [("n1", p1), ("n2", p2), ("n3", p3)];
    let mut operator = Operator { folder: new_folder(), running: Vec::new() };
    operator.init("orders", 0, &three);
    operator.start_all("orders", &three);
    operator.replace("orders", "orders-2", &[("n1", p1), ("n2", p2), ("n3", p3), ("n4", p4)]);
    operator.replace("orders-2", "orders-3", &[("n1", p1), ("n3", p3), ("n4", p4)]);

    // The machine of n4, whose id is 3 now, is lost with all that was on it.
    operator.stop(|member| member == "orders-3/n4");
    let [lost, other] = ["n4", "n1"].map(|name| operator.folder.join("orders-3").join(name));
    fs::remove_dir_all(&lost).expect("it was there");
    fs::DirBuilder::new().mode(0o700).create(&lost).expect("a new machine");
    fs::copy(other.join("key"), lost.join("key")).expect("the key");
    let config = fs::read_to_string(other.join("doyen.toml")).expect("a configuration");
    let config = config.replacen("\nid = 1\n", "\nid = 3\n", 1);
    let config = ["listen", "http"].iter().fold(config, |config, key| {
        let of = |port: u16| format!("{key} = \"127.0.0.1:{port}\"");
        config.replacen(&of(p1), &of(p4), 1)
    });
    fs::write(lost.join("doyen.toml"), config).expect("it can be written");
    let said = operator.succeeds("rejoin --config orders-3/n4/doyen.toml");
    assert!(said.starts_with("n4 has rejoined orders: stored by n1, n3; "), "{said}");
    assert!(said.ends_with("doyen node --config orders-3/n4/doyen.toml\n"), "{said}");
    operator.start("orders-3/n4");
    operator.succeeds("wait --ready --timeout 60s --config orders-3/n4/doyen.toml");
}

/// Of the list of five, n1, n4 and n5 would be a majority, and of that of three n2 and n3 are: two leaders at once.
#[test]
fn a_member_that_has_run_does_not_start_with_another_list() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let file = trial.folder_of(1).join("doyen.toml");
    let before = fs::read_to_string(&file).expect("a configuration");
    let [n4, n5] = [4, 5].map(|id| {
        let address = format!("127.0.0.1:{}", free_port("127.0.0.1"));
        format!("\n[[member]]\nid = {id}\nname = \"n{id}\"\naddress = \"{address}\"\n")
    });
    fs::write(&file, format!("{before}{n4}{n5}")).expect("it is written");
    let reloaded = trial.command(1, &["reload"]);
    assert_eq!(reloaded.status.code(), Some(1), "{reloaded:?}");
    let told = complaint(&reloaded);
    assert!(
        told.contains("the list of members is fixed") && told.contains("nothing has changed"),
        "{told}"
    );

    trial.stop(1);
    for command in [&["node", "--check"][..], &["node"], &["rejoin"]] {
        let refused = trial.command(1, command);
        assert_eq!(refused.status.code(), Some(2), "{command:?}: {refused:?}");
        let told = complaint(&refused);
        let lists =
            "of the members 1, 2, 3, and the configuration lists 1, 2, 3, 4, 5; set the list back";
        assert!(told.contains(lists), "{command:?}: {told}");
    }
    fs::write(&file, before).expect("it is written");
    trial.run(1);
    trial.follow(3, &[1, 2, 3]);
}
