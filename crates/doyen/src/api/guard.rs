//! Who may give orders.
//!
//! An order needs the token that lies in the state folder, readable by the node's user alone: whoever can read it
//! could stop the node as well. Host and Origin are looked at besides. A web page that somebody looks at on this machine
//! can send requests to loopback too, and a name that suddenly resolves to another address makes the browser believe
//! that the page comes from here; but the browser says which name it used, and from where the page came.
//!
//! The port in `Host` does not matter: a tunnel or a container may have put another before it, and no attack rests on
//! it. A page from another port of this machine has another origin.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};

use super::door::Line;
use super::problem::{Kind, Problem};
use crate::config::Settings;

/// The name of the token's file in the state folder.
pub const TOKEN_FILE: &str = "admin-token";

/// So many random bytes are in a token.
const TOKEN_BYTES: usize = 32;

/// Who may give orders, and by which names this node is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admin {
    /// Where the token is. It is made if it is missing.
    pub token_file: PathBuf,
    /// By which names, besides its address and `localhost`, this node is called in an order's `Host`.
    pub names: Vec<String>,
}

impl Admin {
    /// The usual one: the token is in the state folder, and the node is called by its address.
    pub fn new(state_dir: &Path) -> Self {
        Self { token_file: state_dir.join(TOKEN_FILE), names: Vec::new() }
    }

    /// That of a node: it is also called as the other members call it.
    pub fn of(settings: &Settings) -> Self {
        let host = settings.own().address.rsplit_once(':').map(|(host, _)| host.to_owned());
        Self { names: host.into_iter().collect(), ..Self::new(&settings.state_dir) }
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read or made.
    #[error("the token {} can be neither read nor made: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others can read it.
    #[error("the token {} can be read by others; `chmod 600` it, or remove it to have a new one made", path.display())]
    Public {
        /// Where.
        path: PathBuf,
    },
    /// There is none in the file.
    #[error("{} holds no token of {} hexadecimal digits; remove it to have one made", path.display(), 2 * TOKEN_BYTES)]
    Malformed {
        /// Where.
        path: PathBuf,
    },
}

/// Lets orders through, or not.
#[derive(Debug)]
pub(super) struct Guard {
    /// Digests are compared, not tokens: how long that takes says nothing of the token.
    token: [u8; 32],
    names: Vec<String>,
}

impl Guard {
    pub(super) fn new(admin: &Admin) -> Result<Self, TokenError> {
        let token = read_or_make(&admin.token_file)?;
        Ok(Self { token: digest(&token), names: admin.names.clone() })
    }

    /// Whether the request that came over this line may give an order.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), Problem> {
        let host = self.check_host(parts)?;
        check_origin(&parts.headers, host.as_str())?;
        let token = bearer(&parts.headers).ok_or_else(|| {
            Kind::NoToken.because(
                "an order needs the token from the node's state folder: Authorization: Bearer TOKEN",
            )
        })?;
        if digest(token) == self.token {
            Ok(())
        } else {
            Err(Kind::NoToken.because("this is not the token that is in the node's state folder"))
        }
    }

    fn check_host(&self, parts: &Parts) -> Result<Authority, Problem> {
        let wrong = || {
            Kind::WrongHost
                .because("Host must be the address of this node, localhost or a configured name")
        };
        let host = only(&parts.headers, &header::HOST).and_then(|host| host.parse().ok());
        let host: Authority = host.ok_or_else(wrong)?;
        // A request may name its host in its first line too, and then that one counts for others.
        let same = parts.uri.authority().is_none_or(|named| *named == host);
        let line = parts.extensions.get::<Line>();
        let here = line.is_some_and(|line| self.is_here(host.host(), line.local.ip()));
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

/// A page may ask the host that it came from, and no other.
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
        Err(Kind::WrongOrigin.because("a page from elsewhere may not give orders"))
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none())?;
    first.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The token in `path`; makes one if there is no such file.
fn read_or_make(path: &Path) -> Result<String, TokenError> {
    let failed = |error| TokenError::Io { path: path.to_owned(), error };
    match fs::read_to_string(path) {
        Ok(text) => check_token(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

fn check_token(path: &Path, text: &str) -> Result<String, TokenError> {
    let meta = fs::metadata(path);
    let meta = meta.map_err(|error| TokenError::Io { path: path.to_owned(), error })?;
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(TokenError::Public { path: path.to_owned() });
    }
    let token = text.trim();
    let hexadecimal = token.bytes().all(|digit| digit.is_ascii_hexdigit());
    if token.len() != 2 * TOKEN_BYTES || !hexadecimal {
        return Err(TokenError::Malformed { path: path.to_owned() });
    }
    Ok(token.to_owned())
}

/// Makes a token, whole or not at all.
fn make(path: &Path) -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    // One that a process of the same number left behind; most often there is none.
    let _ = fs::remove_file(&draft);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            writeln!(file, "{token}")?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Nothing else can be done about a draft that cannot be removed.
        let _ = fs::remove_file(&draft);
    }
    written.map(|()| token)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::config::Configuration;

    const LOCAL: &str = "192.0.2.7:7171";

    fn guard() -> Guard {
        Guard { token: digest("secret"), names: vec!["n1.example".to_owned()] }
    }

    /// What a request with these headers is told: the status, 200 if it is let through.
    fn status(uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let local = LOCAL.parse().expect("an address");
        parts.extensions.insert(Line { local, peer: local });
        guard().check(&parts).map_or_else(|problem| problem.status, |()| 200)
    }

    fn status_at(host: &str) -> u16 {
        status("/v1/resign", &[("host", host), ("authorization", "Bearer secret")])
    }

    #[test]
    fn a_node_is_called_as_the_other_members_call_it() {
        let text = "cluster = \"x\"\nid = 1\nlisten = \"127.0.0.1:7400\"\nstate_dir = \"state\"\n\
                    [[member]]\nid = 1\naddress = \"n1.example:7400\"\n";
        let configuration = Configuration::parse("doyen.toml", text).expect("a configuration");
        let admin = Admin::of(&configuration.settings);
        assert_eq!(admin.names, ["n1.example"]);
        assert!(admin.token_file.ends_with("state/admin-token"), "{admin:?}");
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
        let token = ("authorization", "Bearer secret");
        assert_eq!(status("/v1/resign", &[token]), 421, "no host at all");
        assert_eq!(status("/v1/resign", &[("host", "localhost"), ("host", "evil"), token]), 421);
        assert_eq!(status("http://evil/v1/resign", &[("host", "localhost"), token]), 421);
        assert_eq!(status("http://localhost/v1/resign", &[("host", "localhost"), token]), 200);
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        let local = "::ffff:192.0.2.7".parse().expect("an address");
        assert!(guard().is_here("192.0.2.7", local));
        assert!(guard().is_here("[::1]", "::1".parse().expect("an address")));
        assert!(!guard().is_here("[::1]", local));
    }

    #[test]
    fn a_page_from_elsewhere_is_refused() {
        let with = |origin| {
            let token = ("authorization", "Bearer secret");
            status("/v1/resign", &[("host", "localhost:7171"), ("origin", origin), token])
        };
        assert_eq!(with("http://localhost:7171"), 200);
        assert_eq!(with("https://localhost:7171"), 200);
        for elsewhere in ["http://localhost:3000", "http://localhost", "null", "", "http://evil"] {
            assert_eq!(with(elsewhere), 403, "{elsewhere}");
        }
    }

    #[test]
    fn the_token_must_be_the_right_one() {
        let with = |token| status("/v1/resign", &[("host", "localhost"), ("authorization", token)]);
        assert_eq!(with("Bearer secret"), 200);
        assert_eq!(with("bearer  secret"), 200);
        for wrong in ["Bearer secret2", "Bearer secre", "Bearer", "Basic secret", "secret", ""] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(status("/v1/resign", &[("host", "localhost")]), 401);
    }
}
