//! What happens in the cluster, and what the lab measures of it.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::harness::{Lab, Seen, text};

/// The failover from `leader`, the latest one.
fn failover(seen: &Seen, leader: &str) -> Option<Value> {
    let failovers = seen.timeline["failovers"].as_array()?;
    let explained = |it: &&Value| it["from"] == leader && it["why"] != "";
    failovers.iter().rev().find(explained).cloned()
}

#[test]
fn a_leader_that_is_killed_is_followed_by_the_next_and_the_downtime_is_measured() {
    let lab = Lab::start(&[]);
    let leader = lab.leader();
    let cluster = lab.seen().cluster;
    assert_eq!(cluster["algorithm"], "quorum");
    assert_eq!((&cluster["needed"], &cluster["heartbeat_us"]), (&json!(3), &json!(50_000)));
    let first = text(&cluster["sentence"]["first"]);
    assert!(first.starts_with(&format!("{leader} leads")), "{first}");
    let pid = Pid::from_raw(lab.pid(&leader)).expect("a pid");
    let begun = Instant::now();
    kill_process(pid, Signal::KILL).expect("it runs");
    let failover = lab.wait("the next leader", |seen| failover(seen, &leader));
    let seen_us = begun.elapsed().as_micros() as u64;
    let downtime = failover["downtime_us"].as_u64().expect("a time");
    // The vote leases of the others outlast the last heartbeat by 280 ms, and that was at most 50 ms ago or lost.
    assert!((100_000..=seen_us + 100_000).contains(&downtime), "{downtime} of {seen_us} µs");
    assert_eq!(failover["overlap_us"], 0);
    let parts = failover["parts"].as_array().expect("parts");
    let sum: u64 = parts.iter().map(|part| part["us"].as_u64().expect("a time")).sum();
    assert_eq!(sum, downtime, "{failover}");
    assert_eq!(parts[0]["kind"], "detect", "{failover}");
    assert!(text(&failover["advice"]).contains('%'), "{failover}");
    let next = lab.leader();
    assert_ne!(next, leader);
    let seen = lab.seen();
    assert_eq!(seen.timeline["overlap"], json!([]));
    let mark = json!({ "member": leader, "kind": "killed" });
    let marks = seen.timeline["marks"].as_array().expect("marks");
    let is_it = |it: &&Value| it["member"] == mark["member"] && it["kind"] == mark["kind"];
    assert_eq!(marks.iter().filter(is_it).count(), 1, "{marks:?}");
    let dead = lab.member(&leader);
    assert_eq!((&dead["state"], &dead["role"]), (&json!("down"), &json!("unknown")));
    let says = |part: &str| {
        let lines = lab.seen().lines;
        lines.iter().any(|line| line["text"].as_str().is_some_and(|text| text.contains(part)))
    };
    assert!(says("signal 9") && says("lost contact with leader"), "{:?}", lab.seen().lines);
    let numbers: Vec<u64> = lab.seen().lines.iter().filter_map(|it| it["n"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "no line is missing or twice");
}

#[test]
fn a_leader_that_is_cut_off_steps_down_and_never_overlaps_with_the_next() {
    let lab = Lab::start(&[]);
    let leader = lab.leader();
    let said = lab.fault(&json!({ "partition": [[leader]] }));
    assert!(said.starts_with(&format!("partition: {{{leader}}} and {{")), "{said}");
    lab.wait("the partition", |seen| {
        let cuts = seen.cluster["cuts"].as_array()?;
        (cuts.len() == 8 && !seen.cluster["partition"].is_null()).then_some(())
    });
    let failover = lab.wait("the next leader", |seen| failover(seen, &leader));
    assert_eq!(failover["overlap_us"], 0, "{failover}");
    lab.wait_for(&leader, "steps down", |it| it["role"] != "leader" && it["lease"].is_null());
    lab.wait_for(&leader, "reaches no other", |it| {
        let reach = it["reach"].as_object().expect("others");
        reach.len() == 4 && reach.values().all(|reaches| *reaches == false)
    });
    assert_eq!(lab.seen().timeline["overlap"], json!([]));
    lab.fault(&json!({ "heal": true }));
    let next = lab.leader();
    lab.wait_for(&leader, "follows again", |it| it["leader"] == json!(next));
    assert!(lab.seen().cluster["partition"].is_null());

    lab.fault(&json!({ "cut": ["n1", "n2"], "both": false }));
    lab.wait("one cut", |seen| (seen.cluster["cuts"] == json!([["n1", "n2"]])).then_some(()));
    lab.fault(&json!({ "mend": ["n1", "n2"], "both": false }));
    lab.wait("no cut", |seen| (seen.cluster["cuts"] == json!([])).then_some(()));
    assert_eq!(lab.seen().timeline["overlap"], json!([]));
}

#[test]
fn a_leader_that_is_paused_loses_its_lease_and_follows_when_it_continues() {
    let lab = Lab::start(&["--members", "3"]);
    let leader = lab.leader();
    let said = lab.fault(&json!({ "pause": leader }));
    assert!(said.contains("paused (pid ") && said.contains("signal 19"), "{said}");
    lab.wait("the next leader", |seen| failover(seen, &leader));
    lab.wait_for(&leader, "is unknown", |it| it["state"] == "paused" && it["role"] == "unknown");
    lab.fault(&json!({ "continue": leader }));
    lab.wait_for(&leader, "follows", |it| it["state"] == "up" && it["role"] == "follower");
    assert_eq!(lab.seen().timeline["overlap"], json!([]));
    let twice = lab.post("/lab/fault", &json!({ "continue": leader }));
    assert_eq!(twice.status, 409, "{twice:?}");
}

#[test]
fn operators_transfer_drain_and_set_priorities() {
    let lab = Lab::start(&["--members", "3"]);
    let leader = lab.leader();
    let other = if leader == "n1" { "n2" } else { "n1" };
    let said = lab.admin(&json!({ "transfer": other }));
    assert!(said.contains(&format!("transfers leadership to {other}")), "{said}");
    let failover = lab.wait("a transfer", |seen| failover(seen, &leader));
    assert!(text(&failover["why"]).contains("transferred leadership"), "{failover}");
    lab.admin(&json!({ "drain": other }));
    lab.wait_for(other, "is drained", |it| it["drained"] == true && it["role"] == "follower");
    lab.admin(&json!({ "undrain": other }));
    lab.wait_for(other, "is no longer drained", |it| it["drained"] == false);
    lab.admin(&json!({ "priority": [other, 9] }));
    lab.wait_for(other, "has priority 9", |it| it["priority"] == 9);
    lab.wait_for(other, "takes over", |it| it["role"] == "leader");
    let unknown = lab.post("/lab/admin", &json!({ "drain": "n7" }));
    assert_eq!(unknown.status, 422, "{unknown:?}");
    let wrong = lab.post("/lab/admin", &json!({ "transfer": other }));
    assert_eq!(wrong.status, 409, "it is the leader already: {wrong:?}");
}

#[test]
fn an_algorithm_without_leases_has_two_leaders_in_a_partition() {
    let lab = Lab::start(&["--members", "4", "--algorithm", "bully"]);
    let leads = |seen: &Seen, name: &str| {
        let members = seen.cluster["members"].as_array()?;
        let own = members.iter().find(|it| it["name"] == name)?;
        (own["role"] == "leader" && members.iter().all(|it| it["leader"] == name)).then_some(())
    };
    lab.wait("n4 leads", |seen| leads(seen, "n4"));
    lab.fault(&json!({ "partition": [["n1", "n2"], ["n3", "n4"]] }));
    lab.wait("two leaders", |seen| {
        let first = seen.cluster["sentence"]["first"].as_str()?;
        let overlap = seen.timeline["overlap"].as_array()?.last()?;
        let both = overlap["members"] == json!(["n2", "n4"]) && overlap["to_us"].is_null();
        (both && first.contains("n2 and n4 both claim to lead")).then_some(())
    });
    lab.fault(&json!({ "heal": true }));
    lab.wait("n4 leads all again", |seen| leads(seen, "n4"));
    lab.wait("the end of the overlap", |seen| {
        let overlap = seen.timeline["overlap"].as_array()?.last()?;
        overlap["to_us"].as_u64()
    });
    let refused = lab.post("/lab/admin", &json!({ "priority": ["n1", 9] }));
    assert_eq!(refused.status, 409, "{refused:?}");
}
