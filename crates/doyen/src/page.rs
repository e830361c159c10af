//! The page: the same files for `doyen lab` and for the dashboard of a node, embedded in the program.
//!
//! The page learns from `data-host` in its first line what serves it. Nothing of it may be loaded or run from elsewhere:
//! every answer carries headers that forbid it.

use std::borrow::Cow;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

use crate::hex;

/// What the page may do: use its own files, and ask its own host.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; font-src 'self'; \
     img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";

/// The file that is served at `/`.
const INDEX: &str = "index.html";

/// What [`INDEX`] says where no program serves it.
const STATIC_HOST: &str = "data-host=\"static\"";

/// A file of the page.
struct File {
    /// Below `web/`.
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

const FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// What serves the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// `doyen lab`.
    Lab,
    /// A node: its own dashboard.
    Node,
}

impl Host {
    fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Node => "node",
        }
    }
}

/// The page itself.
pub fn index(host: Host, headers: &HeaderMap) -> Response {
    let Some(file) = find(INDEX) else {
        let text =
            "This program was built without its page (the folder `web` of the repository).\n";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let text = String::from_utf8_lossy(file.bytes);
    let text = text.replacen(STATIC_HOST, &format!("data-host=\"{}\"", host.name()), 1);
    respond(headers, file.content_type, Cow::Owned(text.into_bytes()))
}

/// The other files of the page, below `/web/`.
pub fn files<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let file = async |Path(path): Path<String>, headers: HeaderMap| match find(&path) {
        Some(file) if path != INDEX => {
            respond(&headers, file.content_type, Cow::Borrowed(file.bytes))
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    };
    Router::new().route("/web/{*path}", get(file))
}

/// Adds the headers that keep a browser from running or loading anything else, and others from embedding the page.
pub async fn secure(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What is not a file of the page may be out of date a moment later.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn respond(headers: &HeaderMap, kind: &'static str, bytes: Cow<'static, [u8]>) -> Response {
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..8]));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|it| it.trim() == tag));
    let headers = [(header::CACHE_CONTROL, "no-cache"), (header::CONTENT_TYPE, kind)];
    let tag = [(header::ETAG, tag)];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, headers, tag).into_response(),
        false => (headers, tag, Body::from(bytes.into_owned())).into_response(),
    }
}

fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client gets that has `tag` already.
    fn get(path: &str, tag: &str) -> (StatusCode, HeaderMap) {
        let headers = HeaderMap::from_iter([(
            header::IF_NONE_MATCH,
            HeaderValue::from_str(tag).expect("a tag"),
        )]);
        let file = find(path).expect("a file");
        let response = respond(&headers, file.content_type, Cow::Borrowed(file.bytes));
        (response.status(), response.headers().clone())
    }

    #[test]
    fn the_page_is_embedded_and_says_what_serves_it() {
        let file = find(INDEX).expect("the page is built in");
        let text = str::from_utf8(file.bytes).expect("text");
        assert_eq!(text.matches(STATIC_HOST).count(), 1, "one place to say it");
        assert!(FILES.iter().any(|file| file.path == "main.js"), "with its scripts");
        assert!(find("../Cargo.toml").is_none() && find("nothing.js").is_none());
    }

    #[test]
    fn a_file_that_has_not_changed_is_not_sent_again() {
        let (status, headers) = get("main.js", "\"other\"");
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert_eq!(headers[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
        let tag = headers[header::ETAG].to_str().expect("a tag");
        assert_eq!(get("main.js", tag).0, StatusCode::NOT_MODIFIED);
    }
}
