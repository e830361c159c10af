//! Permits over HTTP, from a fake node. `tests/it/permits.rs` has those of real nodes.

use doyen_core::protocol::Role;
use doyen_core::time::Span;

use super::fake::Fake;
use super::http::Answer;

fn ask(fake: &Fake, body: &str) -> Answer {
    fake.post("/v1/permit", body, "content-type: application/json\r\n")
}

#[test]
fn a_permit_lasts_as_long_as_was_asked_for_or_as_the_lease() {
    let fake = Fake::leader();
    let short = ask(&fake, r#"{"for": "10s"}"#);
    assert_eq!(short.status, 200, "{short:?}");
    let json = short.json();
    assert_eq!(
        (&json["name"], &json["term"], &json["token"]),
        (&"n1".into(), &7.into(), &(7 << 20).into())
    );
    let remaining = |answer: &Answer| answer.json()["remaining_ms"].as_u64().expect("a number");
    assert!((1..=10_000).contains(&remaining(&short)), "{short:?}");
    // The lease lasts for a minute.
    let long = ask(&fake, r#"{"for": "2h"}"#);
    assert!((10_000..=60_000).contains(&remaining(&long)), "{long:?}");
    let until = |answer: &Answer| answer.json()["until"].as_u64().expect("a number");
    let lease = fake.get("/v1/leader").json()["lease"]["until"].as_u64();
    assert_eq!(Some(until(&long)), lease);
    assert!(until(&short) < until(&long));
}

#[test]
fn who_does_not_lead_gives_no_permit() {
    let fake = Fake::follower();
    let answer = ask(&fake, r#"{"for": "1s"}"#);
    assert_eq!(answer.problem(409, "not-leader"), "n1 is not the leader; n3 is");
    assert_eq!(answer.json()["leader"]["name"], "n3");
    fake.publish(|status| status.leader = None);
    let detail = ask(&fake, r#"{"for": "1s"}"#).problem(409, "not-leader");
    assert_eq!(detail, "n1 is not the leader and knows no leader");
    fake.lead(Span::from_millis(60_000));
    fake.announce(|state| state.role = Some(Role::Retiring));
    let detail = ask(&fake, r#"{"for": "1s"}"#).problem(409, "not-leader");
    assert_eq!(detail, "n1 holds no valid lease, or is about to transfer leadership");
}

#[test]
fn a_bad_time_another_term_and_a_bad_body_are_rejected() {
    let fake = Fake::leader();
    for time in ["0s", "", "soon", "200", "-1s", "99999999999999999999s"] {
        let detail = ask(&fake, &format!(r#"{{"for": "{time}"}}"#)).problem(422, "bad-time");
        assert!(detail.starts_with("for: "), "{detail}");
    }
    for body in ["", "{}", r#"{"for": 200}"#, r#"{"for": "1s", "to": "n2"}"#, "nonsense"] {
        ask(&fake, body).problem(400, "bad-request");
    }
    let json = "content-type: application/json\r\n";
    let of_term = |term: &str| {
        let headers = format!("{json}if-match: \"{term}\"\r\n");
        fake.post("/v1/permit", r#"{"for": "1s"}"#, &headers)
    };
    of_term("6").problem(412, "term-mismatch");
    assert_eq!(of_term("7").status, 200);
    // A web page of another origin cannot send JSON without asking first, and is not allowed to.
    fake.post("/v1/permit", r#"{"for": "1s"}"#, "content-type: text/plain\r\n")
        .problem(415, "not-json");
    fake.ask("OPTIONS", "/v1/permit", "").problem(405, "method-not-allowed");
}
