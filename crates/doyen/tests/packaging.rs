//! What is shipped beside the program agrees with it: the systemd unit.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{Plan, Trial, complaint, doyen, new_folder, program, skip};

const UNIT: &str = "doyen@.service";

fn unit() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(UNIT);
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
    let folder = folder.to_str().expect("a plain path");
    let start = setting(unit, "ExecStart").replace("/var/lib/doyen/%i", folder);
    let words: Vec<String> = start.split_whitespace().map(str::to_owned).collect();
    assert_eq!(words[0], "/usr/local/bin/doyen");
    words[1..].to_vec()
}

/// Codes with which it is not started again.
fn prevented(unit: &str) -> BTreeSet<i32> {
    let codes = setting(unit, "RestartPreventExitStatus").split_whitespace();
    codes.map(|code| code.parse().expect("a number")).collect()
}

#[test]
fn the_units_command_runs_a_member_and_its_stop_is_clean() {
    let (unit, mut trial) = (unit(), Trial::found(&Plan { members: 1, ..Plan::default() }));
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

#[test]
fn what_no_restart_mends_is_not_restarted_and_everything_else_is() {
    let unit = unit();
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

#[test]
fn a_hand_over_is_given_its_time() {
    let example = doyen(&["node", "--example"]);
    let example = String::from_utf8(example.stdout).unwrap();
    let grace = example.lines().find_map(|line| line.strip_prefix("# grace = ")).unwrap();
    let grace = humantime::parse_duration(grace.trim_matches('"')).unwrap();
    let stop: u64 = setting(&unit(), "TimeoutStopSec").parse().unwrap();
    assert!(Duration::from_secs(stop) > grace + Duration::from_secs(3), "{stop} s for {grace:?}");
}

/// The documentation names the same codes as the program's own help and the unit.
#[test]
fn the_documentation_has_the_exit_codes() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/node.md");
    let docs = fs::read_to_string(docs).unwrap();
    for code in ["| 0 |", "| 1 |", "| 2 |", "| 101 |"] {
        assert!(docs.contains(code), "docs/node.md lacks {code}");
    }
    let code = prevented(&unit()).into_iter().next().unwrap();
    let line = docs.lines().find(|line| line.starts_with(&format!("| {code} |"))).unwrap();
    assert!(line.contains("not restarted"), "{line}");
}

#[test]
fn systemd_accepts_the_unit() {
    let folder = new_folder();
    // An instance of it, with a program that is there.
    let path = folder.join("doyen@orders.service");
    fs::write(&path, unit().replace("/usr/local/bin/doyen", program())).unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(&path)
        .stdin(Stdio::null())
        .output();
    let Ok(verified) = verified else {
        return skip("there is no systemd-analyze here: the unit is not verified");
    };
    let said = complaint(&verified);
    let about_it: Vec<&str> = said.lines().filter(|line| line.contains("doyen@")).collect();
    assert!(verified.status.success() && about_it.is_empty(), "{said}");
    let _ = fs::remove_dir_all(folder);
}
