//! Looks up names, in a thread of its own: a name server may not answer for a long time.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use doyen_core::members::NodeId;

use super::Request;
use super::bell::Requests;

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Resolver {
    questions: SyncSender<(NodeId, String)>,
}

impl Resolver {
    /// Starts the thread; it answers with [`Request::Resolved`], and ends with this. Of a name's addresses it takes the
    /// first of the family that `listen` can send to.
    pub(super) fn start(members: usize, listen: SocketAddr, answers: Requests) -> io::Result<Self> {
        let (questions, asked) = sync_channel::<(NodeId, String)>(members.max(1));
        thread::Builder::new().name("doyen-names".to_owned()).spawn(move || {
            for (member, name) in asked {
                let address = look_up(&name, listen);
                if answers.send(Request::Resolved { member, address }).is_err() {
                    // The loop is gone, or so busy that it will ask again.
                }
            }
        })?;
        Ok(Self { questions })
    }

    /// Asks for `name`, the address of `member`. If too many questions wait, this one is left out: it will be asked
    /// again.
    pub(super) fn ask(&self, member: NodeId, name: &str) {
        let _ = self.questions.try_send((member, name.to_owned()));
    }
}

/// The address that `text` is, if it is one and no name, and one that a socket bound to `listen` can send to.
pub(super) fn read(text: &str, listen: SocketAddr) -> Option<SocketAddr> {
    text.parse::<SocketAddr>().ok().and_then(|address| suitable(&[address], listen))
}

/// An address that a socket bound to `listen` can send to. One of one family reaches that family only; one that listens
/// on all addresses of IPv6 reaches those of IPv4 too, by their other names.
fn look_up(name: &str, listen: SocketAddr) -> Option<SocketAddr> {
    let found: Vec<SocketAddr> = name.to_socket_addrs().ok()?.collect();
    suitable(&found, listen)
}

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
    fn the_family_is_that_of_the_socket() {
        let (four, six) = ("127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap());
        assert_eq!(look_up("127.0.0.1:7400", four), "127.0.0.1:7400".parse().ok());
        assert_eq!(look_up("[::1]:7400", six), "[::1]:7400".parse().ok());
        assert_eq!(look_up("127.0.0.1:7400", six), None);
        assert_eq!(look_up("no port", four), None);
        let all = "[::]:1".parse().unwrap();
        assert_eq!(look_up("[::1]:7400", all), "[::1]:7400".parse().ok());
        assert_eq!(look_up("127.0.0.1:7400", all), "[::ffff:127.0.0.1]:7400".parse().ok());
    }
}
