//! Checks that what a scenario expects is possible with its members and its kinds of messages.

use doyen_core::layers;

use super::Case;
use super::parse::{Result, kind, member, named};

/// Rejects members and kinds of messages that the run does not have.
pub(super) fn check(case: &Case) -> Result<()> {
    let Some(expect) = &case.expect else { return Ok(()) };
    let members = case.members();
    expect.leader.map(|id| member(members, "expect.leader", id)).transpose()?;
    let lists = [
        ("leaderless", Some(&expect.leaderless)),
        ("down", expect.down.as_ref()),
        ("waiting", expect.waiting.as_ref()),
        ("order", expect.order.as_ref()),
    ];
    for (name, ids) in lists {
        for (index, &id) in ids.into_iter().flatten().enumerate() {
            member(members, &format!("expect.{name}[{index}]"), id)?;
        }
    }
    for (follower, &leader) in &expect.follows {
        let key = format!("expect.follows.{follower}");
        named(members, &key, follower)?;
        member(members, &key, leader)?;
    }
    let recorded = expect.recorded.keys().map(|name| ("recorded", name));
    let delivered = expect.delivered.keys().map(|name| ("delivered", name));
    for (table, name) in recorded.chain(delivered) {
        named(members, &format!("expect.{table}.{name}"), name)?;
    }
    let kinds = layers::kinds_with_snapshot(case.algorithm);
    for name in expect.by_kind.keys() {
        kind(&kinds, &format!("expect.by_kind.{name}"), name)?;
    }
    Ok(())
}
