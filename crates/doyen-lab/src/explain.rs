//! `explain`: a scenario as a few English sentences whose words can be changed.

mod faults;

use doyen_check::counterexample::{Counterexample, Course};
use doyen_core::config::Mode;
use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::exclusion::lock_service::lock_config;
use doyen_core::members::NodeId;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::initiators::Initiators;
use doyen_sim::message::{Change, MessageChange};
use doyen_sim::scenario::{Case, MemberList, RingOrder, Scenario};
use doyen_sim::time::Time;
use doyen_sim::trace::RunInfo;
use doyen_sim::words::{capitalized, grouped, listed, time};
use doyen_sim::world::Requests;
use serde::{Deserialize, Serialize};

use crate::catalogue;
use crate::check::Suggestion;
use crate::problem::Problem;
use crate::source::Source;
use crate::{schedule, words};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    source: Source,
}

/// A scenario as sentences.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    title: String,
    about: String,
    command: String,
    toml: String,
    sentence: Vec<Part>,
    /// The check to suggest first.
    check: Suggestion,
}

/// A part of the sentence: plain words, or a value that a flag sets.
#[derive(Debug, Default, Serialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    flag: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Choice {
    value: String,
    text: String,
}

impl Choice {
    fn new(value: &impl ToString, text: &str) -> Self {
        Self { value: value.to_string(), text: text.to_owned() }
    }
}

pub(crate) fn explain(request: &Request) -> Result<Explanation, Problem> {
    let schedule = request.source.schedule()?;
    let opened = request.source.open()?;
    let (title, about) = (RunInfo::of(&opened.case).title, opened.case.about.clone());
    let (command, toml, sentence) = match schedule {
        None => {
            let sentence = Sentence::of(&opened.scenario, &opened.case);
            (opened.source.command(), opened.toml(), sentence)
        }
        Some(file) => {
            let sentence = Sentence::of_schedule(&opened.scenario, &opened.case, &file);
            (schedule::command(), file.to_toml(), sentence)
        }
    };
    let check = Suggestion::of(&opened.scenario, &opened.case);
    Ok(Explanation { title, about, command, toml, sentence: sentence.0, check })
}

/// The members that a sentence lists one by one.
const MOST_LISTED: usize = 100;

struct Sentence(Vec<Part>);

impl Sentence {
    fn of(scenario: &Scenario, case: &Case) -> Self {
        let mut sentence = Self(Vec::new());
        sentence.who(scenario, case);
        sentence.begins(case);
        sentence.network(scenario, case);
        sentence.goes_wrong(scenario, case);
        sentence
    }

    /// A counterexample is one order of steps without a clock: there is nothing that a flag could change.
    fn of_schedule(scenario: &Scenario, case: &Case, file: &Counterexample) -> Self {
        let mut sentence = Self(Vec::new());
        sentence.who(scenario, case);
        sentence.begins(case);
        if let Course::Schedule { path, cycle, .. } = &file.course {
            let steps = words::count((path.len() + cycle.len()) as u64, "step");
            let end = if cycle.is_empty() { "" } else { ", of which the last ones repeat forever" };
            let property = file.property;
            sentence.say(format!("{property} does not hold in a schedule of {steps}{end}. "));
        }
        let text = sentence.0.iter().map(|part| part.text.as_str()).collect();
        Self(vec![Part { text, ..Part::default() }])
    }

    fn say(&mut self, text: impl Into<String>) {
        self.0.push(Part { text: text.into(), ..Part::default() });
    }

    /// Words that the flag called `flag` sets.
    fn value(
        &mut self,
        kind: &'static str,
        flag: &'static str,
        value: &impl ToString,
        text: impl Into<String>,
    ) {
        let value = Some(value.to_string());
        let (flag, kind) = (Some(flag), Some(kind));
        self.0.push(Part { flag, value, text: text.into(), choices: Vec::new(), kind });
    }

    /// The other values that the last words may have.
    fn choices(&mut self, choices: impl IntoIterator<Item = Choice>) {
        if let Some(part) = self.0.last_mut() {
            part.choices = choices.into_iter().collect();
        }
    }

    /// The algorithm and its members.
    fn who(&mut self, scenario: &Scenario, case: &Case) {
        let algorithm = case.algorithm;
        self.value("algorithm", "algorithm", &algorithm, algorithm.title());
        // The keys of an election mean nothing to an exclusion, so another algorithm is one of the same purpose.
        let alike = Algorithm::ALL.into_iter().filter(|it| it.purpose() == algorithm.purpose());
        self.choices(alike.map(|it| Choice::new(&it, it.title())));
        let modes = catalogue::modes(algorithm);
        if modes.len() > 1 {
            self.say(", ");
            self.value("mode", "mode", &case.mode(), words::mode(case.mode()).0);
            self.choices(modes.into_iter().map(|it: Mode| Choice::new(&it, words::mode(it).0)));
        }
        self.say(", members ");
        let (value, text) = members(scenario, case);
        self.value("members", "members", &value, text);
        if algorithm.is_ring() {
            self.say(" in a ring, ");
            let orders = ["ascending", "descending", "random"];
            match &case.ring {
                RingOrder::Listed(ids) => {
                    let ids: Vec<NodeId> = ids.iter().copied().map(NodeId).collect();
                    self.value(
                        "ids",
                        "ring",
                        &joined(&ids),
                        format!("clockwise {}", words::ids(&ids)),
                    );
                }
                order => self.value("ring", "ring", &order.name(), order.name()),
            }
            self.choices(orders.map(|order| Choice::new(&order, order)));
        }
        self.say(". ");
    }

    /// The members that are down, that lead and that start.
    fn begins(&mut self, case: &Case) {
        if !case.dead.is_empty() {
            self.value("ids", "dead", &joined(&case.dead), words::ids(&case.dead));
            self.say(if case.dead.len() == 1 { " is down, " } else { " are down, " });
            let words =
                |on: bool| if on { "which no member knows" } else { "which all members know" };
            self.value("switch", "contact-dead", &case.contact_dead, words(case.contact_dead));
            self.choices([true, false].map(|on| Choice::new(&on, words(on))));
            self.say(". ");
        }
        if let Some(leader) = case.leader {
            self.value("id", "leader", &leader, leader.to_string());
            self.say(match case.algorithm {
                Algorithm::Centralised => " is the coordinator. ",
                algorithm if algorithm.has_token() => " has the token. ",
                _ => " leads. ",
            });
        }
        if let Some(requests) = &case.requests {
            return self.requests(case, requests);
        }
        self.starters(case, "initiators", &case.initiators, ["starts", "start"]);
        if !case.initiators.is_empty() {
            self.say(" an election. ");
        }
    }

    /// The members that ask to enter the critical section, how often, and how long they stay inside.
    fn requests(&mut self, case: &Case, requests: &Requests) {
        self.starters(case, "requests", &requests.who, ["asks", "ask"]);
        if requests.who.is_empty() {
            return;
        }
        self.say(" to enter");
        if requests.repeat > 1 {
            self.say(", ");
            let times = words::count(u64::from(requests.repeat), "time");
            self.value("number", "repeat", &requests.repeat, times);
        }
        self.say(match requests.who.len() {
            1 => ", and stays inside for ",
            _ => ", and each stays inside for ",
        });
        self.value("delay", "hold", &requests.hold, requests.hold.in_words());
        self.say(". ");
        let settings = &case.config.exclusion;
        match case.algorithm {
            Algorithm::Maekawa => {
                self.say("Voting sets: ");
                self.value("sets", "sets", &settings.sets, settings.sets.to_string());
                let suit = |sets: &Sets| sets.suits(case.members().len()).is_ok();
                let all = Sets::ALL.into_iter().filter(suit);
                self.choices(all.map(|sets| Choice::new(&sets, sets.name())));
                self.say(". ");
            }
            Algorithm::LockService => {
                let grant = lock_config(&case.config).lease;
                self.say("A grant lasts ");
                self.value("time", "grant", &grant, spaced(grant));
                self.say(". ");
            }
            Algorithm::Raymond => {
                self.say("The tree: ");
                self.value("tree", "tree", &settings.tree, settings.tree.to_string());
                self.choices(Tree::SHAPES.map(|tree| Choice::new(&tree, &tree.name())));
                self.say(". ");
            }
            _ => {}
        }
    }

    /// The members that start something, as the flag called `flag` says, and the verb.
    fn starters(
        &mut self,
        case: &Case,
        flag: &'static str,
        starters: &Initiators,
        [one, many]: [&str; 2],
    ) {
        let value = |(id, at): (NodeId, Time)| match at {
            Time::ZERO => id.to_string(),
            at => format!("{id}@{at}"),
        };
        let text = |(id, at): (NodeId, Time)| match at {
            Time::ZERO => id.to_string(),
            at => format!("{id} at {}", spaced(at - Time::ZERO)),
        };
        let live = case.members().len() - case.dead.len();
        let at_once = starters.iter().all(|(_, at)| at == Time::ZERO);
        let (value, words) = match starters.len() {
            0 => return,
            count if count == live && live > 1 && at_once => {
                ("all".to_owned(), "all members".to_owned())
            }
            count => {
                let values: Vec<String> = starters.iter().map(value).collect();
                let words = match count <= MOST_LISTED {
                    true => listed(&starters.iter().map(text).collect::<Vec<_>>()),
                    false => format!("{} members", grouped(count as u64)),
                };
                (values.join(","), words)
            }
        };
        self.value("ids", flag, &value, words);
        self.say(format!(" {}", if starters.len() == 1 { one } else { many }));
    }

    fn network(&mut self, scenario: &Scenario, case: &Case) {
        self.say("Messages take ");
        self.value("delay", "delay", &case.network.delay, case.network.delay.in_words());
        for (flag, share, verb) in [
            ("loss", case.network.loss, " are lost"),
            ("duplicate", case.network.duplication, " arrive twice"),
        ] {
            if share > 0.0 {
                self.say(", ");
                self.value("share", flag, &faults::percent(share), faults::percent(share));
                self.say(verb);
            }
        }
        if let Some(bound) = scenario.bound {
            self.say(", and members count on ");
            self.value("time", "bound", &bound, spaced(bound));
        }
        self.say(". ");
        if let Some(period) = case.detector {
            self.say("A failure detector sends a heartbeat every ");
            self.value("time", "detector", &period, spaced(period));
            self.say(". ");
        }
        for text in faults::links(&scenario.link, case.config.timing.transmission) {
            self.remark(&text);
        }
    }

    fn goes_wrong(&mut self, scenario: &Scenario, case: &Case) {
        for fault in &scenario.fault {
            let text = faults::in_words(fault);
            match fault.to_flag() {
                Some((flag, value)) => {
                    self.value("fault", flag, &value, capitalized(&text));
                    self.say(". ");
                }
                None => self.remark(&text),
            }
        }
        for change in &case.changes {
            let (flag, value, text) = change_in_words(change);
            self.value("message", flag, &value, text);
            self.say(". ");
        }
        for text in case.chaos.iter().flat_map(faults::at_random) {
            self.remark(&text);
        }
    }

    /// A sentence for which there is no flag.
    fn remark(&mut self, text: &str) {
        self.say(format!("{}. ", capitalized(text)));
    }
}

/// What is done to a message: the flag, its value, and the same in words.
fn change_in_words(
    MessageChange { message, change }: &MessageChange,
) -> (&'static str, String, String) {
    let (from, to, kind) = (message.from, message.to, &message.kind);
    let which = match message.number {
        1 => String::new(),
        number => format!(" number {number}"),
    };
    let text = |what: String| format!("{from}'s {kind}{which} to {to} {what}");
    match change {
        Change::Drop => ("drop", message.to_string(), text("is lost".to_owned())),
        Change::Delay(by) => {
            ("late", format!("{message}+{by}"), text(format!("is {} late", spaced(*by))))
        }
        Change::Double(None) => ("twice", message.to_string(), text("arrives twice".to_owned())),
        Change::Double(Some(after)) => {
            let what = format!("arrives again after {}", spaced(*after));
            ("twice", format!("{message}+{after}"), text(what))
        }
    }
}

/// The members as a flag names them, and in words. The words count the members if there are many, but the flag names
/// each.
fn members(scenario: &Scenario, case: &Case) -> (String, String) {
    match &scenario.members {
        Some(MemberList::Count(count)) => (count.to_string(), format!("1 to {count}")),
        Some(MemberList::Range(range)) => (range.clone(), range.replace("..", " to ")),
        _ => {
            let all: Vec<NodeId> = case.members().iter().collect();
            let is_short = all.len() <= MOST_LISTED;
            let words = if is_short { words::ids(&all) } else { grouped(all.len() as u64) };
            (joined(&all), words)
        }
    }
}

/// `5,6,7`.
fn joined(ids: &[NodeId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// `1 ms`.
fn spaced(span: Span) -> String {
    time(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn explained(source: &Value) -> Value {
        let request = json!({ "source": source }).to_string();
        let answer = crate::call("explain", &request, &mut |_| true);
        serde_json::from_str(&answer.unwrap_or_else(|problem| panic!("{problem}"))).unwrap()
    }

    fn sentence(source: &Value) -> String {
        let explained = explained(source);
        let parts = explained["sentence"].as_array().unwrap().iter();
        parts.map(|part| part["text"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_scenario_reads_as_english() {
        let flags = json!([["crash", "6@3.45ms"], ["late", "6:1:COORDINATOR+2ms"]]);
        assert_eq!(
            sentence(&json!({ "gallery": "kordafshari/figure-1", "flags": flags })),
            "Bully, textbook, members 0 to 7. 7 is down, which no member knows. 4 starts an election. Messages take 1 ms. \
             6 crashes at 3.45 ms. 6's COORDINATOR to 1 is 2 ms late. "
        );
        assert_eq!(
            sentence(&json!({ "gallery": "flaws/f01-slow-leader" })),
            "Bully, textbook, members 1 to 3. 3 leads. 2 starts an election. Messages take 1 ms. Messages to and from 3 \
             take 5 ms, longer than the 1 ms that members count on. "
        );
    }

    #[test]
    fn many_initiators_are_counted_and_none_is_left_out() {
        let of = |toml: &str| explained(&json!({ "toml": toml }));
        let value = |explained: &Value| -> (Value, Value) {
            let parts = explained["sentence"].as_array().unwrap().iter();
            let part = parts.clone().find(|part| part["flag"] == "initiators").unwrap();
            (part["value"].clone(), part["text"].clone())
        };
        let all = of("algorithm = \"bully\"\nmembers = 150\ninitiators = \"all\"");
        assert_eq!(value(&all), (json!("all"), json!("all members")));
        let ids: Vec<String> = (1..=149).map(|id| id.to_string()).collect();
        let toml =
            format!("algorithm = \"bully\"\nmembers = 150\ninitiators = [{}]", ids.join(", "));
        assert_eq!(value(&of(&toml)), (json!(ids.join(",")), json!("149 members")));
        let toml = format!("algorithm = \"bully\"\nmembers = [{}]", ids.join(", "));
        assert_eq!(of(&toml)["sentence"][4]["value"], ids.join(","));
    }

    #[test]
    fn a_counterexample_is_explained_as_a_schedule() {
        let source = json!({ "flags": [["algorithm", "bully"], ["members", "3"], ["dead", "3"], ["initiators", "2"]] });
        let request = json!({ "source": source, "property": "A1", "budget": { "restarts": 1 } });
        let found = crate::call("check", &request.to_string(), &mut |_| true).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        let explained = explained(&found["source"]);
        assert_eq!(explained["command"], "doyen replay counterexample.toml");
        assert_eq!(explained["toml"], found["source"]["toml"]);
        let parts = explained["sentence"].as_array().unwrap();
        assert!(parts.iter().all(|part| part["flag"].is_null()), "no flag changes it: {parts:?}");
        let text = sentence(&found["source"]);
        assert!(text.contains("A1 does not hold in a schedule of "), "{text}");
        assert!(!text.contains("Messages take"), "there is no clock: {text}");
    }

    /// A page that changes a word changes the flag of that word.
    #[test]
    fn every_value_of_a_sentence_is_read_back() {
        for entry in crate::gallery::in_lab() {
            let first = explained(&json!({ "gallery": entry.name }));
            let parts = first["sentence"].as_array().unwrap().iter();
            // Faults are added, so those that are there are taken away first.
            let said = parts.filter(|part| part["flag"].is_string());
            let mut flags: Vec<Value> = Vec::new();
            for part in said {
                let kind = part["kind"].as_str().unwrap();
                if kind == "fault" || kind == "message" {
                    let unset = json!([part["flag"], ""]);
                    if !flags.contains(&unset) {
                        flags.insert(0, unset);
                    }
                }
                flags.push(json!([part["flag"], part["value"]]));
            }
            let again = explained(&json!({ "gallery": entry.name, "flags": flags }));
            let texts = |explained: &Value| -> Vec<String> {
                let parts = explained["sentence"].as_array().unwrap().iter();
                let mut texts: Vec<String> = parts.map(|it| it["text"].to_string()).collect();
                texts.sort_unstable();
                texts
            };
            assert_eq!(texts(&first), texts(&again), "{}: {flags:?}", entry.name);
        }
    }
}
