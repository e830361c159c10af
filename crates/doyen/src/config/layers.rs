//! Where values come from: flags, variables and files, each a layer, in the order of precedence.
//!
//! Every mistake in a layer is noted. A key that is set and could not be read is kept without a value, so that no other
//! error reports it as missing.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::schema::{self, KEYS, Key, MEMBER, TABLES, keys_of, nearest};
use crate::files::hint_if_denied;
use crate::key::is_key_file;

/// The variable that names the configuration file.
const FILE_VARIABLE: &str = "DOYEN_CONFIG";

/// The variables that other parts of doyen read.
const OTHER_VARIABLES: [&str; 11] = [
    FILE_VARIABLE,
    "DOYEN_NODE",
    "DOYEN_SECRET_FILE",
    "DOYEN_CA_FILE",
    "DOYEN_TERM",
    "DOYEN_TOKEN",
    "DOYEN_LEASE_FILE",
    "DOYEN_ROLE",
    "DOYEN_MEMBER",
    "DOYEN_LEADER",
    "DOYEN_REASON",
];

/// A setting that a flag sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// Its name: `listen`, or `timing.profile`.
    pub key: &'static str,
    /// Its value, as it was typed.
    pub value: String,
}

/// What a configuration depends on besides flags and files.
#[derive(Clone, Debug)]
pub struct Env {
    /// The environment: `DOYEN_*`, `XDG_CONFIG_HOME`, `HOME`.
    pub variables: BTreeMap<String, String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The folder of the system's configuration.
    pub system: PathBuf,
}

impl Env {
    /// The environment of this process.
    pub fn of_process() -> Self {
        // A value that is not Unicode is shown as wrong, or as a file that is not there.
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .collect();
        Self { variables, folder: PathBuf::new(), system: PathBuf::from("/etc/doyen") }
    }

    /// An empty variable counts as not set.
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

/// Where a value was set.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Line(String, usize),
    /// A flag or a variable.
    Named(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(file, line) => write!(f, "{file}:{line}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl Origin {
    /// The beginning of an error about `key`. A flag or a variable tells by its name what it sets.
    pub(super) fn place(&self, key: &str) -> String {
        match self {
            Self::Line(..) => format!("{self}: {key}"),
            Self::Named(name) => name.clone(),
        }
    }
}

/// A key that is set.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) origin: Origin,
    /// `None` if it could not be read, which has been reported.
    text: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Values(BTreeMap<&'static str, Entry>);

impl Values {
    /// The value of a key, and where it was set.
    pub(super) fn get(&self, key: &str) -> Option<(&str, &Origin)> {
        let entry = self.0.get(key)?;
        Some((entry.text.as_deref()?, &entry.origin))
    }

    pub(super) fn is_unread(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|entry| entry.text.is_none())
    }

    pub(super) fn has_unread(&self) -> bool {
        self.0.values().any(|entry| entry.text.is_none())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) values: Values,
    pub(super) members: Vec<RawMember>,
}

/// A `[[member]]`.
#[derive(Clone, Debug)]
pub(super) struct RawMember {
    pub(super) origin: Origin,
    /// Its name in errors: `member 2 (n2)`.
    pub(super) title: String,
    pub(super) values: Values,
}

/// The name of a member in errors.
pub(crate) fn member_title(number: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("member {number} ({name})"),
        None => format!("member {number}"),
    }
}

/// Whether a file must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    /// It was named.
    Required,
    /// It may be absent. If it is there, it must be readable: it may be all that there is.
    Optional,
    /// It may also be unreadable.
    Extra,
}

/// All layers, in the order of precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    pub(super) layers: Vec<Layer>,
    /// The first file that was read.
    pub(super) file: Option<String>,
    /// Optional files that do not exist.
    pub(super) missing: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) problems: Vec<String>,
    /// A file that another user can write, and what to do.
    pub(super) exposed: Option<String>,
    /// Whether a file could not be parsed at all, so that it is not known what it would have set.
    pub(super) is_incomplete: bool,
}

impl Layers {
    /// Reads all layers. `file` replaces the working folder's.
    pub(super) fn collect(file: Option<&Path>, flags: &[Override], env: &Env) -> Self {
        let mut layers = Self::default();
        let flags = flags.iter().map(|flag| {
            let key = schema::named(flag.key);
            let name = key.flag.map_or(key.name, |(name, _)| name);
            (format!("--{name}"), key, flag.value.as_str())
        });
        layers.add_texts(flags, &env.folder);
        layers.warn_of_unknown_variables(env);
        let set = KEYS.iter().filter_map(|key| {
            let variable = key.variable()?;
            let value = env.variable(&variable)?;
            Some((variable, key, value))
        });
        layers.add_texts(set, &env.folder);
        let named = || env.variable(FILE_VARIABLE).map(PathBuf::from);
        let named = file.map(Path::to_owned).or_else(named);
        let (first, need) = match named {
            Some(path) => (path, Need::Required),
            None => ("doyen.toml".into(), Need::Optional),
        };
        // Of another user, perhaps: a node whose file is named does not depend on them.
        let rest = if need == Need::Required { Need::Extra } else { Need::Optional };
        let others = [env.user_file(), Some(env.system.join("doyen.toml"))].into_iter().flatten();
        for (path, need) in [(first, need)].into_iter().chain(others.map(|path| (path, rest))) {
            layers.add_file(&path, need, &env.folder);
        }
        layers
    }

    fn add_file(&mut self, path: &Path, need: Need, folder: &Path) {
        let shown = path.display().to_string();
        let is_absent = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        match read(&folder.join(path)) {
            Ok((text, writers)) => {
                let exposed = writers.map(|how| format!("{shown}: {how}"));
                self.exposed = self.exposed.take().or(exposed);
                self.add_text(path, &text, folder);
            }
            Err(error) if need != Need::Required && is_absent(&error) => self.missing.push(shown),
            Err(error) if need == Need::Extra && error.kind() != io::ErrorKind::InvalidData => {
                self.warnings.push(format!("{shown}: ignored, it cannot be read: {error}"));
            }
            Err(error) => {
                let hint = match need {
                    _ if is_absent(&error) => "; `doyen init` writes one",
                    Need::Optional => {
                        "; make it readable, or name the file of the node (--config FILE)"
                    }
                    Need::Required | Need::Extra => hint_if_denied(&error),
                };
                self.problems.push(format!("{shown}: cannot be read: {error}{hint}"));
                self.is_incomplete = true;
            }
        }
    }

    /// Adds a file with this text.
    pub(super) fn add_text(&mut self, path: &Path, text: &str, folder: &Path) {
        let base = folder.join(path.parent().unwrap_or(Path::new("")));
        let name = path.display().to_string();
        if is_key_file(text) {
            // Its lines are secret.
            self.problems
                .push(format!("{name}: this is a key file; give a configuration (doyen.toml)"));
            self.is_incomplete = true;
            return;
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut parser = Parser { file: &name, text, base: &base, mistakes: Vec::new() };
        let mut layer = Layer::default();
        if errors.is_empty() {
            for (key, value) in document.get_ref() {
                parser.entry(key, value, &mut layer);
            }
        } else {
            self.is_incomplete = true;
            errors.iter().for_each(|error| parser.syntax_error(error));
        }
        // A table has its keys in alphabetical order.
        parser.mistakes.sort_by_key(|(position, _)| *position);
        self.problems.extend(parser.mistakes.into_iter().map(|(_, mistake)| mistake));
        self.layers.push(layer);
        self.file.get_or_insert(name);
    }

    /// Adds a layer of flags or variables: the name of each, its setting and its text.
    fn add_texts<'a>(
        &mut self,
        texts: impl Iterator<Item = (String, &'static Key, &'a str)>,
        folder: &Path,
    ) {
        let mut layer = Layer::default();
        for (name, key, text) in texts {
            let parsed = key.kind.parse(text, folder);
            self.problems.extend(parsed.as_ref().err().map(|problem| format!("{name}: {problem}")));
            layer
                .values
                .0
                .insert(key.name, Entry { origin: Origin::Named(name), text: parsed.ok() });
        }
        self.layers.push(layer);
    }

    fn warn_of_unknown_variables(&mut self, env: &Env) {
        let known: Vec<String> = KEYS.iter().filter_map(Key::variable).collect();
        let is_known =
            |name: &String| known.contains(name) || OTHER_VARIABLES.contains(&name.as_str());
        let ours = env.variables.keys().filter(|name| name.starts_with("DOYEN_"));
        for name in ours.filter(|name| !is_known(name) && env.variable(name).is_some()) {
            let meant = nearest(name, known.iter().map(String::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            self.warnings.push(format!("{name}: ignored, no setting has this name{meant}"));
        }
    }

    /// The value that counts.
    pub(super) fn find(&self, key: &str) -> Option<(&str, &Origin)> {
        self.layers.iter().find_map(|layer| layer.values.get(key))
    }

    /// Whether a layer sets `key` to something that could not be read.
    pub(super) fn is_unread(&self, key: &str) -> bool {
        self.layers.iter().any(|layer| layer.values.is_unread(key))
    }
}

/// The text of a file; and who else can write it, if others can, with what to type.
fn read(path: &Path) -> io::Result<(String, Option<String>)> {
    let mut file = File::open(path)?;
    // Of the open file: what is checked is what is read.
    let meta = file.metadata()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let (mode, owner, path) = (meta.mode() & 0o777, meta.uid(), path.display());
    let me = rustix::process::geteuid().as_raw();
    // A pipe or a terminal was chosen by the user.
    let writers = match meta.is_file() {
        true if mode & 0o022 != 0 => Some(format!(
            "other users can write it (mode {mode:04o}), and it may name commands that the node runs; run \
             `chmod go-w {path}`"
        )),
        true if ![0, me].contains(&owner) => Some(format!(
            "it belongs to the user {owner}, and it may name commands that the node runs as the user {me}; run \
             `chown {me} {path}`"
        )),
        _ => None,
    };
    Ok((text, writers))
}

/// Parses one file against the schema.
struct Parser<'a> {
    file: &'a str,
    text: &'a str,
    base: &'a Path,
    /// With their positions in the text.
    mistakes: Vec<(usize, String)>,
}

impl Parser<'_> {
    fn origin(&self, position: usize) -> Origin {
        let before = self.text.get(..position).unwrap_or(self.text);
        Origin::Line(self.file.to_owned(), before.matches('\n').count() + 1)
    }

    fn syntax_error(&mut self, error: &toml::de::Error) {
        let position = error.span().map_or(0, |span| span.start);
        let origin = self.origin(position);
        let number = self.text.get(..position).unwrap_or(self.text).matches('\n').count();
        let line = self.text.lines().nth(number).unwrap_or_default().trim();
        let message: Vec<&str> = error.message().split_whitespace().collect();
        // A file that is no configuration may hold a secret.
        let is_setting = line.starts_with('[') || line.contains(" =") || line.contains("= ");
        let place = if is_setting { format!(", in `{line}`") } else { String::new() };
        self.mistakes.push((position, format!("{origin}: {}{place}", message.join(" "))));
    }

    /// Reads an entry at the top of the file.
    fn entry(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        layer: &mut Layer,
    ) {
        let name = key.get_ref().as_ref();
        let Some((table, _)) = TABLES.into_iter().find(|(table, _)| *table == name) else {
            return self.setting("", name, (key, value), &mut layer.values);
        };
        match value.get_ref() {
            DeValue::Array(members)
                if table == MEMBER && members.iter().all(|it| it.get_ref().is_table()) =>
            {
                for (index, member) in members.iter().enumerate() {
                    layer.members.extend(self.member(index, member));
                }
            }
            DeValue::Table(entries) if table != MEMBER => {
                for (key, value) in entries {
                    let shown = format!("{table}.{}", key.get_ref());
                    self.setting(table, &shown, (key, value), &mut layer.values);
                }
            }
            _ => {
                let written = self.text.get(value.span()).unwrap_or_default();
                let problem = match table {
                    MEMBER => format!("is `{written}`; write each member below a line [[member]]"),
                    _ => format!("is `{written}`; write its settings below a line [{table}]"),
                };
                self.note(key.span().start, table, &problem);
                self.mark_unread(keys_of(table), key.span().start, &mut layer.values);
            }
        }
    }

    fn member(&mut self, index: usize, member: &Spanned<DeValue<'_>>) -> Option<RawMember> {
        let table = member.get_ref().as_table()?;
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let title = member_title(index + 1, name);
        let mut values = Values::default();
        for (key, value) in table {
            let shown = format!("{title}: {}", key.get_ref());
            self.setting(MEMBER, &shown, (key, value), &mut values);
        }
        Some(RawMember { origin: self.origin(member.span().start), title, values })
    }

    /// Reads an entry of `table`, which errors call `shown`.
    fn setting(
        &mut self,
        table: &'static str,
        shown: &str,
        (key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>),
        values: &mut Values,
    ) {
        let (name, position) = (key.get_ref().as_ref(), key.span().start);
        let Some(known) = keys_of(table).find(|known| known.split().1 == name) else {
            self.note(position, shown, &no_such_key(table, name));
            let (home, meant) = (home_of(name), meant(table, name));
            let is_meant = |key: &&Key| match (home, key.split()) {
                (Some(home), _) => home.name == key.name,
                (None, (of, key)) => meant == Some(key) && of == table || meant == Some(of),
            };
            return self.mark_unread(KEYS.iter().filter(is_meant), position, values);
        };
        let written = self.text.get(value.span()).unwrap_or_default();
        let read = known.kind.read(value.get_ref(), written, self.base);
        if let Err(problem) = &read {
            self.note(position, shown, problem);
        }
        let entry = Entry { origin: self.origin(position), text: read.ok() };
        values.0.insert(known.name, entry);
    }

    /// A misspelt or misplaced key is not missing.
    fn mark_unread(
        &self,
        keys: impl Iterator<Item = &'static Key>,
        position: usize,
        values: &mut Values,
    ) {
        for key in keys {
            let entry = || Entry { origin: self.origin(position), text: None };
            values.0.entry(key.name).or_insert_with(entry);
        }
    }

    fn note(&mut self, position: usize, key: &str, problem: &str) {
        let mistake = format!("{}: {problem}", self.origin(position).place(key));
        self.mistakes.push((position, mistake));
    }
}

/// The key of a table that `name` is probably a misspelling of; above all tables also a table.
fn meant(table: &str, name: &str) -> Option<&'static str> {
    let tables = TABLES.into_iter().map(|(table, _)| table).filter(|_| table.is_empty());
    nearest(name, keys_of(table).map(|key| key.split().1).chain(tables))
}

/// The first setting of this name in any table.
fn home_of(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.split().1 == name)
}

fn no_such_key(table: &str, name: &str) -> String {
    match (home_of(name).map(Key::split), meant(table, name)) {
        (Some(("", _)), _) => "there is no such key here; it belongs above all tables".to_owned(),
        (Some((MEMBER, _)), _) => {
            "there is no such key here; it belongs below [[member]]".to_owned()
        }
        (Some((home, _)), _) => format!("there is no such key here; it belongs below [{home}]"),
        (None, Some(meant)) => format!("there is no such key; did you mean `{meant}`?"),
        (None, None) => {
            let known: Vec<&str> = keys_of(table).map(|key| key.split().1).collect();
            format!("there is no such key; there are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of value for every key is read or is a mistake about that key.
    #[test]
    fn every_value_of_a_wrong_kind_is_a_mistake() {
        let values = ["1", "-1", "1.5", "true", "\"x\"", "[\"x\"]", "[1]", "{ x = 1 }"];
        let values = values.into_iter().chain(["[{ x = 1 }]", "1979-05-27", "4294967296", "inf"]);
        for (key, value) in KEYS.iter().flat_map(|key| values.clone().map(move |it| (key, it))) {
            let text = match key.split() {
                (MEMBER, name) => format!("[[member]]\n{name} = {value}"),
                _ => format!("{} = {value}", key.name),
            };
            let mut layers = Layers::default();
            layers.add_text(Path::new("x"), &text, "".as_ref());
            let layer = &layers.layers[0];
            let values = layer.members.first().map_or(&layer.values, |member| &member.values);
            assert_eq!(values.0.len(), 1, "{text}");
            let is_mistake = values.has_unread();
            assert_eq!(layers.problems.len(), usize::from(is_mistake), "{text}: {layers:?}");
        }
    }

    #[test]
    fn only_a_near_word_was_meant() {
        for (word, expected) in [
            ("statedir", Some("state_dir")),
            ("lisen", Some("listen")),
            ("clustre", Some("cluster")),
            ("ids", Some("id")),
            ("htp", Some("http")),
            ("log_level", None),
            ("x", None),
        ] {
            assert_eq!(meant("", word), expected, "{word}");
        }
    }
}
