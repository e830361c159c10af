//! Changes of leadership as views alone tell them.
//!
//! The quorum gives a reason with every change. The sources' algorithms say whom they hold for the leader and no more; so
//! that their operators have a history as well, it is read off one view after the other.

use doyen_core::change::{ElectionReason, LeaderChange, StepDownReason};
use doyen_core::members::{NodeId, Term};
use doyen_core::protocol::View;

/// What a member last held to be so.
#[derive(Debug)]
pub(super) struct Chronicle {
    me: NodeId,
    /// Whom it held for the leader, and in which term.
    before: (Option<NodeId>, Term),
    /// Who led last, as far as it knows.
    led_last: Option<NodeId>,
}

impl Chronicle {
    /// Nothing has happened yet.
    pub(super) fn new(me: NodeId) -> Self {
        Self { me, before: (None, Term::default()), led_last: None }
    }

    /// What has changed now that `view` holds: how the last leadership ended, then how the next began.
    pub(super) fn changes(&mut self, view: View) -> impl Iterator<Item = LeaderChange> + use<> {
        let (before, term) = std::mem::replace(&mut self.before, (view.leader, view.term));
        if before == view.leader {
            return [None, None].into_iter().flatten();
        }
        let ended = before.and_then(|leader| match view.leader {
            None if leader == self.me => {
                Some(LeaderChange::SteppedDown { term, reason: StepDownReason::Contested })
            }
            Some(to) if leader == self.me => {
                Some(LeaderChange::SteppedDown { term, reason: StepDownReason::GaveWay { to } })
            }
            None => Some(LeaderChange::ElectionStarted { leader, term }),
            Some(_) => None,
        });
        let begun = view.leader.map(|leader| {
            let after = self.led_last.replace(leader).filter(|&last| last != leader);
            let (term, reason) = (view.term, ElectionReason::Elected { after });
            match leader == self.me {
                true => LeaderChange::BecameLeader { term, reason },
                false => LeaderChange::Follows { leader, term, reason },
            }
        });
        [ended, begun].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doyen_core::protocol::Role;

    /// The changes that a member with the id 2 tells of when it holds these for the leader, one after the other.
    fn told(leaders: &[Option<u32>]) -> Vec<String> {
        let mut chronicle = Chronicle::new(NodeId(2));
        let views = (1..).zip(leaders).map(|(term, leader)| View {
            leader: leader.map(NodeId),
            term: Term(term),
            role: Role::Follower,
        });
        views.flat_map(|view| chronicle.changes(view)).map(|change| change.to_string()).collect()
    }

    #[test]
    fn who_follows_tells_of_the_old_leader_and_of_the_new() {
        assert_eq!(
            told(&[None, Some(3), Some(3), None, Some(1), Some(3)]),
            [
                "follows 3 (term 2): elected; no previous leader known",
                "election in progress; the last leader was 3 (term 3)",
                "follows 1 (term 5): elected after 3 lost leadership",
                "follows 3 (term 6): elected after 1 lost leadership",
            ]
        );
    }

    #[test]
    fn who_leads_tells_how_it_came_and_went() {
        assert_eq!(
            told(&[Some(3), None, Some(2), Some(3), Some(2), None]),
            [
                "follows 3 (term 1): elected; no previous leader known",
                "election in progress; the last leader was 3 (term 1)",
                "became leader (term 3): elected after 3 lost leadership",
                "stepped down (term 3): 3 is the new leader",
                "follows 3 (term 4): elected after 2 lost leadership",
                "became leader (term 5): elected after 3 lost leadership",
                "stepped down (term 5): an election is in progress",
            ]
        );
    }
}
