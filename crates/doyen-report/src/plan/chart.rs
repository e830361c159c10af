//! The charts of a plan's rows.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Axis, Mistakes, Result, axis, gather};
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
    /// Its title.
    pub title: String,
    /// A description.
    pub about: String,
    /// The sweep whose rows it shows; none for those of all sweeps.
    pub sweep: Option<String>,
    /// The field of the horizontal axis.
    pub x: &'static Field,
    /// The field of the vertical axis.
    pub y: &'static Field,
    /// The fields that make a series, each with a colour.
    pub series: Vec<&'static Field>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is.
    pub log_y: bool,
    /// It shows only rows that have these values.
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
    pub(super) fn resolve(&self, sweeps: &[String]) -> std::result::Result<Report, Mistakes> {
        let mut mistakes = Vec::new();
        if let Some(sweep) = &self.sweep
            && !sweeps.contains(sweep)
        {
            let problem = format!("there is no sweep `{sweep}`; use one of {}", sweeps.join(", "));
            mistakes.push(ScenarioError::new("sweep", problem));
        }
        let x = gather(&mut mistakes, axis_field("x", self.x.as_deref()));
        let y = gather(&mut mistakes, axis_field("y", self.y.as_deref()));
        let names = self.series.as_ref().map_or_else(Vec::new, Axis::texts);
        let series = names.iter().filter_map(|name| gather(&mut mistakes, field("series", name)));
        let series = series.collect();
        let only = self.only.iter().filter_map(|(name, value)| {
            Some((gather(&mut mistakes, field("only", name))?, value.clone()))
        });
        let only = only.collect();
        let scale = gather(&mut mistakes, self.scale());
        if self.formula && y.is_some_and(|y| y.name != "messages") {
            let problem = "the closed forms give messages: use it with y = \"messages\"";
            mistakes.push(ScenarioError::new("formula", problem));
        }
        let (Some(x), Some(y), Some((log_x, log_y)), true) = (x, y, scale, mistakes.is_empty())
        else {
            return Err(mistakes);
        };
        Ok(Report {
            title: self.title.clone(),
            about: self.about.trim().to_owned(),
            sweep: self.sweep.clone(),
            x,
            y,
            series,
            log_x,
            log_y,
            only,
            formula: self.formula,
        })
    }

    /// Whether each axis is logarithmic.
    fn scale(&self) -> Result<(bool, bool)> {
        match self.scale.as_deref() {
            None | Some("linear") => Ok((false, false)),
            Some("log") => Ok((true, true)),
            Some("log-x") => Ok((true, false)),
            Some("log-y") => Ok((false, true)),
            Some(other) => {
                let problem = format!("`{other}`; use linear, log, log-x or log-y");
                Err(ScenarioError::new("scale", problem))
            }
        }
    }
}

/// Whether a row has this value: a number or a flag as it is, anything else as text.
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
