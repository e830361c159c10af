//! Every scenario of the gallery as a recorded run: it says what the simulator says, and all of it fits together.

use std::collections::{BTreeMap, BTreeSet};

use doyen_core::protocol::View;
use doyen_lab::gallery::{self, Entry};
use doyen_report::formula;
use doyen_report::summary::Summary;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::scenario::Case;
use doyen_sim::trace::TraceEvent;
use serde_json::{Value, json};

/// A recorded run, with the run of the simulator that it must equal.
struct Recorded {
    name: &'static str,
    case: Case,
    outcome: Outcome,
    text: String,
    run: Value,
}

impl Recorded {
    fn of(entry: &'static Entry) -> Self {
        let case = entry.scenario().resolve().unwrap();
        let outcome = doyen_sim::run::run(&case, None);
        let text = call("run", &json!({ "source": { "gallery": entry.name } }));
        let run = serde_json::from_str(&text).unwrap();
        Self { name: entry.name, case, outcome, text, run }
    }

    fn list(&self, key: &str) -> &[Value] {
        self.run[key].as_array().unwrap()
    }

    /// Whether everything that happened was recorded.
    fn is_whole(&self) -> bool {
        self.run["truncated"].is_null()
    }
}

fn call(method: &str, request: &Value) -> String {
    doyen_lab::call(method, &request.to_string(), &mut |_| true).unwrap()
}

fn for_each(check: impl Fn(&Recorded)) {
    for entry in gallery::in_lab() {
        check(&Recorded::of(entry));
    }
}

fn numbers(value: &Value) -> Vec<usize> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

fn metrics_of(recorded: &Recorded) -> &Value {
    &recorded.run["metrics"]
}

#[test]
fn numbers_are_those_of_the_simulator() {
    for_each(|recorded| {
        let Recorded { name, case, outcome, .. } = recorded;
        let found = formula::of(case).filter(|_| outcome.ended == Ended::Quiet);
        let mut summary = serde_json::to_value(Summary::new(case, outcome.clone(), found)).unwrap();
        if let Some(run) = &outcome.exclusion {
            // No member leads; what must not overlap are stays inside.
            (summary["downtime"], summary["overlap"]) = (json!(0), json!(run.overlap));
            let order: Vec<_> = run.entries.iter().map(|entry| entry.member).collect();
            assert_eq!(metrics_of(recorded)["exclusion"]["order"], json!(order), "{name}");
        }
        let metrics = metrics_of(recorded);
        for (ours, theirs) in [
            ("messages", "messages"),
            ("to_down", "to_dead"),
            ("stages", "stages"),
            ("turnaround_ns", "turnaround"),
            ("informed_ns", "informed"),
            ("elections", "elections"),
            ("agreed", "agreed"),
            ("leader", "leader"),
            ("downtime_ns", "downtime"),
            ("overlap_ns", "overlap"),
        ] {
            assert_eq!(metrics[ours], summary[theirs], "{name}: {ours}");
        }
        let kinds = recorded.list("kinds");
        for count in metrics["by_kind"].as_array().unwrap() {
            let kind = kinds[count["kind"].as_u64().unwrap() as usize]["name"].as_str().unwrap();
            assert_eq!(count["count"], summary["by_kind"][kind], "{name}: {kind}");
        }
        match summary["formula_value"].as_u64() {
            Some(value) => {
                assert_eq!(metrics["formula"]["value"], value, "{name}");
                assert_eq!(metrics["formula"]["holds"], summary["formula_matches"], "{name}");
                assert!(metrics["no_formula"].is_null(), "{name}: {}", metrics["no_formula"]);
            }
            None => assert!(metrics["no_formula"].is_string(), "{name}"),
        }
    });
}

/// What a member is like, as the steps tell.
type State = BTreeMap<String, Value>;

#[test]
fn the_changes_of_the_steps_lead_from_the_first_state_to_the_last() {
    for_each(|recorded| {
        let Recorded { name, case, outcome, .. } = recorded;
        let mut states: BTreeMap<u64, State> = BTreeMap::new();
        for state in recorded.list("initial") {
            let state: State = serde_json::from_value(state.clone()).unwrap();
            states.insert(state["id"].as_u64().unwrap(), state);
        }
        for step in recorded.list("steps") {
            for change in step["change"].as_array().into_iter().flatten() {
                let state = states.get_mut(&change[0].as_u64().unwrap()).unwrap();
                for (field, values) in change[1].as_object().unwrap() {
                    assert_eq!(state[field], values[0], "{name}: {field} in {step}");
                    assert_ne!(values[0], values[1], "{name}: {field} in {step}");
                    state.insert(field.clone(), values[1].clone());
                }
            }
        }
        if !recorded.is_whole() {
            return;
        }
        for (id, view) in case.members().iter().zip(outcome.views.iter()) {
            let state = &states[&u64::from(id.0)];
            assert_eq!(state["up"], view.is_some(), "{name}: {id}");
            let Some(View { leader, term, role, section }) = *view else { continue };
            assert_eq!(state["section"], section.to_string(), "{name}: {id}");
            assert_eq!(state["leader"], json!(leader), "{name}: {id}");
            assert_eq!(state["role"], role.to_string(), "{name}: {id}");
            assert_eq!(state["term"], term.0, "{name}: {id}");
        }
    });
}

#[test]
fn causes_come_first_and_messages_know_their_steps() {
    for_each(|recorded| {
        let name = recorded.name;
        let (steps, messages) = (recorded.list("steps"), recorded.list("messages"));
        let mut latest = 0;
        for (i, step) in steps.iter().enumerate() {
            let at = step["at"].as_u64().unwrap();
            assert!(at >= latest, "{name}: {step}");
            latest = at;
            assert!(numbers(&step["causes"]).iter().all(|&cause| cause < i), "{name}: {step}");
            for id in numbers(&step["sends"]) {
                assert_eq!(messages[id]["by"], i, "{name}: {step}");
                assert_eq!(messages[id]["sent"], at, "{name}: {step}");
            }
            assert!(!step["text"].as_str().unwrap().is_empty(), "{name}: {step}");
        }
        let mut references = BTreeSet::new();
        for (id, message) in messages.iter().enumerate() {
            assert!(references.insert(message["ref"].as_str().unwrap()), "{name}: {message}");
            for arrival in ["at", "again_at"].map(|key| &message[key]) {
                let Some(step) = arrival.as_u64() else { continue };
                assert_eq!(steps[step as usize]["message"], id, "{name}: {message}");
            }
            let arrived = message["at"].is_u64();
            let fate = message["fate"].as_str().unwrap_or("received");
            assert_eq!(arrived, matches!(fate, "received" | "receiver down"), "{name}: {message}");
        }
    });
}

#[test]
fn what_lasts_adds_up_to_the_metrics() {
    for_each(|recorded| {
        if !recorded.is_whole() {
            return;
        }
        let (name, run) = (recorded.name, &recorded.run);
        let end = run["end_ns"].as_u64().unwrap();
        let length = |from: &Value, to: &Value| to.as_u64().unwrap_or(end) - from.as_u64().unwrap();
        let downtime = run["intervals"]["downtime"].as_array().unwrap();
        let downtime: u64 = downtime.iter().map(|pair| length(&pair[0], &pair[1])).sum();
        assert_eq!(run["metrics"]["downtime_ns"], downtime, "{name}");
        let overlap = run["intervals"]["overlap"].as_array().unwrap();
        let overlap: u64 = overlap.iter().map(|it| length(&it["from"], &it["to"])).sum();
        assert_eq!(run["metrics"]["overlap_ns"], overlap, "{name}");
        let background =
            |kind: &Value| run["kinds"][kind.as_u64().unwrap() as usize]["background"] == true;
        let counted = recorded.list("messages").iter().filter(|it| !background(&it["kind"]));
        assert_eq!(run["metrics"]["messages"], counted.count(), "{name}");
    });
}

/// About 600 KB for 5,000 events of the trace; a ring, whose steps all send one message, needs a little more, and arbiters,
/// of which several rules fire in a step, more again.
const BYTES_AN_EVENT: usize = 155;

#[test]
fn a_run_is_small_and_the_same_every_time() {
    for_each(|recorded| {
        let Recorded { name, case, text, .. } = recorded;
        assert_eq!(*text, call("run", &json!({ "source": { "gallery": name } })), "{name}");
        let mut trace: Vec<TraceEvent> = Vec::new();
        if !recorded.is_whole() {
            return;
        }
        doyen_sim::run::run(case, Some(&mut trace));
        let fixed = 8_000 + 300 * case.members().len();
        let most = fixed + BYTES_AN_EVENT * trace.len();
        assert!(text.len() <= most, "{name}: {} bytes, {} events", text.len(), trace.len());
    });
}
