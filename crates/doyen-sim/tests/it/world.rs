//! Goal: the world keeps its promises where several things happen at once. Method: small scenarios as text, and what
//! their records say.

use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::run;
use doyen_sim::scenario::Scenario;
use doyen_sim::trace::{EventKind, TraceEvent};

fn watch(text: &str) -> (Outcome, Vec<TraceEvent>) {
    let case = Scenario::from_toml("test", text).expect("the scenario is right");
    let mut records: Vec<TraceEvent> = Vec::new();
    let outcome = run::run(&case, Some(&mut records));
    let alone = run::run(&case, None);
    assert_eq!(outcome, alone, "watching changes nothing");
    (outcome, records)
}

/// The first of so many bullies calls an election, and the `rest` of the scenario happens.
fn bully(members: u32, rest: &str) -> String {
    format!("algorithm = 'bully'\nmembers = {members}\ninitiators = [1]\n{rest}")
}

/// What matters here, in short: `1>5 ELECTION`, `5<1 ELECTION`, `5!1 ELECTION` if missed, `crash 1`.
fn story(records: &[TraceEvent]) -> Vec<String> {
    let tell = |record: &TraceEvent| match &record.kind {
        EventKind::Sent { from, to, kind, .. } => Some(format!("{from}>{to} {kind}")),
        EventKind::Received { from, to, kind, .. } => Some(format!("{to}<{from} {kind}")),
        EventKind::Missed { from, to, kind, .. } => Some(format!("{to}!{from} {kind}")),
        EventKind::Crashed { member, .. } => Some(format!("crash {member}")),
        EventKind::Restarted { member, .. } => Some(format!("restart {member}")),
        EventKind::Campaign { member, .. } => Some(format!("campaign {member}")),
        EventKind::Paused { member, until } => Some(format!("pause {member} until {until}")),
        _ => None,
    };
    records.iter().filter_map(tell).collect()
}

fn after<'s>(story: &'s [String], line: &str) -> &'s [String] {
    let at = story.iter().position(|told| told == line);
    let at = at.unwrap_or_else(|| panic!("no `{line}` in {story:#?}"));
    &story[at + 1..]
}

#[test]
fn a_pause_in_the_middle_of_a_broadcast_lets_it_finish() {
    let (outcome, records) = watch(&bully(
        5,
        r#"fault = [{ when = { member = 1, has = "sent", kind = "ELECTION", count = 1 }, pause = 1, for = "1ms" }]"#,
    ));
    let story = story(&records);
    let asked = ["1>2 ELECTION", "1>3 ELECTION", "1>4 ELECTION", "1>5 ELECTION"];
    assert_eq!(story[1..5], asked, "{story:#?}");
    assert_eq!(story[5], "pause 1 until 1ms");
    assert!(outcome.agreed && outcome.ended == Ended::Quiet);
}

#[test]
fn a_member_that_crashes_on_a_receipt_does_nothing_about_it() {
    let (_, records) = watch(&bully(
        5,
        r#"fault = [{ when = { member = 4, has = "received", kind = "ELECTION", count = 2 }, crash = 4 }]"#,
    ));
    let story = story(&records);
    let rest = after(&story, "crash 4");
    assert!(!rest.iter().any(|line| line.starts_with("4>")), "{story:#?}");
}

#[test]
fn a_crash_in_the_middle_of_a_broadcast_cuts_it_short_and_the_next_life_does_not_go_on_with_it() {
    let (_, records) = watch(&bully(
        3,
        r#"
        fault = [
            { when = { member = 1, has = "sent", kind = "ELECTION", count = 1 }, crash = 1 },
            { when = { member = 1, has = "sent", kind = "ELECTION", count = 1 }, restart = 1 },
        ]
        "#,
    ));
    let story = story(&records);
    assert_eq!(story[..4], ["campaign 1", "1>2 ELECTION", "crash 1", "restart 1"]);
    // The new life calls an election of its own, from the beginning, or none: it never goes on with the old one.
    assert_ne!(story[4], "1>3 ELECTION", "{story:#?}");
}

#[test]
fn an_election_called_on_a_receipt_begins_when_the_receipt_is_dealt_with() {
    let (_, records) = watch(&bully(
        3,
        r#"fault = [{ when = { member = 2, has = "received", kind = "ELECTION" }, campaign = 2 }]"#,
    ));
    let story = story(&records);
    let rest = after(&story, "2<1 ELECTION");
    let answered = rest.iter().position(|line| line == "2>1 OK");
    let called = rest.iter().position(|line| line == "campaign 2");
    assert!(answered.is_some() && answered < called, "{story:#?}");
}

#[test]
fn a_pause_keeps_the_order_of_a_link() {
    let (_, records) = watch(
        r#"
        algorithm = "ring-active-list"
        members = 4
        initiators = [1, 2]
        link = [{ from = 1, to = 2, delay = "0.5ms" }]
        fault = [{ at = "0.2ms", pause = 3, for = "1.3ms" }]
        "#,
    );
    let ids = |want: fn(&EventKind) -> Option<u32>| -> Vec<u32> {
        records.iter().filter_map(|record| want(&record.kind)).collect()
    };
    let sent = ids(|what| match what {
        EventKind::Sent { id, from, to, .. } if (from.0, to.0) == (2, 3) => Some(*id),
        _ => None,
    });
    let received = ids(|what| match what {
        EventKind::Received { id, from, to, .. } if (from.0, to.0) == (2, 3) => Some(*id),
        _ => None,
    });
    assert!(sent.len() > 1);
    assert_eq!(sent, received);
}

#[test]
fn what_waits_for_a_paused_member_dies_with_it() {
    let (outcome, records) = watch(&bully(
        3,
        r#"
        fault = [
            { at = "0.5ms", pause = 3, for = "20ms" },
            { at = "5ms", crash = 3 },
            { at = "6ms", restart = 3 },
        ]
        "#,
    ));
    let story = story(&records);
    let rest = after(&story, "crash 3");
    assert_eq!(rest[..3], ["3!1 ELECTION", "3!2 ELECTION", "restart 3"], "{story:#?}");
    assert_eq!(outcome.messages.to_dead, 2);
    assert_eq!(outcome.ended, Ended::Quiet, "the ledgers add up");
}

#[test]
fn a_paused_member_notices_when_it_resumes_and_a_longer_pause_extends_the_first() {
    let (_, records) = watch(
        r#"
        algorithm = "bully"
        members = 3
        initiators = [{ member = 1, at = "2ms" }]
        fault = [
            { at = "1ms", pause = 1, for = "3ms" },
            { at = "2ms", pause = 1, for = "8ms" },
            { at = "3ms", pause = 1, for = "1ms" },
        ]
        "#,
    );
    let told = story(&records);
    assert_eq!(told[..3], ["pause 1 until 4ms", "pause 1 until 10ms", "campaign 1"], "{told:#?}");
    let campaign = records.iter().find(|record| matches!(record.kind, EventKind::Campaign { .. }));
    assert_eq!(campaign.map(|record| record.at.to_string()).as_deref(), Some("10ms"));
}

#[test]
fn the_control_part_of_a_dead_member_forwards_no_heartbeats() {
    let (_, records) = watch(
        r#"
        algorithm = "chang-roberts"
        mode = "hardened"
        members = 4
        leader = 4
        detector = "5ms"
        fault = [{ at = "3ms", crash = 4, forwards = true }]
        "#,
    );
    let story = story(&records);
    let rest = after(&story, "crash 4");
    assert!(rest.iter().any(|line| line == "4!1 HEARTBEAT"), "{story:#?}");
    assert!(!rest.iter().any(|line| line == "4>1 HEARTBEAT"), "{story:#?}");
}

#[test]
fn a_run_is_not_quiet_while_the_link_keeps_a_message() {
    let (outcome, _) = watch(
        r#"
        algorithm = "bully"
        members = 3
        initiators = [2]
        reliable = true
        fault = [
            { at = "0", cut = [3, 1] },
            { at = "400ms", heal = true },
        ]
        "#,
    );
    assert_eq!(outcome.ended, Ended::Quiet);
    assert!(outcome.agreed, "{:?}", outcome.views);
}

#[test]
fn a_run_lasts_until_everybody_has_noticed_and_every_pause_is_over() {
    for text in [
        "initiators = [{ member = 1, at = \"1000s\" }]",
        "initiators = [1]\n[[fault]]\nat = \"1ms\"\npause = 2\nfor = \"1000s\"",
        "initiators = [1]\n[[fault]]\nwhen = { member = 2, has = \"received\", kind = \"ELECTION\" }\n\
         pause = 2\nfor = \"1000s\"",
    ] {
        let (outcome, _) = watch(&format!("algorithm = \"bully\"\nmembers = 5\n{text}"));
        assert_eq!(outcome.ended, Ended::Quiet, "{text}");
        assert!(outcome.end.to_string().starts_with("1000."), "{text}: {}", outcome.end);
    }
}

#[test]
fn the_default_limit_knows_chaos_and_slow_clocks() {
    let until = |text: &str| {
        let text = format!("algorithm = \"bully\"\nmembers = 5\n{text}");
        Scenario::from_toml("test", &text).expect("the scenario is right").until
    };
    let plain = until("");
    assert!(until("[[fault]]\nat = \"0\"\nclock = 1\nrate = 0.1").0 >= plain.0 * 10);
    let chaos = until("[chaos]\ncut_every = \"1s\"\ncut_for = \"10s\"\nuntil = \"5s\"");
    assert!(chaos.0 >= plain.0 + 5_000_000_000 + 100_000_000_000);
}

/// Chaos crashes member 1 or 2 within a second and revives it after about 1000 s; the script revives it before.
#[test]
fn a_random_restart_does_not_revive_who_crashed_again() {
    let (_, records) = watch(&bully(
        2,
        r#"
        chaos = { crash_every = "100ms", down_for = "1000s", until = "10s" }
        fault = [
            { at = "10.1s", restart = 1 },
            { at = "10.1s", restart = 2 },
            { at = "10.2s", crash = 1 },
            { at = "10.2s", crash = 2 },
        ]
        "#,
    ));
    let story = story(&records);
    let restarts = story.iter().filter(|line| line.starts_with("restart")).count();
    let crashes = story.iter().filter(|line| line.starts_with("crash")).count();
    assert_eq!((crashes, restarts), (4, 2), "{story:#?}");
}

/// When each message of a run arrived, as `6:1:COORDINATOR`, and again.
fn arrivals(records: &[TraceEvent]) -> Vec<String> {
    let tell = |record: &TraceEvent| match &record.kind {
        EventKind::Sent { from, to, kind, arrives, again, changed, .. } => {
            let time = |at: Option<_>| {
                at.map_or("never".to_owned(), |at: doyen_sim::time::Time| at.to_string())
            };
            let again = again.map_or(String::new(), |_| format!(" and {}", time(*again)));
            let changed = changed.map_or(String::new(), |changed| format!(", {changed:?}"));
            Some(format!("{from}:{to}:{kind} {}{again}{changed}", time(*arrives)))
        }
        _ => None,
    };
    records.iter().filter_map(tell).collect()
}

const THREE_MEMBERS: &str = r#"
    algorithm = "bully"
    members = 3
    initiators = [2]
"#;

#[test]
fn a_single_message_is_dropped_delayed_or_doubled_and_no_other() {
    let (_, records) = watch(THREE_MEMBERS);
    let plain = arrivals(&records);
    assert_eq!(
        plain,
        ["2:3:ELECTION 1ms", "3:2:OK 2ms", "3:1:COORDINATOR 4ms", "3:2:COORDINATOR 4ms"]
    );
    let changed = |change: &str| {
        let (outcome, records) = watch(&format!("{THREE_MEMBERS}{change}"));
        assert_eq!(outcome.never_sent, [""; 0]);
        let arrivals = arrivals(&records);
        (arrivals.into_iter().find(|line| line.starts_with("3:1")).unwrap(), outcome)
    };
    let (line, outcome) = changed(r#"drop = ["3:1:COORDINATOR"]"#);
    assert_eq!(line, "3:1:COORDINATOR never, Dropped");
    assert_eq!((outcome.messages.lost, outcome.messages.total, outcome.agreed), (1, 4, false));
    let (line, outcome) = changed(r#"late = ["3:1:COORDINATOR+2ms"]"#);
    assert_eq!(line, "3:1:COORDINATOR 6ms, Delayed");
    assert!(outcome.agreed);
    let (line, _) = changed(r#"twice = ["3:1:COORDINATOR"]"#);
    assert_eq!(line, "3:1:COORDINATOR 4ms and 5ms, Doubled");
    let (line, _) = changed(r#"twice = ["3:1:COORDINATOR:1+5ms"]"#);
    assert_eq!(line, "3:1:COORDINATOR 4ms and 9ms, Doubled");
}

#[test]
fn a_change_of_a_message_that_nobody_sends_is_reported() {
    let text = format!("{THREE_MEMBERS}drop = [\"3:1:COORDINATOR:2\", \"1:3:OK\"]");
    let (outcome, records) = watch(&text);
    let names = outcome.never_sent;
    assert_eq!(names, ["3:1:COORDINATOR:2", "1:3:OK"]);
    assert_eq!(arrivals(&records), arrivals(&watch(THREE_MEMBERS).1));
}

#[test]
fn the_next_message_of_a_kind_is_lost_whoever_sends_it() {
    let lost = |at: &str, kind: &str| {
        let fault = format!("fault = [{{ at = \"{at}\", drop = \"{kind}\" }}]");
        watch(&format!("{THREE_MEMBERS}{fault}"))
    };
    let (outcome, records) = lost("1.5ms", "COORDINATOR");
    assert_eq!(outcome.messages.lost, 1);
    assert_eq!(
        arrivals(&records)[2],
        "3:1:COORDINATOR never, Dropped",
        "the first after that time"
    );
    assert_eq!(outcome.never_sent, [""; 0]);
    let (outcome, records) = lost("3.5ms", "COORDINATOR");
    assert_eq!(outcome.never_sent, ["COORDINATOR@3.5ms"], "none is sent any more");
    assert_eq!(arrivals(&records), arrivals(&watch(THREE_MEMBERS).1));
    let wrong = format!("{THREE_MEMBERS}fault = [{{ at = \"1ms\", drop = \"TOKEN\" }}]");
    let error = Scenario::from_toml("test", &wrong).unwrap_err();
    assert!(error.contains("there are no TOKEN messages"), "{error}");
}

/// Another message is drawn the same delay with the change as without, so two runs are equal until the change matters.
#[test]
fn a_change_draws_nothing() {
    let text = r#"
        algorithm = "bully"
        mode = "hardened"
        members = 4
        initiators = [1, 2]
        detector = "5ms"
        delay = "uniform:1ms..3ms"
        loss = "5%"
        duplicate = "5%"
        until = "40ms"
    "#;
    let plain = arrivals(&watch(text).1);
    for change in [
        "drop = [\"2:4:ELECTION\"]",
        "late = [\"1:3:HEARTBEAT:2+3ms\"]",
        "twice = [\"2:3:ELECTION\"]",
    ] {
        let (outcome, records) = watch(&format!("{text}{change}"));
        assert_eq!(outcome.never_sent, [""; 0]);
        let changed = arrivals(&records);
        let at = plain.iter().zip(&changed).position(|(one, other)| one != other).unwrap();
        assert!(changed[at].contains("ed"), "{}", changed[at]);
        assert_eq!(plain[at + 1], changed[at + 1]);
    }
}

#[test]
fn on_a_link_that_keeps_the_order_what_follows_waits_for_what_is_late() {
    let text = r#"
        algorithm = "ring-active-list"
        members = 3
        initiators = [1]
    "#;
    let received_by_2 = |change: &str| -> Vec<String> {
        let (_, records) = watch(&format!("{text}{change}"));
        let lines = records.iter().filter_map(|record| match &record.kind {
            EventKind::Received { from, to, kind, .. } if to.0 == 2 && from.0 == 1 => {
                Some(format!("{kind} {}", record.at))
            }
            _ => None,
        });
        lines.collect()
    };
    assert_eq!(received_by_2(""), ["ELECT 1ms", "ELECT 4ms", "ELECT 4ms"]);
    let late = received_by_2("late = [\"1:2:ELECT:2+5ms\"]");
    assert_eq!(late, ["ELECT 1ms", "ELECT 9ms", "ELECT 9ms"]);
}
