//! Rows as CSV and as JSON, and back.
//!
//! Both begin with which plan they are of, and which shard of it. CSV: a line that starts with `#` is a remark. JSON:
//! one object, a line for each row.

use serde::{Deserialize, Serialize};

use super::{Part, Shard};
use crate::row::{CONVENTIONS, Row};

/// A JSON file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    plan: String,
    shard: String,
    runs: u64,
    #[serde(rename = "conventions")]
    _conventions: String,
    rows: Vec<Row>,
}

impl Part {
    /// The rows as CSV.
    pub fn to_csv(&self) -> Result<String, String> {
        let (plan, shard, runs) = (&self.plan, self.shard, self.runs);
        let head = format!("# doyen plan={plan} shard={shard} runs={runs}\n# {CONVENTIONS}\n");
        let mut writer = csv::Writer::from_writer(head.into_bytes());
        for row in &self.rows {
            writer.serialize(row).map_err(|error| error.to_string())?;
        }
        let bytes = writer.into_inner().map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }

    /// The rows as JSON.
    pub fn to_json(&self) -> Result<String, String> {
        let rows = self.rows.iter().map(json).collect::<Result<Vec<_>, _>>()?.join(",\n");
        let (plan, shard) = (json(&self.plan)?, json(&self.shard.to_string())?);
        let (runs, conventions) = (self.runs, json(&CONVENTIONS)?);
        Ok(format!(
            "{{\n\"plan\": {plan},\n\"shard\": {shard},\n\"runs\": {runs},\n\
             \"conventions\": {conventions},\n\"rows\": [\n{rows}\n]\n}}\n"
        ))
    }

    /// Reads what [`to_csv`](Self::to_csv) or [`to_json`](Self::to_json) wrote. `name` is what errors call the text.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        if text.starts_with('{') { Self::from_json(name, text) } else { Self::from_csv(name, text) }
    }

    fn from_json(name: &str, text: &str) -> Result<Self, String> {
        let document: Document = serde_json::from_str(text)
            .map_err(|error| format!("{name}:{}: {error}", error.line()))?;
        let shard = document.shard.parse().map_err(|problem| format!("{name}: {problem}"))?;
        Ok(Self { plan: document.plan, runs: document.runs, shard, rows: document.rows })
    }

    fn from_csv(name: &str, text: &str) -> Result<Self, String> {
        let head = text.lines().next().and_then(parse_head);
        let (plan, shard, runs) = head.ok_or_else(|| {
            format!(
                "{name}:1: not rows of a plan: the first line must be # doyen plan=… shard=… runs=…"
            )
        })?;
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        let rows = reader.deserialize().collect::<Result<_, csv::Error>>().map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            format!("{name}:{line}: {error}")
        })?;
        Ok(Self { plan, runs, shard, rows })
    }
}

/// Reads `# doyen plan=0123456789abcdef shard=1/3 runs=120`.
fn parse_head(line: &str) -> Option<(String, Shard, u64)> {
    let mut words = line.strip_prefix("# doyen ")?.split(' ');
    let mut value = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=');
    let (plan, shard, runs) = (value("plan")?, value("shard")?, value("runs")?);
    Some((plan.to_owned(), shard.parse().ok()?, runs.parse().ok()?))
}

fn json<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}
