//! `[[member]]`: the members of the cluster.

use std::collections::BTreeSet;

use doyen_core::members::NodeId;

use super::Member;
use super::layers::RawMember;
use super::print::{DEFAULT, Report};
use super::resolve::{Resolver, parse};
use super::schema::{self, DefaultValue, MEMBER, keys_of};

/// Every member stores what it knows of each other one in a slot of the state file (`node/store.rs`).
pub(crate) const MOST_MEMBERS: usize = 64;

/// The valid members of a configuration, in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) members: Vec<Member>,
    /// As they were written, in the same order.
    raw: Vec<RawMember>,
    /// Whether all members are valid.
    pub(super) is_whole: bool,
    /// The ids and names of all members as they are written, those of invalid ones too; none if one could not be read.
    written: Option<BTreeSet<String>>,
}

/// The members of the first layer that has any.
pub(super) fn list(resolver: &mut Resolver<'_>) -> Listed {
    let Some(layer) = resolver.layers.layers.iter().find(|layer| !layer.members.is_empty()) else {
        if !keys_of(MEMBER).any(|key| resolver.layers.is_unread(key.name)) {
            let remedy =
                "list all members, this one included, each as [[member]] with id and address";
            resolver.missing(MEMBER, remedy);
        }
        return Listed::default();
    };
    let before = resolver.problems.len();
    if let Some(excess) = layer.members.get(MOST_MEMBERS) {
        resolver.problems.push(format!(
            "{}: {} members are too many; a cluster has at most {MOST_MEMBERS}: leave some out",
            excess.origin.place(MEMBER),
            layer.members.len()
        ));
    }
    let mut reader = Reader { seen: BTreeSet::new(), problems: &mut resolver.problems };
    let read = |raw: &RawMember| Some((reader.member(raw)?, raw.clone()));
    let mut entries: Vec<(Member, RawMember)> = layer.members.iter().filter_map(read).collect();
    entries.sort_by_key(|(member, _)| member.id);
    let (members, raw) = entries.into_iter().unzip();
    let is_read = !layer.members.iter().any(|member| member.values.has_unread())
        && !keys_of(MEMBER).any(|key| layer.values.is_unread(key.name));
    let written = layer.members.iter().map(written).collect::<Option<Vec<_>>>();
    let written = written.map(|all| all.into_iter().flatten().collect());
    Listed { members, raw, is_whole: resolver.problems.len() == before && is_read, written }
}

/// The id and the name of a member as they are written; none if one could not be read.
fn written(raw: &RawMember) -> Option<[String; 2]> {
    let text = |key: &str| raw.values.get(key).map(|(text, _)| text.to_owned());
    if ["member.id", "member.name"].iter().any(|key| raw.values.is_unread(key)) {
        return None;
    }
    let id = text("member.id").unwrap_or_default();
    let name = text("member.name").unwrap_or_else(|| format!("n{id}"));
    Some([id, name])
}

impl Listed {
    /// Whether no member can be meant by this id or name, not even an invalid one.
    pub(super) fn has_none(&self, wanted: &str) -> bool {
        self.is_whole || self.written.as_ref().is_some_and(|written| !written.contains(wanted))
    }

    /// Where `key` of a member is set.
    pub(super) fn place(&self, id: NodeId, key: &str) -> String {
        let index = self.members.iter().position(|member| member.id == id);
        let found = index.and_then(|index| self.raw[index].values.get(key));
        found.map_or_else(String::new, |(_, origin)| origin.to_string())
    }

    /// Where the first member is listed.
    pub(super) fn begins_at(&self) -> String {
        self.raw.first().map_or_else(String::new, |raw| raw.origin.to_string())
    }

    pub(super) fn report(&self, report: &mut Report) {
        for (member, raw) in self.members.iter().zip(&self.raw) {
            let Member { id, name, address, priority, witness } = member;
            report.begin_member(&raw.origin);
            for (key, text) in [
                ("member.id", id.to_string()),
                ("member.name", name.clone()),
                ("member.address", address.clone()),
                ("member.priority", priority.to_string()),
                ("member.witness", witness.to_string()),
            ] {
                // A witness has no priority.
                if !*witness || key != "member.priority" {
                    let found = raw.values.get(key).map(|(_, origin)| origin.to_string());
                    report.set(key, &text, found.as_deref().unwrap_or(DEFAULT));
                }
            }
        }
    }
}

/// Checks members one by one.
struct Reader<'a> {
    /// Keys and values that no other member may have.
    seen: BTreeSet<(&'static str, String)>,
    problems: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn member(&mut self, raw: &RawMember) -> Option<Member> {
        let before = self.problems.len();
        let id = self.required(raw, "member.id");
        self.check_unique(raw, "member.id", id.clone(), "ids must be unique");
        let name = self.name(raw, id.as_deref());
        let address = self.required(raw, "member.address");
        self.check_unique(raw, "member.address", address.clone(), "each needs its own");
        let witness = raw.values.get("member.witness").is_some_and(|(text, _)| text == "true");
        let priority = raw.values.get("member.priority").map(|(text, _)| parse(text));
        if witness && priority.is_some() {
            let problem = "has no meaning, because a witness never leads; leave it out";
            self.wrong(raw, "member.priority", problem);
        }
        if self.problems.len() > before || raw.values.has_unread() {
            return None;
        }
        let priority = priority.unwrap_or_default();
        Some(Member { id: NodeId(parse(&id?)), name: name?, address: address?, priority, witness })
    }

    fn name(&mut self, raw: &RawMember, id: Option<&str>) -> Option<String> {
        if raw.values.is_unread("member.name") {
            return None;
        }
        let set = raw.values.get("member.name").map(|(name, _)| name.to_owned());
        let name = set.or_else(|| id.map(|id| format!("n{id}")))?;
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            let problem = format!("`{name}` would be taken for an id; begin with a letter");
            self.wrong(raw, "member.name", &problem);
            return None;
        }
        self.check_unique(raw, "member.name", Some(name.clone()), "names must be unique");
        Some(name)
    }

    fn check_unique(
        &mut self,
        raw: &RawMember,
        key: &'static str,
        value: Option<String>,
        rule: &str,
    ) {
        let Some(value) = value else { return };
        let shown = if key == "member.name" { format!("`{value}`") } else { value.clone() };
        if !self.seen.insert((key, value)) {
            self.wrong(raw, key, &format!("{shown} is another member's; {rule}"));
        }
    }

    /// A value that must be set. One that could not be read is not missing.
    fn required(&mut self, raw: &RawMember, key: &'static str) -> Option<String> {
        let found = raw.values.get(key).map(|(text, _)| text.to_owned());
        if let (None, false, DefaultValue::Required(remedy)) =
            (&found, raw.values.is_unread(key), schema::named(key).default)
        {
            self.wrong(raw, key, &format!("is missing; {remedy}"));
        }
        found
    }

    fn wrong(&mut self, raw: &RawMember, key: &str, problem: &str) {
        let origin = raw.values.get(key).map_or(&raw.origin, |(_, origin)| origin);
        let place = origin.place(&format!("{}: {}", raw.title, schema::named(key).split().1));
        self.problems.push(format!("{place}: {problem}"));
    }
}
