//! `[[member]]`: who takes part.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use doyen_core::members::NodeId;
use toml::Spanned;

use super::Member;
use super::file::{Given, MemberTable};
use super::layer::Layer;
use super::report::{DEFAULT, Report};
use super::resolve::{LONGEST_NAME, Resolver, check_name};
use super::shape::member_title;

/// How many members a cluster has at most: every member stores what it knows of each other one, and that must fit into a
/// slot of the state file (`node/store.rs`).
pub(crate) const MOST_MEMBERS: usize = 64;

/// The members of a configuration, and where they were listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// In the order of their ids.
    pub(super) members: Vec<Member>,
    /// Where the table of each begins, and where its values come from, in the order of the format.
    sources: Vec<[String; VALUES + 1]>,
    /// Whether nothing was wrong with any of them.
    pub(super) is_whole: bool,
}

/// How many values a member has.
const VALUES: usize = 5;

/// The members of the first layer that has any. Those that are wrong are left out.
pub(super) fn list(resolver: &mut Resolver<'_>) -> Listed {
    let Some(layer) = resolver.layer_with_members() else {
        let remedy = "list everybody, this one included, each as [[member]] with id and address";
        resolver.missing("member", remedy);
        return Listed::default();
    };
    let tables = &layer.written.member;
    if tables.len() > MOST_MEMBERS {
        let problem = format!(
            "{} members are too many; a cluster has at most {MOST_MEMBERS}: leave some out",
            tables.len()
        );
        let place = layer.place(tables[MOST_MEMBERS].span().start, "member");
        resolver.problems.push(format!("{place}: {problem}"));
    }
    let before = resolver.problems.len();
    let mut seen = Seen::default();
    let mut entries = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let mut reader = Reader { layer, table, index, problems: &mut resolver.problems };
        entries.extend(reader.member(&mut seen));
    }
    entries.sort_by_key(|(member, _)| member.id);
    let (members, sources) = entries.into_iter().unzip();
    let is_whole = resolver.problems.len() == before && !layer.unread.has_members();
    Listed { members, sources, is_whole }
}

impl Listed {
    /// Where the address of a member is written.
    pub(super) fn address_at(&self, id: NodeId) -> &str {
        self.source(id, 3)
    }

    /// Where it is written that a member is a witness.
    pub(super) fn witness_at(&self, id: NodeId) -> &str {
        self.source(id, 5)
    }

    /// Where the first member is written.
    pub(super) fn begins_at(&self) -> &str {
        self.sources.first().map_or("", |[table, ..]| table)
    }

    fn source(&self, id: NodeId, value: usize) -> &str {
        let place = self.members.iter().position(|member| member.id == id);
        place.map_or("", |place| &self.sources[place][value])
    }

    pub(super) fn report(&self, report: &mut Report) {
        for (member, sources) in self.members.iter().zip(&self.sources) {
            let Member { id, name, address, priority, witness } = member;
            let [table, from_id, from_name, from_address, from_priority, from_witness] = sources;
            report.table("[[member]]", table);
            report.value("id", id, from_id);
            report.text("name", name, from_name);
            report.text("address", address, from_address);
            // A witness has none, and may not be given one.
            match witness {
                true => report.unset("priority", "a witness never leads"),
                false => report.value("priority", priority, from_priority),
            }
            report.value("witness", witness, from_witness);
        }
    }
}

/// What no two members may have in common.
#[derive(Default)]
struct Seen {
    ids: BTreeSet<u32>,
    names: BTreeSet<String>,
    addresses: BTreeSet<String>,
}

/// Reads one member.
struct Reader<'a> {
    layer: &'a Layer,
    table: &'a Spanned<MemberTable>,
    index: usize,
    problems: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn member(&mut self, seen: &mut Seen) -> Option<(Member, [String; VALUES + 1])> {
        let table = self.table.get_ref();
        let before = self.problems.len();
        let id = self.id(seen);
        let name = self.name(id, seen);
        let address = self.address(seen);
        let witness = table.witness.as_ref().is_some_and(|given| *given.get_ref());
        if let (true, Some(priority)) = (witness, &table.priority) {
            let problem = "has no meaning, for a witness never leads; leave it out";
            self.wrong("priority", priority, problem);
        }
        let priority = table.priority.as_ref().map_or(0, |given| *given.get_ref());
        let sources = [
            self.layer.name_at(self.table.span().start),
            self.source(&table.id),
            self.source(&table.name),
            self.source(&table.address),
            self.source(&table.priority),
            self.source(&table.witness),
        ];
        let member = Member { id: NodeId(id), name, address, priority, witness };
        let keys = ["id", "name", "address", "priority", "witness"];
        let is_read = !keys.into_iter().any(|key| self.is_unread(key));
        (is_read && self.problems.len() == before).then_some((member, sources))
    }

    fn id(&mut self, seen: &mut Seen) -> u32 {
        let Some(given) = &self.table.get_ref().id else {
            self.missing("id", "give it a number of its own");
            return 0;
        };
        let id = *given.get_ref();
        if !seen.ids.insert(id) {
            self.wrong(
                "id",
                given,
                &format!("{id} is another member's already; ids must be unique"),
            );
        }
        id
    }

    fn name(&mut self, id: u32, seen: &mut Seen) -> String {
        let given = self.table.get_ref().name.as_ref();
        let name = given.map_or_else(|| format!("n{id}"), |given| given.get_ref().clone());
        if given.is_none() && (self.is_unread("id") || self.is_unread("name")) {
            return name; // nobody knows what it would be
        }
        let problem = if let Err(problem) = check_name(&name, LONGEST_NAME) {
            problem
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("`{name}` would be taken for an id; begin with a letter")
        } else if !seen.names.insert(name.clone()) {
            format!("`{name}` is another member's already; names must be unique")
        } else {
            return name;
        };
        match given {
            Some(given) => self.wrong("name", given, &problem),
            None => self.missing("name", &problem),
        }
        name
    }

    fn address(&mut self, seen: &mut Seen) -> String {
        let Some(given) = &self.table.get_ref().address else {
            self.missing("address", "say where it listens, for example 10.0.0.1:7400");
            return String::new();
        };
        let address = given.get_ref().to_lowercase();
        if let Err(problem) = check_address(&address) {
            self.wrong("address", given, &problem);
        } else if !seen.addresses.insert(address.clone()) {
            let problem = format!("{address} is another member's already; each needs its own");
            self.wrong("address", given, &problem);
        }
        address
    }

    fn source<T>(&self, given: &Given<T>) -> String {
        let given = given.as_ref().map(|given| self.layer.name_at(given.span().start));
        given.unwrap_or_else(|| DEFAULT.to_owned())
    }

    fn wrong<T>(&mut self, key: &str, given: &Spanned<T>, problem: &str) {
        self.note(key, given.span().start, problem);
    }

    fn missing(&mut self, key: &str, remedy: &str) {
        if !self.is_unread(key) {
            self.note(key, self.table.span().start, &format!("is missing; {remedy}"));
        }
    }

    /// Whether it stands there and could not be read, which has been said.
    fn is_unread(&self, key: &str) -> bool {
        self.layer.unread.contains_of_member(self.index, key)
    }

    fn note(&mut self, key: &str, position: usize, problem: &str) {
        let name = self.table.get_ref().name.as_ref().map(|name| name.get_ref().as_str());
        let title = member_title(self.index, name);
        let place = self.layer.place(position, &format!("{title}: {key}"));
        self.problems.push(format!("{place}: {problem}"));
    }
}

/// Whether datagrams can be sent there: an IP address or a name, and a port.
pub(super) fn check_address(text: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "`{text}` is not an address; write for example 10.0.0.1:7400, [fd00::1]:7400 or n1.example:7400"
        )
    };
    if let Ok(address) = text.parse::<SocketAddr>() {
        if address.ip().is_unspecified() {
            return Err(format!(
                "nobody can send to {text}; write the address at which others reach it"
            ));
        }
        return if address.port() == 0 { Err(wrong()) } else { Ok(()) };
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_label = |label: &str| {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_fine)
    };
    // Four numbers that are no IP address were meant to be one.
    let is_number = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_host = host.len() <= 253 && host.split('.').all(is_label) && !is_number;
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    if is_host && is_port { Ok(()) } else { Err(wrong()) }
}
