//! Looks up names, in a thread of its own: a name server may not answer for a long time.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
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

/// A socket of one family reaches addresses of that family only.
fn look_up(name: &str, listen: SocketAddr) -> Option<SocketAddr> {
    let found = name.to_socket_addrs().ok()?;
    found.into_iter().find(|address| address.is_ipv4() == listen.is_ipv4())
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
    }
}
