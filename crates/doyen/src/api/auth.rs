//! Authorization of admin commands.
//!
//! A command that comes over the admin socket needs no secret: the kernel says which user has opened the connection, and only
//! the node's own user and root may give one, whatever the mode of the socket has become. Over HTTP commands are rejected
//! unless that is switched on, and need the admin secret, a file in the state folder that only the node's user can read: a
//! process that can read it could stop the node as well. The headers `Host` and `Origin` are checked besides: a web page that
//! is open on this machine can send requests to loopback too, and with DNS rebinding its browser believes that the page comes
//! from here; but the browser says which host name it used, and where the page came from.
//!
//! On loopback no other request with a foreign name in `Host` is answered either. An address in `Host` is never foreign:
//! rebinding needs a name. A client that sends no `Host` is not a browser.
//!
//! The port in `Host` does not matter: a tunnel or a container may have changed it, and no attack depends on it. A page
//! from another port of this machine has another origin.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, header};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::problem::{Kind, Problem};
use super::server::ConnInfo;
use super::socket::{Draft, SOCKET_FILE};
use crate::config::Settings;
use crate::files;
use crate::hex;

/// The file of the admin secret in the state folder.
pub const SECRET_FILE: &str = "admin-secret";

/// The random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// How admin commands reach a node, and its host names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admin {
    /// The Unix socket for admin commands, which is created.
    pub socket: PathBuf,
    /// The file with the admin secret, if admin commands are accepted over HTTP. It is created if it does not exist.
    pub secret_file: Option<PathBuf>,
    /// Names of this node in the `Host` of a request, besides its address and `localhost`.
    pub names: Vec<String>,
    /// Whether commands are accepted that other members forward.
    pub forwarded: bool,
}

impl Admin {
    /// Over the admin socket in the state folder only, and with no name but the address.
    pub fn new(state_dir: &Path) -> Self {
        let socket = state_dir.join(SOCKET_FILE);
        Self { socket, secret_file: None, names: Vec::new(), forwarded: true }
    }

    /// Over HTTP too, with the secret in the state folder.
    #[must_use]
    pub fn over_http(self) -> Self {
        Self { secret_file: Some(self.socket.with_file_name(SECRET_FILE)), ..self }
    }

    /// For a node: its name is also the one that other members use.
    pub fn of(settings: &Settings) -> Self {
        let host = settings.own().address.rsplit_once(':').map(|(host, _)| host.to_owned());
        let (names, forwarded) = (host.into_iter().collect(), settings.forwarded_commands);
        let admin = Self { names, forwarded, ..Self::new(&settings.state_dir) };
        if settings.http_admin { admin.over_http() } else { admin }
    }

    /// Reads or creates what is needed for [`start`](super::start): a node fails here, before it joins.
    pub fn prepare(self) -> Result<PreparedAdmin, SecretError> {
        let Self { socket, secret_file, names, forwarded } = self;
        let secret = secret_file.map(Secret::open).transpose()?;
        let failed = |error| SecretError::Socket { path: socket.clone(), error };
        let socket = Draft::create(&socket).map_err(failed)?;
        Ok(PreparedAdmin { socket, auth: Auth { secret, names, forwarded } })
    }
}

/// The admin socket and the admin secret of a node that is about to start.
#[derive(Debug)]
pub struct PreparedAdmin {
    pub(super) socket: Draft,
    pub(super) auth: Auth,
}

/// Why the admin secret or the admin socket cannot be used.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It can be neither read nor created.
    #[error("cannot read or create the admin secret {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The admin socket cannot be created.
    #[error("cannot create the admin socket {}: {error}", path.display())]
    Socket { path: PathBuf, error: io::Error },
    /// Other users can read it.
    #[error(
        "other users can read the admin secret {}; `chmod 600` it, or remove it and a new one is created",
        path.display()
    )]
    Public { path: PathBuf },
    /// The file does not contain a secret.
    #[error(
        "{} does not contain {} hexadecimal digits; remove it and a new admin secret is created",
        path.display(), 2 * SECRET_BYTES
    )]
    Malformed { path: PathBuf },
}

/// Checks whether a request may give a command, and under which name this node is asked.
#[derive(Debug)]
pub(super) struct Auth {
    /// None if admin commands are not accepted over HTTP.
    secret: Option<Secret>,
    names: Vec<String>,
    forwarded: bool,
}

/// The admin secret, and the file that it is read from.
#[derive(Debug)]
struct Secret {
    file: PathBuf,
    current: RwLock<BearerSecret>,
}

impl Secret {
    fn open(file: PathBuf) -> Result<Self, SecretError> {
        let current = RwLock::new(BearerSecret::new(&read_or_create(&file)?));
        Ok(Self { file, current })
    }

    fn read(&self) -> Result<BearerSecret, SecretError> {
        Ok(BearerSecret::new(&read_or_create(&self.file)?))
    }

    fn is_shown(&self, headers: &HeaderMap) -> Option<bool> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).is_shown(headers)
    }
}

/// A secret that requests show in the header `Authorization`.
#[derive(Clone, Debug)]
pub struct BearerSecret {
    /// Digests are compared, so that the time of the comparison reveals nothing.
    digest: [u8; 32],
}

impl BearerSecret {
    /// This secret.
    pub fn new(secret: &str) -> Self {
        Self { digest: digest(secret) }
    }

    /// The text of a new one: as many random bytes, in hexadecimal digits.
    pub fn random<const BYTES: usize>() -> io::Result<String> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(hex::encode(&bytes))
    }

    /// Whether a request shows this secret; none if it shows no secret at all.
    pub fn is_shown(&self, headers: &HeaderMap) -> Option<bool> {
        bearer(headers).map(|shown| digest(shown) == self.digest)
    }
}

impl Auth {
    /// Reads the admin secret again, if there is one. The old one stays until the new one is adopted.
    pub(super) fn read_secret(&self) -> Result<Option<BearerSecret>, SecretError> {
        self.secret.as_ref().map(Secret::read).transpose()
    }

    pub(super) fn adopt_secret(&self, new: Option<BearerSecret>) {
        if let (Some(secret), Some(new)) = (&self.secret, new) {
            *secret.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
    }

    /// Whether this member carries out commands that another member forwards.
    pub(super) fn takes_forwarded_commands(&self) -> bool {
        self.forwarded
    }

    /// Whether a request may give a command. `name`: that of this member.
    pub(super) fn check(&self, parts: &Parts, name: &str) -> Result<(), Problem> {
        match parts.extensions.get() {
            Some(&ConnInfo::AdminSocket { uid }) => return check_user(uid, geteuid().as_raw()),
            // Only what is listed is forwarded at all, and of that every GET only reads.
            Some(ConnInfo::Forwarded { .. }) if self.forwarded || parts.method == Method::GET => {
                return Ok(());
            }
            Some(ConnInfo::Forwarded { .. }) => {
                let detail = format!(
                    "{name} rejects forwarded commands (forwarded_commands = false): run this on its machine"
                );
                return Err(Kind::ForwardingOff.with_detail(detail));
            }
            _ => {}
        }
        let host = self.check_host(parts)?;
        check_origin(&parts.headers, host.as_str())?;
        let Some(secret) = &self.secret else {
            let detail = "admin commands over HTTP are off: run doyen on the node's machine with --config, or set http_admin";
            return Err(Kind::AdminOff.with_detail(detail));
        };
        let detail = match secret.is_shown(&parts.headers) {
            Some(true) => return Ok(()),
            Some(false) => "this is not the admin secret of this node",
            None => {
                "an admin command needs the admin secret from the node's state folder: Authorization: Bearer SECRET"
            }
        };
        Err(Kind::Unauthorized.with_detail(detail))
    }

    /// Whether a request on loopback asks for this machine, and not for a name that an attacker made point here.
    pub(super) fn check_name(&self, parts: &Parts) -> Result<(), Problem> {
        let Some(ConnInfo::Tcp { local, .. }) = parts.extensions.get() else { return Ok(()) };
        if !local.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let is_own = |name: &str| {
            let name: Option<Authority> = name.parse().ok();
            name.is_some_and(|it| address_of(it.host()).is_some() || self.is_named(it.host()))
        };
        let has_own_host = match parts.headers.contains_key(header::HOST) {
            true => only_value(&parts.headers, &header::HOST).is_some_and(is_own),
            false => true,
        };
        if has_own_host && parts.uri.authority().is_none_or(|it| is_own(it.as_str())) {
            return Ok(());
        }
        let detail =
            "on loopback, Host must be an address, localhost or this member's configured host name";
        Err(Kind::WrongHost.with_detail(detail))
    }

    fn check_host(&self, parts: &Parts) -> Result<Authority, Problem> {
        let wrong = || {
            let detail = "Host must be the address of this node, localhost or a configured name";
            Kind::WrongHost.with_detail(detail)
        };
        let host = only_value(&parts.headers, &header::HOST).and_then(|host| host.parse().ok());
        let host: Authority = host.ok_or_else(wrong)?;
        // The request line may name a host too, and other software may use that one.
        let same = parts.uri.authority().is_none_or(|named| *named == host);
        let here = match parts.extensions.get() {
            Some(ConnInfo::Tcp { local, .. }) => self.is_here(host.host(), local.ip()),
            _ => false,
        };
        if same && here { Ok(host) } else { Err(wrong()) }
    }

    fn is_here(&self, host: &str, local: IpAddr) -> bool {
        match address_of(host) {
            Some(address) => address.to_canonical() == local.to_canonical(),
            None => self.is_named(host),
        }
    }

    fn is_named(&self, host: &str) -> bool {
        let name = host.trim_end_matches('.');
        let names = self.names.iter().map(String::as_str).chain(["localhost"]);
        names.into_iter().any(|known| known.trim_end_matches('.').eq_ignore_ascii_case(name))
    }
}

/// The user that stands for all that a user namespace does not know, unless the system says otherwise.
const OVERFLOW_UID: u32 = 65_534;

/// Whether the user at the other end of the admin socket may give commands to a node that runs as `own`.
fn check_user(uid: u32, own: u32) -> Result<(), Problem> {
    if [0, own].contains(&uid) {
        return Ok(());
    }
    let mut detail = format!(
        "user {uid} may not give commands to this node, which runs as user {own}: only that user and root may"
    );
    // So the kernel calls every user that a container does not know, root of its host among them.
    if uid == OVERFLOW_UID {
        detail += "; if it runs in a container, give commands inside the container";
    }
    Err(Kind::WrongUser.with_detail(detail))
}

/// The address that a host is, if it is not a name.
fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// A web page may send commands only to the host that it came from.
fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = only_value(headers, &header::ORIGIN).and_then(|origin| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
    });
    if origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
        Ok(())
    } else {
        Err(Kind::WrongOrigin.with_detail("a page from another origin may not give commands"))
    }
}

/// The value of a header that occurs exactly once.
pub fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none())?;
    first.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = only_value(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn read_or_create(path: &Path) -> Result<String, SecretError> {
    let failed = |error| SecretError::Io { path: path.to_owned(), error };
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path).and_then(|()| fs::read_to_string(path))
        }
        read => read,
    };
    let text = text.map_err(failed)?;
    if fs::metadata(path).map_err(failed)?.permissions().mode() & 0o077 != 0 {
        return Err(SecretError::Public { path: path.to_owned() });
    }
    let secret = text.trim();
    let is_hexadecimal = secret.bytes().all(|digit| digit.is_ascii_hexdigit());
    if secret.len() != 2 * SECRET_BYTES || !is_hexadecimal {
        return Err(SecretError::Malformed { path: path.to_owned() });
    }
    Ok(secret.to_owned())
}

/// Creates a secret, unless another process has done so by now: two nodes that are started on one state both come here
/// before one of them is rejected. The file appears complete or not at all.
fn create(path: &Path) -> io::Result<()> {
    let secret = BearerSecret::random::<SECRET_BYTES>()?;
    let draft = files::beside(path, &format!(".{}.draft", BearerSecret::random::<8>()?));
    match files::create(path, &draft, 0o600, &format!("{secret}\n")) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::config::Configuration;
    use crate::scratch::Scratch;

    const LOCAL: &str = "192.0.2.7:7171";

    fn auth() -> Auth {
        let current = RwLock::new(BearerSecret::new("secret"));
        let secret = Some(Secret { file: PathBuf::new(), current });
        Auth { secret, names: vec!["n1.example".to_owned()], forwarded: true }
    }

    fn parts(local: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let local = local.parse().expect("an address");
        parts.extensions.insert(ConnInfo::Tcp { local, peer: local });
        parts
    }

    fn status_of(checked: Result<(), Problem>) -> u16 {
        checked.map_or_else(|problem| problem.status, |()| 200)
    }

    /// The status of the response to a request with these headers; 200 if it is authorized.
    fn status(uri: &str, headers: &[(&str, &str)]) -> u16 {
        status_of(auth().check(&parts(LOCAL, uri, headers), "n1"))
    }

    fn status_at(host: &str) -> u16 {
        status("/v1/resign", &[("host", host), ("authorization", "Bearer secret")])
    }

    #[test]
    fn of_several_processes_that_create_the_secret_all_have_the_same() {
        let scratch = Scratch::new();
        let path = scratch.join("secret");
        let barrier = std::sync::Barrier::new(8);
        let read = || {
            barrier.wait();
            read_or_create(&path).expect("a secret")
        };
        let secrets: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            threads.into_iter().map(|it| it.join().expect("no panic")).collect()
        });
        let file = fs::read_to_string(&path).expect("the secret");
        assert!(secrets.iter().all(|secret| *secret == file.trim()), "{secrets:?} {file}");
        let left = fs::read_dir(scratch.join(".")).expect("the folder").count();
        assert_eq!(left, 1, "no draft");
    }

    #[test]
    fn a_node_has_the_name_that_other_members_use() {
        let text = "cluster = \"x\"\nid = 1\nlisten = \"127.0.0.1:7400\"\nstate_dir = \"state\"\n\
                    [[member]]\nid = 1\naddress = \"n1.example:7400\"\n";
        let configuration = Configuration::parse("doyen.toml", text).expect("a configuration");
        let admin = Admin::of(&configuration.settings);
        assert_eq!(admin.names, ["n1.example"]);
        assert!(admin.socket.ends_with("state/admin.sock"), "{admin:?}");
        assert_eq!(admin.secret_file, None, "unless http_admin is set");
        assert!(admin.over_http().secret_file.is_some_and(|it| it.ends_with("state/admin-secret")));
    }

    #[test]
    fn on_loopback_a_foreign_name_is_not_answered() {
        let status = |local: &str, uri: &str, headers: &[(&str, &str)]| {
            status_of(auth().check_name(&parts(local, uri, headers)))
        };
        for own in ["127.0.0.1:7171", "localhost:9", "[::1]", "192.0.2.9", "n1.example"] {
            assert_eq!(status("127.0.0.1:7171", "/leader", &[("host", own)]), 200, "{own}");
        }
        assert_eq!(status("127.0.0.1:7171", "/leader", &[]), 200, "not a browser");
        for foreign in ["evil.example", "localhost.evil", "127.0.0.1.evil", ""] {
            let host = [("host", foreign)];
            assert_eq!(status("127.0.0.1:7171", "/leader", &host), 421, "{foreign}");
            assert_eq!(status("[::1]:7171", "/leader", &host), 421, "{foreign}");
            assert_eq!(status(LOCAL, "/leader", &host), 200, "{foreign}: not on loopback");
        }
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status("127.0.0.1:7171", "/leader", &two), 421);
        let host = [("host", "localhost")];
        assert_eq!(status("127.0.0.1:7171", "http://evil.example/leader", &host), 421);
    }

    #[test]
    fn the_host_must_be_this_node() {
        for here in
            ["192.0.2.7:7171", "192.0.2.7", "localhost:9", "LocalHost", "n1.example", "N1.Example."]
        {
            assert_eq!(status_at(here), 200, "{here}");
        }
        for elsewhere in ["192.0.2.8:7171", "evil.example", "n1.example.evil", "", "user@[", "::1"]
        {
            assert_eq!(status_at(elsewhere), 421, "{elsewhere}");
        }
        let secret = ("authorization", "Bearer secret");
        assert_eq!(status("/v1/resign", &[secret]), 421, "no host at all");
        assert_eq!(status("/v1/resign", &[("host", "localhost"), ("host", "evil"), secret]), 421);
        assert_eq!(status("http://evil/v1/resign", &[("host", "localhost"), secret]), 421);
        assert_eq!(status("http://localhost/v1/resign", &[("host", "localhost"), secret]), 200);
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        let local = "::ffff:192.0.2.7".parse().expect("an address");
        assert!(auth().is_here("192.0.2.7", local));
        assert!(auth().is_here("[::1]", "::1".parse().expect("an address")));
        assert!(!auth().is_here("[::1]", local));
    }

    #[test]
    fn a_page_from_another_origin_is_rejected() {
        let with = |origin| {
            let secret = ("authorization", "Bearer secret");
            status("/v1/resign", &[("host", "localhost:7171"), ("origin", origin), secret])
        };
        assert_eq!(with("http://localhost:7171"), 200);
        assert_eq!(with("https://localhost:7171"), 200);
        for elsewhere in ["http://localhost:3000", "http://localhost", "null", "", "http://evil"] {
            assert_eq!(with(elsewhere), 403, "{elsewhere}");
        }
    }

    #[test]
    fn a_member_that_rejects_forwarded_commands_still_answers_what_reads() {
        let status = |forwarded, method: Method| {
            let mut parts = parts(LOCAL, "/v1/diagnosis", &[]);
            parts.method = method;
            parts.extensions.insert(ConnInfo::Forwarded { by: "root on n2".into() });
            status_of(Auth { forwarded, ..auth() }.check(&parts, "n1"))
        };
        assert_eq!([status(true, Method::POST), status(true, Method::GET)], [200, 200]);
        assert_eq!([status(false, Method::POST), status(false, Method::GET)], [403, 200]);
    }

    #[test]
    fn over_the_admin_socket_only_the_own_user_and_root_give_commands() {
        let own = geteuid().as_raw();
        for (uid, expected) in [(own, 200), (0, 200), (own + 1, 403), (u32::MAX, 403)] {
            let mut parts = parts(LOCAL, "/v1/resign", &[]);
            parts.extensions.insert(ConnInfo::AdminSocket { uid });
            assert_eq!(status_of(auth().check(&parts, "n1")), expected, "user {uid}");
        }
        let problem = check_user(1000, 997).expect_err("another user");
        assert_eq!(
            problem.detail,
            "user 1000 may not give commands to this node, which runs as user 997: only that user and root may"
        );
    }

    #[test]
    fn the_secret_must_be_the_right_one() {
        let with =
            |secret| status("/v1/resign", &[("host", "localhost"), ("authorization", secret)]);
        assert_eq!(with("Bearer secret"), 200);
        assert_eq!(with("bearer  secret"), 200);
        for wrong in ["Bearer secret2", "Bearer secre", "Bearer", "Basic secret", "secret", ""] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(status("/v1/resign", &[("host", "localhost")]), 401);
    }
}
