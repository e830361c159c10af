//! The network between the members: every datagram passes through here, so that links can be cut.
//!
//! For each ordered pair of members there is a socket. X knows the address of socket (X, Y) as that of Y. What arrives
//! there is forwarded to Y *from the socket (Y, X)*, which is where Y reaches X: nodes follow a member whose datagrams come
//! from a new address, and must find none. It does not matter which process sent a datagram, since a guardian sends the
//! last ones of a dead node from a socket of its own; the seal on it says whose it is.
//!
//! One thread forwards everything and allocates nothing for a datagram. It looks at the cuts with each batch, and a
//! change of them waits for that batch: a partition happens between two datagrams, on all links at once.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// No datagram of UDP is longer.
const LONGEST: usize = 65_535;

/// How many datagrams of one socket are forwarded before the others have their turn.
const BATCH: usize = 32;

/// How often the thread looks whether it should end.
const LOOK: Duration = Duration::from_millis(100);

/// File descriptors that the rest of the lab needs: pipes, logs, connections.
const OTHER_FILES: u64 = 256;

/// Links by the places of sender and receiver.
pub(crate) type Link = (usize, usize);

/// The links that are cut.
pub(crate) type Cuts = BTreeSet<Link>;

/// Forwards until it is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    cuts: Arc<RwLock<Cuts>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The sockets, before anything is forwarded.
#[derive(Debug)]
pub(crate) struct Sockets {
    members: usize,
    /// For every ordered pair in the order of senders, then receivers; none for a member and itself.
    sockets: Vec<Option<UdpSocket>>,
}

impl Sockets {
    pub(crate) fn bind(members: usize) -> Result<Self> {
        let needed = (members * members.saturating_sub(1)) as u64;
        allow_open_files(needed + OTHER_FILES)
            .with_context(|| format!("{members} members need {needed} sockets between them"))?;
        let bind = |place: usize| match place / members == place % members {
            true => Ok(None),
            false => {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                socket.set_nonblocking(true)?;
                Ok(Some(socket))
            }
        };
        let sockets: io::Result<_> = (0..members * members).map(bind).collect();
        let sockets = sockets.context("cannot open the sockets between the members")?;
        Ok(Self { members, sockets })
    }

    /// Where the first member reaches the second.
    pub(crate) fn address(&self, (from, to): Link) -> Option<SocketAddr> {
        self.sockets[from * self.members + to].as_ref()?.local_addr().ok()
    }

    /// Begins to forward. `listens`: where each member listens.
    pub(crate) fn forward(self, listens: Vec<SocketAddr>) -> io::Result<Relay> {
        let (cuts, ends) = (Arc::<RwLock<Cuts>>::default(), Arc::<AtomicBool>::default());
        let (shared, over) = (Arc::clone(&cuts), Arc::clone(&ends));
        let body = move || self.run(&listens, &shared, &over);
        let thread = thread::Builder::new().name("doyen-relay".to_owned()).spawn(body)?;
        Ok(Relay { cuts, ends, thread: Some(thread) })
    }

    fn run(&self, listens: &[SocketAddr], cuts: &RwLock<Cuts>, ends: &AtomicBool) {
        let open = (0..self.sockets.len()).filter_map(|at| Some((at, self.sockets[at].as_ref()?)));
        let (places, sockets): (Vec<usize>, Vec<&UdpSocket>) = open.unzip();
        let poll_fds = sockets.iter().map(|&socket| PollFd::new(socket, PollFlags::IN));
        let mut poll_fds: Vec<PollFd<'_>> = poll_fds.collect();
        let mut buffer = vec![0; LONGEST];
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        while !ends.load(Ordering::Relaxed) {
            if poll(&mut poll_fds, Some(&look)).unwrap_or(0) == 0 {
                continue;
            }
            let cuts = cuts.read().unwrap_or_else(PoisonError::into_inner);
            for (fd, &place) in poll_fds.iter().zip(&places) {
                if !fd.revents().is_empty() {
                    let link = (place / self.members, place % self.members);
                    self.forward_waiting(link, listens, cuts.contains(&link), &mut buffer);
                }
            }
        }
    }

    /// Forwards what waits at a link, or drops it. What cannot be sent is lost, as on any network.
    fn forward_waiting(
        &self,
        (from, to): Link,
        listens: &[SocketAddr],
        is_cut: bool,
        buffer: &mut [u8],
    ) {
        let way = |from: usize, to: usize| self.sockets[from * self.members + to].as_ref();
        let (Some(inward), Some(outward)) = (way(from, to), way(to, from)) else { return };
        for _ in 0..BATCH {
            match inward.recv_from(buffer) {
                Ok((length, source)) if !is_cut && is_local(source) => {
                    let _ = outward.send_to(&buffer[..length], listens[to]);
                }
                Ok(_) => {}
                // Nothing waits; or the socket tells of an earlier datagram, which was lost.
                Err(_) => return,
            }
        }
    }
}

fn is_local(source: SocketAddr) -> bool {
    matches!(source.ip(), IpAddr::V4(address) if address.is_loopback())
}

impl Relay {
    /// Changes the cuts, all at once. When this returns, no datagram is forwarded by the old ones.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Cuts)) {
        change(&mut self.cuts.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has panicked at worst, and is over then.
            let _ = thread.join();
        }
    }
}

/// Raises the limit of open files, if it is too low and may be raised.
fn allow_open_files(needed: u64) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < needed) {
        bail!(
            "this machine allows {} open files and {needed} are needed; use fewer --members, or raise `ulimit -Hn`",
            maximum.unwrap_or_default()
        );
    }
    let raised = Rlimit { current: Some(needed), maximum };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two members, the addresses where they reach each other, and the relay between them.
    fn pair() -> ([UdpSocket; 2], [SocketAddr; 2], Relay) {
        let members = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            socket
        });
        let sockets = Sockets::bind(2).unwrap();
        let ways = [(0, 1), (1, 0)].map(|link| sockets.address(link).unwrap());
        let listens = members.iter().map(|member| member.local_addr().unwrap()).collect();
        (members, ways, sockets.forward(listens).unwrap())
    }

    /// What a member receives, and where it seems to come from.
    fn received(member: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
        let mut buffer = [0; 64];
        let (length, source) = member.recv_from(&mut buffer).ok()?;
        Some((buffer[..length].to_vec(), source))
    }

    #[test]
    fn a_datagram_seems_to_come_from_where_its_sender_is_reached() {
        let ([one, two], [to_two, to_one], _relay) = pair();
        one.send_to(b"hello", to_two).unwrap();
        assert_eq!(received(&two), Some((b"hello".to_vec(), to_one)));
        two.send_to(b"yes", to_one).unwrap();
        assert_eq!(received(&one), Some((b"yes".to_vec(), to_two)));
    }

    #[test]
    fn a_guardian_sends_from_a_socket_of_its_own() {
        let ([_one, two], [to_two, to_one], _relay) = pair();
        let guardian = UdpSocket::bind("127.0.0.1:0").unwrap();
        guardian.send_to(b"released", to_two).unwrap();
        assert_eq!(received(&two), Some((b"released".to_vec(), to_one)));
    }

    #[test]
    fn a_cut_is_one_way_until_it_is_mended() {
        let ([one, two], [to_two, to_one], relay) = pair();
        relay.change(|cuts| cuts.extend([(0, 1)]));
        one.send_to(b"lost", to_two).unwrap();
        assert_eq!(received(&two), None);
        two.send_to(b"arrives", to_one).unwrap();
        assert_eq!(received(&one), Some((b"arrives".to_vec(), to_two)));
        relay.change(Cuts::clear);
        one.send_to(b"again", to_two).unwrap();
        assert_eq!(received(&two), Some((b"again".to_vec(), to_one)));
    }

    #[test]
    fn a_longest_datagram_passes() {
        let ([one, two], [to_two, _], _relay) = pair();
        one.send_to(&[7; 8000], to_two).unwrap();
        let mut buffer = [0; 9000];
        assert_eq!(two.recv(&mut buffer).unwrap(), 8000);
    }

    #[test]
    fn too_many_members_for_the_limit_of_open_files_are_refused_with_the_reason() {
        let error = allow_open_files(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("open files") && error.contains("--members"), "{error}");
    }
}
