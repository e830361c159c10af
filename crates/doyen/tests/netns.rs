//! A network that is cut for real: every member in a network namespace of its own, joined by a bridge.
//!
//! At no instant may two leases be valid. Every node records its leases with boot-time deadlines (`--trace`), and all
//! namespaces share the machine's clock: so the records can be compared.

mod support;

use std::fs;
use std::time::Duration;

use doyen::node::replay::{self, Trace};
use support::wires::Wires;
use support::{Plan, Trial};

/// By the nodes' own records no two leases ran at once, and every one of them would do the same again.
fn assert_sound(trial: &Trial) {
    let traces: Vec<Trace> =
        trial.everybody().into_iter().map(|member| trace(trial, member)).collect();
    for trace in &traces {
        let replayed = replay::replay(trace).expect("a trace can be replayed");
        assert_eq!(replayed.findings, [], "member {}", trace.header.member);
    }
    let leases: usize = traces.iter().map(|trace| replay::leases(trace).len()).sum();
    assert!(leases >= 3, "there were three leaders at least, and the traces hold {leases} leases");
    assert_eq!(replay::overlaps(&traces), [], "two leases at once");
}

fn trace(trial: &Trial, member: usize) -> Trace {
    let text = fs::read_to_string(trial.folder.join(format!("trace-{member}")));
    replay::read(&text.expect("a trace")).expect("a sound trace")
}

fn start(wires: &Wires) -> Trial {
    let mut trial = wires.found(&Plan { members: 5, ..Plan::default() });
    for member in trial.everybody() {
        let trace = trial.folder.join(format!("trace-{member}"));
        trial.run_with(member, &["--trace", trace.to_str().expect("a plain path")]);
    }
    trial
}

#[test]
fn one_leader_whatever_is_cut() {
    let Some(wires) = Wires::lay(5) else { return };
    let mut trial = start(&wires);
    trial.follow(5, &[1, 2, 3, 4, 5]);

    // The leader in the minority: the majority elects, the leader's lease is over before.
    wires.separate(&[5, 1], &[2, 3, 4]);
    trial.follow(4, &[2, 3, 4]);
    trial.wait("n5 leads no longer", || {
        trial.status(5).filter(|status| !status.role.leads() && status.lease.is_none()).map(drop)
    });
    wires.heal();
    trial.follow(4, &[1, 2, 3, 4, 5]);

    // One way: the leader is not heard by anybody, and hears everybody.
    for other in [1, 2, 3, 5] {
        wires.cut(4, other);
    }
    let heir = trial.wait("somebody else leads", || {
        let leader = trial.status(1)?.leader?.0 as usize;
        (leader != 4).then_some(leader)
    });
    wires.heal();
    trial.follow(heir, &[1, 2, 3, 4, 5]);

    // Not transitive: two members do not hear each other, the others hear both. The leader stays.
    let (one, other) = match heir {
        5 => (4, 3),
        _ => (5, if heir == 3 { 2 } else { 3 }),
    };
    let term = trial.status(heir).expect("it answers").term;
    wires.separate(&[one], &[other]);
    std::thread::sleep(Duration::from_secs(3));
    let after = trial.status(heir).expect("it answers");
    assert_eq!(
        (after.term, after.role.leads()),
        (term, true),
        "a cut that harms nobody moves nothing"
    );
    wires.heal();

    for member in trial.everybody() {
        trial.stop(member);
    }
    assert_sound(&trial);
}
