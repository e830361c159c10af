//! Real processes on loopback: what operators do to a cluster, and the result.

use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::{Plan, Trial, complaint, doyen, free_address, skip};
use doyen::node::status::{Entry, MemberStatus};
use doyen::node::store::{Owner, Store};
use doyen_core::change::LeaderChange;
use doyen_core::members::{Incarnation, NodeId};
use doyen_core::protocol::Role;
use doyen_core::registry::Algorithm;
use doyen_core::session::{Kept, Roster};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn the_highest_leads_and_when_it_is_killed_the_next_one_does() {
    let mut trial = Trial::start(&Plan { members: 5, patient: true, ..Plan::default() });
    trial.follow(5, &[1, 2, 3, 4, 5]);
    let term = trial.wait_for_status(5).term;
    trial.kill(5);
    trial.follow(4, &[1, 2, 3, 4]);
    assert!(trial.wait_for_status(4).term > term, "a later leader has a higher term");
    trial.run(5);
    // It comes back and follows: it failed as leader a moment ago, and its penalty has not decayed.
    trial.follow(4, &[5]);
    // On a busy machine another one may have been elected first, and n4 have taken over from it.
    trial.wait("n1 says why there is another leader", || {
        let mut history = trial.history(1).into_iter();
        history.find(|entry| entry.text.contains("elected after n5 became unreachable"))
    });
}

/// Three members, then five: the highest leads, and when it is killed the next one does.
fn elects_on_the_network(algorithm: &'static str) {
    for members in [3, 5] {
        let mut trial = Trial::start(&Plan { algorithm, members, ..Plan::default() });
        trial.follow(members, &trial.everybody());
        trial.kill(members);
        trial.follow(members - 1, &trial.everybody()[..members - 1]);
        trial.wait_for_log(1, "only quorum tolerates partitions");
        let reason = format!("elected after n{members} lost leadership");
        trial.wait(&format!("n1 says `{reason}`"), || {
            trial.history(1).into_iter().find(|entry| entry.text.contains(&reason))
        });
    }
}

#[test]
fn bully_elects_on_the_network() {
    elects_on_the_network("bully");
}

#[test]
fn modified_bully_elects_on_the_network() {
    elects_on_the_network("modified-bully");
}

#[test]
fn ring_list_elects_on_the_network() {
    elects_on_the_network("ring-list");
}

#[test]
fn ring_resilient_elects_on_the_network() {
    elects_on_the_network("ring-resilient");
}

#[test]
fn ring_active_list_elects_on_the_network() {
    elects_on_the_network("ring-active-list");
}

#[test]
fn ring_all_ids_elects_on_the_network() {
    elects_on_the_network("ring-all-ids");
}

#[test]
fn chang_roberts_elects_on_the_network() {
    elects_on_the_network("chang-roberts");
}

#[test]
fn a_clean_stop_transfers_leadership_at_once() {
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    assert_eq!(trial.stop(3), Some(0));
    trial.follow(2, &[1, 2]);
    let entry = trial.wait("a transfer and its downtime in the history of n2", || {
        let is_it = |entry: &Entry| {
            entry.text.contains("n3 transferred leadership (shutting down)")
                && entry.downtime_us.is_some()
        };
        trial.history(2).into_iter().find(is_it)
    });
    // Three round trips and two state writes take far less than this even on a busy machine, and a vote lease that runs out
    // takes 1.5 s.
    assert!(entry.downtime_us.unwrap() < 1_000_000, "{entry:?}");
}

#[test]
fn a_minority_does_not_elect() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(3);
    trial.follow(2, &[1, 2]);
    trial.kill(2);
    let term = trial.wait("n1 knows no leader", || {
        trial.status(1).filter(|status| status.leader.is_none()).map(|status| status.term)
    });
    // It campaigns several times without success.
    trial.wait_for_rise(1, "doyen_elections_total", "", 3);
    let status = trial.wait_for_status(1);
    assert_eq!((status.leader, status.term), (None, term));
    let restarted_at = unix_ms();
    trial.run(3);
    trial.agree(&[1, 3]);
    let history = trial.history(1);
    let lost = |entry: &&Entry| matches!(entry.change, LeaderChange::LostContact { term: of, .. } if of == term);
    let lost = history.iter().rfind(lost).expect("n1 lost contact with n2");
    let elected = history.iter().find(|entry| {
        entry.number > lost.number
            && matches!(
                entry.change,
                LeaderChange::BecameLeader { .. } | LeaderChange::Follows { .. }
            )
    });
    let elected = elected.expect("a new leader");
    assert!(elected.at_unix_ms >= restarted_at, "no leader before a majority was up: {history:?}");
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

#[test]
fn a_paused_leader_has_no_lease_when_it_wakes() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.signal(3, Signal::STOP);
    trial.follow(2, &[1, 2]);
    trial.signal(3, Signal::CONT);
    // The very first response must be negative: the lease is compared with the clock at the request.
    let (status, body) = trial.response(3, "/leader").expect("a response");
    assert_eq!(status, 503, "a leader that was paused still claims to lead: {body}");
    trial.follow(2, &[1, 2, 3]);
    trial.wait_for_log(3, "n3: event loop delayed by ");
}

#[test]
fn an_operator_drains_prefers_and_transfers() {
    // With the policy immediate n2 would take over again at once from n1.
    let trial = Trial::start(&Plan { preemption: "never", patient: true, ..Plan::default() });
    trial.lead(3);
    let done = trial.succession(|| trial.command(3, &["drain", "--for", "1h"]));
    assert!(done.status.success(), "{}", complaint(&done));
    trial.follow(2, &[1, 2, 3]);
    let status = trial.wait_for_status(3);
    assert!(status.drained);
    let left = status.drained_remaining_ms.expect("a drain for an hour ends");
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
    trial.transfer(2, 1);
    trial.follow(1, &[1, 2, 3]);
    let by = "transferred leadership to n1 (requested); command from admin.sock (uid ";
    trial.wait("the history of n2 says who gave the command", || {
        trial.history(2).into_iter().find(|entry| entry.text.contains(by))
    });
    let refused = trial.command(1, &["transfer", "n3"]);
    assert_eq!(refused.status.code(), Some(1), "{}", complaint(&refused));
    let done = trial.command(3, &["undrain"]);
    assert!(done.status.success(), "{}", complaint(&done));
    let done = trial.succession(|| trial.command(1, &["prefer", "n2", "--for", "10m"]));
    assert!(done.status.success(), "{}", complaint(&done));
    trial.follow(2, &[1, 2, 3]);
}

#[test]
fn a_drained_member_stays_drained_when_it_restarts() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.drain(3);
    assert!(trial.wait_for_status(3).drained, "whoever is told so sees it at once");
    trial.follow(2, &[1, 2, 3]);
    trial.kill(3);
    trial.run(3);
    trial.follow(2, &[1, 2, 3]);
    let status = trial.wait_for_status(3);
    assert_eq!((status.drained, status.drained_remaining_ms), (true, None), "until it is undone");
}

#[test]
fn json_logs_have_fields() {
    let flags = ["--log-format", "json"].map(str::to_owned).to_vec();
    let trial = Trial::start(&Plan { flags, patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    trial.transfer(3, 2);
    assert_eq!(trial.command(1, &["transfer", "n9"]).status.code(), Some(2));
    let line = |member: usize, event: &str| {
        trial.wait(&format!("n{member} logs {event}"), || {
            let log = trial.lines(member);
            let mut lines = log.lines().map(|line| {
                serde_json::from_str::<Value>(line)
                    .unwrap_or_else(|error| panic!("{error}: {line}"))
            });
            lines.find(|line| line["event"] == event)
        })
    };
    let follows = line(1, "follows");
    assert_eq!((&follows["node"], &follows["level"]), (&json!("n1"), &json!("INFO")));
    assert!(follows["leader"].is_string() && follows["term"].is_u64(), "{follows}");
    assert!(follows["reason"].is_string(), "{follows}");
    assert!(follows["message"].as_str().unwrap().starts_with("n1: follows n"), "{follows}");
    assert_eq!(line(3, "stepped-down")["reason"], "transferred leadership to n2 (requested)");
    let leader = line(2, "became-leader");
    assert!(leader["leader"] == "n2" && leader["term"].is_u64(), "{leader}");
    let accepted = line(3, "command-accepted");
    assert_eq!((&accepted["node"], &accepted["command"]), (&json!("n3"), &json!("transfer to n2")));
    assert!(accepted["address"].as_str().unwrap().starts_with("admin.sock (uid "), "{accepted}");
    let rejected = line(1, "command-rejected");
    assert_eq!((&rejected["level"], &rejected["command"]), (&json!("WARN"), &json!("transfer")));
    assert!(rejected["reason"].as_str().unwrap().contains("n9 is not a member"), "{rejected}");
}

#[test]
fn a_measured_attribute_moves_the_leader() {
    let mut trial = Trial::found(&Plan::default());
    let figure = trial.folder.join("figure");
    fs::write(&figure, "10\n").unwrap();
    let config = trial.folder_of(1).join("doyen.toml");
    let text = fs::read_to_string(&config).unwrap();
    let attribute = format!(
        "\n[attribute]\nsource = \"command\"\ncommand = [\"cat\", {:?}]\nevery = \"200ms\"\n",
        figure.to_str().unwrap()
    );
    fs::write(&config, text + &attribute).unwrap();
    for member in [1, 2, 3] {
        trial.run(member);
    }
    trial.follow(1, &[1, 2, 3]);
    fs::write(&figure, "-5\n").unwrap();
    trial.follow(3, &[1, 2, 3]);
}

#[test]
fn keys_are_rotated_while_all_members_run() {
    let trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    let history = trial.history(1);
    let key = |member: usize| trial.folder_of(member).join("key").to_str().unwrap().to_owned();
    for step in ["--append", "--promote", "--retire"] {
        // As docs/operations.md has it: changed on one machine, and copied to the others.
        assert!(doyen(&["keygen", step, &key(1)]).status.success());
        let changed = fs::read_to_string(key(1)).unwrap();
        for member in [1, 2, 3] {
            fs::write(key(member), &changed).unwrap();
            trial.signal(member, Signal::HUP);
        }
        trial.wait(&format!("all members have reloaded the keys: {step}"), || {
            let times = match step {
                "--append" => 1,
                "--promote" => 2,
                _ => 3,
            };
            let read =
                |&member: &usize| trial.log(member).matches("reloaded its keys").count() >= times;
            [1, 2, 3].iter().all(read).then_some(())
        });
        // Heartbeats go on with these keys.
        trial.wait_for_rise(1, RECEIVED, "", 20);
    }
    assert_eq!(trial.history(1), history, "the leader has not changed");
}

const RECEIVED: &str = "doyen_datagrams_received_total";

#[test]
fn a_wrong_key_is_counted_and_ignored() {
    let mut trial = Trial::found(&Plan::default());
    let other = trial.folder.join("other-key");
    assert!(doyen(&["keygen", "--out", other.to_str().unwrap()]).status.success());
    trial.run(1);
    trial.run(2);
    trial.run_with(3, &["--key-file", other.to_str().unwrap()]);
    trial.follow(2, &[1, 2]);
    assert_eq!(trial.wait_for_status(3).leader, None);
    wait_for_rejected(&trial, 1, "key");
    trial.wait_for_log(1, &format!("from n3 ({}): unknown key", trial.address(3)));
    trial.wait_for_rise(1, REJECTED, "reason=\"key\"", 3);
    assert_eq!(trial.log(1).matches("dropping datagrams").count(), 1, "once: {}", trial.log(1));
}

#[test]
fn invalid_keys_are_rejected_and_the_old_ones_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let key = trial.folder_of(3).join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = trial.command(3, &["reload-keys"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complaint(&refused).contains("the node keeps its old ones"), "{}", complaint(&refused));
    trial.signal(3, Signal::HUP);
    trial.wait("both are warned of", || {
        let log = trial.log(3);
        let stay =
            |line: &&str| line.contains("WARN") && line.contains("the node keeps its old ones");
        (log.lines().filter(stay).count() == 2).then_some(())
    });
    assert!(!trial.log(3).contains("reloaded its keys"), "{}", trial.log(3));
    trial.follow(3, &[1, 2, 3]);
}

#[test]
fn a_member_that_never_started_is_unreachable_and_not_next() {
    let mut trial = Trial::found(&Plan::default());
    trial.run(1);
    trial.run(2);
    let status = trial.wait("n1 follows n2 and reaches it", || {
        let status = trial.status(1)?;
        // Even while the algorithm still counts n3 as reachable.
        assert!(!status.members[2].reachable && status.next != Some(NodeId(3)), "{status:?}");
        (status.leader == Some(NodeId(2)) && status.members[1].reachable).then_some(status)
    });
    let [own, _, last] = &status.members[..] else { panic!("three members") };
    assert_eq!((&own.unreachable, &last.unreachable), (&Some(vec![NodeId(3)]), &None));
    assert_eq!(status.next, None, "without n2 there is no majority");
}

/// It has to listen for a while before it knows that it does not reach a dead one.
#[test]
fn a_member_that_has_just_restarted_is_not_next_where_there_is_no_majority() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(2);
    trial.wait("n3 does not reach n2", || (!trial.status(3)?.members[1].reachable).then_some(()));
    trial.kill(1);
    trial.run(1);
    trial.follow(3, &[1]);
    trial.wait("n3 leads and reaches n1, which does not reach n2", || {
        let status = trial.status(3)?;
        if status.leader != Some(NodeId(3)) || !status.members[0].reachable {
            return None;
        }
        assert_eq!(status.next, None, "{status:?}");
        (status.members[0].unreachable == Some(vec![NodeId(2)])).then_some(())
    });
}

#[test]
fn a_failed_leader_has_a_penalty_that_all_members_show() {
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    trial.kill(3);
    trial.follow(2, &[1, 2]);
    trial.wait("n3 is unreachable, by one definition", || {
        let status = trial.status(1)?;
        let missed = status.members[0].unreachable.as_deref()?.contains(&NodeId(3));
        assert_eq!(status.members[2].reachable, !missed, "{status:?}");
        (missed && status.next.is_none()).then_some(())
    });
    trial.run(3);
    trial.follow(2, &[3]);
    trial.wait("n3 is reachable again", || trial.status(2)?.members[2].reachable.then_some(()));
    let status = trial.wait_for_status(2);
    assert_eq!(status.members[2].recent_failures, 1);
    let left = status.members[2].penalty_remaining_ms.expect("n2 saw n3 fail");
    assert!(left <= 10_000, "penalties decay after 10 s here: {left}");
    for member in [1, 3] {
        trial.wait(&format!("n{member} shows what the leader counts"), || {
            let shown = trial.status(member)?.members[2].clone();
            (shown.recent_failures == 1 && shown.penalty_remaining_ms.is_some()).then_some(())
        });
    }
    let explained = doyen(&["explain", "--node", trial.url(2)]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    for why in ["n3 priority 3, failed as leader ", " ago; ranked last for another "] {
        assert!(explained.contains(why), "{explained}");
    }
    let preferred = trial.command(2, &["prefer", "n3", "--for", "1h"]);
    let told = String::from_utf8_lossy(&preferred.stdout).into_owned();
    assert!(
        preferred.status.success() && told.contains("A penalty outweighs a preference"),
        "{told}"
    );
    trial.transfer(2, 3);
    trial.follow(3, &[1, 2, 3]);
}

#[test]
fn a_member_of_another_cluster_is_counted_and_ignored() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let places = [trial.address(1), trial.address(2), &free_address()];
    let places = places.map(|address| (address.to_owned(), free_address(), Vec::new()));
    let mut lost = Trial::found_at(&Plan::default(), places.to_vec());
    lost.run(3);
    wait_for_rejected(&trial, 1, "cluster");
    assert_eq!(lost.wait_for_status(3).leader, None);
    trial.follow(3, &[1, 2, 3]);
}

/// On a busy machine the leader may be lost besides.
#[test]
fn members_are_restarted_one_after_the_other() {
    const ATTEMPTS: usize = 3;
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    let terms =
        (0..ATTEMPTS).map(|_| terms_of_a_rolling_restart(&mut trial)).find(|&terms| terms == 2);
    assert_eq!(terms, Some(2), "one transfer, and one back");
    let status = trial.wait_for_status(1);
    assert_eq!(status.why.as_deref(), Some("n2 transferred leadership (outranked)"));
}

/// Restarts every member, and counts the terms until n3 leads again.
fn terms_of_a_rolling_restart(trial: &mut Trial) -> u64 {
    trial.follow(3, &[1, 2, 3]);
    let term = trial.wait_for_status(1).term;
    for member in [1, 2, 3] {
        assert_eq!(trial.stop(member), Some(0), "{}", trial.log(member));
        trial.run(member);
        trial.agree(&[1, 2, 3]);
        if member == 2 {
            // Before its hold-down is over a member does not vote, and nobody could take over from n3.
            std::thread::sleep(Duration::from_millis(2_500));
        }
    }
    // It transferred leadership, which is not a failure: it takes over again.
    trial.follow(3, &[1, 2, 3]);
    trial.wait_for_status(1).term.0 - term.0
}

#[test]
fn a_new_cluster_continues_above_its_term_floor() {
    let init = vec!["--term-floor".to_owned(), "7".to_owned()];
    let trial = Trial::start(&Plan { init, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    assert!(trial.wait_for_status(1).term.0 > 7);
}

const REJECTED: &str = "doyen_datagrams_rejected_total";

/// Waits until a member has rejected datagrams for `reason`.
fn wait_for_rejected(trial: &Trial, member: usize, reason: &str) {
    trial.wait(&format!("n{member} rejects datagrams: {reason}"), || {
        trial.metric(member, REJECTED, &format!("reason=\"{reason}\"")).filter(|&count| count > 0)
    });
}

#[test]
fn a_member_with_another_configuration_is_ignored() {
    let mut trial = Trial::found(&Plan::default());
    let config = trial.folder_of(3).join("doyen.toml");
    let text = fs::read_to_string(&config).unwrap();
    let more = "\n[[member]]\nid = 4\nname = \"n4\"\naddress = \"127.0.0.1:9\"\npriority = 4\n";
    fs::write(&config, text + more).unwrap();
    for member in [1, 2, 3] {
        trial.run(member);
    }
    trial.follow(2, &[1, 2]);
    assert_eq!(trial.wait_for_status(3).leader, None);
    wait_for_rejected(&trial, 1, "configuration");
    trial.wait("the status says so", || {
        trial.status(1).filter(|status| status.members[2].config_mismatch)
    });
    let differs = "has another member list, algorithm or groups/group_lease";
    trial.wait_for_log(1, &format!("n1: ignoring n3, which {differs}"));
    let status = trial.wait_for_status(1);
    assert!(!status.members[2].reachable, "{status:?}");
    assert_eq!(status.members[0].unreachable, Some(vec![NodeId(3)]));
    let explained = doyen(&["explain", "--node", trial.url(1)]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains(differs), "{explained}");
}

/// A supervisor goes on starting the node while an operator has its member rejoin.
#[test]
fn a_node_that_is_started_while_its_member_rejoins_says_so_and_may_be_started_again() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(1);
    trial.kill(2);
    fs::remove_dir_all(trial.folder_of(2).join("state")).unwrap();
    trial.begin_rejoin(2, &[]);
    trial.wait("n1 is missed", || {
        trial.log(2).contains("waiting for an answer from n1").then_some(())
    });
    let (config, pid) = (trial.folder_of(2).join("doyen.toml"), trial.pid(2));
    for command in ["node", "rejoin"] {
        let second =
            doyen(&[command, "--config", config.to_str().unwrap(), "--http", &free_address()]);
        let told = complaint(&second);
        assert_eq!(second.status.code(), Some(1), "{command}: {told}");
        assert!(told.contains(&format!("process {pid} is rejoining")), "{command}: {told}");
    }
    trial.run(1);
    assert_eq!(trial.wait_for_end(2), Some(0), "{}", trial.log(2));
    trial.run(2);
    trial.agree(&[1, 2, 3]);
}

#[test]
fn a_member_that_waits_for_an_answer_too_long_gives_up_and_can_try_again() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(1);
    trial.kill(2);
    fs::remove_dir_all(trial.folder_of(2).join("state")).unwrap();
    trial.begin_rejoin(2, &["--timeout", "1s"]);
    assert_eq!(trial.wait_for_end(2), Some(4), "{}", trial.log(2));
    let missing = "not within 1s: n2 lost its state and rejoins; no answer yet from n1\n";
    assert!(trial.log(2).contains(missing), "{}", trial.log(2));
    trial.run(1);
    trial.rejoin(2);
    trial.agree(&[1, 2, 3]);
}

#[test]
fn a_member_that_rejoins_with_another_member_list_is_told_so() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(2);
    fs::remove_dir_all(trial.folder_of(2).join("state")).unwrap();
    let file = trial.folder_of(2).join("doyen.toml");
    let text = fs::read_to_string(&file).unwrap();
    let another = format!("{text}\n[[member]]\nid = 4\naddress = \"{}\"\n", free_address());
    fs::write(&file, another).unwrap();
    trial.begin_rejoin(2, &[]);
    let differs =
        "has another member list, algorithm or groups/group_lease: compare the configurations";
    trial.wait("it says why they do not answer", || {
        let told =
            format!("waiting for an answer from n1 (which {differs}), n3 (which {differs}), ");
        trial.log(2).contains(&told).then_some(())
    });
    trial.signal(2, Signal::TERM);
    trial.wait_for_end(2);
    fs::write(&file, text).unwrap();
    trial.rejoin(2);
    trial.follow(3, &[1, 2, 3]);
}

/// A rejoin that was interrupted when it had stored its new start.
#[test]
fn a_node_whose_member_has_not_finished_rejoining_continues_and_says_what_it_waits_for() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(1);
    trial.kill(2);
    let folder = trial.folder_of(2).join("state");
    fs::remove_dir_all(&folder).unwrap();
    let owner = Owner {
        cluster: trial.name.clone(),
        member: NodeId(2),
        algorithm: Algorithm::Quorum,
        members: [1, 2, 3].map(NodeId).to_vec(),
    };
    let (mut store, _) = Store::rejoin(&folder, &owner).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let incarnation = Incarnation(now.try_into().unwrap());
    let kept = Kept { incarnation, rejoining: true, roster: Roster::default(), inner: None::<()> };
    store.save(incarnation, true, &postcard::to_allocvec(&kept).unwrap()).unwrap();
    drop(store);
    trial.run(2);
    trial.wait("n3 has answered, and n1 cannot", || {
        let status = trial.status(2)?;
        let heard: Vec<bool> = status.members.iter().map(|member| member.reachable).collect();
        (status.rejoining && heard == [false, true, true]).then_some(())
    });
    let waits = "lost its state and rejoins; no answer yet from n1\n";
    let status = trial.wait_for_status(2);
    let answered = status.member(NodeId(3)).expect("n3");
    assert!(answered.last_seen_ms.is_some(), "it has answered: {answered:?}");
    assert!(status.incarnation > incarnation && status.job.is_some(), "{status:?}");
    assert_eq!(status.member(NodeId(2)).expect("itself").notices, [waits.trim_end()]);
    for (command, name) in
        [("status", format!("n2 of {}", trial.name)), ("explain", "n2".to_owned())]
    {
        let told = doyen(&[command, "--node", trial.url(2)]);
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(text.starts_with(&format!("{name} {waits}")), "{text}");
        assert_eq!(told.status.code(), Some(1), "nobody leads");
    }
    trial.run(1);
    trial.agree(&[1, 2, 3]);
    assert!(!trial.wait_for_status(2).rejoining);
}

#[test]
fn a_sound_state_is_kept_whoever_asks_to_rejoin() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.stop(1);
    trial.stop(2);
    trial.begin_rejoin(1, &[]);
    assert_eq!(trial.wait_for_end(1), Some(2));
    let log = trial.log(1);
    assert!(log.contains("is valid, and is kept: there is nothing to rejoin for"), "{log}");
    assert!(!trial.folder_of(1).join("state").join("state.old").exists());
    trial.run(1);
    trial.follow(3, &[1, 3]);
    assert_eq!(trial.wait_for_status(1).incarnation.0, 2, "its second life, as after any start");
}

#[test]
fn ipv6_will_do() {
    if UdpSocket::bind("[::1]:0").is_err() {
        skip("this machine has no IPv6 loopback");
        return;
    }
    let mut trial = Trial::start(&Plan { host: "[::1]", ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    trial.kill(3);
    trial.follow(2, &[1, 2]);
}

#[test]
fn who_listens_on_all_addresses_reaches_both_kinds() {
    if UdpSocket::bind("[::]:0").is_err() {
        return skip("this machine has no IPv6");
    }
    let mut trial = Trial::found(&Plan::default());
    for member in [1, 2, 3] {
        let port = trial.address(member).rsplit(':').next().unwrap().to_owned();
        trial.run_with(member, &["--listen", &format!("[::]:{port}")]);
    }
    trial.follow(3, &[1, 2, 3]);
    let seen = trial.wait_for_status(1).members[2].observed_address.clone();
    assert_eq!(seen.as_deref(), Some(trial.address(3)), "by the name that people know");
}

#[test]
fn a_log_that_cannot_be_written_is_no_reason_to_end() {
    let mut trial = Trial::found(&Plan::default());
    let full = r#"exec "$@" 2> /dev/full"#;
    trial.begin_with(3, ["sh", "-c", full, "sh"].map(str::to_owned).to_vec());
    for member in [1, 2, 3] {
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    trial.drain(3);
    trial.follow(2, &[1, 2, 3]);
    trial.signal(3, Signal::HUP);
    assert_eq!(trial.stop(3), Some(0));
}

#[test]
fn a_log_without_a_reader_blocks_nothing() {
    let mut trial = Trial::found(&Plan::default());
    // As much as a pipe holds waits in it already.
    let stuck = r#"exec 3<> "$1"; dd if=/dev/zero of="$1" bs=65536 count=2 oflag=nonblock 2> /dev/null; shift
        exec "$@" 2>&3"#;
    let pipe = trial.folder.join("pipe").to_str().unwrap().to_owned();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    trial.begin_with(3, ["sh", "-c", stuck, "sh", &pipe].map(str::to_owned).to_vec());
    for member in [1, 2, 3] {
        trial.run(member);
    }
    trial.agree(&[1, 2, 3]);
    trial.drain(3);
    assert!(trial.get(3, "/livez").is_some());
    assert_eq!(trial.stop(3), Some(0));
}

#[test]
fn keys_on_a_disk_that_does_not_answer_block_nothing() {
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    let history = trial.history(1);
    let key = trial.folder_of(3).join("key");
    fs::remove_file(&key).unwrap();
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&key).status();
    assert!(made.unwrap().success());
    trial.signal(3, Signal::HUP);
    // Heartbeats go on for longer than a lease lasts.
    trial.wait_for_rise(1, RECEIVED, "", 12);
    assert_eq!(trial.history(1), history, "the leader has not changed");
    assert_eq!(trial.stop(3), Some(0));
}

#[test]
fn a_member_may_come_back_at_another_address() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(1);
    trial.run_with(1, &["--listen", &free_address()]);
    trial.follow(3, &[1, 2, 3]);
    trial.wait("n3 reaches n1", || {
        let status = trial.status(3)?;
        status.members.iter().find(|member| member.id == NodeId(1))?.reachable.then_some(())
    });
}

#[test]
fn a_cluster_of_one_leads_itself_and_ends_when_it_is_told_to() {
    let mut trial = Trial::start(&Plan { members: 1, ..Plan::default() });
    trial.follow(1, &[1]);
    assert_eq!(trial.wait_for_status(1).role, Role::Leader);
    assert_eq!(trial.stop(1), Some(0), "{}", trial.log(1));
}

#[test]
fn the_second_signal_ends_it_at_once() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    // Both wait for it when it goes on, so that there is no time to hand over in between.
    for signal in [Signal::STOP, Signal::TERM, Signal::INT, Signal::CONT] {
        trial.signal(3, signal);
    }
    assert_eq!(trial.wait_for_end(3), Some(1));
    assert!(trial.log(3).contains("by a second signal"), "{}", trial.log(3));
}

#[test]
fn a_leader_without_a_successor_stops_at_once() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    for member in [1, 2] {
        assert!(trial.command(member, &["drain"]).status.success());
    }
    trial.wait("n3 knows", || {
        let drained = |member: &MemberStatus| member.id == NodeId(3) || !member.eligible;
        trial.status(3)?.members.iter().all(drained).then_some(())
    });
    let begun = Instant::now();
    assert_eq!(trial.stop(3), Some(0), "{}", trial.log(3));
    assert!(begun.elapsed() < Duration::from_secs(5), "the grace is 10 s");
    // Both that are left are drained: one of them leads nevertheless.
    let leader = trial.agree(&[1, 2]);
    let said = doyen(&["status", "--node", trial.url(leader)]);
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("it leads because no other member can"), "{said}");
}

/// n3 is the best, and by its own file takes over from nobody.
#[test]
fn the_best_member_whose_policy_is_never_blocks_nobody() {
    let mut trial = Trial::found(&Plan::default());
    let file = trial.folder_of(3).join("doyen.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("preemption.policy = \"never\"\n{text}")).unwrap();
    // What everybody else is told by the environment must not reach it.
    trial.begin_with(3, ["env", "-u", "DOYEN_PREEMPTION_POLICY"].map(str::to_owned).to_vec());
    for member in [1, 3] {
        trial.run(member);
    }
    if trial.agree(&[1, 3]) == 3 {
        trial.transfer(3, 1);
    }
    trial.follow(1, &[1, 3]);
    trial.run(2);
    trial.wait("a better member takes over from n1", || {
        let leaders = [1, 2, 3].map(|member| trial.status(member).and_then(|it| it.leader));
        leaders
            .iter()
            .all(|&it| it.is_some_and(|it| it != NodeId(1)) && it == leaders[0])
            .then_some(())
    });
}

#[test]
fn while_elections_are_paused_a_transfer_works_and_a_dead_leader_is_not_replaced() {
    let mut trial = Trial::start(&Plan { patient: true, ..Plan::default() });
    trial.follow(3, &[1, 2, 3]);
    let resumed = trial.command(1, &["resume"]);
    assert_eq!(resumed.status.code(), Some(1), "{}", complaint(&resumed));
    let paused = trial.command(1, &["pause", "--for", "1h"]);
    assert!(paused.status.success(), "{}", complaint(&paused));
    for member in [1, 2, 3] {
        trial.wait(&format!("n{member} knows of the pause"), || {
            trial.status(member)?.pause.filter(|pause| pause.by == NodeId(1))
        });
        let left = trial.metric(member, "doyen_pause_remaining_seconds", "");
        assert!(left.is_some_and(|left| (3_000..=3_600).contains(&left)), "{left:?}");
        trial.wait(&format!("n{member} logs the pause"), || {
            let log = trial.lines(member);
            let mut paused = log.lines().filter(|it| it.contains("elections are paused for "));
            paused.any(|it| it.contains("(command at n1)")).then_some(())
        });
    }
    let explained = doyen(&["explain", "--node", trial.url(1), "--if-dies", "n3"]);
    let said = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(said.contains("there would be no leader until elections are resumed"), "{said}");
    assert_eq!(explained.status.code(), Some(1));
    let explained = doyen(&["explain", "--node", trial.url(1)]);
    let said = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(!said.contains("is next"), "{said}");
    trial.transfer(3, 2);
    trial.follow(2, &[1, 2, 3]);

    trial.kill(2);
    trial.wait("n1 has lost its leader", || trial.status(1)?.leader.is_none().then_some(()));
    // A restart does not end the pause. Without it there would be a leader when n3 votes again.
    trial.stop(3);
    trial.run(3);
    let status = trial.wait("n3 is back and reaches n1", || {
        trial.status(3).filter(|status| status.members[0].reachable)
    });
    assert!(status.pause.is_some(), "{status:?}");
    trial.wait_for_rise(1, RECEIVED, "", 12);
    assert_eq!(trial.wait_for_status(1).leader, None);
    let said = doyen(&["status", "--node", trial.url(1)]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("elections are paused for another "), "{said}");

    let resumed = trial.command(1, &["resume"]);
    assert!(resumed.status.success(), "{}", complaint(&resumed));
    trial.follow(3, &[1, 3]);
    trial.wait_for_log(3, "elections are no longer paused: command at n1");
    assert_eq!(trial.metric(3, "doyen_pause_remaining_seconds", ""), Some(0));
}

#[test]
fn followers_know_why_the_leader_moved() {
    let plan = Plan { preemption: "never", patient: true, ..Plan::default() };
    let mut trial = Trial::start(&plan);
    trial.lead(3);
    let why = |trial: &Trial, leader: usize| {
        trial.wait("n1 says why the leader leads", || {
            let status = trial.status(1).filter(|it| it.leader == Some(NodeId(leader as u32)))?;
            status.why
        })
    };
    trial.resign(3);
    trial.follow(2, &[1, 2, 3]);
    assert_eq!(why(&trial, 2), "n3 transferred leadership (resigned)");
    trial.stop(2);
    trial.follow(3, &[1, 3]);
    assert_eq!(why(&trial, 3), "n2 transferred leadership (shutting down)");
    trial.run(2);
    trial.follow(3, &[2]);
    trial.kill(3);
    let next = trial.agree(&[1, 2]);
    assert_eq!(why(&trial, next), "elected after n3 became unreachable");
}
