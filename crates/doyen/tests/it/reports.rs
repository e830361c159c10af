//! What nodes report when something is wrong: a node that is cut off, a stopped one, a wrong key, a stranger.

use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::wires::Wires;
use crate::support::{Plan, Trial, complaint, doyen, program};
use doyen::node::status::{MemberRole, Status};
use rustix::process::Signal;

/// `doyen status` or `doyen explain`, asked where the member is.
fn ask(wires: &Wires, member: usize, command: &str) -> String {
    let (_, http, prefix) = wires.place(member);
    let mut inside = Command::new(&prefix[0]);
    inside.args(&prefix[1..]).args([program(), command, "--node", &http]);
    printed(&inside.output().expect("doyen can be run"))
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn roles(status: &Status) -> Vec<MemberRole> {
    status.members.iter().map(|member| member.role).collect()
}

#[test]
fn a_node_that_is_cut_off_says_who_led_and_who_still_reaches_it() {
    let Some(wires) = Wires::lay(3) else { return };
    let trial = wires.start(&Plan { preemption: "never", patient: true, ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    let (cut, other) = if leader == 3 { (2, 1) } else { (3, 3 - leader) };
    // Only the link between the leader and one follower: the other follower reaches both.
    wires.separate(&[leader], &[cut]);
    let status = trial
        .wait("it knows no leader", || trial.status(cut).filter(|status| status.leader.is_none()));
    let last = status.last_leader.expect("a last leader");
    assert_eq!((last.member.0 as usize, last.term), (leader, status.term));
    let start = format!("n{leader} led in term {} when last heard, ", last.term);
    let end = format!(" ago; n{other} still reaches it; this node does not reach n{leader}");
    // The other one has just started: which members it reaches counts only when it has had time to notice.
    let text = trial.wait("it says who reaches the leader", || {
        let text = ask(&wires, cut, "status");
        let line = text.lines().find(|line| line.starts_with(&start)).expect(&text);
        line.ends_with(&end).then_some(text)
    });
    assert!(!text.contains("first in line"), "{text}");
    assert!(ask(&wires, cut, "explain").contains(&end));
    let address = trial.address(leader);
    let advice = format!("let UDP between n{cut} and n{leader} ({address}) pass");
    let why = format!(
        "n{cut} is not the leader and knows no leader: n{leader} led when last heard, and n{other} still reaches it; \
         {advice}, or run this on n{other}"
    );
    trial.wait("the other one has had time to notice, if the leader has died", || {
        let rejected = trial.command(cut, &["transfer", &format!("n{other}")]);
        complaint(&rejected).contains(&why).then_some(())
    });
    let unanswered = complaint(&trial.command(cut, &["status", &format!("n{leader}")]));
    let why = format!(
        "n{leader} does not answer n{cut}: it is reached by n{other}, but not by n{cut}; {advice}, or run this on n{other}"
    );
    assert!(unanswered.contains(&why), "{unanswered}");
    let diagnosed = printed(&trial.command(cut, &["doctor"]));
    for finding in [
        format!("must    n{leader}: is reached by n{other}, but not by n{cut}\n        {advice}\n"),
        format!(
            "must    n{cut}: knows no leader: n{leader} led when last heard, and n{other} still reaches it\n        {advice}; \
             until then run commands on n{other}\n"
        ),
    ] {
        assert!(diagnosed.contains(&finding), "{diagnosed}");
    }
    let status = trial.wait_for_status(cut);
    let roles = roles(&status);
    assert_eq!((roles[leader - 1], roles[cut - 1]), (MemberRole::Unknown, MemberRole::Candidate));
    let back = trial.wait_for_status(other);
    assert_eq!(back.leader.map(|leader| leader.0 as usize), Some(leader), "the leader leads on");
    trial.wait("the other one says that it has no leader", || {
        let back = trial.status(other)?;
        (back.members[cut - 1].role == MemberRole::Candidate).then_some(())
    });

    // The leader led all the time: the other one only regains contact.
    wires.heal();
    trial.follow(leader, &[1, 2, 3]);
    trial.wait("the log says so", || {
        let log = trial.log(cut);
        assert!(!log.contains("resumed leadership"), "{log}");
        log.contains(&format!("regained contact with leader n{leader}")).then_some(())
    });
}

/// Nobody counts them then.
#[test]
fn penalties_end_without_a_leader() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.kill(3);
    trial.follow(2, &[1, 2]);
    trial.kill(2);
    let penalty = |trial: &Trial| {
        let status = trial.status(1).filter(|status| status.leader.is_none())?;
        let failed = &status.members[2];
        Some((failed.penalty_remaining_ms?, failed.failed_ms_ago?))
    };
    let (left, ago) = trial.wait("n1 has no leader", || penalty(&trial));
    trial.wait("the penalty of n3 goes on to decay", || {
        let (later_left, later_ago) = penalty(&trial)?;
        (later_left + 1000 <= left && later_ago >= ago + 1000).then_some(())
    });
}

/// n1 follows n3, which receives nothing from it.
#[test]
fn a_member_that_receives_nothing_from_the_asked_one_is_not_called_slow() {
    let Some(wires) = Wires::lay(3) else { return };
    let trial = wires.start(&Plan { preemption: "never", patient: true, ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    let (mute, other) = if leader == 3 { (1, 2) } else { (3, 3 - leader) };
    wires.cut(mute, leader);
    let why = format!(
        "n{leader} does not answer n{mute}: it receives nothing from n{mute}, which receives from it; let UDP from n{mute} to \
         n{leader} ({}) pass, or give n{leader} the key with which n{mute} seals, or run this on n{other}",
        trial.address(leader)
    );
    trial.wait(&why, || {
        let rejected = trial.command(mute, &["transfer", &format!("n{other}")]);
        complaint(&rejected).contains(&why).then_some(())
    });
}

/// Two of three are enough to elect one, but neither of them may lead.
#[test]
fn members_of_which_none_may_lead_say_why() {
    let mut trial = Trial::found(&Plan { patient: true, ..Plan::default() });
    for member in trial.everybody() {
        let file = trial.folder_of(member).join("doyen.toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        fs::write(&file, text.replace("priority = 1\n", "witness = true\n"))
            .expect("it can be written");
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    let drained = trial.succession(|| trial.command(3, &["drain", "--never"]));
    assert!(drained.status.success(), "{}", complaint(&drained));
    trial.follow(2, &[1, 2, 3]);
    trial.kill(2);
    for (member, drained) in [
        (
            1,
            "n3 is drained (it leads if no other can, unless drained with --never): `doyen undrain n3` lets it lead",
        ),
        (3, "n3 is drained until `undrain`: it never leads"),
    ] {
        let why =
            format!("every reachable member is a witness or drained: n1 is a witness; {drained}\n");
        trial.wait(&why, || {
            printed(&trial.command(member, &["status"])).contains(&why).then_some(())
        });
    }
    let diagnosed = printed(&trial.command(1, &["doctor"]));
    for finding in [
        "must    n3: is drained until `undrain`\n        `doyen undrain n3`",
        "must    n1: knows no leader: every reachable member is a witness or drained: n1 is a witness; n3 is drained",
    ] {
        assert!(diagnosed.contains(finding), "{diagnosed}");
    }
    assert!(trial.command(3, &["undrain"]).status.success());
    trial.follow(3, &[1, 3]);
}

/// Three probes take longer than a lease, and until then all members seemed to be reachable.
#[test]
fn a_leader_that_lost_its_majority_does_not_show_it_as_reachable() {
    let Some(wires) = Wires::lay(3) else { return };
    let trial = wires.start(&Plan::default());
    // On a busy machine it may lose leadership before it is cut off.
    let status = trial.wait("n3 is cut off while it leads", || {
        wires.heal();
        trial.follow(3, &[1, 2, 3]);
        wires.separate(&[3], &[1, 2]);
        let status = trial
            .wait("n3 has no lease", || trial.status(3).filter(|status| status.leader.is_none()));
        (status.last_leader.as_ref()?.member.0 == 3).then_some(status)
    });
    let reachable: Vec<bool> = status.members.iter().map(|member| member.reachable).collect();
    assert_eq!(reachable, [false, false, true]);
    assert_eq!(roles(&status)[..2], [MemberRole::Unknown; 2], "n3 may be the one that is cut off");
    let text = ask(&wires, 3, "status");
    assert!(text.contains("n3, this node, led in term "), "{text}");
    assert!(text.contains("n3 reaches only itself; 2 of 3 members are needed"), "{text}");
}

#[test]
fn a_stopped_node_is_reported_within_seconds() {
    let trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.signal(1, Signal::STOP);
    let begun = Instant::now();
    let output = trial.command(1, &["status"]);
    let took = begun.elapsed();
    trial.signal(1, Signal::CONT);
    assert_eq!(output.status.code(), Some(3), "{}", complaint(&output));
    assert!(complaint(&output).contains("its process is stopped or overloaded"));
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// Waits until `member` warns of n1, and says what that means: it reaches `other`, unless that answers too late on a busy
/// machine at the moment of the line, of which there is one.
fn wait_for_warning(trial: &Trial, member: usize, other: usize, change: &str) {
    let warning = format!("WARN n{member}: n1 {change}; ");
    let consequences = [
        format!("losing n{other} would leave no majority"),
        "this node reaches only itself, and 2 of 3 members are needed".to_owned(),
    ];
    trial.wait(&format!("`{warning}`, and {consequences:?}"), || {
        let log = trial.lines(member);
        let mut told = log.lines().filter_map(|line| Some(line.split_once(&warning)?.1));
        told.any(|told| consequences.iter().any(|it| it == told)).then_some(())
    });
}

/// The members that watch it die include those that do not lead.
#[test]
fn a_member_that_dies_or_never_comes_is_logged_by_all_others() {
    let mut trial = Trial::found(&Plan { patient: true, ..Plan::default() });
    for member in [2, 3] {
        trial.run(member);
    }
    trial.follow(3, &[2, 3]);
    for (member, other) in [(2, 3), (3, 2)] {
        wait_for_warning(&trial, member, other, "has been unreachable since this node started");
        // Of the other one a busy machine may cause a line.
        let log = trial.log(member);
        assert_eq!(log.matches(&format!("WARN n{member}: n1 ")).count(), 1, "{log}");
    }
    trial.run(1);
    for member in [2, 3] {
        trial.wait_for_log(member, "n1 is reachable\n");
    }
    trial.kill(1);
    for (member, other) in [(2, 3), (3, 2)] {
        wait_for_warning(&trial, member, other, "is unreachable");
    }
    trial.run(1);
    for member in [2, 3] {
        trial.wait_for_log(member, "n1 has restarted");
        trial.wait_for_log(member, "n1 is reachable again");
        let log = trial.log(member);
        assert!(!log.contains("down or restarted"), "{log}");
        assert_eq!(log.matches("n1 has restarted").count(), 1, "{log}");
    }
}

#[test]
fn every_member_has_a_role() {
    let mut trial = Trial::found(&Plan { members: 5, patient: true, ..Plan::default() });
    for member in trial.everybody() {
        let file = trial.folder_of(member).join("doyen.toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        fs::write(&file, text.replace("priority = 1\n", "witness = true\n"))
            .expect("it can be written");
        trial.run(member);
    }
    trial.follow(5, &[1, 2, 3, 4, 5]);
    assert!(trial.command(4, &["drain"]).status.success());
    trial.kill(3);
    let expected = [
        MemberRole::Witness,
        MemberRole::Follower,
        MemberRole::Down,
        MemberRole::Drained,
        MemberRole::Leader,
    ];
    for member in [1, 2, 4, 5] {
        trial.wait(&format!("n{member} knows all roles"), || {
            (roles(&trial.status(member)?) == expected).then_some(())
        });
    }
    trial.wait("`status` shows all roles", || {
        let text = printed(&trial.command(2, &["status"]));
        let shown: Vec<&str> =
            text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
        let mut roles = ["witness", "follower", "down", "drained", "leader"].iter();
        roles.all(|role| shown.contains(role)).then_some(())
    });
}

#[test]
fn a_member_with_another_key_is_not_shown_as_down() {
    let mut trial = Trial::found(&Plan::default());
    let made = doyen(&["keygen"]);
    fs::write(trial.folder_of(1).join("key"), made.stdout).expect("it can be written");
    for member in trial.everybody() {
        trial.run(member);
    }
    trial.follow(3, &[2, 3]);
    let status = trial.wait("n3 rejects n1", || {
        trial.status(3).filter(|status| status.members[0].rejected.is_some())
    });
    assert_eq!(status.members[0].rejected.as_deref(), Some("key"));
    assert_eq!(status.members[0].role, MemberRole::Unknown);
    let text = printed(&trial.command(3, &["status"]));
    assert!(text.contains("n1 does not use a key of this node: compare the key files"), "{text}");
    assert!(text.contains("rejected: key"), "{text}");
}

/// A fourth node with a list of its own: the others log it, and it learns that their lists differ.
#[test]
fn a_stranger_is_logged_and_told() {
    let mut trial = Trial::found(&Plan { members: 4, ..Plan::default() });
    for member in [1, 2, 3] {
        let file = trial.folder_of(member).join("doyen.toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        let (before, _) = text.rsplit_once("[[member]]").expect("a list of members");
        fs::write(&file, before).expect("it can be written");
        // The state was made for four members.
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    trial.run(4);
    let told = trial.wait("n4 learns that the lists differ", || {
        trial.status(4).filter(|it| it.members[..3].iter().all(|member| member.config_mismatch))
    });
    assert_eq!(told.members[0].rejected.as_deref(), Some("configuration"));
    for member in [1, 2, 3] {
        let line = "the sender has id 4, and no member of the 3 on this node's list has";
        trial.wait(&format!("n{member} logs the stranger"), || {
            trial.log(member).contains(line).then_some(())
        });
        assert_eq!(trial.log(member).matches(line).count(), 1, "once a minute");
    }
    trial.wait("doctor finds the stranger at all members", || {
        let diagnosed = printed(&trial.command(2, &["doctor"]));
        let address = trial.address(4);
        let finding = |member| {
            format!("must    n{member}: drops datagrams from {address}, whose sender has id 4: that is not on its member list\n")
        };
        [1, 2, 3].iter().all(|member| diagnosed.contains(&finding(member))).then_some(())
    });
}

#[test]
fn the_history_survives_a_restart() {
    let mut trial = Trial::start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    trial.stop(3);
    trial.follow(2, &[1, 2]);
    trial.run(3);
    trial.follow(3, &[1, 2, 3]);
    let history = trial.history(3);
    let numbers: Vec<u64> = history.iter().map(|entry| entry.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    let before: Vec<_> = history.iter().filter(|entry| entry.incarnation.0 == 1).collect();
    let last = before.last().expect("what it recorded before the restart");
    // To n1 if n2 did not answer at that moment.
    let is_told = |text: &str| {
        ["n1", "n2"]
            .iter()
            .any(|next| text.contains(&format!("transferred leadership to {next} (shutting down)")))
    };
    assert!(is_told(&last.text), "{last:?}");
    assert!(history.iter().any(|entry| entry.incarnation.0 == 2), "{history:?}");
    let told = printed(&trial.command(3, &["history"]));
    assert!(is_told(&told), "{told}");
}

#[test]
fn a_history_that_cannot_be_read_is_moved_aside() {
    let mut trial = Trial::found(&Plan::default());
    let broken = [r#"{"version":1,"entr"#, r#"{"version":99,"entries":[]}"#, "\u{0}"];
    for (member, text) in trial.everybody().into_iter().zip(broken) {
        fs::write(trial.folder_of(member).join("state/history"), text).expect("it can be written");
        trial.run(member);
    }
    trial.follow(3, &[1, 2, 3]);
    for (member, text) in trial.everybody().into_iter().zip(broken) {
        let state = trial.folder_of(member).join("state");
        assert_eq!(
            fs::read_to_string(state.join("history.unreadable")).ok().as_deref(),
            Some(text)
        );
        trial.wait(&format!("n{member} writes a new one"), || {
            let text = fs::read_to_string(state.join("history")).ok()?;
            text.starts_with(r#"{"version":1,"entries":[{"number":1,"#).then_some(())
        });
        assert!(trial.log(member).contains("history.unreadable"), "{}", trial.log(member));
        assert_eq!(trial.history(member)[0].number, 1);
    }
}

/// n1 leads three members, of which the others would not yield to it.
fn led_by_the_lowest() -> Trial {
    let trial = Trial::start(&Plan { preemption: "never", ..Plan::default() });
    let leader = trial.agree(&[1, 2, 3]);
    if leader != 1 {
        // Another one, of a higher rank, is elected when n1 is lost.
        trial.transfer(leader, 1);
        trial.follow(1, &[1, 2, 3]);
    }
    trial
}

/// What these members together have measured as downtime, in seconds.
fn downtime(trial: &Trial, members: &[usize]) -> Option<u64> {
    members.iter().map(|&member| trial.metric(member, "doyen_downtime_seconds_sum", "")).sum()
}

/// What the leader sent before its lease was over lies in the buffers of those that were stopped. They read it when they
/// continue, and it is no sign that it still led.
#[test]
fn a_time_without_a_leader_is_measured_though_the_successor_was_stopped() {
    let trial = led_by_the_lowest();
    let before = trial.wait("metrics", || downtime(&trial, &[1, 2, 3]));
    [2, 3].iter().for_each(|&member| trial.signal(member, Signal::STOP));
    std::thread::sleep(Duration::from_secs(4));
    [2, 3].iter().for_each(|&member| trial.signal(member, Signal::CONT));
    trial.agree(&[1, 2, 3]);
    trial.wait("three of the four seconds are in the histogram of one member", || {
        downtime(&trial, &[1, 2, 3]).filter(|&after| after >= before + 3)
    });
}

/// The same, if the leader dies meanwhile: a successor reads more heartbeats than it takes in a turn, and follows the dead
/// leader for the length of a lease.
#[test]
fn a_death_is_not_as_late_as_a_stopped_successor_reads_the_last_heartbeat() {
    let mut trial = led_by_the_lowest();
    let before = trial.wait("metrics", || downtime(&trial, &[2, 3]));
    trial.signal(3, Signal::STOP);
    std::thread::sleep(Duration::from_secs(5));
    trial.signal(2, Signal::STOP);
    trial.kill(1);
    std::thread::sleep(Duration::from_secs(4));
    [2, 3].iter().for_each(|&member| trial.signal(member, Signal::CONT));
    trial.agree(&[2, 3]);
    trial.wait("three of the four seconds are in the histogram of one member", || {
        downtime(&trial, &[2, 3]).filter(|&after| after >= before + 3)
    });
}
