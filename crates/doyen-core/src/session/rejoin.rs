//! Rejoining: how a process that has lost its state becomes its member.
//!
//! Such a process does not know which incarnations there have been. It rejoins in two rounds:
//!
//! - **J1, asking.** It greets with incarnation zero, which is never met, and asks every other member for its
//!   **roster**: what that member has stored about all members. A roster goes only to a session that has answered a
//!   question, so a replayed letter never gets one. When every other member has sent its roster, the process takes over
//!   their entries, chooses an incarnation above all that they state for it and not below the time of day in seconds,
//!   and stores both.
//! - **J2, confirming.** It greets with that incarnation, and asks every other member once more. It counts only a
//!   roster that contains this process, with this incarnation in this session: then that member has stored it, and
//!   accepts no earlier process any more. It takes over the entries of these rosters as well: if a second member is
//!   being replaced at the same time, one of the members that store both tells the later of the two about the other.
//!
//! Only then the protocol above starts, with [`Origin::Rejoining`]; after a restart before it has stored something, the
//! process begins with J2. So no message of the new process counts beside one of an earlier process. That needs a third
//! member: of two members, only the other one knows which process was replaced. If that one is replaced as well, or
//! merely loses its disk, while the old process of the first still runs, it can find that old process and take it for
//! the member. No rule can distinguish these cases; an operator must make sure that a replaced machine stays off.
//!
//! Members that run an earlier version of the node do not know rosters; no member can rejoin while such members run.

use crate::config::rules::Rule;
use crate::members::{Incarnation, PeerSet};
use crate::protocol::{Dropped, Notice, Origin, Protocol};

use super::letter::{Met, Roster};
use super::{Cx, Envelope, PLAUSIBLE_TIMES, Session, Stage};

impl<P: Protocol> Session<P> {
    /// J1.
    pub(super) fn begin_asking(
        &mut self,
        lowest: Incarnation,
        time_of_day: u32,
        cx: &mut Cx<'_, P>,
    ) {
        cx.rule("J1");
        self.stage = match PLAUSIBLE_TIMES.contains(&time_of_day) {
            true => Stage::Asking { lowest, answered: PeerSet::new() },
            false => {
                cx.inform(Notice::WrongClock);
                Stage::Halted
            }
        };
    }

    /// J1, J2: what a member has stored about all members.
    pub(super) fn on_roster(&mut self, envelope: Envelope, roster: &Roster, cx: &mut Cx<'_, P>) {
        let from = envelope.from;
        if !self.is_for_me(envelope) {
            return cx.inform(Notice::Dropped { from, why: Dropped::Session });
        }
        let of_me = roster.get(self.id);
        let seen = of_me.filter(|met| met.session != self.session);
        if seen.is_some_and(|met| self.is_refused(met.incarnation)) {
            if !cx.config.background {
                return;
            }
            return self.halt(seen.map(|met| met.incarnation).unwrap_or_default(), from, cx);
        }
        match &mut self.stage {
            Stage::Asking { lowest, answered } => {
                answered.insert(from);
                let above = of_me.map_or(0, |met| met.incarnation.0.saturating_add(1));
                *lowest = (*lowest).max(Incarnation(above));
                self.take_over(roster, cx);
                self.end_asking(cx);
            }
            Stage::Confirming { answered } => {
                let is_met = self.peers.get(&from).is_some_and(|it| it.has_met(envelope.session));
                let mine = Met { incarnation: self.kept.incarnation, session: self.session };
                if is_met && of_me == Some(mine) {
                    answered.insert(from);
                    self.take_over(roster, cx);
                    self.confirm(cx);
                }
            }
            Stage::Running(_) | Stage::Halted => {}
        }
    }

    /// Counts as met what others have met. Knowledge of a later process rules out all earlier ones.
    fn take_over(&mut self, roster: &Roster, cx: &mut Cx<'_, P>) {
        if !cx.config.rules.keeps(Rule::RejoinTakesOver) {
            return;
        }
        let mut changed = false;
        for (id, met) in roster.iter() {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            let later = |last: Met| met.incarnation > last.incarnation;
            if !self.kept.roster.get(id).is_none_or(later) {
                continue;
            }
            self.kept.roster.insert(id, met);
            changed = true;
            if peer.encounter.take_if(|encounter| encounter.met != met).is_some()
                && let Stage::Confirming { answered } = &mut self.stage
            {
                answered.remove(id);
            }
        }
        if changed && matches!(self.stage, Stage::Confirming { .. }) {
            self.presume(cx.config);
            cx.persist(self.kept.clone());
        }
    }

    /// J1: all members have answered.
    pub(super) fn end_asking(&mut self, cx: &mut Cx<'_, P>) {
        let Stage::Asking { lowest, answered } = &self.stage else { return };
        if answered.len() < self.peers.len() {
            return;
        }
        cx.rule("J1");
        self.kept.incarnation = *lowest;
        self.stage = Stage::Confirming { answered: PeerSet::new() };
        self.presume(cx.config);
        cx.persist(self.kept.clone());
        self.greet_all(cx);
        self.confirm(cx);
    }

    /// J2: all members have stored this incarnation.
    pub(super) fn confirm(&mut self, cx: &mut Cx<'_, P>) {
        let Stage::Confirming { answered } = &self.stage else { return };
        let needed = match cx.config.rules.keeps(Rule::RejoinIsConfirmed) {
            true => self.peers.len(),
            false => 0,
        };
        if answered.len() >= needed {
            cx.rule("J2");
            self.begin_running(Origin::Rejoining, cx);
        }
    }
}
