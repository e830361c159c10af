//! `[[member]]`: who takes part.

use std::collections::BTreeSet;

use doyen_core::members::NodeId;

use super::Member;
use super::raw::{RawConfig, RawMember};
use super::report::{DEFAULT, Report};
use super::resolve::Resolver;
use super::schema::{self, DefaultValue, MEMBER, keys_of};
use super::value::Value;

/// How many members a cluster has at most: every member stores what it knows of each other one, and that must fit into a
/// slot of the state file (`node/store.rs`).
pub(crate) const MOST_MEMBERS: usize = 64;

/// The members of a configuration, and where they were listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// In the order of their ids.
    pub(super) members: Vec<Member>,
    /// As they were written, in the same order.
    raw: Vec<RawMember>,
    /// Whether nothing was wrong with any of them.
    pub(super) is_whole: bool,
}

/// The members of the first layer that has any. Those that are wrong are left out.
pub(super) fn list(resolver: &mut Resolver<'_>) -> Listed {
    let with_members = |layer: &&RawConfig| !layer.members.is_empty();
    let Some(layer) = resolver.layers.layers.iter().find(with_members) else {
        if !keys_of(MEMBER).any(|key| resolver.layers.is_unread(key.name)) {
            let remedy =
                "list all members, this one included, each as [[member]] with id and address";
            resolver.missing(MEMBER, remedy);
        }
        return Listed::default();
    };
    let before = resolver.problems.len();
    if let Some(excess) = layer.members.get(MOST_MEMBERS) {
        let problem = format!(
            "{}: {} members are too many; a cluster has at most {MOST_MEMBERS}: leave some out",
            excess.origin.place(MEMBER),
            layer.members.len()
        );
        resolver.problems.push(problem);
    }
    let mut seen = Seen::default();
    let mut entries: Vec<(Member, RawMember)> = Vec::new();
    for raw in &layer.members {
        let mut reader = Reader { raw, problems: &mut resolver.problems };
        entries.extend(reader.member(&mut seen).map(|member| (member, raw.clone())));
    }
    entries.sort_by_key(|(member, _)| member.id);
    let (members, raw) = entries.into_iter().unzip();
    let is_read = layer.members.iter().all(|member| member.unread.is_empty())
        && !layer.unread.iter().any(|key| key.starts_with(MEMBER));
    Listed { members, raw, is_whole: resolver.problems.len() == before && is_read }
}

impl Listed {
    /// Where `key` of a member is set.
    pub(super) fn place(&self, id: NodeId, key: &str) -> String {
        let index = self.members.iter().position(|member| member.id == id);
        let found = index.and_then(|index| self.raw[index].values.get(key));
        found.map_or_else(String::new, |found| found.origin.to_string())
    }

    /// Where the first member is listed.
    pub(super) fn begins_at(&self) -> String {
        self.raw.first().map_or_else(String::new, |raw| raw.origin.to_string())
    }

    pub(super) fn report(&self, report: &mut Report) {
        for (member, raw) in self.members.iter().zip(&self.raw) {
            let Member { id, name, address, priority, witness } = member;
            report.begin_member(&raw.origin);
            for (key, value) in [
                ("member.id", Value::Integer(id.0.into())),
                ("member.name", Value::Text(name.clone())),
                ("member.address", Value::Text(address.clone())),
                ("member.priority", Value::Integer(*priority)),
                ("member.witness", Value::Bool(*witness)),
            ] {
                // A witness has no priority, and must not be given one.
                if *witness && key == "member.priority" {
                    continue;
                }
                let found = raw.values.get(key).map(|found| found.origin.to_string());
                report.set_of_member(key, &value, found.as_deref().unwrap_or(DEFAULT));
            }
        }
    }
}

/// What no two members may have in common.
#[derive(Default)]
struct Seen {
    ids: BTreeSet<i64>,
    names: BTreeSet<String>,
    addresses: BTreeSet<String>,
}

/// Checks one member.
struct Reader<'a> {
    raw: &'a RawMember,
    problems: &'a mut Vec<String>,
}

impl<'a> Reader<'a> {
    fn member(&mut self, seen: &mut Seen) -> Option<Member> {
        let before = self.problems.len();
        let id = self.required("member.id").map(Value::integer);
        if let Some(id) = id.filter(|&id| !seen.ids.insert(id)) {
            self.wrong("member.id", &format!("{id} is another member's; ids must be unique"));
        }
        let name = self.name(id, seen);
        let address = self.required("member.address").map(Value::text);
        if let Some(address) = address.filter(|it| !seen.addresses.insert((*it).to_owned())) {
            let problem = format!("{address} is another member's; each needs its own");
            self.wrong("member.address", &problem);
        }
        let values = &self.raw.values;
        let witness = values.get("member.witness").is_some_and(|found| found.value.bool());
        let priority = values.get("member.priority").map(|found| found.value.integer());
        if witness && priority.is_some() {
            let problem = "has no meaning, because a witness never leads; leave it out";
            self.wrong("member.priority", problem);
        }
        if self.problems.len() > before || !self.raw.unread.is_empty() {
            return None;
        }
        let id = NodeId(u32::try_from(id?).ok()?);
        let (address, priority) = (address?.to_owned(), priority.unwrap_or_default());
        Some(Member { id, name: name?, address, priority, witness })
    }

    fn name(&mut self, id: Option<i64>, seen: &mut Seen) -> Option<String> {
        let set = self.raw.values.get("member.name").map(|found| found.value.text().to_owned());
        if self.raw.unread.contains("member.name") {
            return None;
        }
        let name = set.or_else(|| id.map(|id| format!("n{id}")))?;
        let problem = if name.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("`{name}` would be taken for an id; begin with a letter")
        } else if !seen.names.insert(name.clone()) {
            format!("`{name}` is another member's; names must be unique")
        } else {
            return Some(name);
        };
        self.wrong("member.name", &problem);
        None
    }

    /// A value that must be set. One that is set and could not be read is not missing.
    fn required(&mut self, key: &'static str) -> Option<&'a Value> {
        let found = self.raw.values.get(key).map(|found| &found.value);
        if let (None, false, DefaultValue::Required(remedy)) =
            (found, self.raw.unread.contains(key), schema::named(key).default)
        {
            self.wrong(key, &format!("is missing; {remedy}"));
        }
        found
    }

    fn wrong(&mut self, key: &str, problem: &str) {
        let origin = self.raw.values.get(key).map_or(&self.raw.origin, |found| &found.origin);
        let name = schema::named(key).split().1;
        let place = origin.place(&format!("{}: {name}", self.raw.title));
        self.problems.push(format!("{place}: {problem}"));
    }
}
