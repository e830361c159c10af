//! Health, permits and transfers of leadership, with real nodes: health binds no one, and a permit binds the leader.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::rounds::SetOnDrop;
use crate::support::{Plan, Trial};
use doyen::api::{LeaderReport, PermitGiven};
use doyen::clock::Moment;

/// Three nodes whose leases last for two and a half seconds, and the leader.
fn start() -> (Trial, usize) {
    let plan = Plan { profile: "wan", preemption: "never", ..Plan::default() };
    let trial = Trial::start(&plan);
    let leader = trial.agree(&[1, 2, 3]);
    (trial, leader)
}

/// Waits until a member other than `old` answers 200 at `/leader`, and returns it and the time.
fn successor_of(trial: &Trial, old: usize) -> (usize, Moment) {
    trial.wait("another leader", || {
        let others = [1, 2, 3].into_iter().filter(|&member| member != old);
        let mut leading = others.filter(|&member| trial.get(member, "/leader").is_some());
        leading.next().map(|member| (member, Moment::now()))
    })
}

fn lease_deadline(trial: &Trial, leader: usize) -> Moment {
    let report = trial.get(leader, "/v1/leader").expect("an answer");
    let report: LeaderReport = serde_json::from_str(&report).expect("a report");
    Moment::from_nanos(report.lease.expect("a lease").until)
}

#[test]
fn polling_health_does_not_delay_a_transfer() {
    // On a busy machine the lease may be over before the command has arrived.
    const ATTEMPTS: usize = 3;
    let (trial, _) = start();
    assert!(
        (0..ATTEMPTS).any(|_| transfer_is_in_time(&trial)),
        "each transfer waited for the lease that health had shown"
    );
}

/// Whether another member leads before the end of the lease that health has shown again and again.
fn transfer_is_in_time(trial: &Trial) -> bool {
    let leader = trial.agree(&[1, 2, 3]);
    let (done, yes) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let _over = SetOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if trial.get(leader, "/leader").is_some() {
                    yes.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        trial.wait("some answers", || (yes.load(Ordering::Relaxed) >= 10).then_some(()));
        let deadline = lease_deadline(trial, leader);
        trial.resign(leader);
        let (_, led) = successor_of(trial, leader);
        led < deadline
    })
}

#[test]
fn a_transfer_waits_for_a_permit_and_then_proceeds() {
    let (trial, leader) = start();
    let permit: PermitGiven = trial.wait("a permit", || {
        let (status, body) = trial.post(leader, "/v1/permit", r#"{"for": "1h"}"#)?;
        assert_eq!(status, 200, "{body}");
        Some(serde_json::from_str(&body).expect("a permit"))
    });
    assert!((1..=2_500).contains(&permit.remaining_ms), "at most a lease: {permit:?}");
    trial.resign(leader);
    let (status, body) = trial.post(leader, "/v1/permit", r#"{"for": "1s"}"#).expect("an answer");
    assert_eq!(status, 409, "no permit while leadership is being transferred: {body}");
    let (successor, led) = successor_of(&trial, leader);
    assert!(
        led >= Moment::from_nanos(permit.until),
        "the successor leads while the permit is valid"
    );
    let report = trial.get(successor, "/v1/leader").expect("an answer");
    let report: LeaderReport = serde_json::from_str(&report).expect("a report");
    assert!(report.here && report.term > permit.term, "{report:?}, {permit:?}");
    let (_, body) = trial.post(successor, "/v1/permit", r#"{"for": "10ms"}"#).expect("an answer");
    let next: PermitGiven = serde_json::from_str(&body).expect("a permit");
    assert!(next.token > permit.token, "{next:?}, {permit:?}");
}
