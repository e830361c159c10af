//! The open connections, and which one is closed when there are too many.
//!
//! A connection that waits for a request has no claim to its place: when its client, or the whole server, is at the limit,
//! the one that has been idle for longest makes room for the next. If none is idle, the newcomer gets one of the few places
//! that are kept for health: there only health paths are answered, one request each. So no number of connections, idle or
//! busy, keeps a load balancer from its answer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::Limits;
use crate::mutex::lock;

/// The addresses that count as one client: all of loopback, and a network of IPv6, which one machine has as a whole.
pub(super) fn client_of(address: IpAddr) -> IpAddr {
    let address = address.to_canonical();
    match address {
        _ if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() & !u128::from(u64::MAX)).into(),
        IpAddr::V4(_) => address,
    }
}

/// The limit that a new connection met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Limit {
    /// The limit of its client.
    Client(IpAddr),
    /// The limit of the server.
    Server,
}

/// The result for a new connection.
#[derive(Debug)]
pub(super) struct Admission {
    /// Its place; none if it is rejected.
    pub(super) place: Option<Place>,
    /// The limit that it met, if it met one.
    pub(super) limit: Option<Limit>,
}

/// The place of an open connection.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) slot: Arc<Slot>,
    /// Ends when the connection must be closed.
    pub(super) evicted: oneshot::Receiver<()>,
}

/// Counts for the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) open: u64,
    pub(super) evicted: u64,
    pub(super) rejected: u64,
}

/// The open connections of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Mutex<Table>>);

#[derive(Debug)]
struct Table {
    limits: Limits,
    open: BTreeMap<u64, Open>,
    /// Numbers connections, and the moments at which they become idle.
    counter: u64,
    evicted: u64,
    rejected: u64,
}

#[derive(Debug)]
struct Open {
    client: IpAddr,
    is_reserved: bool,
    /// When it became idle; none while it is busy.
    idle_since: Option<u64>,
    /// Dropping it evicts the connection.
    _evict: oneshot::Sender<()>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        let (open, counter) = (BTreeMap::new(), 0);
        Self(Arc::new(Mutex::new(Table { limits, open, counter, evicted: 0, rejected: 0 })))
    }

    /// Finds a place for a new connection.
    pub(super) fn admit(&self, client: IpAddr) -> Admission {
        let mut table = lock(&self.0);
        let limit = table.limit_for(client);
        let is_reserved = limit.is_some_and(|limit| !table.make_room(limit));
        if is_reserved && !table.make_room_in_reserve() {
            table.rejected += 1;
            return Admission { place: None, limit };
        }
        let (evict, evicted) = oneshot::channel();
        let id = table.next();
        let open = Open { client, is_reserved, idle_since: Some(id), _evict: evict };
        table.open.insert(id, open);
        let slot = Arc::new(Slot { connections: self.clone(), id, is_reserved });
        Admission { place: Some(Place { slot, evicted }), limit }
    }

    /// Closes the connection that has been idle for longest; returns whether there was one.
    pub(super) fn evict_idle(&self) -> bool {
        lock(&self.0).evict(|_| true)
    }

    /// The client with the most connections, and how many it has; none if there are none.
    pub(super) fn greediest(&self) -> Option<(IpAddr, usize)> {
        let clients = lock(&self.0).clients();
        let counts = clients.into_iter().map(|(client, (count, _))| (client, count));
        counts.max_by_key(|&(_, count)| count)
    }

    pub(super) fn counts(&self) -> Counts {
        let table = lock(&self.0);
        let Table { evicted, rejected, .. } = *table;
        Counts { open: table.open.len() as u64, evicted, rejected }
    }
}

impl Table {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn limit_for(&self, client: IpAddr) -> Option<Limit> {
        let regular = || self.open.values().filter(|it| !it.is_reserved);
        if regular().filter(|it| it.client == client).count()
            >= self.limits.connections_per_client as usize
        {
            return Some(Limit::Client(client));
        }
        (regular().count() >= self.limits.connections as usize).then_some(Limit::Server)
    }

    /// Evicts a connection so that a new one does not exceed `limit`; returns whether it could.
    fn make_room(&mut self, limit: Limit) -> bool {
        let client = match limit {
            Limit::Client(client) => client,
            Limit::Server => match self.greediest_idle() {
                Some(client) => client,
                None => return false,
            },
        };
        self.evict(|it| !it.is_reserved && it.client == client)
    }

    fn make_room_in_reserve(&mut self) -> bool {
        let reserved = self.open.values().filter(|it| it.is_reserved).count();
        reserved < self.limits.health_connections as usize || self.evict(|it| it.is_reserved)
    }

    /// How many connections each client has, and whether one of them is idle.
    fn clients(&self) -> BTreeMap<IpAddr, (usize, bool)> {
        let mut clients: BTreeMap<_, (usize, bool)> = BTreeMap::new();
        for open in self.open.values().filter(|it| !it.is_reserved) {
            let (count, has_idle) = clients.entry(open.client).or_default();
            *count += 1;
            *has_idle |= open.idle_since.is_some();
        }
        clients
    }

    /// Of the clients with an idle connection, the one with the most connections.
    fn greediest_idle(&self) -> Option<IpAddr> {
        let idle = self.clients().into_iter().filter(|(_, (_, has_idle))| *has_idle);
        idle.max_by_key(|(_, (count, _))| *count).map(|(client, _)| client)
    }

    /// Evicts the connection that has been idle for longest of those that `may_go`; returns whether there was one.
    fn evict(&mut self, may_go: impl Fn(&Open) -> bool) -> bool {
        let idle = self.open.iter().filter(|(_, it)| may_go(it));
        let idle = idle.filter_map(|(&id, it)| Some((it.idle_since?, id)));
        let Some((_, oldest)) = idle.min() else { return false };
        self.open.remove(&oldest);
        self.evicted += 1;
        true
    }
}

/// Keeps a connection in the table until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    connections: Connections,
    id: u64,
    /// Whether only health paths are answered here.
    pub(super) is_reserved: bool,
}

impl Slot {
    /// The connection is busy until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        if let Some(open) = lock(&self.connections.0).open.get_mut(&self.id) {
            open.idle_since = None;
        }
        Busy(Arc::clone(self))
    }

    /// Counts a request that is rejected because the connection is only for health.
    pub(super) fn count_rejected(&self) {
        lock(&self.connections.0).rejected += 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.connections.0).open.remove(&self.id);
    }
}

/// A request is being answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<Slot>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = lock(&self.0.connections.0);
        let now = table.next();
        if let Some(open) = table.open.get_mut(&self.0.id) {
            open.idle_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> Connections {
        let limits = Limits {
            connections: 4,
            connections_per_client: 3,
            health_connections: 1,
            ..Limits::default()
        };
        Connections::new(limits)
    }

    fn client(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, number).into()
    }

    fn admit(connections: &Connections, number: u8) -> Place {
        connections.admit(client(number)).place.expect("a place")
    }

    fn is_open(place: &mut Place) -> bool {
        place.evicted.try_recv() == Err(oneshot::error::TryRecvError::Empty)
    }

    #[test]
    fn loopback_is_one_client_and_so_is_a_network_of_ipv6() {
        let one = |text: &str| client_of(text.parse().expect("an address"));
        assert_eq!(one("127.0.0.1"), one("127.9.9.9"));
        assert_eq!(one("127.0.0.1"), one("::1"));
        assert_eq!(one("192.0.2.1"), one("::ffff:192.0.2.1"));
        assert_eq!(one("2001:db8::1"), one("2001:db8::ffff:1"));
        assert_ne!(one("2001:db8::1"), one("2001:db8:0:1::1"));
        assert_ne!(one("192.0.2.1"), one("192.0.2.2"));
    }

    #[test]
    fn the_longest_idle_connection_of_the_client_makes_room() {
        let connections = connections();
        let mut first = admit(&connections, 1);
        let mut second = admit(&connections, 1);
        let mut third = admit(&connections, 1);
        // It has asked since.
        drop(first.slot.begin());
        let admission = connections.admit(client(1));
        assert_eq!(admission.limit, Some(Limit::Client(client(1))));
        let fourth = admission.place.expect("a place");
        assert!(!fourth.slot.is_reserved);
        assert_eq!([&mut first, &mut second, &mut third].map(is_open), [true, false, true]);
        assert_eq!(connections.counts(), Counts { open: 3, evicted: 1, rejected: 0 });
        drop((first, second, third, fourth));
        assert_eq!(connections.counts().open, 0);
    }

    #[test]
    fn the_client_with_the_most_connections_makes_room_for_others() {
        let connections = connections();
        let mut others = admit(&connections, 2);
        let mut greedy = [1, 1, 1].map(|it| admit(&connections, it));
        let admission = connections.admit(client(3));
        assert_eq!(admission.limit, Some(Limit::Server));
        assert!(admission.place.is_some_and(|it| !it.slot.is_reserved));
        assert!(is_open(&mut others), "although it has been idle for longer");
        assert_eq!(greedy.each_mut().map(is_open), [false, true, true]);
    }

    #[test]
    fn if_all_are_busy_a_place_is_kept_for_health() {
        let connections = connections();
        let places = [1, 1, 1].map(|it| admit(&connections, it));
        let busy = places.each_ref().map(|it| it.slot.begin());
        let mut reserved = admit(&connections, 1);
        assert!(reserved.slot.is_reserved);
        assert!(!admit(&connections, 2).slot.is_reserved, "another client is not at its limit");
        // It is idle, and makes room for the next; but not while it is answered.
        let next = admit(&connections, 1);
        assert!(next.slot.is_reserved && !is_open(&mut reserved));
        let answered = next.slot.begin();
        let rejected = connections.admit(client(1));
        assert!(rejected.place.is_none());
        assert_eq!(rejected.limit, Some(Limit::Client(client(1))));
        drop(answered);
        drop(busy);
        assert!(!admit(&connections, 1).slot.is_reserved, "one of them is idle again");
    }
}
