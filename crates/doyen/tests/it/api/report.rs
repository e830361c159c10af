//! What a node says of itself and of the others.

use doyen::clock::Moment;
use doyen::node::status::{Entry, Status};

use super::fake::Fake;

#[test]
fn programs_are_told_the_leaders_name_at_the_root() {
    let fake = Fake::follower();
    let answer = fake.get("/");
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"name":"n3"}"#));
    assert_eq!(answer.header("vary"), Some("accept"));
    fake.publish(|status| status.leader = None);
    assert_eq!(fake.get("/").body, r#"{"name":""}"#);
}

#[test]
fn browsers_get_the_page_and_may_run_nothing_else() {
    let fake = Fake::follower();
    let answer = fake.ask("GET", "/", "accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("vary"), Some("accept"));
    assert!(answer.body.contains("data-host=\"node\""), "{}", answer.body);
    let file = fake.get("/web/main.js");
    assert_eq!((file.status, file.header("cache-control")), (200, Some("no-cache")));
    for answer in [answer, file, fake.get("/web/nothing.js")] {
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
    }
    assert_eq!(fake.get("/web/nothing.js").status, 404);
    assert_eq!(fake.get("/lab/stream").status, 404, "a node has no faults to offer");
}

#[test]
fn the_leader_is_tagged_with_its_term() {
    let fake = Fake::follower();
    let answer = fake.get("/v1/leader");
    assert_eq!(answer.header("etag"), Some("\"7\""));
    let expected = r#"{"leader":{"id":3,"name":"n3"},"term":7,"here":false,"lease":null,"why":"elected; no previous leader known"}"#;
    assert_eq!(answer.body, expected);
    let fake = Fake::leader();
    let answer = fake.get("/v1/leader").json();
    assert_eq!((&answer["here"], &answer["leader"]["name"]), (&true.into(), &"n1".into()));
    let left = answer["lease"]["remaining_ms"].as_u64().expect("a number");
    assert!((40_000..=60_000).contains(&left), "{left}");
    fake.publish(|status| status.leader = None);
    assert!(fake.get("/v1/leader").json()["leader"].is_null());
}

#[test]
fn the_status_is_what_the_loop_published() {
    let fake = Fake::follower();
    let answer = fake.get("/v1/status");
    assert_eq!(answer.header("etag"), Some("\"7\""));
    let status = serde_json::to_value(super::fake::follower_of_n3()).expect("JSON");
    assert_eq!(answer.json(), status);
    assert_eq!(fake.get("/v1/members").json(), status["members"]);
}

#[test]
fn the_history_can_be_asked_for_in_part() {
    let fake = Fake::follower();
    fake.remember(3..=9);
    let numbers = |path: &str| -> Vec<u64> {
        let entries = fake.get(path).json();
        let entries = entries.as_array().expect("a list");
        entries.iter().map(|entry| entry["number"].as_u64().expect("a number")).collect()
    };
    assert_eq!(numbers("/v1/history"), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(numbers("/v1/history?after=7"), [8, 9]);
    assert_eq!(numbers("/v1/history?limit=2"), [8, 9]);
    assert_eq!(numbers("/v1/history?after=5&limit=3"), [6, 7, 8], "a page follows the last");
    assert_eq!(numbers("/v1/history?after=9"), [] as [u64; 0]);
    fake.get("/v1/history?after=x").problem(400, "bad-request");
    fake.get("/v1/history?since=3").problem(400, "bad-request");
}

#[test]
fn what_is_not_there_is_a_problem_too() {
    let fake = Fake::follower();
    let detail = fake.get("/v2/status").problem(404, "not-found");
    assert!(detail.contains("/v2/status"), "{detail}");
    let answer = fake.ask("DELETE", "/v1/status", "");
    answer.problem(405, "method-not-allowed");
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    let answer = fake.get("/v1/resign");
    answer.problem(405, "method-not-allowed");
    assert_eq!(answer.header("allow"), Some("POST"));
}

/// During an upgrade the commands talk to nodes of an earlier version.
#[test]
fn the_names_of_earlier_versions_are_read() {
    let status = Status { taken_at: Moment::default(), ..super::fake::follower_of_n3() };
    let mut text = serde_json::to_string(&status).expect("JSON");
    for (new, old) in [
        ("reachable", "heard"),
        ("unreachable", "misses"),
        ("last_seen_ms", "silent_ms"),
        ("observed_address", "seen_at"),
        ("config_mismatch", "configured_otherwise"),
        ("recent_failures", "losses"),
        ("succession", "line"),
    ] {
        let (new, old) = (format!("\"{new}\":"), format!("\"{old}\":"));
        assert!(text.contains(&new), "{new} in {text}");
        text = text.replace(&new, &old);
    }
    assert_eq!(serde_json::from_str::<Status>(&text).expect("a status"), status);
    let entry = super::fake::entry(1);
    let text = serde_json::to_string(&entry).expect("JSON").replace("downtime_us", "dead_air_us");
    assert_eq!(serde_json::from_str::<Entry>(&text).expect("an entry"), entry);
}
