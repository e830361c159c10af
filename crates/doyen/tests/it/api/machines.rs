//! The `OpenAPI` description and the metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use doyen::api::Limits;
use doyen::node::status::Counters;
use doyen::node::wire::Rejection;
use doyen_core::protocol::Role;

use super::fake::{Fake, comes_true, follower_of_n3};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    let path = in_repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `make golden` writes the file anew; then read the diff.
#[test]
fn the_description_is_the_one_in_the_documentation() {
    let served = Fake::follower().get("/openapi.json").json();
    let text = serde_json::to_string_pretty(&served).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(in_repository("docs/openapi.json"), &text).expect("it is written");
    }
    assert_eq!(text, read("docs/openapi.json"), "`make golden` writes it anew");
}

#[test]
fn the_description_names_every_route_and_no_other() {
    let document = Fake::follower().get("/openapi.json").json();
    let paths: Vec<&str> =
        document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
    let fake = Fake::follower();
    for path in &paths {
        let operations = document["paths"][path].as_object().expect("operations");
        let method = operations.keys().next().expect("a method").to_uppercase();
        let other = if method == "GET" { "POST" } else { "GET" };
        fake.ask(other, path, "").problem(405, "method-not-allowed");
    }
    let is_command = |path: &&&str| document["paths"][path]["post"].is_object();
    let commands = paths.iter().filter(is_command).filter(|&&path| {
        // These need no admin secret.
        path != "/v1/permit" && !path.starts_with("/v1/locks/")
    });
    for command in commands {
        let command = &document["paths"][command]["post"];
        assert_eq!(command["security"][0]["admin_secret"], serde_json::json!([]), "{command}");
        assert_eq!(command["parameters"][0]["name"], "If-Match");
    }
    assert_eq!(paths.len(), 24, "{paths:?}");
    let operations = paths.iter().flat_map(|path| document["paths"][path].as_object());
    let ids: BTreeSet<_> =
        operations.flat_map(|it| it.values()).map(|it| it["operationId"].to_string()).collect();
    assert_eq!(ids.len(), paths.len(), "no two have the same id: {ids:?}");
}

/// Every name that `/metrics` shows, with its suffix.
fn exported(metrics: &str) -> BTreeSet<String> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default().to_owned()).collect()
}

/// Every name of a metric of ours in a text.
fn mentioned(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("doyen_")).map(str::to_owned).collect()
}

#[test]
fn alerts_and_dashboard_use_the_metrics_that_there_are() {
    let exported = exported(&Fake::leader().get("/metrics").body);
    let alerts = mentioned(&read("packaging/prometheus-alerts.yml"));
    let dashboard = read("packaging/grafana-dashboard.json");
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("JSON");
    let shown = mentioned(&dashboard);
    let unknown: Vec<_> = alerts.union(&shown).filter(|name| !exported.contains(*name)).collect();
    assert_eq!(unknown, [] as [&String; 0], "there are no such metrics");
    assert_eq!(shown, exported, "the dashboard shows every metric");
    assert!(alerts.len() >= 6, "{alerts:?}");
}

#[test]
fn metrics_are_what_has_been_counted_and_what_is_so_now() {
    let fake = Fake::leader();
    let counters = &fake.counters;
    let counts = [&counters.sent, &counters.received, &counters.unsent, &counters.elections];
    for (count, counter) in (11..).zip(counts) {
        Counters::add(counter, count);
    }
    Counters::add(&counters.stored_us, 2_500_000);
    let replayed = Rejection::ALL.iter().position(|reason| *reason == Rejection::Replayed);
    Counters::add(&counters.rejected[replayed.expect("a reason")], 5);
    fake.remember(1..=5);
    fake.publish(|status| status.members[2].reachable = false);
    let counted = "doyen_leader_changes_total{cluster=\"test\",member=\"n1\"} 3\n";
    assert!(comes_true(|| fake.get("/metrics").body.contains(counted)), "changes are counted");
    let answer = fake.get("/metrics");
    let kind = answer.header("content-type").expect("a type");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let labels = r#"cluster="test",member="n1""#;
    for sample in [
        format!("doyen_is_leader{{{labels}}} 1"),
        format!("doyen_has_lease{{{labels}}} 1"),
        format!("doyen_term{{{labels}}} 7"),
        format!("doyen_role{{{labels},role=\"leader\"}} 1"),
        format!("doyen_role{{{labels},role=\"follower\"}} 0"),
        format!("doyen_datagrams_sent_total{{{labels}}} 11"),
        format!("doyen_datagrams_received_total{{{labels}}} 12"),
        format!("doyen_datagrams_unsent_total{{{labels}}} 13"),
        format!("doyen_elections_total{{{labels}}} 14"),
        format!("doyen_store_seconds_total{{{labels}}} 2.5"),
        format!("doyen_datagrams_rejected_total{{{labels},reason=\"replayed\"}} 5"),
        format!("doyen_datagrams_rejected_total{{{labels},reason=\"forged\"}} 0"),
        format!("doyen_peer_reachable{{{labels},peer=\"n2\"}} 1"),
        format!("doyen_peer_reachable{{{labels},peer=\"n3\"}} 0"),
        format!("doyen_peer_rtt_seconds{{{labels},peer=\"n2\"}} 0.00031"),
        format!("doyen_build_info{{{labels},version=\"0.1.0\",algorithm=\"quorum\"}} 1"),
        "# EOF".to_owned(),
    ] {
        assert!(answer.body.lines().any(|line| line == sample), "{sample} in {}", answer.body);
    }
    fake.announce(|state| (state.role, state.lease_deadline) = (Some(Role::Retiring), None));
    let body = fake.get("/metrics").body;
    for sample in
        [format!("doyen_has_lease{{{labels}}} 0"), format!("doyen_is_leader{{{labels}}} 1")]
    {
        assert!(body.lines().any(|line| line == sample), "{sample} in {body}");
    }
}

#[test]
fn every_node_has_metrics_of_its_own() {
    let mut status = follower_of_n3();
    status.cluster = "other".to_owned();
    let (one, other) = (Fake::leader(), Fake::serving(status, Limits::default()));
    assert!(one.get("/metrics").body.contains(r#"doyen_has_lease{cluster="test",member="n1"} 1"#));
    let body = other.get("/metrics").body;
    assert!(body.contains(r#"doyen_has_lease{cluster="other",member="n1"} 0"#), "{body}");
    assert!(!body.contains("test"), "{body}");
}
