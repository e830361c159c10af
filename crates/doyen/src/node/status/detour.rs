//! A link that is missing only here: a member that other members reach, and this node does not, or in one direction only.

use super::{MemberStatus, Status};

/// What a node knows of a member with which it cannot exchange messages, though others can.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Detour {
    /// What is wrong, as text about that member: `is reached by n1, but not by n2`.
    pub problem: String,
    /// What mends it, as text.
    pub fix: String,
    /// The names of the members to ask instead: they and the member reach each other.
    pub via: Vec<String>,
}

impl Detour {
    /// As text: what mends it, and where to run this command until then.
    pub fn advice(&self) -> String {
        match self.via.as_slice() {
            [] => self.fix.clone(),
            via => format!("{}, or run this on {}", self.fix, via.join(" or ")),
        }
    }
}

impl Status {
    /// The members that this node reaches, and that report that they reach `member`. None until they have had time to notice
    /// if it has died.
    pub fn reached_by(&self, member: &MemberStatus) -> Vec<&MemberStatus> {
        if member.unreachable_ms.is_some_and(|lasting| lasting <= self.learns_within_ms) {
            return Vec::new();
        }
        let others = self.members.iter().filter(|it| ![self.id, member.id].contains(&it.id));
        others.filter(|it| self.reaches(it, member) == Some(true)).collect()
    }

    /// The leader that this node lost and others still reach, unless it is known to lead no longer: then a leader is missing
    /// only here.
    pub fn leader_elsewhere(&self) -> Option<&MemberStatus> {
        let last = self.last_leader.as_ref().filter(|last| last.lost.is_none())?;
        let leader = self.member(last.member).filter(|it| it.id != self.id)?;
        let leader = self.leader.is_none().then_some(leader)?;
        (!self.reached_by(leader).is_empty()).then_some(leader)
    }

    /// As text: that others still reach the leader that this node lost, and what to do. None if a leader is not missing only
    /// here.
    pub fn leader_is_elsewhere(&self) -> Option<(String, Detour)> {
        let leader = self.leader_elsewhere()?;
        let detour = self.detour(leader).filter(|detour| !detour.via.is_empty())?;
        let problem =
            format!("{} led when last heard, and {}", leader.name, still_reach(&detour.via));
        Some((problem, detour))
    }

    /// How to reach a member with which this node cannot exchange messages, and others can. None if nothing is known of that.
    pub fn detour(&self, member: &MemberStatus) -> Option<Detour> {
        let own = self.member(self.id).filter(|own| own.id != member.id)?;
        let (us, name, address) = (&own.name, &member.name, &member.address);
        let reaching = self.reached_by(member).into_iter();
        let both_ways = reaching.filter(|it| self.reaches(member, it) != Some(false));
        let via: Vec<String> = both_ways.map(|it| it.name.clone()).collect();
        if member.reachable || member.arrives {
            let is_one_way = member.arrives || self.reaches(member, own) == Some(false);
            return is_one_way.then(|| Detour {
                problem: format!("receives nothing from {us}, which receives from it"),
                fix: format!(
                    "let UDP from {us} to {name} ({address}) pass, or give {name} the key with which {us} seals"
                ),
                via,
            });
        }
        (!via.is_empty() && member.rejected_for().is_none()).then(|| Detour {
            problem: format!("is reached by {}, but not by {us}", via.join(" and ")),
            fix: format!("let UDP between {us} and {name} ({address}) pass"),
            via,
        })
    }
}

/// `n1 still reaches it`.
pub fn still_reach(names: &[String]) -> String {
    let verb = if names.len() == 1 { "reaches" } else { "reach" };
    format!("{} still {verb} it", names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;

    /// What n1 knows of n3, which it has not reached for so long, while n2 does not report that it does not reach it.
    fn detour(unreachable_ms: u64) -> Option<String> {
        let member = |id: u32| format!("[[member]]\nid = {id}\naddress = \"127.0.0.1:740{id}\"\n");
        let members: String = (1..=3).map(member).collect();
        let text = format!("cluster = \"x\"\nid = 1\nstate_dir = \"s\"\n{members}");
        let settings = Configuration::parse("a test", &text).expect("it is sound").settings;
        let mut status = Status::initial(&settings);
        let [_, second, third] = &mut status.members[..] else { panic!("{status:?}") };
        (second.reachable, second.unreachable) = (true, Some(Vec::new()));
        (third.unreachable_ms, status.learns_within_ms) = (Some(unreachable_ms), 4000);
        status.detour(&status.members[2]).map(|detour| detour.problem)
    }

    #[test]
    fn a_link_is_missing_only_here_if_the_others_have_had_time_to_notice() {
        assert_eq!(detour(4000), None, "n3 may have died");
        assert_eq!(detour(4001).as_deref(), Some("is reached by n2, but not by n1"));
    }
}
