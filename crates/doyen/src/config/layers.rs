//! Where values come from: flags, environment, files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use super::raw::{self, Origin, RawConfig, Spanned};
use super::schema::{self, KEYS, Key, nearest};

/// The variable that names the configuration file.
const FILE_VARIABLE: &str = "DOYEN_CONFIG";

/// The variables that other parts of doyen read.
const OTHER_VARIABLES: [&str; 4] = [FILE_VARIABLE, "DOYEN_LOG", "DOYEN_NODE", "DOYEN_TOKEN_FILE"];

/// A setting that a flag sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// Its name: `listen`, or `timing.profile`.
    pub key: &'static str,
    /// To what, as it was typed.
    pub value: String,
}

/// What a configuration depends on besides flags and files.
#[derive(Clone, Debug)]
pub struct Env {
    /// The environment: `DOYEN_*`, `XDG_CONFIG_HOME`, `HOME`.
    pub variables: BTreeMap<String, String>,
    /// The working folder.
    pub folder: PathBuf,
    /// Where the system's configuration is.
    pub system: PathBuf,
}

impl Env {
    /// That of this process.
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

/// All layers, in the order of precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    pub(super) layers: Vec<RawConfig>,
    /// The first file that was read.
    pub(super) file: Option<String>,
    /// Files that might have been there.
    pub(super) missing: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) problems: Vec<String>,
    /// Whether a file could not be read at all, so that it is not known what it would have set.
    pub(super) is_incomplete: bool,
}

impl Layers {
    /// Reads everything that there is. `file` takes the place of the working folder's.
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
        let optional = [env.user_file(), Some(env.system.join("doyen.toml"))];
        let optional = optional.into_iter().flatten().map(|path| (path, false));
        let first = named.map_or_else(|| ("doyen.toml".into(), false), |path| (path, true));
        for (path, required) in iter::once(first).chain(optional) {
            layers.add_file(&path, required, &env.folder);
        }
        layers
    }

    /// One file alone, which need not exist.
    pub(super) fn of_text(name: &str, text: &str) -> Self {
        let mut layers = Self::default();
        layers.add_text(Path::new(name), text, Path::new(""));
        layers
    }

    fn add_file(&mut self, path: &Path, required: bool, folder: &Path) {
        let shown = path.display().to_string();
        match fs::read_to_string(folder.join(path)) {
            Ok(text) => self.add_text(path, &text, folder),
            Err(error) if !required && is_absent(&error) => self.missing.push(shown),
            Err(error) => {
                let hint = if is_absent(&error) { "; `doyen init` writes one" } else { "" };
                self.problems.push(format!("{shown}: cannot be read: {error}{hint}"));
                self.is_incomplete = true;
            }
        }
    }

    fn add_text(&mut self, path: &Path, text: &str, folder: &Path) {
        let base = folder.join(path.parent().unwrap_or(Path::new("")));
        let name = path.display().to_string();
        match raw::parse(&name, text, &base) {
            Ok((raw, mistakes)) => {
                self.layers.push(raw);
                self.problems.extend(mistakes);
            }
            Err(mistakes) => {
                self.is_incomplete = true;
                self.problems.extend(mistakes);
            }
        }
        self.file.get_or_insert(name);
    }

    /// A layer of flags or variables: the name of each, the setting and the text.
    fn add_texts<'a>(
        &mut self,
        texts: impl Iterator<Item = (String, &'static Key, &'a str)>,
        folder: &Path,
    ) {
        let mut raw = RawConfig::default();
        for (name, key, text) in texts {
            match key.kind.parse(text, folder) {
                Ok(value) => {
                    let origin = Origin::Named(name);
                    raw.values.insert(key.name, Spanned { value, origin });
                }
                Err(problem) => {
                    self.problems.push(format!("{name}: {problem}"));
                    raw.unread.insert(key.name);
                }
            }
        }
        self.layers.push(raw);
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
    pub(super) fn find(&self, key: &str) -> Option<&Spanned> {
        self.layers.iter().find_map(|layer| layer.values.get(key))
    }

    /// Whether `key` stands somewhere and could not be read, which has been reported.
    pub(super) fn is_unread(&self, key: &str) -> bool {
        self.layers.iter().any(|layer| layer.unread.contains(key))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
