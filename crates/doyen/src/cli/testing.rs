//! For tests: a status as a node reports it.

use doyen::node::status::Status;
use serde_json::{Value, json};

/// What n1 reports of three members that reach each other, while n2 leads, if this is changed.
pub(super) fn status(change: impl FnOnce(&mut Value)) -> Status {
    let mut status = json!({
        "cluster": "orders", "algorithm": "quorum", "version": "0.1.0", "id": 1, "name": "n1", "incarnation": 1,
        "role": "follower", "leader": 2, "term": 4, "lease": null, "why": null, "rejoining": false,
        "drained": false, "never_leads": false, "drained_remaining_ms": null, "preference": null, "next": null,
        "succession": [2], "members": (1..=3).map(member).collect::<Vec<_>>(),
    });
    change(&mut status);
    serde_json::from_value(status).expect("a status")
}

pub(super) fn member(id: u32) -> Value {
    json!({
        "id": id, "name": format!("n{id}"), "address": format!("192.0.2.{id}:7400"), "observed_address": null,
        "role": "follower", "priority": id, "witness": false, "reachable": true, "config_mismatch": false,
        "last_seen_ms": 10, "rtt_us": 100, "unreachable": [], "eligible": true, "recent_failures": 0,
    })
}
