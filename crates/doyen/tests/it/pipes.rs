//! What commands say where: without a word if the reader has gone, as in `doyen sim … | head`; on stderr which files they wrote.

use std::process::{Command, Stdio};

use crate::support::{Plan, Trial, complaint, doyen, new_folder, program};

/// Runs a command with an output that is read by nobody.
fn unread(arguments: &[&str]) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let folder = new_folder();
    let output = Command::new(program())
        .args(arguments)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("doyen can be run");
    assert_eq!((complaint(&output).as_str(), output.status.code()), ("", Some(0)), "{arguments:?}");
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn a_command_whose_reader_has_gone_ends_quietly() {
    for line in [
        "sim --algorithm bully --members 30",
        "sim --algorithm bully --members 5 --json",
        "check --algorithm chang-roberts --members 4 --initiators all --crashes 1",
        "scenarios",
        "scenarios kordafshari/figure-1",
        "algorithms",
        "algorithms quorum",
        "node --example",
        "help",
        "help sim",
        "--version",
        "cluster --members 1",
    ] {
        unread(&line.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn a_command_to_a_node_whose_reader_has_gone_ends_quietly() {
    let trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    for command in ["status", "history", "explain", "watch", "wait"] {
        unread(&[command, "--node", trial.url(1)]);
    }
}

#[test]
fn files_that_are_written_are_named_beside_the_data() {
    let folder = new_folder();
    let [svg, trace] =
        ["run.svg", "run.ndjson"].map(|name| folder.join(name).display().to_string());
    let run = doyen(&[
        "sim",
        "--algorithm",
        "bully",
        "--members",
        "3",
        "--json",
        "--svg",
        &svg,
        "--trace",
        &trace,
    ]);
    assert_eq!(complaint(&run), format!("doyen: written to {svg}, {trace}\n"));
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON alone");
    assert_eq!(json["leader"], 3);
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn a_node_goes_on_without_its_log_and_counts_the_lines_that_are_lost() {
    let mut trial = Trial::found(&Plan { members: 1, ..Plan::default() });
    let words = ["sh", "-c", "exec \"$@\" 2> /dev/full", "sh"];
    trial.begin_with(1, words.map(str::to_owned).to_vec());
    trial.run(1);
    trial.follow(1, &[1]);
    assert!(trial.metric(1, "doyen_log_lines_lost_total", "").is_some_and(|lost| lost > 0));
}
