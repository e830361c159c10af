//! Which process of a member counts: old ones that wake up, copies of disks, members that are founded again. With real
//! processes, each in a network namespace of its own; the rules are those of `doyen-core/src/session.rs`.

use std::fs;

use crate::support::leases;
use crate::support::rounds::{Tally, few_rounds, rounds};
use crate::support::wires::Wires;
use crate::support::{Plan, Trial, complaint, program};
use doyen::node::trace::Header;
use rustix::process::Signal;

/// The flags for a trace of its own.
fn traced(trial: &Trial, name: &str) -> [String; 2] {
    let trace = trial.folder.join(format!("trace-{name}"));
    ["--trace".to_owned(), trace.to_str().expect("a plain path").to_owned()]
}

/// Starts a process with a trace of its own.
fn run_traced(trial: &mut Trial, member: usize, name: &str) {
    let flags = traced(trial, name);
    trial.run_with(member, &flags.each_ref().map(String::as_str));
}

/// No two leases of all traces ran at once.
fn assert_no_overlap(trial: &Trial) {
    let entries = fs::read_dir(&trial.folder).expect("the folder").flatten();
    let traces = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("trace-"));
    let texts = traces.map(|entry| fs::read_to_string(entry.path()).expect("a trace"));
    let held: Vec<_> = texts.flat_map(|text| leases::read(&text)).collect();
    assert!(held.len() > 1, "{held:?}");
    assert_eq!(leases::overlaps(&held), [], "two leases at once");
}

/// Two members and a third whose machine hangs in its fourth start. The other two are restarted, so they have met nobody
/// yet in the start that they are in; the third is replaced. Then the network falls apart, and the old machine wakes up on
/// the other side: whoever takes it for the member elects a second leader of the same term.
#[test]
fn an_old_process_that_wakes_beside_its_replacement_counts_for_nothing() {
    let mut tally = Tally::new("an old process wakes beside its replacement");
    for _ in 0..few_rounds() {
        let Some(wires) = Wires::lay(4) else { return };
        tally.round(|| wake_beside_a_replacement(&wires));
    }
}

fn wake_beside_a_replacement(wires: &Wires) {
    let mut trial = wires.found(&Plan { patient: true, ..Plan::default() });
    for member in [1, 2, 3] {
        run_traced(&mut trial, member, &format!("{member}"));
    }
    trial.follow(3, &[1, 2, 3]);
    for start in 2..=4 {
        trial.kill(2);
        run_traced(&mut trial, 2, &format!("2-{start}"));
        trial.follow(3, &[1, 2, 3]);
    }
    trial.signal(2, Signal::STOP);
    for member in [1, 3] {
        trial.kill(member);
        run_traced(&mut trial, member, &format!("{member}-again"));
    }
    trial.follow(3, &[1, 3]);
    let replacement = trial.replace_machine(2, wires.place(4));
    let flags = traced(&trial, "replacement");
    trial.rejoin_and_run_with(replacement, &flags.each_ref().map(String::as_str));
    trial.follow(3, &[1, 3, replacement]);

    wires.separate(&[1, replacement], &[3, 2]);
    trial.signal(2, Signal::CONT);
    assert_eq!(trial.wait_for_end(2), Some(1), "it must stop:\n{}", trial.log(2));
    assert!(trial.log(2).contains("the state is a copy"), "{}", trial.log(2));
    let leader = trial.wait("the side with two members elects", || {
        let status = trial.status(1)?;
        let leader = status.leader.filter(|leader| leader.0 != 3)?;
        Some((leader, status.term))
    });
    let alone = trial.wait("n3 gives up", || trial.status(3).filter(|it| !it.role.leads()));
    assert_eq!(alone.lease.map(|lease| lease.until), None);
    assert!(alone.term < leader.1, "n3 stays in term {} beside {leader:?}", alone.term);

    wires.heal();
    trial.wait("all agree", || {
        let seen: Option<Vec<_>> =
            [1, 3, replacement].iter().map(|&member| trial.status(member)?.leader).collect();
        seen.filter(|seen| seen.windows(2).all(|pair| pair[0] == pair[1])).map(drop)
    });
    for member in [1, 3, replacement] {
        trial.stop(member);
    }
    assert_no_overlap(&trial);
}

#[test]
fn a_member_that_is_founded_again_is_refused_though_the_others_have_restarted() {
    let Some(wires) = Wires::lay(3) else { return };
    let mut trial = wires.start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let mut tally = Tally::new("a member is founded again, then a rejoin");
    for round in 0..rounds() {
        trial.stop(1);
        for member in [2, 3] {
            trial.kill(member);
            trial.run(member);
        }
        trial.agree(&[2, 3]);
        // By mistake it gets the state of a member that has never run.
        let again = trial.folder.join(format!("again-{round}"));
        let mut init = std::process::Command::new(program());
        init.args(["init", "--cluster", &trial.name, "--out"]).arg(&again);
        for member in [1, 2, 3] {
            init.args(["--member", &format!("n{member}={}", trial.address(member))]);
        }
        let founded = init.output().expect("doyen can be run");
        assert!(founded.status.success(), "{}", complaint(&founded));
        let state = trial.folder_of(1).join("state/state");
        fs::copy(again.join("n1/state/state"), state).expect("a new state");
        fs::remove_file(trial.folder_of(1).join("log")).expect("a log");
        tally.round(|| {
            trial.run(1);
            assert_eq!(trial.wait_for_end(1), Some(1), "{}", trial.log(1));
            assert!(trial.log(1).contains("the state is a copy"), "{}", trial.log(1));
            trial.rejoin(1);
            trial.agree(&[1, 2, 3]);
        });
    }
}

/// A backup of the running life has a right incarnation and an old term.
#[test]
fn a_backup_of_the_last_life_is_found_by_its_term() {
    let Some(wires) = Wires::lay(3) else { return };
    let mut trial = wires.start(&Plan { preemption: "never", ..Plan::default() });
    let mut tally = Tally::new("a backup of the last life is restored, then a rejoin");
    for _ in 0..rounds() {
        let first = trial.agree(&[1, 2, 3]);
        let others: Vec<usize> = trial.everybody().into_iter().filter(|&it| it != first).collect();
        let restored = others[0];
        let state = trial.folder_of(restored).join("state/state");
        let backup = fs::read(&state).expect("a state");
        let term = trial.wait_for_status(restored).term;
        trial.kill(first);
        trial.agree(&others);
        trial.wait("a later term", || trial.status(restored).filter(|it| it.term > term));
        trial.run(first);
        trial.agree(&[1, 2, 3]);
        trial.kill(restored);
        fs::write(&state, backup).expect("the backup");
        fs::remove_file(trial.folder_of(restored).join("log")).expect("a log");
        tally.round(|| {
            trial.run(restored);
            assert_eq!(trial.wait_for_end(restored), Some(1), "{}", trial.log(restored));
            let log = trial.log(restored);
            assert!(log.contains("the state is an old copy"), "{log}");
            assert!(log.contains("has seen this member in term"), "{log}");
            trial.rejoin(restored);
            trial.agree(&[1, 2, 3]);
        });
    }
}

#[test]
fn a_disk_that_is_lost_twice_is_made_good_twice() {
    let Some(wires) = Wires::lay(3) else { return };
    let mut trial = wires.start(&Plan::default());
    trial.follow(3, &[1, 2, 3]);
    let (mut last, mut tally) = (0, Tally::new("a disk is lost, then a rejoin"));
    for _ in 0..2 * rounds() {
        trial.kill(1);
        // The whole folder is gone with the disk.
        fs::remove_dir_all(trial.folder_of(1).join("state")).expect("it was there");
        tally.round(|| {
            trial.rejoin(1);
            trial.follow(3, &[1, 2, 3]);
        });
        let incarnation = trial.wait_for_status(1).incarnation.0;
        assert!(incarnation > last, "{incarnation} after {last}");
        assert!(
            incarnation > doyen_core::session::PLAUSIBLE_TIMES.start,
            "not below the time of day"
        );
        last = incarnation;
    }
}

#[test]
fn the_first_start_observes_hold_down_like_any_other() {
    let Some(wires) = Wires::lay(1) else { return };
    let mut trial = wires.found(&Plan { members: 1, ..Plan::default() });
    run_traced(&mut trial, 1, "1");
    trial.follow(1, &[1]);
    trial.stop(1);
    let trace = fs::read_to_string(trial.folder.join("trace-1")).expect("a trace");
    let header: Header = serde_json::from_str(trace.lines().next().expect("a head")).expect("json");
    let arms = |effect: &String| effect.contains("SetTimer") && effect.contains("HoldDown");
    assert!(header.did.iter().any(arms), "{:?}", header.did);
}
