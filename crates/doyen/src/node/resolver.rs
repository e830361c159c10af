//! Resolves host names in a thread of its own: a name server may not answer for a long time.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use doyen_core::members::NodeId;

use super::Command;
use super::waker::CommandSender;

/// Sends names to the thread.
#[derive(Debug)]
pub(super) struct Resolver {
    names: SyncSender<(NodeId, String)>,
}

impl Resolver {
    /// Starts the thread; it answers with [`Command::AddressResolved`], and ends when this is dropped. Of several
    /// addresses it takes the first that a socket bound to `listen` can send to.
    pub(super) fn start(
        members: usize,
        listen: SocketAddr,
        commands: CommandSender,
    ) -> io::Result<Self> {
        let (names, queued) = sync_channel::<(NodeId, String)>(members.max(1));
        thread::Builder::new().name("doyen-names".to_owned()).spawn(move || {
            for (member, name) in queued {
                let address = resolve(&name, listen);
                // If the loop is busy, it will ask again.
                let _ = commands.send(Command::AddressResolved { member, address });
            }
        })?;
        Ok(Self { names })
    }

    /// Requests the address of `member`. If too many requests wait, this one is dropped: it will be repeated.
    pub(super) fn request(&self, member: NodeId, name: &str) {
        let _ = self.names.try_send((member, name.to_owned()));
    }
}

/// The address in `text`, if it is not a name and a socket bound to `listen` can send to it.
pub(super) fn parse(text: &str, listen: SocketAddr) -> Option<SocketAddr> {
    text.parse::<SocketAddr>().ok().and_then(|address| suitable(&[address], listen))
}

fn resolve(name: &str, listen: SocketAddr) -> Option<SocketAddr> {
    let found: Vec<SocketAddr> = name.to_socket_addrs().ok()?.collect();
    suitable(&found, listen)
}

/// The first address that a socket bound to `listen` can send to. A socket reaches its own address family; one that is
/// bound to all IPv6 addresses also reaches IPv4 addresses in their mapped form.
fn suitable(found: &[SocketAddr], listen: SocketAddr) -> Option<SocketAddr> {
    let same = found.iter().find(|address| address.is_ipv4() == listen.is_ipv4()).copied();
    let other = found.iter().find_map(|address| match (address.ip(), listen.ip()) {
        (IpAddr::V4(four), IpAddr::V6(Ipv6Addr::UNSPECIFIED)) => {
            Some(SocketAddr::from((four.to_ipv6_mapped(), address.port())))
        }
        _ => None,
    });
    same.or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_family_of_the_socket() {
        let (four, six) = ("127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap());
        assert_eq!(resolve("127.0.0.1:7400", four), "127.0.0.1:7400".parse().ok());
        assert_eq!(resolve("[::1]:7400", six), "[::1]:7400".parse().ok());
        assert_eq!(resolve("127.0.0.1:7400", six), None);
        assert_eq!(resolve("no port", four), None);
        let all = "[::]:1".parse().unwrap();
        assert_eq!(resolve("[::1]:7400", all), "[::1]:7400".parse().ok());
        assert_eq!(resolve("127.0.0.1:7400", all), "[::ffff:127.0.0.1]:7400".parse().ok());
    }
}
