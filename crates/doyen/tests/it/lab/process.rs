//! The lab and its nodes begin and end together.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::harness::{Lab, runs, wait_until_gone};
use crate::support::free_port;
use crate::support::program;

#[test]
fn ctrl_c_leaves_no_process_and_no_folder() {
    let mut lab = Lab::start(&["--members", "3"]);
    lab.leader();
    let (pids, folder) = (lab.pids(), lab.folder.clone());
    assert!(pids.len() == 3 && pids.iter().all(|&pid| runs(pid)), "{pids:?}");
    assert!(folder.join("n1/doyen.toml").exists());
    lab.fault(&json!({ "pause": "n1" }));
    assert_eq!(lab.end(Signal::INT), Some(0));
    wait_until_gone(&pids);
    assert!(!folder.exists(), "{}", folder.display());
    assert!(lab.seen().said_bye, "the page was told");
}

/// A node that is paused cannot notice anything by itself.
#[test]
fn a_lab_that_is_killed_takes_its_nodes_along_even_those_that_are_paused() {
    let mut lab = Lab::start(&["--members", "3"]);
    lab.leader();
    let pids = lab.pids();
    lab.fault(&json!({ "pause": "n2" }));
    assert_eq!(lab.end(Signal::KILL), None);
    wait_until_gone(&pids);
}

#[test]
fn what_happens_to_a_process_in_a_terminal_is_noticed() {
    let lab = Lab::start(&["--members", "3"]);
    lab.leader();
    let signal = |name: &str, signal: Signal| {
        let pid = Pid::from_raw(lab.pid(name)).expect("a pid");
        kill_process(pid, signal).expect("it runs");
    };
    signal("n1", Signal::STOP);
    lab.wait_for("n1", "is paused", |it| it["state"] == "paused");
    signal("n1", Signal::CONT);
    lab.wait_for("n1", "is up", |it| it["state"] == "up");
    signal("n1", Signal::TERM);
    lab.wait_for("n1", "is down", |it| it["state"] == "down" && it["pid"].is_null());
    lab.fault(&json!({ "restart": "n1" }));
    lab.wait_for("n1", "is up again", |it| it["state"] == "up" && it["incarnation"] == 2);
    lab.fault(&json!({ "restart": "n1" }));
    lab.wait_for("n1", "is up once more", |it| it["state"] == "up" && it["incarnation"] == 3);
    let kinds = ["started", "paused", "continued", "ended", "started", "ended", "started"];
    lab.wait("all marks", |seen| {
        let marks = seen.timeline["marks"].as_array()?;
        let own = marks.iter().filter(|mark| mark["member"] == "n1");
        own.map(|mark| mark["kind"].as_str()).eq(kinds.map(Some)).then_some(())
    });
}

#[test]
fn a_node_that_cannot_start_shows_the_last_line_of_its_log() {
    let lab = Lab::start(&["--members", "3"]);
    lab.leader();
    lab.fault(&json!({ "kill": "n1" }));
    lab.wait_for("n1", "is down", |it| it["state"] == "down");
    let file = lab.folder.join("n1/doyen.toml");
    let text = std::fs::read_to_string(&file).expect("a configuration");
    std::fs::write(&file, text.replace("id = 1\n", "id = 77\n")).expect("it can be written");
    lab.fault(&json!({ "restart": "n1" }));
    lab.wait_for("n1", "has failed", |it| {
        it["state"] == "failed" && it["log_tail"].as_str().is_some_and(|tail| tail.contains("77"))
    });
}

#[test]
fn a_port_that_is_taken_is_an_error_if_it_was_asked_for() {
    let port = free_port("127.0.0.1");
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).expect("it is free");
    let output = Command::new(program())
        .args(["lab", "--members", "1", "--port", &port.to_string()])
        .output()
        .expect("doyen can be run");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains(&format!("cannot serve the page at port {port}")), "{error}");
}
