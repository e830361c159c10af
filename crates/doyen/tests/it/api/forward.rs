//! Requests that another member answers: two servers with a bad network between them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use doyen::node::relay::{RelayError, Relayed};
use doyen_core::members::{NodeId, SessionId};
use doyen_core::protocol::Refusal;

use super::fake::{Fake, Relay, follower_of_n3, patient};

/// What the network does to a packet: how many copies of it arrive now, and whether it is kept to arrive later.
#[derive(Clone, Copy)]
struct Treatment {
    copies: usize,
    repeated_later: bool,
}

const GOOD: Treatment = Treatment { copies: 1, repeated_later: false };

/// n1, and n3, which leads; `treat` says what happens to the packet of this number.
fn pair(treat: fn(u64) -> Treatment) -> (Fake, Fake) {
    let n1 = Fake::follower();
    n1.reject(Refusal::NotLeading);
    let mut status = follower_of_n3();
    (status.id, status.name) = (NodeId(3), "n3".to_owned());
    let n3 = Fake::serving(status, patient());
    connect(&n1, 1, &n3, treat);
    connect(&n3, 3, &n1, treat);
    (n1, n3)
}

fn connect(from: &Fake, id: u32, to: &Fake, treat: fn(u64) -> Treatment) {
    let (inbox, number) = (to.published().relayed.clone(), AtomicU64::new(0));
    let withheld: Mutex<Vec<Relayed>> = Mutex::default();
    let relay = move |expected: Option<SessionId>, bytes| {
        let session = SessionId::from_random(id.into());
        let packet = Relayed { from: NodeId(id), session, bytes };
        let Treatment { copies, repeated_later } = treat(number.fetch_add(1, Ordering::Relaxed));
        for _ in 0..copies {
            let _ = inbox.try_send(packet.clone());
        }
        let mut withheld = withheld.lock().expect("no panic");
        for earlier in withheld.drain(..) {
            let _ = inbox.try_send(earlier);
        }
        if repeated_later {
            withheld.push(packet);
        }
        Ok(expected.unwrap_or(SessionId::from_random(9)))
    };
    from.manners.lock().expect("no panic").relay = Some(Relay(Arc::new(relay)));
}

/// Every third packet arrives, twice, and once more after the next one.
fn bad(number: u64) -> Treatment {
    match number % 3 {
        2 => Treatment { copies: 2, repeated_later: true },
        _ => Treatment { copies: 0, repeated_later: false },
    }
}

/// Every fifth packet is lost, and each of the others arrives twice. (A window has eight: it is not always the same part.)
fn poor(number: u64) -> Treatment {
    Treatment { copies: if number % 5 == 1 { 0 } else { 2 }, ..GOOD }
}

#[test]
fn a_command_for_the_leader_is_carried_out_by_the_leader_once() {
    for treat in [|_| GOOD, bad] {
        let (n1, n3) = pair(treat);
        let answer = n1.command("/v1/transfer", r#"{"to":"n2"}"#);
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.json()["name"], "n3");
        assert_eq!(answer.json()["accepted"], "transfers leadership to n2");
        assert_eq!(n3.received(), ["transfer to 2"], "once");
        assert_eq!(n1.received(), ["transfer to 2"], "it was asked first, and rejected it");
    }
}

#[test]
fn a_named_member_answers_and_no_other() {
    let (n1, n3) = pair(bad);
    assert_eq!(n1.command("/v1/drain?member=n3", r#"{"for":"2h"}"#).status, 202);
    assert_eq!((n1.received(), n3.received()), (vec![], vec!["drain for 2h".to_owned()]));
    assert_eq!(n1.command("/v1/drain?member=n1", "").problem(409, "not-leader").len(), 27);
    assert_eq!((n1.received(), n3.received()), (vec!["drain".to_owned()], vec![]));
    let detail = n1.command("/v1/drain?member=n9", "").problem(422, "unknown-member");
    assert_eq!(detail, "n9 is not a member; the members are n1, n2, n3");
}

#[test]
fn what_is_not_forwarded_names_no_other_member() {
    let (n1, n3) = pair(|_| GOOD);
    for path in ["/v1/keys/create", "/v1/keys/offer", "/v1/token"] {
        let asked = format!("{path}?member=n3");
        n1.post(&asked, "", "").problem(401, "unauthorized");
        let detail = n1.command(&asked, "").problem(400, "bad-request");
        let start = format!("member: POST {path} is not forwarded to another member: ");
        assert!(detail.starts_with(&start) && detail.ends_with("; ask n3 itself"), "{detail}");
        n1.command(&format!("{path}?member=n9"), "").problem(422, "unknown-member");
    }
    assert_eq!([n1.received(), n3.received()], [[] as [&str; 0]; 2]);
    for own in ["n1", "1"] {
        n1.command(&format!("/v1/token?member={own}"), "").problem(409, "not-leader");
        assert_eq!(n1.get(&format!("/v1/leader?member={own}")).status, 200);
    }
    for path in ["/leader", "/v1/leader", "/v1/members", "/v1/watch", "/v1/locks", "/metrics"] {
        let detail = n1.get(&format!("{path}?member=3")).problem(400, "bad-request");
        let told = format!("member: GET {path} is not forwarded to another member; ask n3 itself");
        assert_eq!(detail, told);
    }
    n1.post("/v1/permit?member=n3", "", "").problem(400, "bad-request");
}

#[test]
fn what_the_other_member_rejects_is_passed_on() {
    let (n1, n3) = pair(|_| GOOD);
    n3.reject(Refusal::Unfit(NodeId(2)));
    let detail = n1.command("/v1/transfer", r#"{"to":"n2"}"#).problem(409, "not-eligible");
    assert!(detail.contains("n2"), "{detail}");
    let term = "if-match: \"6\"\r\n";
    let secret = format!("authorization: Bearer {}\r\n{term}", n1.secret());
    n1.post("/v1/drain?member=n3", "", &secret).problem(412, "term-mismatch");
    // It has been told otherwise in the meantime.
    n3.reject(Refusal::NotLeading);
    n3.publish(|status| status.leader = Some(NodeId(2)));
    let detail = n1.command("/v1/resign", "").problem(409, "not-leader");
    assert_eq!(detail, "n3 is not the leader; n2 is", "nothing is forwarded twice");
}

#[test]
fn a_long_answer_arrives_whole_over_a_poor_network() {
    let (n1, n3) = pair(poor);
    n3.remember(1..=256);
    let secret = format!("authorization: Bearer {}\r\n", n1.secret());
    let all = n1.ask("GET", "/v1/history?member=n3", &secret);
    assert_eq!(all.status, 200, "{all:?}");
    assert_eq!(all.json(), n3.get("/v1/history").json());
    let few = n1.ask("GET", "/v1/history?limit=2&member=n3", &secret);
    assert_eq!(few.json(), n3.get("/v1/history?limit=2").json());
    assert_eq!(n1.ask("GET", "/v1/status?member=n3", &secret).json()["name"], "n3");
    assert!(n1.ask("GET", "/v1/clock?member=n3", &secret).json()["unix_us"].is_u64());
}

#[test]
fn a_command_is_not_given_to_a_process_that_was_started_later() {
    let (n1, n3) = pair(|_| GOOD);
    // The first packet arrives, its answer does not, and n3 is started again: then it knows nothing of the command.
    connect(&n3, 3, &n1, |_| Treatment { copies: 0, repeated_later: false });
    let (inbox, starts) = (n3.published().relayed.clone(), AtomicU64::new(0));
    let relay = move |expected: Option<SessionId>, bytes| {
        let session = SessionId::from_random(starts.fetch_add(1, Ordering::Relaxed) + 1);
        if expected.is_some_and(|expected| expected != session) {
            return Err(RelayError::Restarted);
        }
        let _ = inbox.try_send(Relayed { from: NodeId(1), session, bytes });
        Ok(session)
    };
    n1.manners.lock().expect("no panic").relay = Some(Relay(Arc::new(relay)));
    let detail = n1.command("/v1/drain?member=n3", "").problem(504, "unreachable");
    assert!(detail.contains("it may have carried out the command nevertheless"), "{detail}");
    assert_eq!(n3.received(), ["drain"], "once");
}

#[test]
fn another_member_is_asked_only_for_an_operator() {
    let (n1, _n3) = pair(|_| GOOD);
    n1.get("/v1/status?member=n3").problem(401, "unauthorized");
    n1.get("/v1/clock?member=n3").problem(401, "unauthorized");
    n1.post("/v1/drain?member=n3", "", "").problem(401, "unauthorized");
    assert_eq!(n1.get("/v1/status").status, 200);
    let metrics = n1.get("/metrics").body;
    for line in ["result=\"unauthorized\"} 3\n", "result=\"accepted\"} 0\n"] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn a_body_that_is_too_long_for_any_command_is_not_read() {
    let (n1, _n3) = pair(|_| GOOD);
    let body = format!(r#"{{"for":"{}"}}"#, "1".repeat(5000));
    let detail = n1.command("/v1/drain?member=n3", &body).problem(413, "too-large");
    assert_eq!(detail, "the body is too long for any command");
}
