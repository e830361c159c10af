//! The rows of a sweep: one run each, as CSV and as JSON, and the fields that a chart can show.

use std::fmt::Write as _;

use doyen_core::time::Span;
use doyen_sim::metrics::Outcome;
use doyen_sim::scenario::Case;
use doyen_sim::{document, words};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::exclusion;
use crate::summary::Summary;

/// The conventions, which accompany every count.
pub const CONVENTIONS: &str = "messages: election messages sent, those to dead members (to_dead) included; \
    link and detector traffic apart. convention live: the members are the live ones, the crashed coordinator is not \
    counted; configured: the highest member is the crashed coordinator. Times: virtual nanoseconds.";

/// A run of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The run's number in its plan, from 1.
    pub run: u64,
    /// The sweep it belongs to.
    pub sweep: String,
    /// The name of its set of faults; `none` if there are none.
    pub faults: String,
    /// The run.
    #[serde(flatten)]
    pub summary: Summary,
    /// The results of the critical section; all empty for an election.
    #[serde(flatten)]
    pub section: Section,
}

/// The results of a run in which members entered a critical section.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Section {
    /// How long a member stays inside, on average.
    pub hold: Option<Span>,
    /// How long it waits before it asks again, on average.
    pub think: Option<Span>,
    /// How often a member entered.
    pub entries: Option<u64>,
    /// Messages for each entry.
    pub per_entry: Option<f64>,
    /// How long a member waited, in D: the median.
    pub wait_d: Option<f64>,
    /// The longest wait, in D.
    pub longest_wait_d: Option<f64>,
    /// From an exit to the next entry, if that member waits, in D: the median.
    pub sync_delay_d: Option<f64>,
    /// Entries for each D until the last exit.
    pub entries_per_d: Option<f64>,
    /// The most entries of one member while another one waited.
    pub bypassed: Option<u64>,
    /// Whether every live member that asked has entered.
    pub served: Option<bool>,
    /// Whether two members were inside at once.
    pub two_inside: Option<bool>,
}

impl Section {
    /// What `outcome` says of the critical section.
    pub(crate) fn of(case: &Case, outcome: &Outcome) -> Self {
        let (Some(summary), Some(requests)) =
            (exclusion::Summary::new(case, outcome, None), &case.requests)
        else {
            return Self::default();
        };
        let d = case.config.timing.transmission.as_nanos() as f64;
        let in_d = |span: Span| (d > 0.0).then(|| span.as_nanos() as f64 / d);
        let bypassed = summary.entries.iter().map(|entry| u64::from(entry.bypassed)).max();
        Self {
            hold: Some(Span::from_nanos(requests.hold.mean())),
            think: Some(Span::from_nanos(requests.think.mean())),
            entries: Some(summary.entries.len() as u64),
            per_entry: summary.messages.per_entry,
            wait_d: summary.wait.and_then(|wait| in_d(wait.median)),
            longest_wait_d: summary.wait.and_then(|wait| in_d(wait.max)),
            sync_delay_d: summary.sync_delay.and_then(|delay| in_d(delay.median)),
            entries_per_d: summary.entries_per_d,
            bypassed,
            served: Some(summary.properties.served),
            two_inside: Some(!summary.properties.one_inside),
        }
    }
}

impl Row {
    /// The row's values by name.
    pub fn values(&self) -> Map<String, Value> {
        values(self)
    }
}

fn values(row: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(row) {
        Ok(Value::Object(values)) => values,
        _ => Map::new(),
    }
}

/// Rows as CSV, with a line of names. A missing value is empty.
pub fn to_csv(rows: &[impl Serialize]) -> String {
    let mut text = String::new();
    for (place, row) in rows.iter().enumerate() {
        let values = values(row);
        if place == 0 {
            let _ = writeln!(text, "{}", values.keys().cloned().collect::<Vec<_>>().join(","));
        }
        let cells: Vec<String> = values.values().map(|value| quoted(plain(value))).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

/// A value without the syntax of JSON: a map is written `ELECTION=3 OK=3`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(map) => {
            let pairs = map.iter().map(|(name, value)| format!("{name}={value}"));
            pairs.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

fn quoted(text: String) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// Rows as JSON: one object, a line for each row.
pub fn to_json(rows: &[Row]) -> String {
    let lines: Vec<String> =
        rows.iter().map(|row| Value::Object(row.values()).to_string()).collect();
    let conventions = Value::from(CONVENTIONS);
    format!("{{\n\"conventions\": {conventions},\n\"rows\": [\n{}\n]\n}}\n", lines.join(",\n"))
}

/// What a field's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Text: it has no numbers.
    Text,
    /// How many of something.
    Count,
    /// Nanoseconds.
    Time,
    /// Multiples of D.
    D,
    /// A share from 0 to 1.
    Share,
    /// Yes, which is 1, or no, which is 0.
    Flag,
}

impl Unit {
    /// A number of this unit, for people: four digits of a length of time, all of a count.
    pub fn show(self, number: f64) -> String {
        match self {
            Self::Time => {
                let digits = libm::log10(number.max(1.0)) as i32;
                let grain = 10_f64.powi((digits - 3).max(0));
                Span::from_nanos(((number / grain).round() * grain) as u64).to_string()
            }
            Self::D => format!("{}D", grouped((number * 1e3).round() / 1e3)),
            Self::Share | Self::Flag => format!("{}%", grouped((number * 1e3).round() / 10.0)),
            Self::Text | Self::Count => grouped(number),
        }
    }
}

/// A number with separated thousands: `1,000,000`, `0.25`.
pub(crate) fn grouped(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.fract() != 0.0 || rounded.abs() >= 1e15 {
        return format!("{rounded}");
    }
    let sign = if rounded < 0.0 { "−" } else { "" };
    format!("{sign}{}", words::grouped(rounded.abs() as u64))
}

/// Something about a run that a chart can show.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Field {
    /// Its name in the rows and in a plan.
    pub name: &'static str,
    /// Its name on an axis.
    pub title: &'static str,
    /// What its values are.
    pub unit: Unit,
}

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        FIELDS.iter().find(|field| field.name == name).ok_or_else(|| {
            let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
            format!("a run has no `{name}`; {}", document::suggestion(name, &names))
        })
    }

    /// The number that a row has there, if it has one.
    pub fn number(&self, values: &Map<String, Value>) -> Option<f64> {
        match values.get(self.name)? {
            Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
            other => other.as_f64(),
        }
    }

    /// The value of a row, as text.
    pub fn text(&self, values: &Map<String, Value>) -> String {
        match values.get(self.name) {
            None | Some(Value::Null) => "none".to_owned(),
            Some(value @ Value::Number(number)) => {
                number.as_f64().map_or_else(|| plain(value), |number| self.unit.show(number))
            }
            Some(value) => plain(value),
        }
    }
}

const fn field(name: &'static str, title: &'static str, unit: Unit) -> Field {
    Field { name, title, unit }
}

/// Everything that a chart can show.
pub const FIELDS: &[Field] = &[
    field("sweep", "sweep", Unit::Text),
    field("faults", "faults", Unit::Text),
    field("algorithm", "algorithm", Unit::Text),
    field("mode", "mode", Unit::Text),
    field("convention", "convention", Unit::Text),
    field("members", "members", Unit::Count),
    field("live", "live members", Unit::Count),
    field("contact_dead", "the dead are contacted", Unit::Flag),
    field("ring", "order of the ring", Unit::Text),
    field("initiators", "members that detect at once", Unit::Count),
    field("initiator", "number r of the detecting member", Unit::Count),
    field("delay", "delay of a message", Unit::Text),
    field("bound", "D", Unit::Time),
    field("processing", "processing time", Unit::Time),
    field("window", "window W", Unit::Time),
    field("loss", "messages lost", Unit::Share),
    field("duplicate", "messages duplicated", Unit::Share),
    field("reliable", "over the reliable link", Unit::Flag),
    field("detector", "period of the failure detector", Unit::Time),
    field("seed", "seed", Unit::Count),
    field("agreed", "all agree", Unit::Flag),
    field("messages", "election messages", Unit::Count),
    field("to_dead", "messages to the dead", Unit::Count),
    field("lost", "messages lost", Unit::Count),
    field("link_messages", "link messages", Unit::Count),
    field("detector_messages", "heartbeats", Unit::Count),
    field("bytes", "bytes sent", Unit::Count),
    field("stages", "stages", Unit::Count),
    field("turnaround", "turnaround", Unit::Time),
    field("informed", "time until all are informed", Unit::Time),
    field("involved", "members that sent", Unit::Count),
    field("elections", "elections called", Unit::Count),
    field("leader_changes", "changes of leader", Unit::Count),
    field("downtime", "downtime", Unit::Time),
    field("overlap", "time with two leaders", Unit::Time),
    field("old_processes", "old processes at the end", Unit::Count),
    field("ended", "how the run ended", Unit::Text),
    field("end", "length of the run", Unit::Time),
    field("events", "events handled", Unit::Count),
    field("turnaround_d", "turnaround in D", Unit::D),
    field("informed_d", "time until all are informed, in D", Unit::D),
    field("formula", "closed form", Unit::Text),
    field("formula_value", "messages by the closed form", Unit::Count),
    field("formula_matches", "the closed form is right", Unit::Flag),
    field("hold", "time inside, on average", Unit::Time),
    field("think", "time until a member asks again, on average", Unit::Time),
    field("entries", "entries", Unit::Count),
    field("per_entry", "messages for each entry", Unit::Count),
    field("wait_d", "wait in D", Unit::D),
    field("longest_wait_d", "longest wait in D", Unit::D),
    field("sync_delay_d", "from an exit to the next entry, in D", Unit::D),
    field("entries_per_d", "entries for each D", Unit::Count),
    field("bypassed", "entries of another member while one waits", Unit::Count),
    field("served", "all that ask enter", Unit::Flag),
    field("two_inside", "two inside at once", Unit::Flag),
];

#[cfg(test)]
mod tests {
    use doyen_sim::run;
    use doyen_sim::scenario::Scenario;

    use super::*;

    #[test]
    fn a_chart_can_show_everything_that_is_measured() {
        let case = Scenario::from_toml("test", "algorithm = 'bully'\nmembers = 3").unwrap();
        let outcome = run::run(&case, None);
        let section = Section::of(&case, &outcome);
        let summary = Summary::new(&case, outcome, None);
        let [sweep, faults] = [String::new(), String::new()];
        let values = Row { run: 1, sweep, faults, summary, section }.values();
        let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        let others: Vec<&String> =
            values.keys().filter(|name| !names.contains(&name.as_str())).collect();
        // What is no measurement, or no single number.
        let known = ["run", "leader", "by_kind", "digest", "time_unit"];
        assert_eq!(others, known);
        assert!(names.iter().all(|&name| values.contains_key(name)), "{names:?}");
    }

    #[test]
    fn csv_is_quoted_where_it_must_be() {
        let row = serde_json::json!({ "a": "x, \"y\"", "b": null, "c": { "OK": 3, "GRANT": 1 }, "d": 0.5 });
        assert_eq!(to_csv(&[row]), "a,b,c,d\n\"x, \"\"y\"\"\",,OK=3 GRANT=1,0.5\n");
    }

    #[test]
    fn numbers_have_as_many_digits_as_they_deserve() {
        assert_eq!(Unit::Time.show(23_456_789.0), "23.46ms");
        assert_eq!(Unit::Time.show(999.0), "999ns");
        assert_eq!(Unit::Time.show(0.0), "0");
        assert_eq!(Unit::Count.show(811_899.0), "811,899");
        assert_eq!(Unit::D.show(2.345_678), "2.346D");
        assert_eq!(Unit::Flag.show(1.0 / 3.0), "33.3%");
        let cases =
            [(0.0, "0"), (999.0, "999"), (1e6, "1,000,000"), (0.25, "0.25"), (-1234.0, "−1,234")];
        for (value, text) in cases {
            assert_eq!(grouped(value), text);
        }
        assert_eq!(grouped(0.1 + 0.2), "0.3");
    }
}
