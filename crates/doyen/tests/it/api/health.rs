//! What load balancers are told.

use std::thread::sleep;
use std::time::Duration;

use doyen::api::Limits;
use doyen::clock::Moment;
use doyen_core::members::Term;
use doyen_core::protocol::Role;
use doyen_core::time::Span;

use super::fake::{Fake, comes_true, follower_of_n3, patient};
use super::http::exchange;

#[test]
fn only_who_holds_a_lease_answers_200_at_leader() {
    let fake = Fake::follower();
    let answer = fake.get("/leader");
    answer.problem(503, "no-lease");
    assert_eq!(answer.json()["leader"]["name"], "n3");
    fake.lead(Span::from_millis(60_000));
    let answer = fake.get("/leader");
    assert_eq!((answer.status, answer.json()["name"].as_str()), (200, Some("n1")));
    assert_eq!(answer.json()["term"], 7);
}

#[test]
fn every_answer_names_the_term_and_may_not_be_cached() {
    for fake in [Fake::follower(), Fake::leader()] {
        for path in ["/leader", "/follower", "/livez", "/readyz", "/v1/leader", "/v1/status"] {
            let answer = fake.get(path);
            assert_eq!(answer.header("doyen-term"), Some("7"), "{path}: {answer:?}");
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}: {answer:?}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        }
        fake.announce(|state| state.term = Term(8));
        assert_eq!(fake.get("/leader").header("doyen-term"), Some("8"), "it is that of the lease");
    }
}

#[test]
fn a_lease_ends_by_the_clock_although_the_loop_says_nothing() {
    let fake = Fake::follower();
    // A busy machine may need longer for two answers than a short lease lasts; then a longer one is tried.
    let seen_in_time = [400, 1_600, 6_400].into_iter().find(|&millis| {
        let deadline = Moment::now().after(Span::from_millis(millis));
        fake.lead(Span::from_millis(millis));
        let (leads, report) = (fake.get("/leader").status, fake.get("/v1/leader").json());
        let in_time = Moment::now() < deadline;
        assert!(!in_time || (leads == 200 && report["lease"].is_object()), "{leads} {report}");
        in_time
    });
    sleep(Duration::from_millis(seen_in_time.expect("two answers in 6.4 s") + 100));
    fake.get("/leader").problem(503, "no-lease");
    assert!(fake.get("/v1/leader").json()["lease"].is_null());
    assert!(fake.get("/v1/status").json()["lease"].is_null());
    let until = Moment::now().after(Span::from_millis(60_000));
    fake.announce(|state| state.lease_deadline = Some(until));
    assert_eq!(fake.get("/leader").status, 200, "it has been renewed");
    assert_eq!(fake.get("/v1/status").json()["lease"]["until"], until.as_nanos());
}

#[test]
fn who_is_about_to_hand_over_gets_no_new_traffic() {
    let fake = Fake::leader();
    fake.announce(|state| state.role = Some(Role::Retiring));
    fake.get("/leader").problem(503, "no-lease");
}

#[test]
fn head_and_options_are_answered_as_get_is() {
    let fake = Fake::leader();
    for (method, has_body) in [("HEAD", false), ("OPTIONS", true)] {
        for path in ["/leader", "/follower", "/livez", "/readyz"] {
            let (asked, answer) = (fake.get(path), fake.ask(method, path, ""));
            assert_eq!(answer.status, asked.status, "{method} {path}");
            assert_eq!(answer.body, if has_body { asked.body } else { String::new() });
            assert_eq!(answer.header("doyen-term"), Some("7"), "{method} {path}");
        }
    }
    let answer = fake.ask("OPTIONS", "/leader", "");
    assert_eq!((answer.status, answer.header("allow")), (200, Some("GET, HEAD, OPTIONS")));
    assert_eq!(fake.ask("OPTIONS", "/follower", "").status, 503);
}

/// As after a pause of the process: the loop has not published anything yet.
#[test]
fn what_the_loop_published_long_ago_is_no_health() {
    let limits = Limits { snapshot_timeout: Duration::from_secs(1), ..patient() };
    let mut status = follower_of_n3();
    status.taken_at = Moment::from_nanos(1);
    let fake = Fake::serving(status, limits);
    for path in ["/follower", "/readyz"] {
        let detail = fake.get(path).problem(503, "stale");
        assert!(detail.starts_with("the event loop has published nothing for "), "{detail}");
        assert!(!detail.ends_with(" ms"), "at least 1 s: {detail}");
        let speaks = || {
            fake.publish(|_| {});
            fake.get(path).status == 200
        };
        assert!(comes_true(speaks), "{path}: it has published something");
        fake.publish(|status| status.taken_at = Moment::from_nanos(1));
    }
}

#[test]
fn on_loopback_no_path_is_answered_under_a_foreign_name() {
    let fake = Fake::leader();
    let address = fake.address();
    let paths = [
        "/",
        "/leader",
        "/follower",
        "/livez",
        "/readyz",
        "/v1/status",
        "/v1/history",
        "/v1/watch",
        "/metrics",
        "/openapi.json",
        "/web/main.js",
        "/nothing",
    ];
    for path in paths {
        let request =
            |host: &str| format!("GET {path} HTTP/1.1\r\n{host}connection: close\r\n\r\n");
        exchange(address, &request("host: evil.example\r\n")).problem(421, "wrong-host");
    }
    let permit = fake.post("/v1/permit", r#"{"for":"1s"}"#, "host: evil.example\r\n");
    permit.problem(421, "wrong-host");
    // Nor with a method that it does not accept.
    for (method, path) in [("POST", "/v1/status"), ("GET", "/v1/resign")] {
        let request = |host: &str| {
            format!(
                "{method} {path} HTTP/1.1\r\n{host}content-length: 0\r\nconnection: close\r\n\r\n"
            )
        };
        exchange(address, &request("host: evil.example\r\n")).problem(421, "wrong-host");
        exchange(address, &request("host: localhost\r\n")).problem(405, "method-not-allowed");
    }
    for host in ["host: localhost:1\r\n", "host: 127.0.0.1\r\n", "host: [::1]:7\r\n"] {
        let request = format!("GET /leader HTTP/1.1\r\n{host}connection: close\r\n\r\n");
        assert_eq!(exchange(address, &request).status, 200, "{host}");
    }
    let old = "OPTIONS /leader HTTP/1.0\r\n\r\n";
    assert_eq!(exchange(address, old).status, 200, "as HAProxy asks: without a host");
}

#[test]
fn a_follower_has_a_leader_that_is_not_itself() {
    let fake = Fake::follower();
    assert_eq!(fake.get("/follower").status, 200);
    fake.publish(|status| status.leader = None);
    fake.get("/follower").problem(503, "not-following");
    fake.lead(Span::from_millis(60_000));
    fake.get("/follower").problem(503, "not-following");
}

#[test]
fn ready_is_who_knows_the_leader() {
    let fake = Fake::follower();
    assert_eq!(fake.get("/readyz").status, 200);
    fake.publish(|status| status.leader = None);
    fake.get("/readyz").problem(503, "not-ready");
}

#[test]
fn alive_is_whose_loop_goes_on() {
    let mut fake = Fake::follower();
    assert_eq!(fake.get("/livez").status, 200);
    fake.end_loop();
    // The server hears of it by itself, at once but not at the same instant.
    assert!(comes_true(|| fake.get("/livez").status == 503), "the loop has ended");
    fake.get("/livez").problem(503, "stuck");
}

#[test]
fn a_loop_that_says_nothing_is_stuck() {
    let limits = Limits { loop_timeout: Duration::from_millis(400), ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    assert!(comes_true(|| fake.get("/livez").status == 503), "it has said nothing");
    let detail = fake.get("/livez").problem(503, "stuck");
    assert!(detail.starts_with("the event loop has not responded for "), "{detail}");
    let speaks = || {
        fake.publish(|_| {});
        fake.get("/livez").status == 200
    };
    assert!(comes_true(speaks), "it has said something, though nothing new");
}
