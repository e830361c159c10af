//! What all HTTP clients of nodes have in common: no redirects, no proxy, and the certificate authorities that they
//! trust for `https://`.
//!
//! A node speaks plain HTTP. `https://` is for a node behind a proxy that terminates TLS. The certificate of the proxy must
//! be valid for the host of the URL, and be signed by an authority that the machine trusts, or by one in a file: the check
//! cannot be switched off. Redirects are not followed, so that no other host is ever shown an admin secret.

use std::path::PathBuf;

use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

/// The authorities whose signatures make a certificate trusted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Authorities {
    /// Those that this machine trusts.
    #[default]
    System,
    /// Only those in this file: certificates in PEM.
    File(PathBuf),
}

impl Authorities {
    /// The settings of a client that asks these nodes, `http://…` or `https://…`. The error says what to do.
    pub fn client(&self, nodes: &[String]) -> Result<ConfigBuilder<AgentScope>, String> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("doyen/", env!("CARGO_PKG_VERSION")));
        match nodes.iter().any(|node| node.starts_with("https://")) {
            true => self.encrypted(config),
            false => Ok(config),
        }
    }
}

#[cfg(not(feature = "https"))]
impl Authorities {
    fn encrypted(&self, _: ConfigBuilder<AgentScope>) -> Result<ConfigBuilder<AgentScope>, String> {
        Err("https: this program is built without the feature `https` of doyen".to_owned())
    }

    /// What is wrong with the certificate of a node, and what to do about it.
    pub fn describe(&self, _: &ureq::Error) -> Option<String> {
        None
    }
}

#[cfg(feature = "https")]
mod tls {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, UnixTime};
    use rustls::{CertificateError, Error};
    use ureq::tls::{Certificate, RootCerts, TlsConfig};

    use super::{AgentScope, Authorities, ConfigBuilder};

    impl Authorities {
        pub(super) fn encrypted(
            &self,
            config: ConfigBuilder<AgentScope>,
        ) -> Result<ConfigBuilder<AgentScope>, String> {
            let certificates = self.certificates()?;
            let roots = certificates.iter().map(|it| Certificate::from_der(it).to_owned());
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::Specific(Arc::new(roots.collect())))
                .unversioned_rustls_crypto_provider(Arc::new(
                    rustls::crypto::ring::default_provider(),
                ));
            Ok(config.tls_config(tls.build()))
        }

        fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
            let (found, none) = match self {
                Self::System => {
                    let none = "this machine trusts no authority: install the package ca-certificates, or give the authority of the node (--ca-file FILE)";
                    (rustls_native_certs::load_native_certs().certs, none.to_owned())
                }
                Self::File(file) => {
                    let name = file.display();
                    let wrong = |why: &dyn std::fmt::Display| {
                        format!("cannot read the certificates in {name}: {why}")
                    };
                    let text = std::fs::read(file).map_err(|error| wrong(&error))?;
                    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
                    let found = found.map_err(|_| wrong(&"they are not in PEM"))?;
                    let none =
                        format!("{name} has no certificate: give one in PEM (BEGIN CERTIFICATE)");
                    (found, none)
                }
            };
            if found.is_empty() { Err(none) } else { Ok(found) }
        }

        /// What is wrong with the certificate of a node, and what to do about it.
        pub fn describe(&self, error: &ureq::Error) -> Option<String> {
            let told = match tls_error(error)? {
                Error::InvalidCertificate(error) => self.describe_certificate(error),
                Error::InvalidMessage(_) => {
                    "it does not speak TLS: a node itself speaks http, so write http://, or the address of the proxy in front of it".to_owned()
                }
                error => format!("no TLS connection: {error}"),
            };
            Some(told)
        }

        fn describe_certificate(&self, error: &CertificateError) -> String {
            match error {
                // Another authority of the same name has signed it.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => match self {
                    Self::System => {
                        "its certificate is not signed by an authority that this machine trusts; if it is yours, give the certificate of its authority: --ca-file FILE"
                            .to_owned()
                    }
                    Self::File(file) => {
                        let file = file.display();
                        format!("its certificate is not signed by an authority in {file}; compare that file with what the proxy uses")
                    }
                },
                CertificateError::NotValidForNameContext { expected, presented } => {
                    let (host, names) = (expected.to_str(), names(presented));
                    format!("its certificate is for {names}, not for {host}; use such a name in --node, or a certificate for {host} (subjectAltName)")
                }
                CertificateError::ExpiredContext { time, not_after } => {
                    let (now, end) = (show(*time), show(*not_after));
                    format!("its certificate expired at {end}, and this machine's clock says {now}; renew it at the proxy, or set the clock")
                }
                CertificateError::NotValidYetContext { time, not_before } => {
                    let (now, begin) = (show(*time), show(*not_before));
                    format!("its certificate is not valid before {begin}, and this machine's clock says {now}; set the clock")
                }
                CertificateError::Other(error) if error.to_string() == "CaUsedAsEndEntity" => {
                    "its certificate is one of an authority, not of a server; have it signed by one, or make it with basicConstraints=CA:FALSE"
                        .to_owned()
                }
                CertificateError::Expired => {
                    "its certificate has expired; renew it at the proxy".to_owned()
                }
                error => format!("its certificate is not valid: {error}"),
            }
        }
    }

    /// The error of the TLS connection, which may have come as one of the socket.
    fn tls_error(error: &ureq::Error) -> Option<&Error> {
        match error {
            ureq::Error::Rustls(error) => Some(error),
            ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
            _ => None,
        }
    }

    /// The names that a certificate is for: `DnsName("n1.example")`, `IpAddress(10.0.0.1)`.
    fn names(presented: &[String]) -> String {
        let name = |it: &String| {
            let inner = it.split_once('(').map_or(it.as_str(), |(_, name)| name);
            inner.trim_matches(['(', ')', '"']).to_owned()
        };
        match presented {
            [] => "no host".to_owned(),
            some => some.iter().map(name).collect::<Vec<_>>().join(", "),
        }
    }

    fn show(time: UnixTime) -> impl std::fmt::Display {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs());
        humantime::format_rfc3339_seconds(time)
    }
}
