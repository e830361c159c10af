//! The methods of the engine besides runs of the gallery: checks, pictures, the tour, and what is refused.

use doyen_check::counterexample::Counterexample;
use doyen_lab::gallery;
use serde_json::{Value, json};

fn call(method: &str, request: &Value) -> Result<Value, Value> {
    let read = |text: String| serde_json::from_str(&text).unwrap();
    doyen_lab::call(method, &request.to_string(), &mut |_| true).map(read).map_err(read)
}

fn answer(method: &str, request: &Value) -> Value {
    call(method, request).unwrap_or_else(|problem| panic!("{method}: {problem}"))
}

fn bully(mode: &str) -> Value {
    json!({ "flags": [["algorithm", "bully"], ["mode", mode], ["members", "3"], ["dead", "3"], ["initiators", "2"]] })
}

#[test]
fn a_violation_is_a_run_that_can_be_run_again_and_replayed() {
    let request =
        json!({ "source": bully("textbook"), "property": "A1", "budget": { "restarts": 1 } });
    let found = answer("check", &request);
    assert_eq!(found["verdict"], "violated");
    assert_eq!(found["property"], "A1");
    assert!(found["text"].as_str().unwrap().contains("1 follows 2 and 2 follows 3"), "{found}");
    assert_eq!(answer("run", &json!({ "source": found["source"] })), found["run"]);
    let file = answer("render", &json!({ "source": found["source"], "form": "toml" }));
    let text = file["text"].as_str().unwrap();
    let replay = Counterexample::parse("file", text).and_then(|file| file.replay()).unwrap();
    assert!(replay.broken);
    for form in ["svg", "mermaid", "trace", "command"] {
        answer("render", &json!({ "source": found["source"], "form": form }));
    }
    let command = "doyen check --algorithm bully --mode textbook --members 3 --dead 3 --initiators 2 --restarts 1 \
                   --property A1";
    assert_eq!(found["command"], command);
}

#[test]
fn what_holds_says_in_how_many_states_and_what_is_open() {
    let request =
        json!({ "source": bully("hardened"), "property": "A1", "budget": { "restarts": 1 } });
    let found = answer("check", &request);
    assert_eq!(found["verdict"], "holds");
    let text = found["text"].as_str().unwrap();
    assert!(text.starts_with("Holds in all 1,2"), "{text}");
    assert!(text.ends_with("3 members of which 3 is down, at most 1 restart."), "{text}");
    assert!(found["not_covered"].as_str().unwrap().contains("messages that take longer than D"));
    assert!(found["run"].is_null() && found["source"].is_null());
}

#[test]
fn a_run_without_end_is_a_loop() {
    let request =
        json!({ "source": { "gallery": "flaws/f06-leader-only-says-ok" }, "property": "A3" });
    let run = &answer("check", &request)["run"];
    let steps = run["steps"].as_array().unwrap().len();
    assert_eq!(run["loop"]["to"], steps - 1);
    assert!(run["loop"]["from"].as_u64().unwrap() > 0, "{run}");
}

#[test]
fn a_check_reports_its_progress_and_can_be_stopped() {
    let request = json!({ "source": { "gallery": "quorum/f02-partition-heals" }, "budget": { "crashes": 1 } });
    let mut reports = Vec::new();
    let answer = doyen_lab::call("check", &request.to_string(), &mut |report| {
        reports.push(report.to_owned());
        reports.len() < 3
    });
    let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
    assert_eq!(answer["verdict"], "stopped");
    assert!(answer["text"].as_str().unwrap().starts_with("Stopped after"), "{answer}");
    assert_eq!(reports.len(), 3);
    assert!(reports[0].starts_with(r#"{"states":"#), "{reports:?}");
}

/// Small cases are minimized within one report; this one takes many attempts.
#[test]
fn minimizing_reports_its_progress_and_can_be_stopped() {
    let source = json!({ "flags": [["algorithm", "chang-roberts"], ["members", "6"], ["initiators", "all"]] });
    let budget = json!({ "crashes": 2, "losses": 1, "restarts": 1 });
    let request = json!({ "source": source, "property": "A3", "budget": budget });
    let ask = |most: usize| {
        let mut attempts = 0;
        let answer = doyen_lab::call("check", &request.to_string(), &mut |report| {
            attempts += usize::from(report.contains(r#""minimizing":true"#));
            attempts < most
        });
        (serde_json::from_str::<Value>(&answer.unwrap()).unwrap(), attempts)
    };
    let ((whole, all), (stopped, one)) = (ask(usize::MAX), ask(1));
    assert!(all > 1 && one == 1, "{all} reports, {one} before the stop");
    assert_eq!(stopped["verdict"], "violated", "what was found counts");
    let members = |found: &Value| found["run"]["members"].as_array().unwrap().len();
    assert!(members(&stopped) > members(&whole), "{stopped}");
}

#[test]
fn what_takes_long_can_be_stopped() {
    let source = json!({ "toml": "algorithm = \"bully\"\nmembers = 600\ninitiators = \"all\"" });
    for (method, request) in [
        ("run", json!({ "source": source })),
        ("scale", json!({ "source": source, "members": 700 })),
        ("render", json!({ "source": source, "form": "trace" })),
    ] {
        let mut reports = Vec::new();
        let answer = doyen_lab::call(method, &request.to_string(), &mut |report| {
            reports.push(report.to_owned());
            reports.len() < 2
        });
        let problem = answer.expect_err("it was stopped");
        assert!(problem.contains(r#""title":"Stopped""#), "{method}: {problem}");
        assert_eq!(reports.len(), 2, "{method}: nothing is asked after the stop");
        assert!(reports[0].starts_with(r#"{"events":"#), "{reports:?}");
    }
}

#[test]
fn every_stop_of_the_tour_is_there() {
    for stop in gallery::FIVE_MINUTES {
        let Some(name) = stop.scenario else { continue };
        let run = answer("run", &json!({ "source": { "gallery": name, "flags": stop.flags } }));
        let step = &run["steps"][stop.step];
        assert!(step["background"].is_null() && step["text"].is_string(), "{}: {step}", stop.title);
    }
    let at = |index: usize, step: usize| {
        let gallery::Stop { scenario, flags, .. } = gallery::FIVE_MINUTES[index];
        let run = answer("run", &json!({ "source": { "gallery": scenario, "flags": flags } }));
        (run["steps"][step]["text"].clone(), run)
    };
    assert_eq!(at(0, gallery::FIVE_MINUTES[0].step).0, "6: no answer in time");
    assert_eq!(at(2, 0).1["metrics"]["messages"], 29);
    assert_eq!(at(3, gallery::FIVE_MINUTES[3].step).0, "6 crashes");
    assert_eq!(at(4, 0).1["metrics"]["two_leaders"], true);
    assert_eq!(at(5, 0).1["metrics"]["two_leaders"], false);
}

/// What the checker is asked first about each flaw: it finds it, or says that it was not allowed what the scenario does.
#[test]
fn the_first_question_about_a_flaw_is_never_answered_by_all_is_well() {
    let flaws = gallery::GROUPS.iter().find(|group| group.name == "flaws").unwrap();
    let mut found = Vec::new();
    for entry in flaws.entries {
        let source = json!({ "gallery": entry.name, "flags": [] });
        let asked = &answer("explain", &json!({ "source": source }))["check"];
        let request = json!({ "source": source, "property": asked["property"], "budget": asked["budget"], "max_states": 20_000 });
        // Some have too many members, which is said.
        let Ok(answer) = call("check", &request) else { continue };
        match answer["verdict"].as_str() {
            Some("violated") => found.push(entry.name),
            Some("holds") => {
                assert_eq!(answer["faults_replaced"], true, "{}: {answer}", entry.name);
            }
            _ => {}
        }
    }
    println!("{found:?}");
    for name in ["flaws/f04-no-announcement-timer", "flaws/f06-leader-only-says-ok"] {
        assert!(found.contains(&name), "{found:?}");
    }
}

/// The checker finds what scenarios of mutual exclusion show, and is asked only what means something to them.
#[test]
fn mutual_exclusion_is_checked() {
    for (name, property) in [
        ("cs425/an-overtaken-waiter-deadlocks", "served"),
        ("cs425/plain-maekawa-deadlocks", "served"),
        ("cs425/a-doubled-reply-lets-two-in", "one-inside"),
        ("cs677/an-empty-table-lets-two-in", "one-inside"),
        ("cs677/a-lost-token-blocks-the-ring", "served"),
    ] {
        let source = json!({ "gallery": name, "flags": [] });
        let asked = &answer("explain", &json!({ "source": source }))["check"];
        assert_eq!(asked["property"], property, "{name}");
        let properties = asked["properties"].as_array().unwrap();
        assert!(properties.contains(&json!("served")) && !properties.contains(&json!("A1")));
        assert!(!asked["faults"].as_array().unwrap().contains(&json!("campaigns")), "{name}");
        let request = json!({ "source": source, "property": property, "budget": asked["budget"] });
        let found = answer("check", &request);
        assert_eq!((&found["verdict"], &found["property"]), (&json!("violated"), &json!(property)));
        assert_eq!(found["run"]["purpose"], "excludes", "{name}");
    }
    let flags = json!([["algorithm", "lamport"], ["members", "2"], ["requests", "all"]]);
    let found = answer("check", &json!({ "source": { "flags": flags } }));
    assert_eq!(found["verdict"], "holds", "{found}");
    let command = "doyen check --algorithm lamport --members 2 --requests all";
    assert_eq!(found["command"], command);
    let source = json!({ "flags": flags });
    let refused = call("check", &json!({ "source": source, "property": "A1" })).unwrap_err();
    assert_eq!(refused["key"], "property");
}

#[test]
fn a_member_that_is_down_can_be_brought_up() {
    let flags = json!([["dead", ""]]);
    let run =
        answer("run", &json!({ "source": { "gallery": "kordafshari/figure-1", "flags": flags } }));
    assert_eq!(run["metrics"]["leader"], 7);
}

#[test]
fn a_branch_is_the_same_run_up_to_the_change_and_the_formula_says_why_it_differs() {
    let run = |flags: Value| {
        answer("run", &json!({ "source": { "gallery": "kordafshari/figure-1", "flags": flags } }))
    };
    let (base, branch) = (run(json!([])), run(json!([["crash", "6@2.5ms"]])));
    assert_ne!(base["hash"], branch["hash"]);
    for step in 0..9 {
        assert_eq!(base["steps"][step], branch["steps"][step]);
    }
    assert_eq!(branch["command"], "doyen sim kordafshari/figure-1 --crash 6@2.5ms");
    let metrics = &branch["metrics"];
    assert_eq!((&metrics["messages"], &metrics["formula"]["value"]), (&json!(22), &json!(16)));
    assert_eq!(metrics["formula"]["holds"], false);
    let why = "6 crashes, and the formulas assume that no member does during the election";
    assert_eq!(metrics["no_formula"], why);
    let dropped = run(json!([["drop", "6:1:COORDINATOR"]]));
    let message = dropped["messages"].as_array().unwrap();
    let message = message.iter().find(|it| it["ref"] == "6:1:COORDINATOR").unwrap();
    assert_eq!((&message["fate"], &message["changed"]), (&json!("lost"), &json!("dropped")));
    assert_eq!(run(json!([["drop", "6:1:OK"]]))["warnings"], json!(["no message 6:1:OK was sent"]));
}

#[test]
fn what_is_refused_names_the_word_at_fault() {
    let toml = |text: &str| json!({ "source": { "toml": text } });
    let flags =
        |flags: Value| json!({ "source": { "gallery": "kordafshari/figure-1", "flags": flags } });
    for (method, request, key) in [
        ("run", flags(json!([["initiators", "7"]])), json!("initiators")),
        ("run", flags(json!([["crash", "99@1ms"]])), json!("crash")),
        ("run", flags(json!([["crash", "6"]])), json!("crash")),
        ("run", flags(json!([["speed", "6"]])), json!("speed")),
        ("run", json!({ "source": { "gallery": "figure-1" } }), json!("gallery")),
        ("run", toml("algorithm = \"buly\""), json!("toml")),
        ("run", toml("algorithm = \"bully\""), json!("members")),
        ("run", toml("algorithm = \"bully\"\nmembers = 5000000000"), json!("members")),
        ("run", toml("algorithm = \"bully\"\nmembers = \"1..4000000000\""), json!("members")),
        ("run", toml("algorithm = \"ring-active-list\"\nmembers = 100000"), json!("members")),
        ("run", toml(&"#".repeat(300_000)), json!("toml")),
        ("run", toml("doyen = \"counterexample\""), json!("toml")),
        ("check", json!({ "source": bully("textbook"), "property": "A9" }), json!("property")),
        (
            "check",
            json!({ "source": bully("textbook"), "budget": { "crashes": 99 } }),
            json!("crashes"),
        ),
        ("scale", json!({ "source": bully("textbook"), "members": 0 }), json!("members")),
        (
            "render",
            json!({ "source": { "flags": [["algorithm", "bully"], ["members", "99"]] }, "form": "svg" }),
            json!("members"),
        ),
        ("run", json!({}), Value::Null),
        ("dance", json!({}), Value::Null),
    ] {
        let problem = call(method, &request).expect_err("it is refused");
        assert_eq!(problem["key"], key, "{problem}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
}

/// No request keeps the engine busy or fills its memory, whatever it asks for.
#[test]
fn runs_without_end_are_bounded() {
    for source in [
        // Every message arrives twice, and every question is asked again for each: it grows exponentially.
        json!({ "toml": "algorithm = \"bully\"\nmode = \"cs677-no-guard\"\nmembers = 18\nduplicate = 1.0" }),
        // A member asks forever.
        json!({ "gallery": "flaws/f06-leader-only-says-ok", "flags": [["until", "1000000s"]] }),
        // Nearly everything is background.
        json!({ "toml": "algorithm = \"quorum\"\nmembers = 50\nuntil = \"1000s\"\nheartbeat = \"1us\"\nloss = 0.5" }),
    ] {
        let run = answer("run", &json!({ "source": source, "limit": { "events": 100 } }));
        let ended = run["ended"].as_str().unwrap();
        assert!(["message limit", "events"].contains(&ended), "{source}: {ended}");
        assert!(run["steps"].as_array().unwrap().len() <= 100);
        assert!(run["truncated"].is_string());
    }
}
