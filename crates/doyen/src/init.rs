//! Founding a cluster: the folder of every member, with configuration, key and state.
//!
//! ```text
//!   orders/n1/doyen.toml    what is the same everywhere, and who this is
//!   orders/n1/key           mode 0600, the same at every member
//!   orders/n1/state/        the state of a member that has never started: `node/store.rs`
//! ```
//!
//! Everything is written beside its place and moved there when it is whole, and every folder that got an entry is
//! synced: what has been said to be there survives a power cut. Nothing is ever overwritten. What is written has been
//! read by the same rules that a node will read it by.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use doyen_core::algorithm::quorum::Stored;
use doyen_core::algorithm::quorum::settings::Profile;
use doyen_core::members::{NodeId, Term};
use doyen_core::registry::Algorithm;

use crate::config::{ConfigError, Configuration, check_address, check_name, member_title};
use crate::key::{KeyFileError, Keyring};
use crate::node::store::{Owner, Store, StoreError};

/// What errors call a configuration that is not written yet.
const DRAFT: &str = "doyen.toml";

/// A cluster that is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Founding {
    /// Its name.
    pub cluster: String,
    /// By which algorithm it will elect.
    pub algorithm: Algorithm,
    /// How fast.
    pub profile: Profile,
    /// Who takes part.
    pub members: Vec<NewMember>,
    /// All its terms will be above this one: for a cluster that is made anew, whose earlier terms have been shown.
    pub term_floor: u64,
}

/// A member of it.
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
}

/// Why a cluster was not founded. Nothing has been written then.
#[derive(Debug, thiserror::Error)]
pub enum FoundingError {
    /// No node would accept the configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// Something is there already.
    #[error("{}: is there already, and is never overwritten; choose another --out, or move it away", .0.display())]
    Exists(PathBuf),
    /// There is no such member.
    #[error("`{0}` is none of the members")]
    Stranger(String),
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
    #[error("{}: cannot be written: {error}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl NewMember {
    /// Reads `n1=10.0.0.1:7400`. It serves HTTP on this machine only, at the port that it listens on. Whether name and
    /// address will do, [`Founding::check`] says, of all members at once.
    pub fn parse(id: u32, text: &str) -> Result<Self, String> {
        let example = "write for example n1=10.0.0.1:7400";
        let (name, address) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not NAME=ADDRESS; {example}"))?;
        let port = address.rsplit_once(':').map_or("", |(_, port)| port);
        Ok(Self {
            id,
            name: name.to_owned(),
            address: address.to_owned(),
            http: format!("127.0.0.1:{port}"),
            priority: 0,
            witness: false,
        })
    }

    /// On what it listens: its address, or, if that is a name, on all.
    fn listen(&self) -> String {
        let port = self.address.rsplit_once(':').map_or("", |(_, port)| port);
        match self.address.parse::<SocketAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => format!("0.0.0.0:{port}"),
        }
    }
}

impl Founding {
    /// Writes a folder for every member into `folder`, which is made if need be, with one new key for all.
    pub fn write(&self, folder: &Path) -> Result<(), FoundingError> {
        let members: Vec<&NewMember> = self.members.iter().collect();
        let keys = Keyring::generate().map_err(FoundingError::Random)?;
        self.write_members(folder, &members, &keys)
    }

    /// Writes the folder of the member called `name` only, with keys that the others have already.
    pub fn write_one(
        &self,
        folder: &Path,
        name: &str,
        keys: &Keyring,
    ) -> Result<(), FoundingError> {
        let found = self.members.iter().find(|member| member.name == name);
        let member = found.ok_or_else(|| FoundingError::Stranger(name.to_owned()))?;
        self.write_members(folder, &[member], keys)
    }

    /// Whether every member would accept its configuration, with all that is wrong; what it would warn of.
    pub fn check(&self) -> Result<Vec<String>, ConfigError> {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        if let Err(problem) = check_name(&self.cluster) {
            problems.push(format!("cluster: {problem}"));
        }
        if self.term_floor == u64::MAX {
            let problem = format!("term_floor: above the term {} there is none", u64::MAX);
            problems.push(problem + "; use a lower one");
        }
        for member in &self.members {
            match Configuration::parse(DRAFT, &self.configuration(member)) {
                Ok(resolved) => warnings = resolved.warnings,
                Err(error) => problems.extend(error.problems.iter().map(|it| self.told(it))),
            }
        }
        // What is the same at every member is said once.
        let mut told = BTreeSet::new();
        problems.retain(|problem| told.insert(problem.clone()));
        if problems.is_empty() {
            Ok(warnings)
        } else {
            Err(ConfigError { problems, warnings: Vec::new() })
        }
    }

    /// What is wrong with a file that is not written yet: there is no line to look at, and members go by their ids.
    fn told(&self, problem: &str) -> String {
        let (place, rest) = problem.split_once(": ").unwrap_or(("", problem));
        let problem = if place.starts_with(DRAFT) { rest } else { problem };
        let title = |(place, member): (usize, &NewMember)| {
            let rest = problem.strip_prefix(&member_title(place + 1, Some(&member.name)))?;
            Some(format!("member {} ({}){rest}", member.id, member.name))
        };
        self.members.iter().enumerate().find_map(title).unwrap_or_else(|| problem.to_owned())
    }

    fn write_members(
        &self,
        folder: &Path,
        members: &[&NewMember],
        keys: &Keyring,
    ) -> Result<(), FoundingError> {
        self.check()?;
        let durable = self.durable();
        let places: Vec<PathBuf> = members.iter().map(|member| folder.join(&member.name)).collect();
        if let Some(taken) = places.iter().find(|place| place.symlink_metadata().is_ok()) {
            return Err(FoundingError::Exists(taken.clone()));
        }
        let is_new = folder.symlink_metadata().is_err();
        let mut draft = Draft::make(folder, is_new)?;
        for member in members {
            self.write_member(&draft.path.join(&member.name), member, keys, durable.as_deref())?;
        }
        if is_new {
            sync(&draft.path)?;
            draft.move_all(folder)?;
            sync(parent(folder))?;
        } else {
            for (member, place) in members.iter().zip(places) {
                draft.move_part(&member.name, place)?;
            }
            sync(folder)?;
        }
        draft.keep();
        Ok(())
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
        let written = File::create_new(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(failed(&path))?;
        let owner = Owner {
            cluster: self.cluster.clone(),
            member: NodeId(member.id),
            algorithm: self.algorithm,
        };
        Store::create(&folder.join("state"), &owner, durable)?;
        sync(folder)
    }

    /// What every member begins from: nothing, unless its terms have a floor.
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
        let Self { cluster, algorithm, profile, members, .. } = self;
        let quoted = |text: &str| toml::Value::from(text).to_string();
        // Where it listens is made of its address. If that is wrong, it is the only mistake.
        let listens = match check_address(&me.address) {
            Ok(()) => format!("listen = {}\nhttp = {}\n", quoted(&me.listen()), quoted(&me.http)),
            Err(_) => String::new(),
        };
        let mut text = format!(
            "# {name} of the cluster `{title}`, written by `doyen init`.\n\
             # `doyen node --example` prints every setting with its default and what it is for.\n\n\
             cluster = {}\nid = {}\n{listens}key_file = \"key\"\nstate_dir = \"state\"\n\
             algorithm = \"{algorithm}\"\n\n[timing]\nprofile = \"{}\"\n",
            quoted(cluster),
            me.id,
            profile.name(),
            name = me.name.escape_debug(),
            title = cluster.escape_debug(),
        );
        for NewMember { id, name, address, priority, witness, .. } in members {
            let [name, address] = [name, address].map(|text| quoted(text));
            let kind = match witness {
                true => "witness = true".to_owned(),
                false => format!("priority = {priority}"),
            };
            // Writing to a text does not fail.
            let _ = write!(
                text,
                "\n[[member]]\nid = {id}\nname = {name}\naddress = {address}\n{kind}\n"
            );
        }
        text
    }
}

/// What is being written, until it is whole. Whatever is left of it when something fails is removed.
struct Draft {
    path: PathBuf,
    /// What has been moved to its place already.
    moved: Vec<PathBuf>,
}

impl Draft {
    /// Beside `folder` if that is new, so that all of it appears at once; else in it.
    fn make(folder: &Path, is_new: bool) -> Result<Self, FoundingError> {
        let process = std::process::id();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let path = match is_new {
            true => folder.with_file_name(format!(".{name}.{process}.draft")),
            false => folder.join(format!(".{process}.draft")),
        };
        // Whoever reads the error has not asked for a draft.
        make_folder(&path).map_err(failed(folder))?;
        Ok(Self { path, moved: Vec::new() })
    }

    /// Gives all of it its name.
    fn move_all(&mut self, place: &Path) -> Result<(), FoundingError> {
        fs::rename(&self.path, place).map_err(failed(place))?;
        self.moved.push(place.to_owned());
        Ok(())
    }

    /// Gives a part of it its name.
    fn move_part(&mut self, name: &str, place: PathBuf) -> Result<(), FoundingError> {
        // If somebody has made something there meanwhile, this fails, unless it is empty.
        fs::rename(self.path.join(name), &place).map_err(failed(&place))?;
        self.moved.push(place);
        Ok(())
    }

    /// Everything is in its place.
    fn keep(mut self) {
        self.moved.clear();
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for path in self.moved.iter().chain([&self.path]) {
            // Nothing else can be done about what cannot be removed.
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Sees to it that what is in a folder is there after a power cut.
fn sync(folder: &Path) -> Result<(), FoundingError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
}

/// The folder that something lies in.
fn parent(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> FoundingError {
    move |error| FoundingError::Io { path: path.to_owned(), error }
}
