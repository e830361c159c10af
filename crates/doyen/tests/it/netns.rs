//! A network with real partitions: every member in a network namespace of its own, joined by a bridge.
//!
//! At no instant may two leases be valid. Every node records its leases with boot-time deadlines (`--trace`), and all
//! namespaces share the machine's clock: so the records can be compared.

use std::fs;

use crate::support::wires::Wires;
use crate::support::{Plan, Trial};
use doyen::node::replay::{self, Trace};

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
    // Only the cuts move the leader: no lease that lapses on a busy machine, and no penalty that has decayed.
    let plan = Plan { members: 5, preemption: "never", patient: true, ..Plan::default() };
    let mut trial = wires.found(&plan);
    for member in trial.everybody() {
        let trace = trial.folder.join(format!("trace-{member}"));
        trial.run_with(member, &["--trace", trace.to_str().expect("a plain path")]);
    }
    trial
}

#[test]
fn one_leader_in_every_partition() {
    let Some(wires) = Wires::lay(5) else { return };
    let mut trial = start(&wires);
    trial.lead(5);

    // The leader in the minority: the majority elects, the leader's lease is over before.
    wires.separate(&[5, 1], &[2, 3, 4]);
    let second = trial.agree(&[2, 3, 4]);
    trial.wait("n5 is no longer leader", || {
        trial.status(5).filter(|status| !status.role.leads() && status.lease.is_none()).map(drop)
    });
    wires.heal();
    trial.follow(second, &[1, 2, 3, 4, 5]);

    // One way: the leader reaches no member, and receives from all.
    for other in trial.everybody().into_iter().filter(|&it| it != second) {
        wires.cut(second, other);
    }
    trial.wait("another leader", || {
        let leader = trial.status(1)?.leader?.0 as usize;
        (leader != second).then_some(())
    });
    wires.heal();
    let leader = trial.agree(&[1, 2, 3, 4, 5]);

    // Not transitive: two followers do not reach each other, the others reach both. The leader stays.
    let (one, other) = match leader {
        5 => (4, 3),
        _ => (5, if leader == 3 { 2 } else { 3 }),
    };
    let term = trial.wait_for_status(leader).term;
    wires.separate(&[one], &[other]);
    trial.wait("both notice the cut", || {
        let notices = |member: usize, of: usize| {
            trial.status(member).is_some_and(|status| !status.members[of - 1].reachable)
        };
        (notices(one, other) && notices(other, one)).then_some(())
    });
    let after = trial.wait_for_status(leader);
    assert_eq!((after.term, after.role.leads()), (term, true), "the cut does not move the leader");
    wires.heal();

    for member in trial.everybody() {
        trial.stop(member);
    }
    assert_sound(&trial);
}
