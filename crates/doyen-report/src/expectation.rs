//! Compares the result of a run with the expected one.

use doyen_core::ledger::Invariant;
use doyen_core::members::NodeId;
use doyen_core::protocol::View;
use doyen_core::time::Span;

use crate::formula::Formula;
use doyen_sim::cut::{Cut, State, UnderWay};
use doyen_sim::delivered::Delivered;
use doyen_sim::metrics::sections::Exclusion;
use doyen_sim::metrics::{Ended, Outcome};
use doyen_sim::scenario::{Case, Expect};

/// The differences from `case.expect`, one line each; nothing if everything is as expected.
pub fn differences(case: &Case, outcome: &Outcome, formula: Option<&Formula>) -> Vec<String> {
    let Some(expect) = &case.expect else { return Vec::new() };
    let mut found = Differences(Vec::new());
    let messages = &outcome.messages;
    found.leader("leader", expect.leader.map(|id| Some(NodeId(id))), outcome.leader);
    found.compare("agreed", expect.agreed, outcome.agreed);
    found.compare("messages", expect.messages, messages.total);
    found.at_least("messages", expect.messages_at_least, messages.total);
    for (name, &count) in &expect.by_kind {
        let counted = messages.by_kind.iter().find(|(kind, _)| kind == name);
        found.compare(name, Some(count), counted.map_or(0, |&(_, count)| count));
    }
    found.compare("to_dead", expect.to_dead, messages.to_dead);
    found.compare("stages", expect.stages, outcome.stages);
    found.span("turnaround", expect.turnaround, Some(outcome.turnaround), "none");
    found.span("informed", expect.informed, outcome.informed, "no agreement");
    found.compare("elections", expect.elections, outcome.elections);
    found.at_least("elections", expect.elections_at_least, outcome.elections);
    found.compare("leader_changes", expect.leader_changes, outcome.leader_changes);
    found.compare("two_leaders", expect.two_leaders, outcome.overlap > Span::ZERO);
    found.compare("old_processes", expect.old_processes, outcome.old_processes);
    let is_down = |(_, view): &(NodeId, &Option<View>)| view.is_none();
    let down = case.members().iter().zip(outcome.views.iter()).filter(is_down).map(|(id, _)| id.0);
    if let Some(must) = &expect.down {
        let mut must = must.clone();
        must.sort_unstable();
        let down: Vec<u32> = down.collect();
        let [must, down] = [must, down].map(|ids| listed(&ids));
        found.compare("down", Some(must.as_str()), down.as_str());
    }
    let run = outcome.exclusion.as_ref();
    let entries = run.map_or(0, |run| run.entries.len() as u64);
    found.compare("entries", expect.entries, entries);
    let is_broken =
        |run: &Exclusion| run.broken.iter().any(|it| it.invariant != Invariant::CausalOrder);
    let two_inside = run.is_some_and(|run| run.overlap > Span::ZERO || is_broken(run));
    found.compare("two_inside", expect.two_inside, two_inside);
    found.compare("in_order", expect.in_order, run.and_then(|run| run.in_order) != Some(false));
    let fencing = run.and_then(|run| run.fencing).unwrap_or_default();
    found.compare("refused_writes", expect.refused_writes, fencing.refused_writes);
    found.compare("lost_grants", expect.lost_grants, fencing.lost_grants);
    if let Some(must) = &expect.waiting {
        let waiting: Vec<u32> = run.iter().flat_map(|run| &run.waiting).map(|id| id.0).collect();
        let mut must = must.clone();
        must.sort_unstable();
        let [must, waiting] = [must, waiting].map(|ids| listed(&ids));
        found.compare("waiting", Some(must.as_str()), waiting.as_str());
    }
    found.snapshot(expect, outcome.snapshot.as_ref());
    found.multicast(expect, outcome.multicast.as_ref());
    if let Some(must) = &expect.order {
        let entries = run.iter().flat_map(|run| &run.entries);
        let entered: Vec<u32> = entries.map(|entry| entry.member.0).collect();
        let [must, entered] = [must, &entered].map(|ids| listed(ids));
        found.compare("order", Some(must.as_str()), entered.as_str());
    }
    let longest = run.and_then(Exclusion::wait).map(|wait| wait.max);
    found.span("longest_wait", expect.longest_wait, longest, "no entry");
    found.compare("quiet", expect.quiet, outcome.ended == Ended::Quiet);
    let matches = formula.is_some_and(|formula| formula.value == messages.total);
    found.compare("formula_matches", expect.formula_matches, matches);
    found.views(expect, case, outcome);
    found.0
}

fn listed(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: Copy + PartialEq + std::fmt::Display>(
        &mut self,
        what: &str,
        must: Option<T>,
        is: T,
    ) {
        if let Some(must) = must
            && must != is
        {
            self.0.push(format!("{what}: expected {must}, got {is}"));
        }
    }

    fn leader(&mut self, what: &str, must: Option<Option<NodeId>>, is: Option<NodeId>) {
        let name = |id: Option<NodeId>| id.map_or("none".to_owned(), |id| id.to_string());
        if let Some(must) = must
            && must != is
        {
            self.0.push(format!("{what}: expected {}, got {}", name(must), name(is)));
        }
    }

    fn at_least(&mut self, what: &str, must: Option<u64>, is: u64) {
        if let Some(must) = must
            && is < must
        {
            self.0.push(format!("{what}: expected at least {must}, got {is}"));
        }
    }

    fn span(&mut self, what: &str, must: Option<Span>, is: Option<Span>, none: &str) {
        if let Some(must) = must
            && Some(must) != is
        {
            let is = is.map_or(none.to_owned(), |is| is.to_string());
            self.0.push(format!("{what}: expected {must}, got {is}"));
        }
    }

    fn snapshot(&mut self, expect: &Expect, cut: Option<&Cut>) {
        let held = |member: &str| {
            let recorded = &cut?.recorded;
            let (_, state) = recorded.iter().find(|(id, _)| id.to_string() == *member)?;
            match *state {
                State::Held(held) => Some(held),
                State::View(_) => None,
            }
        };
        for (member, &must) in &expect.recorded {
            self.recorded(&format!("what {member} held"), must, held(member));
        }
        let carried = |channel: &str| {
            let mut channels = cut?.channels.iter();
            let is_meant = |it: &&UnderWay| format!("{}>{}", it.from, it.to) == channel;
            Some(channels.find(is_meant).map_or(0, |it| it.amount))
        };
        for (channel, &must) in &expect.under_way {
            self.recorded(&format!("what {channel} carried"), must, carried(channel));
        }
        if let Some(must) = expect.total {
            self.recorded("total", must, cut.and_then(|cut| cut.total));
        }
        if let Some(must) = expect.markers {
            self.recorded("markers", must, cut.map(|cut| cut.markers));
        }
        let is_sound = cut.is_some_and(|cut| cut.complete && cut.flaws.is_empty());
        self.compare("consistent", expect.consistent, is_sound);
    }

    fn multicast(&mut self, expect: &Expect, is: Option<&Delivered>) {
        for (member, must) in &expect.delivered {
            let mut all = is.iter().flat_map(|it| &it.delivered);
            let sequence = all.find(|(id, _)| id.to_string() == *member).map(|(_, it)| it);
            let sequence = sequence.map_or("nothing".to_owned(), |it| it.join(", "));
            let must = must.join(", ");
            self.compare(&format!("what {member} has delivered"), Some(&*must), &*sequence);
        }
        let lost = is.map_or(String::new(), |it| it.lost.join(", "));
        self.compare("lost", expect.lost.as_ref().map(|it| it.join(", ")).as_deref(), &*lost);
        self.compare("resets", expect.resets, is.map_or(0, |it| it.resets));
    }

    fn recorded(&mut self, what: &str, must: u64, is: Option<u64>) {
        if is != Some(must) {
            let is = is.map_or("nothing recorded".to_owned(), |is| is.to_string());
            self.0.push(format!("{what}: expected {must}, got {is}"));
        }
    }

    fn views(&mut self, expect: &Expect, case: &Case, outcome: &Outcome) {
        let view = |id: NodeId| {
            let position = case.members().position(id)?;
            outcome.views[position]
        };
        for (member, &leader) in &expect.follows {
            let Ok(id) = member.parse() else {
                self.0.push(format!("follows: `{member}` is not a member's number"));
                continue;
            };
            let follows = view(NodeId(id)).and_then(|view| view.leader);
            self.leader(&format!("whom {member} follows"), Some(Some(NodeId(leader))), follows);
        }
        for &member in &expect.leaderless {
            let follows = view(NodeId(member)).and_then(|view| view.leader);
            self.leader(&format!("whom {member} follows"), Some(None), follows);
        }
    }
}
