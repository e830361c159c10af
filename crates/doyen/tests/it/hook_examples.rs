//! The example hooks: a virtual address that moves with leadership, a webhook, a systemd unit.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use crate::support;
use crate::support::rounds::{SetOnDrop, Tally, rounds};
use crate::support::wires::Wires;
use crate::support::{LIMIT, Plan, Trial, skip};
use serde_json::Value;

const ADDRESS: &str = "10.77.0.100/24";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hooks").join(name)
}

/// Adds hooks to the configuration of a member.
fn configure(trial: &Trial, member: usize, hooks: &[(&str, Vec<&str>)]) {
    let path = trial.folder_of(member).join("doyen.toml");
    let text = fs::read_to_string(&path).unwrap();
    let lines: String = hooks.iter().map(|(key, words)| format!("{key} = {words:?}\n")).collect();
    let (before, after) = text.split_at(text.find("[[member]]").expect("a table of members"));
    fs::write(&path, format!("{before}[hooks]\n{lines}\n{after}")).unwrap();
}

/// The members that have the address.
fn holders(wires: &Wires) -> Vec<usize> {
    let has = |member: &usize| {
        let (.., prefix) = wires.place(*member);
        let shown = Command::new(&prefix[0])
            .args(&prefix[1..])
            .args(["ip", "-o", "address", "show", "dev", "eth"])
            .output()
            .expect("ip");
        String::from_utf8_lossy(&shown.stdout).contains(&format!(" {ADDRESS} "))
    };
    (1..=3).filter(has).collect()
}

/// Whether two have the address: it may have moved while one after the other was asked.
fn is_at_two(wires: &Wires) -> bool {
    holders(wires).len() > 1 && {
        let again = holders(wires);
        again.len() > 1
    }
}

#[test]
fn a_virtual_address_moves_with_leadership_and_is_never_at_two_members() {
    let Some(wires) = Wires::lay(3) else { return };
    let mut trial = wires.found(&Plan { patient: true, preemption: "never", ..Plan::default() });
    let script = example("address");
    let words = vec![script.to_str().unwrap(), ADDRESS, "eth"];
    let run = |trial: &mut Trial, member: usize| {
        let lease_file = trial.folder.join(format!("lease-{member}"));
        trial.run_with(member, &["--lease-file", lease_file.to_str().unwrap()]);
    };
    for member in trial.everybody() {
        configure(&trial, member, &[("leader", words.clone()), ("not_leader", words.clone())]);
        run(&mut trial, member);
    }
    let (done, twice, looks) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let mut tally = Tally::new("the node of a leader with a virtual address is killed");
    thread::scope(|scope| {
        let _over = SetOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                twice.fetch_add(u32::from(is_at_two(&wires)), Ordering::Relaxed);
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut leader = trial.agree(&[1, 2, 3]);
        for _ in 0..rounds() {
            trial.wait("the leader to have the address", || {
                (holders(&wires) == [leader]).then_some(())
            });
            let killed = leader;
            tally.round(|| {
                trial.kill(killed);
                leader = trial.wait("another member to have the address", || {
                    holders(&wires).into_iter().find(|&holder| holder != killed)
                });
            });
            run(&mut trial, killed);
            trial.follow(leader, &[1, 2, 3]);
        }
    });
    assert_eq!(twice.into_inner(), 0, "in {} looks", looks.into_inner());
}

/// The next request: its body. It is answered with this status. `listener` does not block.
fn receive(trial: &Trial, listener: &TcpListener, status: u16) -> Value {
    let (mut stream, _) = trial.wait("a request", || listener.accept().ok());
    stream.set_read_timeout(Some(LIMIT)).expect("a time-out");
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) && !line.trim().is_empty() {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    serde_json::from_slice(&body).expect("JSON")
}

#[test]
fn a_webhook_is_told_of_the_leader_and_again_if_it_fails() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip("the webhook: curl is not installed (`make tools`)");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).expect("a listener that does not block");
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // Patient, so that the hook sees the time without a leader after a start.
    let mut trial = Trial::found(&Plan { members: 1, patient: true, ..Plan::default() });
    let script = example("webhook");
    configure(&trial, 1, &[("change", vec![script.to_str().unwrap(), &url])]);
    trial.run(1);
    // It is told of every state, at first that there is no leader; what it fails to tell it tells again.
    let mut told = Value::Null;
    for number in 0..10 {
        told = receive(&trial, &listener, if number == 0 { 500 } else { 200 });
        if told["role"] == "leader" {
            break;
        }
    }
    assert_eq!((&told["member"], &told["leader"]), (&"n1".into(), &"n1".into()), "{told}");
    let reason = |told: &Value| told["reason"].as_str().expect("a reason").to_owned();
    assert!(told["term"].as_u64() >= Some(1), "{told}");
    assert!(reason(&told).starts_with("became leader"), "{told}");

    // What the history says of the process before is no reason for the state of this one.
    trial.kill(1);
    trial.run(1);
    let told = (0..5).map(|_| receive(&trial, &listener, 200)).find(|told| told["leader"] == "");
    let told = told.expect("the hook is told of the start");
    assert!(reason(&told).starts_with("no leader is known (term "), "{told}");
}

/// There is no systemd here to be asked: the script finds a `systemctl` that writes down what it is told.
#[test]
fn a_unit_is_started_and_stopped_with_leadership() {
    let folder = support::new_folder();
    let (systemctl, log) = (folder.join("systemctl"), folder.join("log"));
    fs::write(&systemctl, format!("#!/bin/sh\necho \"$@\" >> {}\n", log.display())).unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let told = |role: &str, reason: &str| {
        let _ = fs::remove_file(&log);
        let status = Command::new(example("unit"))
            .arg("orders.service")
            .env("PATH", &path)
            .env("DOYEN_ROLE", role)
            .env("DOYEN_REASON", reason)
            .status();
        assert!(status.expect("the script runs").success());
        fs::read_to_string(&log).unwrap()
    };
    assert_eq!(told("leader", "elected"), "start orders.service\n");
    assert_eq!(told("follower", "stopped"), "stop orders.service\n");
    let lapsed = "kill --signal=SIGKILL orders.service\nstop orders.service\n";
    assert_eq!(told("follower", "lease-lapsed"), lapsed);
    let _ = fs::remove_dir_all(folder);
}
