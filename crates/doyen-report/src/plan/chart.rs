//! What to draw of a plan's rows.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Axis, Result, axis};
use crate::row::{Field, Row, Unit};
use doyen_sim::scenario::ScenarioError;

/// A chart as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Entry {
    title: String,
    about: String,
    sweep: Option<String>,
    x: Option<String>,
    y: Option<String>,
    series: Option<Axis>,
    scale: Option<String>,
    only: BTreeMap<String, toml::Value>,
    formula: bool,
}

/// A line chart: the median of y at each x, with the 5th to 95th percentile.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// What it shows.
    pub title: String,
    /// What to see in it.
    pub about: String,
    /// Whose rows it shows; those of all sweeps without one.
    pub sweep: Option<String>,
    /// What runs to the right.
    pub x: &'static Field,
    /// What runs upwards.
    pub y: &'static Field,
    /// What makes a series, a colour each.
    pub series: Vec<&'static Field>,
    /// Whether the axis to the right is logarithmic.
    pub log_x: bool,
    /// Whether the axis upwards is.
    pub log_y: bool,
    /// Which rows it shows: those that have these values.
    pub only: Vec<(&'static Field, toml::Value)>,
    /// Whether the closed form is drawn as well.
    pub formula: bool,
}

impl Report {
    /// The values of `row`, if the chart shows it.
    pub fn values_of(&self, row: &Row) -> Option<Map<String, Value>> {
        if self.sweep.as_ref().is_some_and(|sweep| *sweep != row.sweep) {
            return None;
        }
        let values = row.values();
        let shown = self.only.iter().all(|(field, value)| has(field, &values, value));
        shown.then_some(values)
    }
}

impl Entry {
    pub(super) fn resolve(&self, sweeps: &[&str]) -> Result<Report> {
        let wrong = |key: &str, problem: String| Err(ScenarioError::new(key, problem));
        if let Some(sweep) = &self.sweep
            && !sweeps.contains(&sweep.as_str())
        {
            let problem = format!("there is no sweep `{sweep}`; use one of {}", sweeps.join(", "));
            return wrong("sweep", problem);
        }
        let (x, y) = (axis_field("x", self.x.as_deref())?, axis_field("y", self.y.as_deref())?);
        let series = self.series.as_ref().map_or_else(Vec::new, Axis::texts);
        let only = self.only.iter().map(|(name, value)| Ok((field("only", name)?, value.clone())));
        let (log_x, log_y) = match self.scale.as_deref() {
            None | Some("linear") => (false, false),
            Some("log") => (true, true),
            Some("log-x") => (true, false),
            Some("log-y") => (false, true),
            Some(other) => {
                return wrong("scale", format!("`{other}`; use linear, log, log-x or log-y"));
            }
        };
        if self.formula && y.name != "messages" {
            let problem = "the closed forms give messages: use it with y = \"messages\"";
            return wrong("formula", problem.to_owned());
        }
        Ok(Report {
            title: self.title.clone(),
            about: self.about.trim().to_owned(),
            sweep: self.sweep.clone(),
            x,
            y,
            series: series.iter().map(|name| field("series", name)).collect::<Result<_>>()?,
            log_x,
            log_y,
            only: only.collect::<Result<_>>()?,
            formula: self.formula,
        })
    }
}

/// Whether a row has this value: a number or a flag as it is, anything else as people read it.
fn has(field: &Field, values: &Map<String, Value>, value: &toml::Value) -> bool {
    let number = match value {
        toml::Value::Integer(number) => *number as f64,
        toml::Value::Float(number) => *number,
        toml::Value::Boolean(flag) => f64::from(u8::from(*flag)),
        other => return field.text(values) == axis::text(other),
    };
    field.number(values) == Some(number)
}

/// A field that has numbers.
fn axis_field(key: &str, name: Option<&str>) -> Result<&'static Field> {
    let missing = || ScenarioError::new(key, "is missing; name what runs along this axis");
    let field = field(key, name.ok_or_else(missing)?)?;
    if field.unit == Unit::Text {
        let problem = format!("{} has no numbers to draw along an axis", field.name);
        return Err(ScenarioError::new(key, problem));
    }
    Ok(field)
}

fn field(key: &str, name: &str) -> Result<&'static Field> {
    Field::named(name).map_err(|problem| ScenarioError::new(key, problem))
}
