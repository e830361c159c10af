//! Greetings: asking, answering, and the limits of both. The rules are those in [`session`](super).

use std::net::SocketAddr;
use std::num::NonZeroU64;

use crate::config::rules::{Rule, Rules};
use crate::members::{Incarnation, NodeId, SessionId};
use crate::protocol::{Dropped, Notice, Protocol};

use super::letter::{Challenge, Content, Greeting, Met};
use super::peer::{Arrival, PING};
use super::places::{PROMPT, Prompter};
use super::{Cx, Envelope, Session, Stage, Timer, explore};

impl<P: Protocol> Session<P> {
    pub(super) fn greet_all(&mut self, cx: &mut Cx<'_, P>) {
        if matches!(self.stage, Stage::Halted) {
            return;
        }
        for peer in cx.config.members.others(self.id) {
            self.greet(peer, cx);
        }
    }

    /// S7: asks a peer, where it was met and, if it did not answer the last time, at the address of its configured
    /// name.
    pub(super) fn greet(&mut self, to: NodeId, cx: &mut Cx<'_, P>) {
        if !cx.config.background {
            return self.say(to, None, None, (Some(explore::QUESTION), None), cx);
        }
        let Some(peer) = self.peers.get_mut(&to) else { return };
        let open = if peer.encounter.is_some() { &mut peer.ping } else { &mut peer.question };
        let ask = *open.get_or_insert_with(|| next_question(&mut self.questions));
        let met = peer.encounter.as_ref().map(|met| (met.met.session, met.address));
        let by_name_too = peer.is_unanswered() && met.is_some_and(|(_, at)| at.is_some());
        let wait = peer.greeted(cx.config.repeat());
        let (known, at) = met.map_or((None, None), |(session, at)| (Some(session), at));
        self.say(to, known, at, (Some(ask), None), cx);
        if by_name_too {
            self.say(to, known, None, (Some(ask), None), cx);
        }
        cx.out.set_timer(Timer::Greet(to), wait);
    }

    /// Sends a greeting.
    fn say(
        &mut self,
        to: NodeId,
        known: Option<SessionId>,
        at: Option<SocketAddr>,
        (ask, answer): (Option<Challenge>, Option<Challenge>),
        cx: &mut Cx<'_, P>,
    ) {
        let stored =
            self.kept.roster.get(to).filter(|met| known.is_some_and(|it| it != met.session));
        let greeting = Greeting {
            ask,
            answer,
            incarnation: self.incarnation(),
            seen: stored.map(|met| met.incarnation).unwrap_or_default(),
            wants_roster: self.wants_roster(to),
        };
        self.post(to, known, at, Content::Greeting(greeting), cx);
    }

    pub(super) fn wants_roster(&self, of: NodeId) -> bool {
        self.stage.answered().is_some_and(|answered| !answered.contains(of))
    }

    pub(super) fn on_greeting(
        &mut self,
        envelope: Envelope,
        greeting: Greeting,
        cx: &mut Cx<'_, P>,
    ) {
        let Envelope { from, at, session, .. } = envelope;
        let for_me = self.is_for_me(envelope);
        if for_me && self.is_refused(greeting.seen) {
            if !cx.config.background {
                return;
            }
            // It was sent to this session, so it is valid whenever it arrives.
            return self.halt(greeting.seen, from, cx);
        }
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let is_met = peer.has_met(session);
        let asked = match (is_met, cx.config.background) {
            (true, _) => peer.ping,
            (false, true) => peer.question,
            (false, false) => Some(explore::QUESTION),
        };
        let for_its_session = for_me || !cx.config.rules.keeps(Rule::AnswerIsForItsSession);
        let answers_there = for_its_session && peer.places.close(session, at, greeting.answer);
        let answers = answers_there || for_me && asked.is_some() && greeting.answer == asked;
        if !is_met {
            let met = Met { incarnation: greeting.incarnation, session };
            let proven = answers || !cx.config.rules.keeps(Rule::ProvenSession);
            if !proven || !self.may_meet(from, met, cx.config.rules) {
                return self.on_unmet(envelope, greeting, answers, cx);
            }
            self.meet(from, met, cx);
        }
        if let (true, Some(peer)) = (answers_there, self.peers.get_mut(&from)) {
            peer.move_to(at);
        }
        if cx.config.background && !self.accept(envelope, cx) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&from) else { return };
        if answers {
            peer.answered();
            if cx.config.background {
                let next = if self.wants_roster(from) { cx.config.repeat() } else { PING };
                cx.out.set_timer(Timer::Greet(from), next);
            }
        }
        if greeting.ask.is_some() {
            self.say(from, Some(session), at, (None, greeting.ask), cx);
        }
        if greeting.wants_roster && for_me {
            self.post(from, Some(session), at, Content::Roster(self.kept.roster.clone()), cx);
        }
    }

    /// S5, S6, J1: a greeting from a session that has not been met, and that this greeting does not make met.
    fn on_unmet(
        &mut self,
        envelope: Envelope,
        greeting: Greeting,
        answers: bool,
        cx: &mut Cx<'_, P>,
    ) {
        let Envelope { from, at, session, .. } = envelope;
        let has_lost = greeting.incarnation == Incarnation::default();
        let has_roster = !matches!(self.stage, Stage::Asking { .. });
        if answers && has_lost && greeting.wants_roster && has_roster {
            if let Some(peer) = self.peers.get_mut(&from) {
                peer.question = None;
            }
            let roster = Content::Roster(self.kept.roster.clone());
            return self.post(from, Some(session), at, roster, cx);
        }
        if greeting.ask.is_none() {
            return cx.inform(Notice::Dropped { from, why: Dropped::Session });
        }
        let by = self.prompter(envelope, Some(greeting.incarnation), cx.config.rules);
        if !self.has_prompt_left(from, by, cx) {
            return cx.inform(Notice::Dropped { from, why: Dropped::Limited });
        }
        let met = Met { incarnation: greeting.incarnation, session };
        // A process that asks for rosters meets no session yet. But if a member's configured name does not lead to it,
        // its own question may be the only way to find it.
        let is_wanted = !has_roster && self.wants_roster(from) && by != Prompter::Obsolete;
        if has_lost && !has_roster && answers {
            // Neither has a roster for the other. Asking again at once would never end.
            return self.say(from, Some(session), at, (None, greeting.ask), cx);
        }
        if has_lost || is_wanted || self.may_meet(from, met, cx.config.rules) {
            return self.answer_and_ask(envelope, by, greeting.ask, cx);
        }
        self.say(from, Some(session), at, (None, greeting.ask), cx);
        if has_roster {
            // An earlier process, or a copy.
            cx.inform(Notice::Dropped { from, why: Dropped::Session });
        }
    }

    /// Asks the sender, if that is possible where it is, and answers its question, if there was one.
    pub(super) fn answer_and_ask(
        &mut self,
        envelope: Envelope,
        by: Prompter,
        answer: Option<Challenge>,
        cx: &mut Cx<'_, P>,
    ) {
        let Envelope { from, at, session, .. } = envelope;
        if !cx.config.background {
            return self.say(from, Some(session), at, (None, answer), cx);
        }
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let ask = match at {
            None => {
                let new = || next_question(&mut self.questions);
                Some(*peer.question.get_or_insert_with(new))
            }
            Some(_) => self.question_at(envelope, by, cx),
        };
        self.say(from, Some(session), at, (ask, answer), cx);
    }

    /// S10: the open question to the sender of a letter where it came from; none if no more may be open.
    fn question_at(
        &mut self,
        envelope: Envelope,
        by: Prompter,
        cx: &mut Cx<'_, P>,
    ) -> Option<Challenge> {
        let Envelope { from, at, session, .. } = envelope;
        let peer = self.peers.get_mut(&from)?;
        let is_first = peer.places.is_empty();
        let new = || next_question(&mut self.questions);
        let ask = peer.places.question(by, session, at, new)?;
        if is_first {
            cx.out.set_timer(Timer::Close(from), cx.config.repeat() * 2);
        }
        Some(ask)
    }

    /// S10: closes the questions that have been open for two round trips.
    pub(super) fn close_old_questions(&mut self, of: NodeId, cx: &mut Cx<'_, P>) {
        let Some(peer) = self.peers.get_mut(&of) else { return };
        peer.places.age();
        if !peer.places.is_empty() {
            cx.out.set_timer(Timer::Close(of), cx.config.repeat() * 2);
        }
    }

    /// S2, S4: records a letter of the met session; `false` if it was received before. S10: asks where it came from, if
    /// that is not where the messages to it go.
    pub(super) fn accept(&mut self, envelope: Envelope, cx: &mut Cx<'_, P>) -> bool {
        let Envelope { from, at, session, counter, .. } = envelope;
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        match peer.accept(at, counter) {
            Arrival::FromElsewhere if !cx.config.rules.keeps(Rule::AddressIsProven) => {
                peer.move_to(at);
                true
            }
            Arrival::Fresh => true,
            Arrival::Replayed => {
                cx.inform(Notice::Dropped { from, why: Dropped::Replayed });
                false
            }
            Arrival::FromElsewhere => {
                let by = kind(Prompter::Roaming, cx.config.rules);
                if self.has_prompt_left(from, by, cx)
                    && let Some(ask) = self.question_at(envelope, by, cx)
                {
                    self.say(from, Some(session), at, (Some(ask), None), cx);
                }
                true
            }
        }
    }

    /// S6: what a letter from a session that is not met looks like. `incarnation`: what it states, if it does.
    pub(super) fn prompter(
        &self,
        by: Envelope,
        incarnation: Option<Incarnation>,
        rules: Rules,
    ) -> Prompter {
        let Envelope { from, at, session, .. } = by;
        let is_stateless = incarnation == Some(Incarnation::default());
        let may_count = match incarnation {
            Some(incarnation) => {
                is_stateless || self.is_latest(from, Met { incarnation, session }, rules)
            }
            None => self.kept.roster.get(from).is_none_or(|last| last.session == session),
        };
        let is_expected = self.peers.get(&from).is_some_and(|peer| peer.is_expected_at(at));
        let by = match (may_count, is_stateless, is_expected) {
            (false, ..) => Prompter::Obsolete,
            (true, false, true) => Prompter::Expected,
            (true, false, false) => Prompter::Elsewhere,
            (true, true, true) => Prompter::Stateless,
            (true, true, false) => Prompter::StatelessElsewhere,
        };
        kind(by, rules)
    }

    /// S6: takes one of the answers that are left in this period.
    pub(super) fn has_prompt_left(
        &mut self,
        from: NodeId,
        by: Prompter,
        cx: &mut Cx<'_, P>,
    ) -> bool {
        if !cx.config.background || !cx.config.rules.keeps(Rule::AnswersAreLimited) {
            return true;
        }
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        if peer.prompts.is_empty() {
            cx.out.set_timer(Timer::Prompt(from), PROMPT);
        }
        peer.prompts.take(by)
    }
}

/// S6: the kind whose answers and questions a letter uses up.
fn kind(by: Prompter, rules: Rules) -> Prompter {
    if rules.keeps(Rule::PromptersApart) { by } else { Prompter::Expected }
}

/// A question that this session has not asked before.
fn next_question(questions: &mut u64) -> Challenge {
    *questions += 1;
    Challenge(NonZeroU64::new(*questions).unwrap_or(NonZeroU64::MAX))
}
