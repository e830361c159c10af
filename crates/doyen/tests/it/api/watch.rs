//! Changes as they happen.

use std::time::{Duration, Instant};

use doyen::api::Limits;
use doyen_core::protocol::Role;
use serde_json::Value;

use super::fake::{Fake, comes_true, follower_of_n3};

fn brief(name: &str, number: u64) -> (String, u64) {
    (name.to_owned(), number)
}

#[test]
fn a_snapshot_comes_first_then_changes_then_what_has_come_of_them() {
    let fake = Fake::follower();
    fake.remember(1..=5);
    let mut events = fake.watch(None);
    let first = events.next().expect("an event");
    assert_eq!((first.name.as_str(), first.id.as_str()), ("snapshot", "1.4.5"));
    assert_eq!(first.data["leader"], 3);
    fake.remember(1..=6);
    let second = events.next().expect("an event");
    assert_eq!((second.name.as_str(), second.id.as_str()), ("change", "1.4.6"));
    assert_eq!(second.data["text"], "lost contact with leader 3 (term 6)");
    fake.publish(|status| status.role = Role::Candidate);
    let third = events.next().expect("an event");
    assert_eq!((third.name.as_str(), third.id.as_str()), ("snapshot", "1.4.6"));
    assert_eq!(third.data["role"], "candidate");
}

#[test]
fn time_that_passes_is_no_change() {
    let fake = Fake::leader();
    let mut events = fake.watch(None);
    assert_eq!(events.brief(), brief("snapshot", 0));
    fake.publish(|status| {
        status.members[1].last_seen_ms = Some(20);
        status.members[1].rtt_us = Some(400);
        status.lease.as_mut().expect("a lease").until += 1;
    });
    fake.publish(|status| (status.drained, status.drained_remaining_ms) = (true, Some(5000)));
    assert_eq!(events.brief(), brief("snapshot", 0), "it is drained");
    fake.publish(|status| status.drained_remaining_ms = Some(4000));
    fake.publish(|status| status.members[1].reachable = false);
    let next = events.next().expect("an event");
    assert_eq!(
        (next.name.as_str(), &next.data["members"][1]["reachable"]),
        ("snapshot", &Value::Bool(false))
    );
}

#[test]
fn who_comes_back_is_told_what_it_missed() {
    let fake = Fake::follower();
    fake.remember(3..=9);
    let mut events = fake.watch(Some("1.4.7"));
    assert_eq!(events.brief(), brief("change", 8));
    assert_eq!(events.brief(), brief("change", 9));
    assert_eq!(events.brief(), brief("snapshot", 9));
    let mut events = fake.watch(Some("1.4.9"));
    assert_eq!(events.brief(), brief("snapshot", 9), "it missed nothing");
    let mut events = fake.watch(Some("1.4.2"));
    assert_eq!(events.brief(), brief("change", 3), "the oldest that is remembered");
}

#[test]
fn who_has_been_away_too_long_begins_anew() {
    let fake = Fake::follower();
    fake.remember(3..=9);
    for unknown in ["1.4.1", "1.4.10", "1.3.7", "2.4.7", "7", "1.4.x", "", "nonsense"] {
        let mut events = fake.watch(Some(unknown));
        assert_eq!(events.brief(), brief("snapshot", 9), "{unknown}");
    }
}

#[test]
fn who_reads_slowly_and_misses_too_much_begins_anew() {
    let fake = Fake::follower();
    fake.remember(1..=2);
    let mut events = fake.watch(None);
    assert_eq!(events.brief(), brief("snapshot", 2));
    fake.remember(8..=9);
    assert_eq!(events.brief(), brief("snapshot", 9));
    fake.remember(8..=10);
    assert_eq!(events.brief(), brief("change", 10));
}

#[test]
fn no_more_may_watch_than_there_is_room_for() {
    let limits = Limits { watchers: 2, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    let mut first = fake.watch(None);
    let second = fake.watch(None);
    fake.get("/v1/watch").problem(503, "too-many-watchers");
    assert_eq!(fake.get("/v1/status").status, 200, "others are not in the way of these");
    drop(second);
    assert_eq!(first.brief(), brief("snapshot", 0));
    assert!(comes_true(|| fake.status_of("/v1/watch") == 200), "its place is free again");
}

#[test]
fn one_client_cannot_take_all_places_of_watchers() {
    let limits = Limits { watchers_per_client: 1, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    let first = fake.watch(None);
    assert_eq!(fake.metric("doyen_http_watchers"), 1.0);
    assert_eq!(fake.status_of("/v1/watch"), 503);
    drop(first);
    assert!(comes_true(|| fake.status_of("/v1/watch") == 200), "its place is free again");
}

#[test]
fn streams_end_when_the_server_does() {
    let mut fake = Fake::follower();
    let mut events = fake.watch(None);
    assert_eq!(events.brief(), brief("snapshot", 0));
    let began = Instant::now();
    fake.stop();
    assert_eq!(events.next(), None);
    // It would wait for two seconds.
    assert!(began.elapsed() < Duration::from_secs(2), "nobody had to be waited for");
}

#[test]
fn streams_end_when_the_node_does() {
    let mut fake = Fake::follower();
    let mut events = fake.watch(None);
    assert_eq!(events.brief(), brief("snapshot", 0));
    fake.end_loop();
    assert_eq!(events.next(), None);
}
