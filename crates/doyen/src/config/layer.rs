//! Where values come from: flags, environment, files.
//!
//! Flags and variables are written down as TOML, one a line, and read as a file is. So a wrong value gets the same
//! error wherever it stands; only what it is called differs: `doyen.toml:7`, `DOYEN_LISTEN`, `--listen`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::file::Written;
use super::near::nearest;
use super::shape::{self, KEYS, Kind, Mistake, Shaped, Unread};

/// The variable that names the configuration file.
const FILE_VARIABLE: &str = "DOYEN_CONFIG";

/// The variables that mean something to other parts of doyen.
const OTHER_VARIABLES: [&str; 3] = ["DOYEN_LOG", "DOYEN_NODE", "DOYEN_TOKEN_FILE"];

/// The value that a variable sets, and what it is: `DOYEN_TIMING_PROFILE` is `timing.profile`. Lists and members cannot
/// be set by a variable.
fn settable() -> impl Iterator<Item = (&'static str, Kind)> {
    let is_list = |key: &str, kind| kind == Kind::Texts || key.starts_with("member.");
    KEYS.into_iter().filter(move |&(key, kind)| !is_list(key, kind))
}

fn variable_of(key: &str) -> String {
    format!("DOYEN_{}", key.replace('.', "_").to_uppercase())
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
    /// What stands there and could not be read.
    pub(super) unread: Unread,
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
    /// What is wrong with them already.
    pub(super) problems: Vec<String>,
    /// Whether a layer could not be read at all, so that nobody knows what it would have said.
    pub(super) is_cut: bool,
}

impl Stack {
    /// Reads everything that there is. `file` takes the place of the working folder's.
    pub(super) fn collect(
        file: Option<&Path>,
        flags: &[Override],
        surroundings: &Surroundings,
    ) -> Self {
        let mut stack = Self::default();
        let lines = flags.iter().map(|it| (it.flag.to_owned(), it.key, it.value.clone()));
        stack.add_lines(lines.collect(), &surroundings.folder);
        let lines = stack.variables(surroundings);
        stack.add_lines(lines, &surroundings.folder);
        let named = || surroundings.variable(FILE_VARIABLE).map(PathBuf::from);
        let named = file.map(Path::to_owned).or_else(named);
        let optional = [surroundings.user_file(), Some(surroundings.system.join("doyen.toml"))];
        let optional = optional.into_iter().flatten().map(|path| (path, false));
        let first = named.map_or_else(|| ("doyen.toml".into(), false), |path| (path, true));
        for (path, required) in iter::once(first).chain(optional) {
            let shown = path.display().to_string();
            match fs::read_to_string(surroundings.folder.join(&path)) {
                Ok(text) => stack.add_file(&path, text, &surroundings.folder),
                Err(error) if !required && is_absent(&error) => stack.missing.push(shown),
                Err(error) => {
                    let hint = if is_absent(&error) { "; `doyen init` writes one" } else { "" };
                    stack.problems.push(format!("{shown}: cannot be read: {error}{hint}"));
                    stack.is_cut = true;
                }
            }
        }
        stack
    }

    /// One file alone, that need not exist.
    pub(super) fn of_text(name: &str, text: &str) -> Self {
        let mut stack = Self::default();
        stack.add_file(Path::new(name), text.to_owned(), Path::new(""));
        stack
    }

    fn add_file(&mut self, path: &Path, text: String, folder: &Path) {
        let base = folder.join(path.parent().unwrap_or(Path::new("")));
        self.add(text, base, Names::File(path.display().to_string()));
    }

    /// A layer of lines that have names: each a key and its value, as the user wrote it.
    fn add_lines(&mut self, lines: Vec<(String, &'static str, String)>, folder: &Path) {
        let (mut names, mut text) = (Vec::new(), String::new());
        for (name, key, value) in lines {
            let kind = KEYS.into_iter().find(|&(known, _)| known == key);
            let literal = literal(&value, kind.map_or(Kind::Text, |(_, kind)| kind));
            let line = literal.map(|literal| format!("{key} = {literal}\n"));
            // Read alone first: what is no TOML must not hide the others.
            let line = line.and_then(|line| match shape::read(&line) {
                Ok(_) => Ok(line),
                Err(_) => Err(format!("`{value}` cannot be read")),
            });
            match line {
                Ok(line) => {
                    names.push(name);
                    text.push_str(&line);
                }
                Err(problem) => self.problems.push(format!("{name}: {problem}")),
            }
        }
        self.add(text, folder.to_owned(), Names::Lines(names));
    }

    fn add(&mut self, text: String, base: PathBuf, names: Names) {
        let (written, mistakes, unread) = match shape::read(&text) {
            Ok(Shaped { written, mistakes, unread }) => (written, mistakes, unread),
            Err(mistakes) => {
                self.is_cut = true;
                (Written::default(), mistakes, Unread::default())
            }
        };
        let layer = Layer { written, unread, base, text, names };
        let told = mistakes.into_iter().map(|Mistake { position, key, problem }| {
            let place = match key {
                Some(key) => layer.place(position, &key),
                None => layer.name_at(position),
            };
            format!("{place}: {problem}")
        });
        self.problems.extend(told);
        self.layers.push(layer);
    }

    /// What the environment sets: the variable, the key and the value.
    fn variables(&mut self, surroundings: &Surroundings) -> Vec<(String, &'static str, String)> {
        let mut lines = Vec::new();
        for name in surroundings.variables.keys().filter(|name| name.starts_with("DOYEN_")) {
            let Some(value) = surroundings.variable(name) else { continue };
            match settable().find(|(key, _)| variable_of(key) == *name) {
                Some((key, _)) => lines.push((name.clone(), key, value.to_owned())),
                None if name == FILE_VARIABLE || OTHER_VARIABLES.contains(&name.as_str()) => {}
                None => self.warnings.push(no_such_variable(name)),
            }
        }
        lines
    }
}

fn no_such_variable(name: &str) -> String {
    let known: Vec<String> = settable().map(|(key, _)| variable_of(key)).collect();
    let meant = nearest(name, known.iter().map(String::as_str));
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    format!("{name}: no setting of a node has this name; it is ignored{meant}")
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The value as TOML.
fn literal(value: &str, kind: Kind) -> Result<String, String> {
    let bare = match kind {
        // Each is to be a line.
        _ if value.contains(char::is_control) => {
            return Err("contains a line break or another control character".to_owned());
        }
        Kind::Text | Kind::Texts => false,
        Kind::Who => value.parse::<u32>().is_ok(),
        Kind::Fraction | Kind::Count | Kind::Whole | Kind::Id
            if !value.parse::<f64>().is_ok_and(f64::is_finite) =>
        {
            return Err(format!("`{value}` is not a number"));
        }
        Kind::Truth if value.parse::<bool>().is_err() => {
            return Err(format!("`{value}` is neither true nor false"));
        }
        Kind::Fraction | Kind::Count | Kind::Whole | Kind::Id | Kind::Truth => true,
    };
    Ok(if bare { value.to_owned() } else { toml::Value::from(value).to_string() })
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
    use super::*;

    #[test]
    fn the_example_has_every_key() {
        // Values that have to be left out by default stand there behind a `#`.
        let mentions = |section: &str, key: &str| {
            section.lines().any(|line| {
                let line = line.trim_start_matches(['#', ' ']);
                line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
            })
        };
        let example = super::super::EXAMPLE;
        let section = |head: &str| {
            let start = example.find(&format!("\n{head}\n")).unwrap_or_else(|| panic!("no {head}"));
            let rest = &example[start + head.len() + 2..];
            &rest[..rest.find("\n[").unwrap_or(rest.len())]
        };
        let top = &example[..example.find("\n[").unwrap()];
        for (key, _) in KEYS {
            let (section, key) = match key.split_once('.') {
                None => (top, key),
                Some(("member", key)) => (section("[[member]]"), key),
                Some((table, key)) => (section(&format!("[{table}]")), key),
            };
            assert!(mentions(section, key), "{key} is not in the example");
        }
    }
}
