//! Pause: for a time that the operator gives, no member campaigns.
//!
//! An operator who takes switches or machines apart wants leadership to stay where it is, and to be given up rather than
//! moved. While elections are paused, no member campaigns and none asks to take over, except for one case: a leader has
//! transferred leadership. Then its successor campaigns, as often as it takes; if it does not win, because the message that
//! names it is lost, say, the others campaign by their turns, and the old leader after them. So `transfer`, `resign`, `drain`
//! and a planned shutdown work as ever.
//!
//! Nothing else changes. Leases are renewed and end as ever. A leader whose lease lapses may renew it in the same term, and
//! because no other member could replace it, it asks for that until the pause is over, however long it was cut off. If the
//! leader dies, its guardian releases the lease, and there is no leader until the pause is over. (Patroni's pause is another
//! thing: there a primary continues without its lock.)
//!
//! **A pause needs no leader.** Any member accepts the command, since ending a pause matters most when there is no leader.
//! Every pause has a number, which is higher than that of any pause its member knows of, and the id of that member, which
//! orders two pauses of one number. To resume is a pause of no time, with a number of its own. Every message carries the
//! latest pause that its sender knows, even one that is over, and the receiver takes over what is later. So a member that
//! missed the end of a pause learns of it with the first message from any member that did not, and a message that is late
//! changes nothing.
//!
//! **What holds.** A member stores a pause before it sends anything that depends on it, and campaigns only when it has
//! stored that the pause is over (`Invariant::PausesKept`). Votes and answers to pre-votes carry the pause too, so a
//! candidate that has not heard of it stops as soon as one of its voters has: once a majority knows of a pause, an election
//! that begins later has no winner. A member that is cut off from all members that know of the pause does not keep it,
//! and need not: no majority knows of it then, or that member is not elected.
//!
//! **Time.** A message carries the length that is left, never a time of day. Every member counts it down by itself, in
//! steps of [`STEP`], each of which it stores: a restart prolongs a pause by one step at most. Of two lengths of the same
//! pause the shorter counts, so the member whose clock is fastest ends the pause for all.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::config::rules::Rule;
use crate::members::{NodeId, Term};
use crate::protocol::{Notice, Refusal};
use crate::time::Span;

use super::{Cx, Quorum, Timer};

/// A pause of elections, as members store it and messages carry it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Pause {
    /// Its number, and the member that accepted the command: later pauses win.
    pub given: (u64, NodeId),
    /// The time that is left; zero if it is over.
    pub left: Span,
}

/// A pause is counted down in steps of this length.
const STEP: Span = Span::from_millis(10_000);

impl Pause {
    fn is_over(self) -> bool {
        self.left == Span::ZERO
    }

    /// Whether it replaces `known`: it is later, or less of the same one is left.
    fn replaces(self, known: Option<Self>) -> bool {
        known.is_none_or(|known| match self.given == known.given {
            true => self.left < known.left,
            false => self.given > known.given,
        })
    }

    /// The length of the step that its timer counts.
    pub fn step(self) -> Span {
        self.left.min(STEP)
    }
}

impl Quorum {
    /// The latest pause, over or not: what every message carries.
    pub(super) fn latest_pause(&self) -> Option<Pause> {
        self.ballot.stored().pause
    }

    /// Whether elections are paused, as far as this member knows.
    pub(super) fn is_paused(&self) -> bool {
        self.latest_pause().is_some_and(|pause| !pause.is_over())
    }

    /// Whether a pause keeps it from campaigning. `released`: the term whose leader chose it as successor.
    pub(super) fn is_held(&self, config: &Config, released: Option<Term>) -> bool {
        let transferred = released.or(self.search.successor_of).or(self.search.transferred());
        self.is_irreplaceable(config) && transferred.is_none()
    }

    /// Whether a pause keeps all others from replacing a leader that does not transfer leadership.
    pub(super) fn is_irreplaceable(&self, config: &Config) -> bool {
        self.is_paused() && config.quorum.keeps(Rule::PauseHolds)
    }

    /// The operator pauses elections for this time, or ends a pause if it is zero.
    pub(super) fn pause(&mut self, left: Span, cx: &mut Cx<'_>) -> Result<(), Refusal> {
        if self.recovery.is_rejoining() {
            return Err(Refusal::Rejoining); // it has nothing yet that it may store
        }
        if left == Span::ZERO && !self.is_paused() {
            return Err(Refusal::NotPaused);
        }
        let number = self.latest_pause().map_or(0, |pause| pause.given.0);
        self.take_over(Pause { given: (number.saturating_add(1), self.id), left }, cx);
        self.spread_pause(cx);
        Ok(())
    }

    /// A message carries this pause.
    pub(super) fn hear_pause(&mut self, heard: Option<Pause>, cx: &mut Cx<'_>) {
        let known = self.latest_pause();
        let Some(heard) = heard.filter(|_| heard != known) else { return };
        let counts = heard.replaces(known) || !cx.config.quorum.keeps(Rule::LaterPauseWins);
        // A member that rejoins has nothing yet that it may store; the next messages carry the pause again.
        let may_store = !self.recovery.is_rejoining();
        if counts && may_store && cx.config.members.contains(heard.given.1) {
            self.take_over(heard, cx);
        }
    }

    /// A step of the pause has passed.
    pub(super) fn on_pause_step(&mut self, cx: &mut Cx<'_>) {
        let Some(pause) = self.latest_pause() else { return };
        let left = pause.left.as_nanos() - pause.step().as_nanos();
        self.take_over(Pause { left: Span::from_nanos(left), ..pause }, cx);
    }

    /// From now on this is the latest pause.
    fn take_over(&mut self, pause: Pause, cx: &mut Cx<'_>) {
        let (before, was_paused) = (self.latest_pause(), self.is_paused());
        let is_new = before.is_none_or(|before| before.given != pause.given);
        if is_new || was_paused && pause.is_over() {
            cx.rule("Q17");
        }
        self.ballot.stored_mut().pause = Some(pause);
        self.store(cx);
        self.count_down(cx);
        if !pause.is_over() {
            if is_new {
                cx.inform(Notice::Paused { by: pause.given.1, left: pause.left });
            }
            self.hold(cx);
        } else if was_paused {
            cx.inform(Notice::Resumed { by: is_new.then_some(pause.given.1) });
            self.consider_takeover(cx);
            self.await_turn(cx);
        }
    }

    /// Arms the timer of the next step, if elections are paused. After a restart the pause continues.
    pub(super) fn count_down(&mut self, cx: &mut Cx<'_>) {
        match self.latest_pause().filter(|pause| !pause.is_over()) {
            Some(pause) => cx.set_timer(Timer::Pause, pause.step()),
            None => cx.cancel_timer(Timer::Pause),
        }
    }

    /// Stops what a pause forbids.
    pub(super) fn hold(&mut self, cx: &mut Cx<'_>) {
        if self.is_held(cx.config, None) {
            self.stop_campaign(cx);
            self.stop_takeover(cx);
        }
    }

    /// Tells all members now: the leader by a heartbeat, which they acknowledge, any other member by a probe.
    fn spread_pause(&mut self, cx: &mut Cx<'_>) {
        if self.leads() {
            return self.send_heartbeat_if_acknowledged(cx);
        }
        self.broadcast(&self.probe(cx.config), cx);
    }
}
