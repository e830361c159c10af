//! A new cluster: the folder of every member, with configuration, key and state.
//!
//! ```text
//!   orders/n1/doyen.toml    the configuration
//!   orders/n1/key           mode 0600, the same for every member
//!   orders/n1/state/        the state of a member that has never started: `node/store.rs`
//! ```
//!
//! Everything is written to a draft folder and moved into place when it is complete, and every folder that got an entry is
//! synced, so that it survives a power cut. Nothing is overwritten. The configuration is checked by the rules of a node.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use doyen_core::algorithm::quorum::Stored;
use doyen_core::config::quorum::Profile;
use doyen_core::members::{NodeId, Term};
use doyen_core::registry::Algorithm;

use crate::config::{ConfigError, Configuration, check_address, check_name, member_title};
use crate::files::{self, parent};
use crate::key::{KeyFileError, Keyring};
use crate::node::store::{Owner, Store, StoreError};

/// The name of the configuration in errors, while it is not written.
const DRAFT: &str = "doyen.toml";

/// A cluster to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Founding {
    /// Its name.
    pub cluster: String,
    /// Its election algorithm.
    pub algorithm: Algorithm,
    /// Its timing.
    pub profile: Profile,
    /// All members.
    pub members: Vec<NewMember>,
    /// All its terms are above this one: for a cluster that replaces one whose terms were used as fencing tokens.
    pub term_floor: u64,
    /// Groups that each have a leader of their own: a name, and after `=` the members that should lead it.
    pub groups: Vec<String>,
    /// More settings of every member, in TOML: the rest of the table `timing`, then other tables.
    pub settings: String,
}

/// A member of a new cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMember {
    /// Its id.
    pub id: u32,
    /// Its name, and that of its folder.
    pub name: String,
    /// Where it listens: `host:port`.
    pub address: String,
    /// Where it serves HTTP.
    pub http: String,
    /// The highest leads.
    pub priority: i64,
    /// Whether it votes and never leads.
    pub witness: bool,
    /// Where it reaches others if not at their addresses, by their ids: through a relay.
    pub routes: BTreeMap<u32, String>,
}

/// Why a cluster was not created. Nothing has been written.
#[derive(Debug, thiserror::Error)]
pub enum FoundingError {
    /// No node would accept the configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// A member's folder exists.
    #[error("{}: exists and is not overwritten; choose another --out, or move it away", .0.display())]
    Exists(PathBuf),
    /// The state cannot be written.
    #[error(transparent)]
    State(#[from] StoreError),
    /// The key cannot be written.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The operating system gives no random numbers.
    #[error("cannot make a key: {0}")]
    Random(getrandom::Error),
    /// Something else cannot be written.
    #[error("{path}: cannot be written: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
}

impl NewMember {
    /// Reads `n1=10.0.0.1:7400`. The member serves HTTP on loopback, at the same port. [`Founding::check`] checks name and
    /// address.
    pub fn parse(id: u32, text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('=').ok_or_else(|| {
            format!("`{text}` is not NAME=ADDRESS; write for example n1=10.0.0.1:7400")
        })?;
        let (name, address) = (name.to_owned(), address.to_owned());
        let http = format!("127.0.0.1:{}", port(&address));
        let routes = BTreeMap::new();
        Ok(Self { id, name, address, http, priority: 0, witness: false, routes })
    }

    /// Its address, or all addresses if that is a host name.
    fn listen(&self) -> String {
        match self.address.parse::<SocketAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => format!("0.0.0.0:{}", port(&self.address)),
        }
    }
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or("", |(_, port)| port)
}

impl Founding {
    /// Writes a folder for every member into `folder`, which is created if needed, with one new key for all.
    pub fn write(&self, folder: &Path) -> Result<(), FoundingError> {
        self.check()?;
        let keys = Keyring::generate().map_err(FoundingError::Random)?;
        let durable = self.durable();
        let places: Vec<PathBuf> =
            self.members.iter().map(|member| folder.join(&member.name)).collect();
        if let Some(taken) = places.iter().find(|place| place.symlink_metadata().is_ok()) {
            return Err(FoundingError::Exists(taken.clone()));
        }
        let is_new = folder.symlink_metadata().is_err();
        let mut draft = Draft::create(folder, is_new)?;
        for member in &self.members {
            self.write_member(&draft.path.join(&member.name), member, &keys, durable.as_deref())?;
        }
        if is_new {
            sync(&draft.path)?;
            draft.move_to(&draft.path.clone(), folder.to_owned())?;
            sync(parent(folder))?;
        } else {
            for (member, place) in self.members.iter().zip(places) {
                // If something was created there meanwhile, this fails, unless it is empty.
                draft.move_to(&draft.path.join(&member.name), place)?;
            }
            sync(folder)?;
        }
        draft.moved.clear();
        Ok(())
    }

    /// Checks the configuration of every member; returns the warnings.
    pub fn check(&self) -> Result<Vec<String>, ConfigError> {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        if let Err(problem) = check_name(&self.cluster) {
            problems.push(format!("cluster: {problem}"));
        }
        if self.term_floor == u64::MAX {
            problems.push("term_floor: there is no higher term; use a lower one".to_owned());
        }
        for member in &self.members {
            match Configuration::parse(DRAFT, &self.configuration(member)) {
                Ok(resolved) => warnings = resolved.warnings,
                Err(error) => problems.extend(error.problems.iter().map(|it| self.rephrase(it))),
            }
        }
        // A mistake that all members share is reported once.
        let mut seen = BTreeSet::new();
        problems.retain(|problem| seen.insert(problem.clone()));
        if problems.is_empty() {
            Ok(warnings)
        } else {
            Err(ConfigError { problems, warnings: Vec::new() })
        }
    }

    /// A mistake in a file that is not written has no line, and names a member by its id.
    fn rephrase(&self, problem: &str) -> String {
        let (place, rest) = problem.split_once(": ").unwrap_or(("", problem));
        let problem = if place.starts_with(DRAFT) { rest } else { problem };
        let title = |(place, member): (usize, &NewMember)| {
            let rest = problem.strip_prefix(&member_title(place + 1, Some(&member.name)))?;
            Some(format!("member {} ({}){rest}", member.id, member.name))
        };
        self.members.iter().enumerate().find_map(title).unwrap_or_else(|| problem.to_owned())
    }

    fn write_member(
        &self,
        folder: &Path,
        member: &NewMember,
        keys: &Keyring,
        durable: Option<&[u8]>,
    ) -> Result<(), FoundingError> {
        make_folder(folder).map_err(failed(folder))?;
        keys.create(&folder.join("key"))?;
        let path = folder.join("doyen.toml");
        let text = self.configuration(member);
        // Other users may not write it, whatever the umask: otherwise a node would not run with it.
        let mut options = OpenOptions::new();
        let written =
            options.write(true).create_new(true).mode(0o644).open(&path).and_then(|mut file| {
                file.write_all(text.as_bytes()).and_then(|()| file.sync_all())
            });
        written.map_err(failed(&path))?;
        let owner = Owner {
            cluster: self.cluster.clone(),
            member: NodeId(member.id),
            algorithm: self.algorithm,
            members: self.members.iter().map(|member| NodeId(member.id)).collect(),
        };
        Store::create(&folder.join("state"), &owner, durable)?;
        sync(folder)
    }

    /// The initial durable state: none, unless terms have a floor.
    fn durable(&self) -> Option<Vec<u8>> {
        let term = match self.term_floor {
            0 => return None,
            floor => Term(floor),
        };
        let encoded = match self.algorithm {
            Algorithm::Quorum => postcard::to_allocvec(&Stored { term, ..Stored::default() }),
            _ => postcard::to_allocvec(&term),
        };
        Some(encoded.expect("numbers can be encoded"))
    }

    /// The configuration file of a member.
    fn configuration(&self, me: &NewMember) -> String {
        let Self { cluster, algorithm, profile, members, settings, .. } = self;
        let quoted = |text: &str| toml::Value::from(text).to_string();
        // Both derive from the address. If that is wrong, it is the only mistake.
        let listens = match check_address(&me.address) {
            Ok(()) => format!("listen = {}\nhttp = {}\n", quoted(&me.listen()), quoted(&me.http)),
            Err(_) => String::new(),
        };
        let groups = match &self.groups[..] {
            [] => String::new(),
            groups => format!("groups = {}\n", toml::Value::from(groups.to_vec())),
        };
        let mut text = format!(
            "# {name} of the cluster `{title}`, written by `doyen init`.\n\
             # `doyen node --example` prints every setting with its default and what it is for.\n\n\
             cluster = {}\nid = {}\n{listens}key_file = \"key\"\nstate_dir = \"state\"\n\
             algorithm = \"{algorithm}\"\n{groups}\n[timing]\nprofile = \"{}\"\n{settings}",
            quoted(cluster),
            me.id,
            profile.name(),
            name = me.name.escape_debug(),
            title = cluster.escape_debug(),
        );
        for NewMember { id, name, address, priority, witness, .. } in members {
            let address = me.routes.get(id).unwrap_or(address);
            let [name, address] = [name, address].map(|text| quoted(text));
            let kind = match witness {
                true => "witness = true".to_owned(),
                false => format!("priority = {priority}"),
            };
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "\n[[member]]\nid = {id}\nname = {name}\naddress = {address}\n{kind}\n"
            );
        }
        text
    }
}

/// A draft folder. What is left of it, or was moved, is removed on failure.
struct Draft {
    path: PathBuf,
    moved: Vec<PathBuf>,
}

impl Draft {
    /// Beside `folder` if that is new, so that all of it appears at once; else in it.
    fn create(folder: &Path, is_new: bool) -> Result<Self, FoundingError> {
        let process = std::process::id();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let path = match is_new {
            true => folder.with_file_name(format!(".{name}.{process}.draft")),
            false => folder.join(format!(".{process}.draft")),
        };
        // The error names the folder, not the draft.
        make_folder(&path).map_err(failed(folder))?;
        Ok(Self { path, moved: Vec::new() })
    }

    fn move_to(&mut self, from: &Path, place: PathBuf) -> Result<(), FoundingError> {
        fs::rename(from, &place).map_err(failed(&place))?;
        self.moved.push(place);
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for path in self.moved.iter().chain([&self.path]) {
            // What cannot be removed stays.
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn sync(folder: &Path) -> Result<(), FoundingError> {
    files::sync_folder(folder).map_err(failed(folder))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> FoundingError {
    move |error| FoundingError::Io(path.to_owned(), error)
}
