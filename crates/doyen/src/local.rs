//! A cluster of real processes on this machine: what `doyen cluster` and `doyen lab` have in common.
//!
//! Every member is a `doyen node` with its own key, state and ports, in one folder. The processes end with the program
//! that started them, however that ends: see [`member`].

pub(crate) mod folder;
pub(crate) mod member;

use std::io;
use std::net::{TcpListener, UdpSocket};

use anyhow::{Context as _, Result};
use doyen::init::{Founding, NewMember};
use doyen_core::config::quorum::Profile;
use doyen_core::registry::Algorithm;

/// The lowest and the highest port of a member. Systems give higher ones to outgoing connections: one of those could take
/// the port of a member that is down, or even connect to itself there.
const PORTS: (u16, u16) = (10_000, 32_000);

/// How many ports are tried for a member.
const TRIES: usize = 100;

/// Ports that no other process can take until this is dropped, just before the members start: one for each member, for
/// datagrams and HTTP.
#[derive(Debug)]
pub(crate) struct ReservedPorts(Vec<(u16, UdpSocket, TcpListener)>);

impl ReservedPorts {
    /// Ports on 127.0.0.1 for this many members. If another process takes one before the member does, the member reports it.
    pub(crate) fn new(members: u32) -> Result<Self> {
        let reserve = |_| (0..TRIES).find_map(|_| reserve().transpose());
        let ports: Option<io::Result<_>> = (0..members).map(reserve).collect();
        let ports = ports.context("no free ports on 127.0.0.1")?;
        Ok(Self(ports.context("cannot find free ports on 127.0.0.1")?))
    }

    /// The ports of all members, by id.
    pub(crate) fn list(&self) -> Vec<u16> {
        self.0.iter().map(|(port, ..)| *port).collect()
    }
}

/// A random port, if it is free.
fn reserve() -> io::Result<Option<(u16, UdpSocket, TcpListener)>> {
    let random = getrandom::u32().map_err(io::Error::other)?;
    let port = PORTS.0 + (random % u32::from(PORTS.1 - PORTS.0)) as u16;
    let address = ("127.0.0.1", port);
    match (UdpSocket::bind(address), TcpListener::bind(address)) {
        (Ok(udp), Ok(tcp)) => Ok(Some((port, udp, tcp))),
        (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::AddrInUse => Err(error),
        _ => Ok(None),
    }
}

/// A new cluster of members n1, n2, … with these ports. The highest id has the highest priority.
pub(crate) fn founding(ports: &[u16], algorithm: Algorithm, profile: Profile) -> Founding {
    let members = (1..).zip(ports).map(|(id, port)| NewMember {
        id,
        name: format!("n{id}"),
        address: format!("127.0.0.1:{port}"),
        http: format!("127.0.0.1:{port}"),
        priority: i64::from(id),
        witness: false,
        routes: [].into(),
    });
    let (cluster, members) = ("trial".to_owned(), members.collect());
    let (groups, settings) = (Vec::new(), String::new());
    Founding { cluster, algorithm, profile, members, term_floor: 0, groups, settings }
}
