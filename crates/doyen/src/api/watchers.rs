//! Counts watchers: their number is limited, and one client cannot take all places.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use super::Limits;
use crate::mutex::lock;

/// The watchers of each client. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Watchers {
    most: u32,
    most_of_client: u32,
    clients: Arc<Mutex<BTreeMap<IpAddr, u32>>>,
}

/// The place of a watcher, until this is dropped.
#[derive(Debug)]
pub(super) struct Watcher {
    watchers: Watchers,
    client: IpAddr,
}

impl Watchers {
    pub(super) fn new(limits: Limits) -> Self {
        let (most, most_of_client) = (limits.watchers, limits.watchers_per_client);
        Self { most, most_of_client, clients: Arc::default() }
    }

    /// The calls that wait for a lock.
    pub(super) fn of_locks(limits: Limits) -> Self {
        let (most, most_of_client) = (limits.lock_waiters, limits.lock_waiters_per_client);
        Self { most, most_of_client, clients: Arc::default() }
    }

    /// None if there are too many.
    pub(super) fn admit(&self, client: IpAddr) -> Option<Watcher> {
        let mut clients = lock(&self.clients);
        let (all, own): (u32, u32) =
            (clients.values().sum(), clients.get(&client).copied().unwrap_or_default());
        if all >= self.most || own >= self.most_of_client {
            return None;
        }
        clients.insert(client, own + 1);
        Some(Watcher { watchers: self.clone(), client })
    }

    pub(super) fn count(&self) -> u32 {
        lock(&self.clients).values().sum()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut clients = lock(&self.watchers.clients);
        if let Some(count) = clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}
