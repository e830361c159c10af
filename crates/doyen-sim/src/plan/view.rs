//! What to draw of a plan's rows.

use serde::{Deserialize, Serialize};

use super::{Axis, Result};
use crate::row::{Field, Row, Unit, delay_name};
use crate::scenario::ScenarioError;

/// A plot as it is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Entry {
    title: String,
    about: String,
    sweep: Option<String>,
    kind: Option<String>,
    x: Option<String>,
    y: Option<String>,
    series: Option<Axis>,
    scale: Option<String>,
    filters: Vec<String>,
    formula: bool,
}

/// A plot that makes sense.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// What it shows.
    pub title: String,
    /// What to see in it.
    pub about: String,
    /// Whose rows it shows; those of all sweeps without one.
    pub sweep: Option<String>,
    /// How it is drawn.
    pub kind: Kind,
    /// What runs to the right.
    pub x: &'static Field,
    /// What runs upwards; a histogram counts.
    pub y: Option<&'static Field>,
    /// What makes a series, a colour each.
    pub series: Vec<&'static Field>,
    /// The axes.
    pub scale: Scale,
    /// Which rows it shows: those that pass all of these.
    pub filters: Vec<Filter>,
    /// Whether the closed form is drawn as well.
    pub formula: bool,
}

/// How a plot is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The median of y at each x, with the 5th to 95th percentile.
    Line,
    /// Every run.
    Scatter,
    /// How often each x occurs.
    Histogram,
    /// The quartiles of y for each x.
    Box,
}

/// Which axes are logarithmic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scale {
    /// The one to the right.
    pub log_x: bool,
    /// The one upwards.
    pub log_y: bool,
}

/// A condition on a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Filter {
    field: &'static Field,
    comparison: Comparison,
    value: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, PartialEq, Debug)]
enum Value {
    Number(f64),
    Words(String),
}

impl Report {
    /// Whether it shows `row`.
    pub fn shows(&self, row: &Row) -> bool {
        self.sweep.as_ref().is_none_or(|sweep| *sweep == row.sweep)
            && self.filters.iter().all(|filter| filter.passes(row))
    }

    /// The series to which `row` belongs, by name; empty, if there is only one.
    pub fn series_of(&self, row: &Row) -> String {
        self.series.iter().map(|field| field.text(row)).collect::<Vec<_>>().join(", ")
    }
}

impl Entry {
    pub(super) fn resolve(&self, sweeps: &[&str]) -> Result<Report> {
        if let Some(sweep) = &self.sweep
            && !sweeps.contains(&sweep.as_str())
        {
            let problem = format!("there is no sweep `{sweep}`; use one of {}", sweeps.join(", "));
            return Err(ScenarioError::new("sweep", problem));
        }
        let kind = match self.kind.as_deref() {
            None | Some("line") => Kind::Line,
            Some("scatter") => Kind::Scatter,
            Some("histogram") => Kind::Histogram,
            Some("box") => Kind::Box,
            Some(other) => {
                let problem = format!("`{other}`; use line, scatter, histogram or box");
                return Err(ScenarioError::new("kind", problem));
            }
        };
        let (x, y) = self.resolve_fields(kind)?;
        let series = self.series.as_ref().map_or(&[][..], Axis::settings);
        let series =
            series.iter().map(|name| field("series", &name.to_string())).collect::<Result<_>>()?;
        let filters = self.filters.iter().map(|text| Filter::parse(text)).collect::<Result<_>>()?;
        if self.formula && !(kind == Kind::Line && y.is_some_and(|y| y.name == "messages")) {
            let problem = "the closed forms give messages: use it in a line of y = \"messages\"";
            return Err(ScenarioError::new("formula", problem));
        }
        Ok(Report {
            title: self.title.clone(),
            about: self.about.trim().to_owned(),
            sweep: self.sweep.clone(),
            kind,
            x,
            y,
            series,
            scale: self.resolve_scale(kind, x)?,
            filters,
            formula: self.formula,
        })
    }

    fn resolve_fields(&self, kind: Kind) -> Result<(&'static Field, Option<&'static Field>)> {
        let missing =
            |key: &str| ScenarioError::new(key, "is missing; name what runs along this axis");
        let x = field("x", self.x.as_ref().ok_or_else(|| missing("x"))?)?;
        if x.unit == Unit::Words && kind != Kind::Box {
            let problem =
                format!("{} has no numbers to draw along an axis; use kind = \"box\"", x.name);
            return Err(ScenarioError::new("x", problem));
        }
        let y = match (&self.y, kind) {
            (Some(_), Kind::Histogram) => {
                let problem = "a histogram counts the runs of each x; leave y out";
                return Err(ScenarioError::new("y", problem));
            }
            (None, Kind::Histogram) => None,
            (None, _) => return Err(missing("y")),
            (Some(y), _) => Some(field("y", y)?),
        };
        if let Some(y) = y.filter(|y| y.unit == Unit::Words) {
            return Err(ScenarioError::new("y", format!("{} has no numbers to draw", y.name)));
        }
        Ok((x, y))
    }

    fn resolve_scale(&self, kind: Kind, x: &Field) -> Result<Scale> {
        let scale = match self.scale.as_deref() {
            None | Some("linear") => Scale::default(),
            Some("log") => Scale { log_x: kind != Kind::Box, log_y: kind != Kind::Histogram },
            Some("log-x") => Scale { log_x: true, log_y: false },
            Some("log-y") => Scale { log_x: false, log_y: true },
            Some(other) => {
                let problem = format!("`{other}`; use linear, log, log-x or log-y");
                return Err(ScenarioError::new("scale", problem));
            }
        };
        if scale.log_x && kind == Kind::Box {
            let problem = format!("{} makes one box each here and has no scale; use log-y", x.name);
            return Err(ScenarioError::new("scale", problem));
        }
        Ok(scale)
    }
}

impl Filter {
    /// Whether `row` meets the condition.
    pub fn passes(&self, row: &Row) -> bool {
        let order = match &self.value {
            Value::Words(words) => Some(self.field.text(row).as_str().cmp(words)),
            Value::Number(value) => {
                self.field.number(row).and_then(|number| number.partial_cmp(value))
            }
        };
        let Some(order) = order else { return self.comparison == Comparison::Unequal };
        match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::More => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }

    /// Reads `agreed`, `not agreed`, `members >= 100`, `mode = textbook`.
    fn parse(text: &str) -> Result<Self> {
        let wrong = |problem: String| ScenarioError::new("filters", problem);
        // The longer ones first: `<` is the beginning of `<=`.
        let comparisons = [
            ("!=", Comparison::Unequal),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("=", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::More),
        ];
        let found = comparisons.iter().find_map(|&(sign, comparison)| {
            text.split_once(sign).map(|(name, value)| (name.trim(), comparison, value.trim()))
        });
        let bare = found.is_none();
        let (name, comparison, value) =
            found.unwrap_or_else(|| match text.trim().strip_prefix("not ") {
                Some(name) => (name.trim(), Comparison::Unequal, "true"),
                None => (text.trim(), Comparison::Equal, "true"),
            });
        let field = field("filters", name)?;
        let value = match field.unit {
            unit if bare && unit != Unit::Flag => {
                return Err(wrong(format!(
                    "`{text}`: {name} is not yes or no; compare it with something"
                )));
            }
            Unit::Words if !matches!(comparison, Comparison::Equal | Comparison::Unequal) => {
                return Err(wrong(format!("`{text}`: {name} is words; compare with = or !=")));
            }
            Unit::Words if name == "delay" => {
                Value::Words(delay_name(value.parse().map_err(wrong)?))
            }
            Unit::Words => Value::Words(value.to_owned()),
            _ => Value::Number(field.parse(value).map_err(wrong)?),
        };
        Ok(Self { field, comparison, value })
    }
}

fn field(key: &str, name: &str) -> Result<&'static Field> {
    Field::named(name).map_err(|problem| ScenarioError::new(key, problem))
}
