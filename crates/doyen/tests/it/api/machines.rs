//! The `OpenAPI` description and the metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doyen::api::Limits;
use doyen::node::counters::Counters;
use doyen::node::wire::Rejection;
use doyen_core::protocol::Role;

use super::fake::{Fake, follower_of_n3};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    let path = in_repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `make golden` rewrites the file; then read the diff.
#[test]
fn the_description_is_the_one_in_the_documentation() {
    let served = Fake::follower().get("/openapi.json").json();
    let text = serde_json::to_string_pretty(&served).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(in_repository("docs/openapi.json"), &text).expect("it is written");
    }
    let documented = read("docs/openapi.json");
    let differs = text.lines().zip(documented.lines()).find(|(served, told)| served != told);
    assert!(text == documented, "`make golden` rewrites it; the first difference: {differs:?}");
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
        path != "/v1/permit" && !path.starts_with("/v1/locks/") && !path.starts_with("/v1/groups/")
    });
    for command in commands {
        let command = &document["paths"][command]["post"];
        assert_eq!(command["security"][0]["admin_secret"], serde_json::json!([]), "{command}");
        assert_eq!(command["parameters"][0]["name"], "If-Match");
    }
    assert_eq!(paths.len(), 38, "{paths:?}");
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

/// Every name of a metric of a node in a text.
fn mentioned(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_metric = |word: &&str| ["doyen_", "process_"].iter().any(|it| word.starts_with(it));
    words.filter(is_metric).map(str::to_owned).collect()
}

/// A histogram has three kinds of samples. Which of them are shown does not matter.
fn families(names: &BTreeSet<String>) -> BTreeSet<&str> {
    let family = |name: &'_ String| {
        let suffixes = ["_bucket", "_sum", "_count"];
        suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).map_or(name.len(), str::len)
    };
    names.iter().map(|name| &name[..family(name)]).collect()
}

#[test]
fn alerts_and_dashboard_use_the_metrics_that_there_are() {
    let fake = Fake::leader();
    // The first request is one of those that are counted.
    fake.get("/metrics");
    let exported = exported(&fake.get("/metrics").body);
    let alerts = mentioned(&read("packaging/prometheus-alerts.yml"));
    let dashboard = read("packaging/grafana-dashboard.json");
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("JSON");
    let shown = mentioned(&dashboard);
    let unknown: Vec<_> = alerts.union(&shown).filter(|name| !exported.contains(*name)).collect();
    assert_eq!(unknown, [] as [&String; 0], "there are no such metrics");
    assert_eq!(families(&shown), families(&exported), "the dashboard shows every metric");
    let documented = mentioned(&read("docs/http.md"));
    let missing: Vec<_> =
        families(&exported).into_iter().filter(|name| !documented.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "docs/http.md explains every metric");
    assert!(alerts.len() >= 15, "{alerts:?}");
}

#[test]
fn metrics_are_what_has_been_counted_and_what_is_so_now() {
    let fake = Fake::leader();
    let counters = &fake.counters;
    let counts = [&counters.sent, &counters.received, &counters.unsent, &counters.elections];
    for (count, counter) in (11..).zip(counts) {
        Counters::add(counter, count);
    }
    Counters::add(&counters.leader_changes, 3);
    counters.store_time.observe(Duration::from_micros(400));
    counters.store_time.observe(Duration::from_millis(2500));
    counters.downtime.observe(Duration::from_secs(60));
    let replayed = Rejection::ALL.iter().position(|reason| *reason == Rejection::Replayed);
    Counters::add(&counters.rejected[replayed.expect("a reason")], 5);
    fake.publish(|status| {
        status.members[2].reachable = false;
        (status.members[2].recent_failures, status.members[2].penalty_remaining_ms) =
            (2, Some(48_500));
        status.drained = true;
    });
    for path in ["/leader", "/leader", "/nowhere"] {
        fake.get(path);
    }
    let answer = fake.get("/metrics");
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
        format!("doyen_leader_changes_total{{{labels}}} 3"),
        format!("doyen_has_leader{{{labels}}} 1"),
        format!("doyen_store_seconds_sum{{{labels}}} 2.5004"),
        format!("doyen_store_seconds_count{{{labels}}} 2"),
        format!("doyen_store_seconds_bucket{{{labels},le=\"0.00025\"}} 0"),
        format!("doyen_store_seconds_bucket{{{labels},le=\"0.0005\"}} 1"),
        format!("doyen_store_seconds_bucket{{{labels},le=\"2.5\"}} 2"),
        format!("doyen_downtime_seconds_bucket{{{labels},le=\"10.0\"}} 0"),
        format!("doyen_downtime_seconds_bucket{{{labels},le=\"+Inf\"}} 1"),
        format!("doyen_drained{{{labels}}} 1"),
        format!("doyen_rejoining{{{labels}}} 0"),
        format!("doyen_recent_failures{{{labels},of=\"n3\"}} 2"),
        format!("doyen_recent_failures{{{labels},of=\"n1\"}} 0"),
        format!("doyen_penalty_remaining_seconds{{{labels},of=\"n3\"}} 48.5"),
        format!("doyen_http_requests_total{{{labels},path=\"/leader\",code=\"200\"}} 2"),
        format!("doyen_http_requests_total{{{labels},path=\"other\",code=\"404\"}} 1"),
        format!("doyen_admin_calls_total{{{labels},result=\"unauthorized\"}} 0"),
        format!("doyen_configuration_info{{{labels},fingerprint=\"0badcafe\"}} 1"),
        format!("doyen_key_info{{{labels},fingerprint=\"11223344\",use=\"seal\"}} 1"),
        format!("doyen_key_info{{{labels},fingerprint=\"aabbccdd\",use=\"open\"}} 1"),
        format!("doyen_datagrams_rejected_total{{{labels},reason=\"replayed\"}} 5"),
        format!("doyen_datagrams_rejected_total{{{labels},reason=\"forged\"}} 0"),
        format!("doyen_peer_reachable{{{labels},peer=\"n2\"}} 1"),
        format!("doyen_peer_reachable{{{labels},peer=\"n3\"}} 0"),
        format!("doyen_peer_rtt_seconds{{{labels},peer=\"n2\"}} 0.00031"),
        format!("doyen_build_info{{{labels},version=\"0.1.0\",algorithm=\"quorum\"}} 1"),
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

/// What both formats are read by is in `tests/it/prometheus.rs`.
#[test]
fn the_format_of_metrics_is_the_one_that_the_client_prefers() {
    let fake = Fake::leader();
    let of = |accept: &str| {
        let answer = fake.ask("GET", "/metrics", accept);
        assert_eq!(answer.header("vary"), Some("accept"));
        (answer.header("content-type").expect("a type").to_owned(), answer.body)
    };
    fake.get("/leader");
    let (kind, text) = of("");
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(text.contains("# TYPE doyen_elections_total counter\n"), "{text}");
    assert!(text.contains("# TYPE doyen_build_info gauge\n"), "{text}");
    assert!(text.contains("# TYPE process_cpu_seconds_total counter\n"), "{text}");
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    let (kind, open) = of("accept: application/openmetrics-text; version=1.0.0\r\n");
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(open.contains("# TYPE doyen_elections counter\n"), "{open}");
    assert!(open.contains("# TYPE doyen_build info\n"), "{open}");
    assert!(open.contains("# UNIT process_cpu_seconds seconds\n"), "{open}");
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    assert_eq!(exported(&text), exported(&open), "the samples are the same");
}

#[test]
fn every_node_has_metrics_of_its_own() {
    let mut status = follower_of_n3();
    status.cluster = "other".to_owned();
    let (one, other) = (Fake::leader(), Fake::serving(status, Limits::default()));
    assert!(one.get("/metrics").body.contains(r#"doyen_has_lease{cluster="test",member="n1"} 1"#));
    let body = other.get("/metrics").body;
    assert!(body.contains(r#"doyen_has_lease{cluster="other",member="n1"} 0"#), "{body}");
    assert!(!body.contains("cluster=\"test\""), "{body}");
}
