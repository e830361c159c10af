//! Authorization of admin commands.
//!
//! A command needs the admin secret, a file in the state folder that only the node's user can read: a process that can
//! read it could stop the node as well. The headers `Host` and `Origin` are checked besides: a web page that is open on
//! this machine can send requests to loopback too, and with DNS rebinding its browser believes that the page comes from
//! here; but the browser says which host name it used, and where the page came from.
//!
//! The port in `Host` does not matter: a tunnel or a container may have changed it, and no attack depends on it. A page
//! from another port of this machine has another origin.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};

use super::problem::{Kind, Problem};
use super::server::ConnInfo;
use crate::config::Settings;

/// The file of the admin secret in the state folder.
pub const SECRET_FILE: &str = "admin-secret";

/// The random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// What authorizes an admin command, and the host names of this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admin {
    /// The file with the admin secret. It is created if it does not exist.
    pub secret_file: PathBuf,
    /// Names of this node in the `Host` of a command, besides its address and `localhost`.
    pub names: Vec<String>,
}

impl Admin {
    /// With the secret in the state folder, and no name but the address.
    pub fn new(state_dir: &Path) -> Self {
        Self { secret_file: state_dir.join(SECRET_FILE), names: Vec::new() }
    }

    /// For a node: its name is also the one that other members use.
    pub fn of(settings: &Settings) -> Self {
        let host = settings.own().address.rsplit_once(':').map(|(host, _)| host.to_owned());
        Self { names: host.into_iter().collect(), ..Self::new(&settings.state_dir) }
    }
}

/// Why the admin secret cannot be used.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It can be neither read nor created.
    #[error("cannot read or create the admin secret {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
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

/// Checks whether a request may give a command.
#[derive(Debug)]
pub(super) struct Auth {
    /// The digest of the secret. Digests are compared, so that the time of the comparison reveals nothing.
    digest: [u8; 32],
    names: Vec<String>,
}

impl Auth {
    pub(super) fn new(admin: &Admin) -> Result<Self, SecretError> {
        let secret = read_or_create(&admin.secret_file)?;
        Ok(Self { digest: digest(&secret), names: admin.names.clone() })
    }

    pub(super) fn check(&self, parts: &Parts) -> Result<(), Problem> {
        let host = self.check_host(parts)?;
        check_origin(&parts.headers, host.as_str())?;
        let detail = match bearer(&parts.headers) {
            Some(secret) if digest(secret) == self.digest => return Ok(()),
            Some(_) => "this is not the admin secret of this node",
            None => {
                "an admin command needs the admin secret from the node's state folder: Authorization: Bearer SECRET"
            }
        };
        Err(Kind::Unauthorized.with_detail(detail))
    }

    fn check_host(&self, parts: &Parts) -> Result<Authority, Problem> {
        let wrong = || {
            let detail = "Host must be the address of this node, localhost or a configured name";
            Kind::WrongHost.with_detail(detail)
        };
        let host = only(&parts.headers, &header::HOST).and_then(|host| host.parse().ok());
        let host: Authority = host.ok_or_else(wrong)?;
        // The request line may name a host too, and other software may use that one.
        let same = parts.uri.authority().is_none_or(|named| *named == host);
        let info = parts.extensions.get::<ConnInfo>();
        let here = info.is_some_and(|info| self.is_here(host.host(), info.local.ip()));
        if same && here { Ok(host) } else { Err(wrong()) }
    }

    fn is_here(&self, host: &str, local: IpAddr) -> bool {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse::<IpAddr>() {
            return address.to_canonical() == local.to_canonical();
        }
        let name = host.trim_end_matches('.');
        let names = self.names.iter().map(String::as_str).chain(["localhost"]);
        names.into_iter().any(|known| known.trim_end_matches('.').eq_ignore_ascii_case(name))
    }
}

/// A web page may send commands only to the host that it came from.
fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = only(headers, &header::ORIGIN).and_then(|origin| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
    });
    if origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
        Ok(())
    } else {
        Err(Kind::WrongOrigin.with_detail("a page from another origin may not give commands"))
    }
}

/// The value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none())?;
    first.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn read_or_create(path: &Path) -> Result<String, SecretError> {
    let failed = |error| SecretError::Io { path: path.to_owned(), error };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return create(path).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
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

/// Creates a secret; the file appears complete or not at all.
fn create(path: &Path) -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    // An earlier process with the same id may have left one.
    let _ = fs::remove_file(&draft);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&draft);
    let written = file
        .and_then(|mut file| {
            writeln!(file, "{secret}")?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.map(|()| secret)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::config::Configuration;

    const LOCAL: &str = "192.0.2.7:7171";

    fn auth() -> Auth {
        Auth { digest: digest("secret"), names: vec!["n1.example".to_owned()] }
    }

    /// The status of the response to a request with these headers; 200 if it is authorized.
    fn status(uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let local = LOCAL.parse().expect("an address");
        parts.extensions.insert(ConnInfo { local, peer: local });
        auth().check(&parts).map_or_else(|problem| problem.status, |()| 200)
    }

    fn status_at(host: &str) -> u16 {
        status("/v1/resign", &[("host", host), ("authorization", "Bearer secret")])
    }

    #[test]
    fn a_node_has_the_name_that_other_members_use() {
        let text = "cluster = \"x\"\nid = 1\nlisten = \"127.0.0.1:7400\"\nstate_dir = \"state\"\n\
                    [[member]]\nid = 1\naddress = \"n1.example:7400\"\n";
        let configuration = Configuration::parse("doyen.toml", text).expect("a configuration");
        let admin = Admin::of(&configuration.settings);
        assert_eq!(admin.names, ["n1.example"]);
        assert!(admin.secret_file.ends_with("state/admin-secret"), "{admin:?}");
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
