//! A fingerprint of a run: what happened, when and to which member, not the words for it. A link carries it, so that a
//! page notices when a later version of doyen makes another run of the same scenario.

use std::hash::{Hash, Hasher};

use doyen_sim::hash::FastHasher;
use doyen_sim::trace::{EventKind, TraceEvent};

/// Folds one event after another. The same on every machine.
#[derive(Debug, Default)]
pub(super) struct Digest(FastHasher);

impl Digest {
    pub(super) fn add(&mut self, event: &TraceEvent) {
        let hasher = &mut self.0;
        match &event.kind {
            // The fingerprint does not depend on the names of timers.
            EventKind::Armed { .. } | EventKind::Disarmed { .. } | EventKind::Noted { .. } => {
                return;
            }
            EventKind::Sent { to, kind, arrives, again, .. } => {
                ("sent", to, kind, arrives, again).hash(hasher);
            }
            EventKind::Received { from, kind, .. } => ("received", from, kind).hash(hasher),
            EventKind::Missed { from, kind, .. } => ("missed", from, kind).hash(hasher),
            EventKind::View { leader, term, role, section, .. } => {
                ("view", leader, term, role.to_string()).hash(hasher);
                // Elections keep the fingerprints that they had before there were sections.
                if !section.is_outside() {
                    section.hash(hasher);
                }
            }
            EventKind::Leased { until, .. } => ("leased", until).hash(hasher),
            EventKind::Paused { until, .. } => ("paused", until).hash(hasher),
            EventKind::Suspected { peer, .. } => ("suspected", peer).hash(hasher),
            EventKind::Trusted { peer, .. } => ("trusted", peer).hash(hasher),
            EventKind::Cut { to, .. } => ("cut", to).hash(hasher),
            EventKind::Mended { to, .. } => ("mended", to).hash(hasher),
            EventKind::Partitioned { groups } => ("partitioned", groups).hash(hasher),
            EventKind::Clock { rate_ppm, jump, .. } => ("clock", rate_ppm, jump).hash(hasher),
            EventKind::Crashed { forwards, .. } => ("crashed", forwards).hash(hasher),
            EventKind::Restarted { disk, .. } => ("restarted", disk).hash(hasher),
            EventKind::Commanded { command, .. } => ("commanded", command).hash(hasher),
            EventKind::Network { text } => ("network", text).hash(hasher),
            EventKind::Fired { .. } => "fired".hash(hasher),
            EventKind::Campaign { .. } => "campaign".hash(hasher),
            EventKind::Retired { .. } => "retired".hash(hasher),
            EventKind::Request { .. } => "request".hash(hasher),
            EventKind::Exit { .. } => "exit".hash(hasher),
            EventKind::Released { .. } => "released".hash(hasher),
            EventKind::Healed => "healed".hash(hasher),
        }
        (event.at, event.kind.member(), event.kind.rules()).hash(hasher);
    }

    /// Sixteen hexadecimal digits. `rest` stands for what happened after the last event, if anything did.
    pub(super) fn finish(&self, rest: u64) -> String {
        let mut hasher = self.0;
        rest.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}
