//! The client's half: when it may rely on a lock, and what it shows the leader.
//!
//! One client makes one claim at a time. Calls may be lost, answers may be late or for an earlier call: only the timer of the
//! call that an answer belongs to says how long the answer is worth something.

use std::collections::BTreeSet;

use super::{Answer, Call, ClaimId, Config, Request, Round, Rule, Ticket, Verdict};
use crate::members::Term;
use crate::protocol::{Fence, Section};
use crate::time::Span;

/// An input of a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A program wants the lock, under a new claim. It asks only while the client is outside.
    Request(ClaimId),
    /// Everything that ran under the lock has stopped, or the program does not wait any longer.
    Exit,
    /// An armed timer fired.
    Timer(Timer),
    /// The leader answers. The answer of a member that does not lead does not count.
    Answer(Answer),
}

/// A timer of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of what an answer to this call can give.
    Hold(Round),
    /// The time for the next call.
    Keep,
}

/// An output of a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Send this to the leader.
    Call(Call),
    /// Arm a timer.
    SetTimer {
        /// The timer.
        timer: Timer,
        /// How long it waits.
        after: Span,
    },
    /// Disarm a timer.
    CancelTimer(Timer),
    /// It is now here with respect to the lock. A barrier, as in the contract.
    Announce(Section),
}

/// The state of a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Client {
    state: State,
    /// The highest term in which it was answered.
    term: Term,
    round: Round,
    /// The calls whose answers are still worth something.
    armed: BTreeSet<Round>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
enum State {
    #[default]
    Outside,
    Waiting {
        claim: ClaimId,
        ticket: Option<Ticket>,
    },
    Inside {
        claim: ClaimId,
        fence: Fence,
        /// The call whose timer ends the stay.
        hold: Round,
    },
}

impl Client {
    /// Where it is with respect to the lock.
    pub fn section(&self) -> Section {
        match self.state {
            State::Outside => Section::Outside,
            State::Waiting { .. } => Section::Waiting,
            State::Inside { fence, .. } => Section::Inside(fence),
        }
    }

    /// The armed timer whose firing ends its stay, while it holds the lock.
    pub fn hold(&self) -> Option<Round> {
        match self.state {
            State::Inside { hold, .. } => Some(hold),
            State::Outside | State::Waiting { .. } => None,
        }
    }

    /// The calls whose answers are still worth something: those with an armed timer.
    pub fn armed(&self) -> &BTreeSet<Round> {
        &self.armed
    }

    /// Its last call.
    pub fn round(&self) -> Round {
        self.round
    }

    /// The highest term in which it was answered.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The claim that it makes.
    pub fn claim(&self) -> Option<ClaimId> {
        match self.state {
            State::Outside => None,
            State::Waiting { claim, .. } | State::Inside { claim, .. } => Some(claim),
        }
    }

    /// Gives its next call at least this number: a host that makes the calls of several clients at once gives them one.
    pub fn number_next(&mut self, round: Round) {
        self.round = self.round.max(Round(round.0.saturating_sub(1)));
    }

    /// Handles one event.
    pub fn handle(&mut self, config: &Config, event: Event, out: &mut Vec<Effect>) {
        let before = self.section();
        match event {
            Event::Request(claim) if self.state == State::Outside => {
                self.state = State::Waiting { claim, ticket: None };
                self.call(config, out);
            }
            Event::Request(_) => {}
            Event::Exit => self.exit(out),
            Event::Timer(Timer::Keep) => self.call(config, out),
            Event::Timer(Timer::Hold(round)) => self.on_hold(round, out),
            Event::Answer(answer) => self.on_answer(config, &answer, out),
        }
        let section = self.section();
        if section != before {
            // Before any call says so.
            out.insert(0, Effect::Announce(section));
        }
    }

    /// G1, G4: what it holds or waits for, under a new round.
    fn call(&mut self, config: &Config, out: &mut Vec<Effect>) {
        let (claim, request) = match self.state {
            State::Outside => return,
            State::Waiting { claim, ticket } => (claim, Request::Acquire { ticket }),
            State::Inside { claim, fence, .. } => (claim, Request::Keep { fence }),
        };
        self.round.0 += 1;
        if self.armed.len() >= config.rounds {
            let hold = self.hold();
            let oldest = self.armed.iter().copied().find(|&round| Some(round) != hold);
            oldest.into_iter().for_each(|round| self.disarm(round, out));
        }
        self.arm(config, self.round, out);
        out.push(Effect::SetTimer { timer: Timer::Keep, after: config.keep_interval() });
        out.push(Effect::Call(Call { claim, round: self.round, request }));
    }

    fn arm(&mut self, config: &Config, round: Round, out: &mut Vec<Effect>) {
        self.armed.insert(round);
        out.push(Effect::SetTimer { timer: Timer::Hold(round), after: config.lease });
    }

    fn disarm(&mut self, round: Round, out: &mut Vec<Effect>) {
        if self.armed.remove(&round) {
            out.push(Effect::CancelTimer(Timer::Hold(round)));
        }
    }

    /// G6: it neither holds nor wants the lock.
    fn exit(&mut self, out: &mut Vec<Effect>) {
        let Some(claim) = self.claim() else { return };
        self.leave(out);
        self.round.0 += 1;
        out.push(Effect::Call(Call { claim, round: self.round, request: Request::Release }));
    }

    fn leave(&mut self, out: &mut Vec<Effect>) {
        self.state = State::Outside;
        std::mem::take(&mut self.armed)
            .into_iter()
            .for_each(|round| out.push(Effect::CancelTimer(Timer::Hold(round))));
        out.push(Effect::CancelTimer(Timer::Keep));
    }

    /// G5.
    fn on_hold(&mut self, round: Round, out: &mut Vec<Effect>) {
        self.armed.remove(&round);
        if self.hold() == Some(round) {
            self.leave(out);
        }
    }

    fn on_answer(&mut self, config: &Config, answer: &Answer, out: &mut Vec<Effect>) {
        let &Answer { claim, round, term, ref verdict } = answer;
        let is_current = self.claim() == Some(claim);
        let is_earlier = term < self.term;
        if is_earlier && config.heeds(Rule::EarlierTermsRefused) {
            return;
        }
        // Without that rule it would rely on its last call, which the new leader has answered.
        let round = if is_earlier { self.round } else { round };
        self.term = self.term.max(term);
        match verdict {
            // It was given up, and the release may have been lost.
            Verdict::Held(_) if !is_current => {
                out.push(Effect::Call(Call { claim, round, request: Request::Release }));
            }
            _ if !is_current => {}
            Verdict::Held(fence) => self.on_held(config, claim, *fence, round, out),
            Verdict::Waiting { ticket, .. } => {
                if let State::Waiting { ticket: own, .. } = &mut self.state {
                    *own = Some(*ticket);
                }
            }
            Verdict::Gone if self.hold().is_some() => self.leave(out),
            Verdict::Gone | Verdict::Released | Verdict::Full(_) | Verdict::NotLeader => {}
        }
    }

    /// G3, G4: how long it holds the lock depends on the call that is answered.
    fn on_held(
        &mut self,
        config: &Config,
        claim: ClaimId,
        fence: Fence,
        round: Round,
        out: &mut Vec<Effect>,
    ) {
        let mut round = round;
        if !config.heeds(Rule::HoldFromSending) {
            self.round.0 += 1;
            round = self.round;
            self.arm(config, round, out);
        }
        let is_later = match self.state {
            State::Waiting { .. } => true,
            State::Inside { fence: own, hold, .. } => own == fence && hold < round,
            State::Outside => false,
        };
        if is_later && self.armed.contains(&round) {
            self.state = State::Inside { claim, fence, hold: round };
            let earlier: Vec<Round> = self.armed.range(..round).copied().collect();
            earlier.into_iter().for_each(|round| self.disarm(round, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: ClaimId = ClaimId(7);
    const FENCE: Fence = Fence { term: Term(1), number: 1 };

    struct Desk {
        client: Client,
        config: Config,
    }

    impl Desk {
        fn new() -> Self {
            Self { client: Client::default(), config: Config::new(100) }
        }

        fn handle(&mut self, event: Event) -> Vec<Effect> {
            let mut out = Vec::new();
            self.client.handle(&self.config, event, &mut out);
            out
        }

        fn answer(&mut self, round: u64, term: u64, verdict: Verdict) -> Vec<Effect> {
            let (round, term) = (Round(round), Term(term));
            self.handle(Event::Answer(Answer { claim: CLAIM, round, term, verdict }))
        }
    }

    #[test]
    fn the_timer_of_a_call_is_armed_before_the_call_is_sent() {
        let out = Desk::new().handle(Event::Request(CLAIM));
        assert_eq!(out[0], Effect::Announce(Section::Waiting));
        let place = |wanted: fn(&Effect) -> bool| out.iter().position(wanted);
        let armed = place(|it| matches!(it, Effect::SetTimer { timer: Timer::Hold(_), .. }));
        assert!(armed < place(|it| matches!(it, Effect::Call(_))) && armed.is_some());
    }

    #[test]
    fn a_grant_counts_until_the_timer_of_its_own_call_fires() {
        let mut desk = Desk::new();
        desk.handle(Event::Request(CLAIM));
        desk.handle(Event::Timer(Timer::Keep));
        desk.handle(Event::Timer(Timer::Hold(Round(1))));
        desk.answer(1, 1, Verdict::Held(FENCE));
        assert_eq!(desk.client.section(), Section::Waiting, "the answer is too late");
        let out = desk.answer(2, 1, Verdict::Held(FENCE));
        assert_eq!(out[0], Effect::Announce(Section::Inside(FENCE)));
        desk.handle(Event::Timer(Timer::Keep));
        desk.answer(3, 1, Verdict::Held(FENCE));
        assert_eq!(desk.client.hold(), Some(Round(3)));
        desk.answer(2, 1, Verdict::Held(FENCE));
        assert_eq!(desk.client.hold(), Some(Round(3)), "an earlier answer shortens nothing");
        let out = desk.handle(Event::Timer(Timer::Hold(Round(3))));
        assert_eq!(out[0], Effect::Announce(Section::Outside));
    }

    #[test]
    fn a_waiting_client_shows_its_ticket_and_a_holder_its_fence() {
        let mut desk = Desk::new();
        desk.handle(Event::Request(CLAIM));
        let ticket = Ticket { term: Term(1), number: 4 };
        desk.answer(1, 1, Verdict::Waiting { ticket, ahead: 2, requeued: false });
        let request = |out: Vec<Effect>| {
            out.into_iter().find_map(|effect| match effect {
                Effect::Call(call) => Some(call.request),
                _ => None,
            })
        };
        let shown = request(desk.handle(Event::Timer(Timer::Keep)));
        assert_eq!(shown, Some(Request::Acquire { ticket: Some(ticket) }));
        desk.answer(2, 1, Verdict::Held(FENCE));
        let shown = request(desk.handle(Event::Timer(Timer::Keep)));
        assert_eq!(shown, Some(Request::Keep { fence: FENCE }));
        assert_eq!(request(desk.handle(Event::Exit)), Some(Request::Release));
    }

    #[test]
    fn a_lock_that_is_gone_is_not_held_and_one_that_is_not_wanted_is_released() {
        let mut desk = Desk::new();
        desk.handle(Event::Request(CLAIM));
        desk.answer(1, 2, Verdict::Held(FENCE));
        desk.answer(1, 1, Verdict::Gone);
        assert!(desk.client.section().is_inside(), "an earlier leader does not count");
        desk.answer(1, 2, Verdict::Gone);
        assert!(desk.client.section().is_outside());
        let out = desk.answer(1, 2, Verdict::Held(FENCE));
        assert!(matches!(&out[..], [Effect::Call(Call { request: Request::Release, .. })]));
    }

    #[test]
    fn calls_that_are_never_answered_take_no_room() {
        let mut desk = Desk::new();
        desk.handle(Event::Request(CLAIM));
        for _ in 0..100 {
            desk.handle(Event::Timer(Timer::Keep));
        }
        assert_eq!(desk.client.armed().len(), desk.config.rounds);
    }
}
