//! A scenario with another number of members: each member that it names becomes the one in the same place.
//!
//! The highest stays the highest and the lowest the lowest. In a larger group, a member that starts an election or asks to
//! enter stays the r-th lowest, because costs depend on r; every other member keeps its distance to the nearer end. In a
//! smaller group all keep their relative position.

use doyen_core::members::{Members, NodeId};
use doyen_sim::fault::Action;
use doyen_sim::scenario::{Initiator, Initiators, MemberList, RingOrder, Scenario};

use crate::limits;
use crate::problem::Problem;
use crate::source::Opened;

/// The scenario with `count` members.
pub(super) fn resized(opened: &Opened, count: u64) -> Result<Scenario, Problem> {
    if !(1..=limits::MEMBERS).contains(&count) {
        let detail = format!("use 1 to {} members", limits::MEMBERS);
        return Err(Problem::of_scenario("members", detail));
    }
    let old = opened.case.members();
    let first = old.at(0).0.min(1);
    let places = Places { old, first, count: count as usize };
    let mut scenario = Scenario {
        members: Some(MemberList::Range(format!("{first}..{}", u64::from(first) + count - 1))),
        attr: Default::default(),
        expect: None,
        until: None,
        ..opened.scenario.clone()
    };
    if let Some(RingOrder::Listed(_)) = scenario.ring {
        scenario.ring = Some(RingOrder::Random);
    }
    places.move_all(&mut scenario);
    Ok(scenario)
}

/// The old and the new places of members.
struct Places<'o> {
    old: &'o Members,
    first: u32,
    count: usize,
}

impl Places<'_> {
    fn id(&self, place: usize) -> NodeId {
        NodeId(self.first + place as u32)
    }

    /// The place of a member, counted from the nearer end.
    fn moved(&self, id: NodeId) -> NodeId {
        let (place, last) = (self.old.position(id).unwrap_or_default(), self.old.len() - 1);
        if self.count <= last {
            return self.id(place * (self.count - 1) / last.max(1));
        }
        match place * 2 > last {
            true => self.id(self.count - 1 - (last - place)),
            false => self.id(place),
        }
    }

    /// The place of a member that starts an election, counted from the lowest; if that is `dead`, a member nearby.
    fn starter(&self, id: NodeId, dead: &[u32]) -> NodeId {
        let place = self.old.position(id).unwrap_or_default();
        let is_end = place + 1 == self.old.len() || self.count < self.old.len();
        let wanted = if is_end { self.moved(id) } else { self.id(place) };
        let (below, above) = (self.first..=wanted.0, wanted.0..self.first + self.count as u32);
        let live = below.rev().chain(above).find(|id| !dead.contains(id));
        live.map_or(wanted, NodeId)
    }

    fn move_all(&self, scenario: &mut Scenario) {
        let moved = |id: u32| self.moved(NodeId(id)).0;
        let distinct = |ids: &mut Vec<u32>| {
            ids.iter_mut().for_each(|id| *id = moved(*id));
            ids.sort_unstable();
            ids.dedup();
        };
        distinct(&mut scenario.dead);
        // A small group keeps at least one member too.
        if scenario.dead.len() == self.count {
            scenario.dead.remove(0);
        }
        scenario.leader = scenario.leader.map(moved);
        for listed in [&mut scenario.initiators, &mut scenario.requests] {
            let Some(Initiators::Listed(listed)) = listed else { continue };
            for initiator in listed.iter_mut() {
                let (Initiator::AtOnce(id) | Initiator::At { member: id, .. }) = initiator;
                *id = self.starter(NodeId(*id), &scenario.dead).0;
            }
            let mut seen = Vec::new();
            listed.retain(|it| {
                !seen.contains(it) && {
                    seen.push(it.clone());
                    true
                }
            });
        }
        // The same number of voters, if there are that many members, and a majority of them.
        scenario.voters = scenario.voters.map(|voters| voters.min(self.count as u32));
        scenario.votes = scenario.votes.filter(|_| self.count >= self.old.len());
        scenario.sets = scenario.sets.filter(|sets| sets.suits(self.count).is_ok());
        for link in &mut scenario.link {
            link.from.iter_mut().chain(&mut link.to).for_each(|id| *id = self.moved(*id));
        }
        for fault in &mut scenario.fault {
            match &mut fault.what {
                Action::Partition { groups, old } => {
                    self.part(groups);
                    old.clear();
                }
                _ => fault.members_mut().into_iter().for_each(|(_, id)| *id = self.moved(*id)),
            }
        }
        // Two members that have become one have no link between them.
        scenario.link.retain(|link| link.from.is_none() || link.from != link.to);
        scenario.fault.retain(|fault| match &fault.what {
            Action::Cut { from, to } | Action::Mend { from, to } => from != to,
            _ => true,
        });
        let drop = scenario.drop.iter_mut();
        let late = scenario.late.iter_mut().map(|late| &mut late.message);
        let twice = scenario.twice.iter_mut().map(|twice| &mut twice.message);
        for message in drop.chain(late).chain(twice) {
            (message.from, message.to) = (self.moved(message.from), self.moved(message.to));
        }
        scenario.drop.retain(|message| message.from != message.to);
        scenario.late.retain(|late| late.message.from != late.message.to);
        scenario.twice.retain(|twice| twice.message.from != twice.message.to);
        if let Some(quorum) = &mut scenario.quorum {
            distinct(&mut quorum.witnesses);
            distinct(&mut quorum.reluctant);
        }
    }

    /// Every group keeps its share of the members.
    fn part(&self, groups: &mut [Vec<NodeId>]) {
        let side = |place: usize| {
            let was = self.old.at(place * self.old.len() / self.count);
            groups.iter().position(|group| group.contains(&was))
        };
        let sides: Vec<Option<usize>> = (0..self.count).map(side).collect();
        groups.iter_mut().for_each(Vec::clear);
        for (place, side) in sides.into_iter().enumerate() {
            if let Some(side) = side {
                groups[side].push(self.id(place));
            }
        }
    }
}
