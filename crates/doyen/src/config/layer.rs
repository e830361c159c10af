//! Where values come from: flags, environment, files.
//!
//! Flags and variables are written down as TOML, one a line, and read as a file is. So a wrong value gets the same
//! error wherever it stands; only what it is called differs: `doyen.toml:7`, `DOYEN_LISTEN`, `--listen`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::ConfigError;
use super::file::Written;

/// The variable that names the configuration file.
const FILE_VARIABLE: &str = "DOYEN_CONFIG";

/// The variables that mean something to other parts of doyen.
const OTHER_VARIABLES: [&str; 3] = ["DOYEN_LOG", "DOYEN_NODE", "DOYEN_TOKEN_FILE"];

/// Every value that a variable can set, and how its text is to be read. `timing.profile` is `DOYEN_TIMING_PROFILE`.
const VARIABLES: [(&str, Kind); 26] = [
    ("cluster", Kind::Text),
    ("id", Kind::NumberOrText),
    ("listen", Kind::Text),
    ("http", Kind::Text),
    ("http_open", Kind::Truth),
    ("key_file", Kind::Text),
    ("state_dir", Kind::Text),
    ("algorithm", Kind::Text),
    ("grace", Kind::Text),
    ("trace", Kind::Text),
    ("timing.profile", Kind::Text),
    ("timing.transmission", Kind::Text),
    ("timing.processing", Kind::Text),
    ("timing.heartbeat", Kind::Text),
    ("timing.promise", Kind::Text),
    ("timing.drift", Kind::Number),
    ("timing.jitter", Kind::Text),
    ("timing.stagger", Kind::Text),
    ("timing.tenure", Kind::Text),
    ("timing.forgiveness", Kind::Text),
    ("timing.probe", Kind::Text),
    ("preemption.policy", Kind::Text),
    ("preemption.delay", Kind::Text),
    ("attribute.source", Kind::Text),
    ("attribute.every", Kind::Text),
    ("attribute.step", Kind::Number),
];

/// How a text that is no TOML becomes a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Text,
    Number,
    /// A number if it looks like one.
    NumberOrText,
    Truth,
}

/// A flag that sets a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// What it is called: `--listen`.
    pub flag: &'static str,
    /// The key that it sets: `listen`, or `timing.profile`.
    pub key: &'static str,
    /// To what.
    pub value: String,
}

/// What a configuration depends on besides flags and files.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The environment: `DOYEN_*`, `XDG_CONFIG_HOME`, `HOME`.
    pub variables: BTreeMap<String, String>,
    /// The working folder.
    pub folder: PathBuf,
    /// Where the system's configuration is.
    pub system: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        // What is not Unicode cannot be a value.
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { variables, folder: PathBuf::new(), system: PathBuf::from("/etc/doyen") }
    }

    /// A variable that is set. An empty one is not.
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn user_file(&self) -> Option<PathBuf> {
        let absolute =
            |name: &str| self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME").map(|home| home.join(".config"));
        Some(absolute("XDG_CONFIG_HOME").or_else(home)?.join("doyen/doyen.toml"))
    }
}

/// One source of values.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) written: Written,
    /// What relative paths in it are relative to.
    pub(super) base: PathBuf,
    text: String,
    names: Names,
}

/// What the lines of a layer are called.
#[derive(Clone, Debug)]
enum Names {
    /// By their number in this file.
    File(String),
    /// Each by the flag or the variable that it was made of.
    Lines(Vec<String>),
}

/// All layers, the one that counts first first.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    pub(super) layers: Vec<Layer>,
    /// Files that might have been there.
    pub(super) missing: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Stack {
    /// Reads everything that there is. `file` takes the place of the working folder's.
    pub(super) fn collect(
        file: Option<&Path>,
        flags: &[Override],
        surroundings: &Surroundings,
    ) -> Result<Self, ConfigError> {
        let mut stack = Self::default();
        let mut problems = Vec::new();
        let mut add = |layer: Result<Layer, Vec<String>>, stack: &mut Self| match layer {
            Ok(layer) => stack.layers.push(layer),
            Err(wrong) => problems.extend(wrong),
        };
        add(of_flags(flags, &surroundings.folder), &mut stack);
        add(of_variables(surroundings, &mut stack.warnings), &mut stack);
        let named = || surroundings.variable(FILE_VARIABLE).map(PathBuf::from);
        let named = file.map(Path::to_owned).or_else(named);
        let optional = [surroundings.user_file(), Some(surroundings.system.join("doyen.toml"))];
        let optional = optional.into_iter().flatten().map(|path| (path, false));
        let first = named.map_or_else(|| ("doyen.toml".into(), false), |path| (path, true));
        for (path, required) in iter::once(first).chain(optional) {
            let shown = path.display().to_string();
            match fs::read_to_string(surroundings.folder.join(&path)) {
                Ok(text) => add(of_file(&path, text, &surroundings.folder), &mut stack),
                Err(error) if !required && is_absent(&error) => stack.missing.push(shown),
                Err(error) => {
                    let hint = if is_absent(&error) { "; `doyen init` writes one" } else { "" };
                    add(Err(vec![format!("{shown}: cannot be read: {error}{hint}")]), &mut stack);
                }
            }
        }
        if problems.is_empty() { Ok(stack) } else { Err(ConfigError { problems }) }
    }

    /// One file alone, that need not exist.
    pub(super) fn of_text(name: &str, text: &str) -> Result<Self, ConfigError> {
        let layer = of_file(Path::new(name), text.to_owned(), Path::new(""));
        let layer = layer.map_err(|problems| ConfigError { problems })?;
        Ok(Self { layers: vec![layer], ..Self::default() })
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn of_flags(flags: &[Override], folder: &Path) -> Result<Layer, Vec<String>> {
    let lines = flags.iter().map(|given| (given.flag.to_owned(), given.key, given.value.clone()));
    of_lines(lines.collect(), folder)
}

fn of_variables(
    surroundings: &Surroundings,
    warnings: &mut Vec<String>,
) -> Result<Layer, Vec<String>> {
    let mut lines = Vec::new();
    for name in surroundings.variables.keys() {
        let Some(rest) = name.strip_prefix("DOYEN_") else { continue };
        let Some(value) = surroundings.variable(name) else { continue };
        let is_it = |key: &str| key.replace('.', "_").to_uppercase() == rest;
        match VARIABLES.iter().find(|(key, _)| is_it(key)) {
            Some((key, _)) => lines.push((name.clone(), *key, value.to_owned())),
            None if name == FILE_VARIABLE || OTHER_VARIABLES.contains(&name.as_str()) => {}
            None => {
                warnings.push(format!("{name}: no setting of a node has this name; it is ignored"));
            }
        }
    }
    of_lines(lines, &surroundings.folder)
}

/// A layer of lines that have names: each a key and its value, as the user wrote it.
fn of_lines(
    lines: Vec<(String, &'static str, String)>,
    folder: &Path,
) -> Result<Layer, Vec<String>> {
    let mut problems = Vec::new();
    let (mut names, mut text) = (Vec::new(), String::new());
    for (name, key, value) in lines {
        let kind = VARIABLES.iter().find(|(known, _)| *known == key).map_or(Kind::Text, |it| it.1);
        // Read alone first: an error in one must not hide the others, and must not be about two of them.
        let line = literal(&value, kind).map(|literal| format!("{key} = {literal}\n"));
        let read = line.and_then(|line| match toml::from_str::<Written>(&line) {
            Ok(_) => Ok(line),
            Err(error) => Err(one_line(error.message())),
        });
        match read {
            Ok(line) => {
                names.push(name);
                text.push_str(&line);
            }
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let written = toml::from_str(&text);
    let written = written.map_err(|error| vec![one_line(error.message())])?;
    Ok(Layer { written, base: folder.to_owned(), text, names: Names::Lines(names) })
}

/// The value as TOML.
fn literal(value: &str, kind: Kind) -> Result<String, String> {
    let bare = match kind {
        // Each is to be a line.
        _ if value.contains(char::is_control) => {
            return Err("contains a line break or another control character".to_owned());
        }
        Kind::Text => false,
        Kind::NumberOrText => value.parse::<u32>().is_ok(),
        Kind::Number if !value.parse::<f64>().is_ok_and(f64::is_finite) => {
            return Err(format!("`{value}` is not a number"));
        }
        Kind::Truth if value.parse::<bool>().is_err() => {
            return Err(format!("`{value}` is neither true nor false"));
        }
        Kind::Number | Kind::Truth => true,
    };
    Ok(if bare { value.to_owned() } else { toml::Value::from(value).to_string() })
}

fn of_file(path: &Path, text: String, folder: &Path) -> Result<Layer, Vec<String>> {
    let name = path.display().to_string();
    let parent = path.parent().unwrap_or(Path::new(""));
    let base = folder.join(parent);
    match toml::from_str(&text) {
        Ok(written) => Ok(Layer { written, base, text, names: Names::File(name) }),
        Err(error) => {
            let line = line_at(&text, error.span().map_or(0, |span| span.start));
            let source = text.lines().nth(line - 1).unwrap_or_default().trim();
            let message = one_line(error.message());
            Err(vec![format!("{name}:{line}: {message}, in `{source}`")])
        }
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_at(text: &str, position: usize) -> usize {
    let before = text.get(..position).unwrap_or(text);
    before.matches('\n').count() + 1
}

impl Layer {
    /// What the place at `position` is called: where a value comes from.
    pub(super) fn name_at(&self, position: usize) -> String {
        let line = line_at(&self.text, position);
        match &self.names {
            Names::File(name) => format!("{name}:{line}"),
            Names::Lines(names) => names.get(line - 1).cloned().unwrap_or_default(),
        }
    }

    /// What an error about `key` begins with. A flag and a variable say by their name what they set.
    pub(super) fn place(&self, position: usize, key: &str) -> String {
        match self.names {
            Names::File(_) => format!("{}: {key}", self.name_at(position)),
            Names::Lines(_) => self.name_at(position),
        }
    }

    /// The file's name, if it is one.
    pub(super) fn file(&self) -> Option<&str> {
        match &self.names {
            Names::File(name) => Some(name),
            Names::Lines(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a table of the format may contain, by what the reader says when it meets something else.
    fn keys_of(table: &str) -> BTreeSet<String> {
        let error = toml::from_str::<Written>(&format!("{table}nothing = 1")).unwrap_err();
        let expected = error.message().split_once("expected").unwrap().1;
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_value_but_a_list_can_be_set_by_a_variable() {
        let tables = ["timing", "preemption", "attribute"];
        let mut expected = keys_of("");
        for table in tables {
            assert!(expected.remove(table));
            expected.extend(
                keys_of(&format!("{table}.")).into_iter().map(|key| format!("{table}.{key}")),
            );
        }
        assert!(expected.remove("member") && expected.remove("attribute.command"));
        let known: BTreeSet<String> = VARIABLES.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn the_example_has_every_key() {
        let example = include_str!("../../../../examples/doyen.toml");
        // Values that have to be left out by default stand there behind a `#`.
        let mentions = |section: &str, key: &str| {
            section.lines().any(|line| {
                let line = line.trim_start_matches(['#', ' ']);
                line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
            })
        };
        let section = |head: &str| {
            let start = example.find(&format!("\n{head}\n")).unwrap_or_else(|| panic!("no {head}"));
            let rest = &example[start + head.len() + 2..];
            &rest[..rest.find("\n[").unwrap_or(rest.len())]
        };
        let top = &example[..example.find("\n[").unwrap()];
        for key in keys_of("") {
            match key.as_str() {
                "timing" | "preemption" | "attribute" | "member" => {}
                key => assert!(mentions(top, key), "{key} is not in the example"),
            }
        }
        let tables = [("timing.", "[timing]"), ("preemption.", "[preemption]")];
        let tables = tables
            .into_iter()
            .chain([("attribute.", "[attribute]"), ("[[member]]\n", "[[member]]")]);
        for (table, head) in tables {
            for key in keys_of(table) {
                assert!(mentions(section(head), &key), "{head} {key} is not in the example");
            }
        }
    }
}
