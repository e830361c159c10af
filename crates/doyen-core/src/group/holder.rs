//! The member's half: one client of the lock service for each group, which call together.

use std::collections::{BTreeMap, BTreeSet};

use super::rider::{Answers, Claims, Entry};
use super::{Config, Effect, GroupId, Rule, Table, Timer};
use crate::lock::client::{self, Client};
use crate::lock::{Answer, ClaimId, Round, Verdict};
use crate::members::Term;
use crate::protocol::Section;

/// What a member holds and asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// By place in the list.
    clients: Vec<Client>,
    /// The last call.
    round: Round,
    willing: bool,
    /// The groups that it led and has left, each with the first call that says so.
    left: BTreeMap<GroupId, Round>,
    /// The groups that it has asked its host to give up.
    yielding: BTreeSet<GroupId>,
    /// The last rider of a leader.
    heard: (Term, u64),
    table: Table,
    /// The term and the version of the table.
    seen: (Term, u64),
}

impl Holder {
    pub(super) fn new(config: &Config) -> Self {
        let groups = config.groups().len();
        Self {
            clients: vec![Client::default(); groups],
            round: Round::default(),
            willing: true,
            left: BTreeMap::new(),
            yielding: BTreeSet::new(),
            heard: Default::default(),
            table: vec![None; groups],
            seen: Default::default(),
        }
    }

    pub(super) fn section(&self, group: GroupId) -> Section {
        self.clients.get(group.place()).map(Client::section).unwrap_or_default()
    }

    pub(super) fn hold(&self, group: GroupId) -> Option<Round> {
        self.clients.get(group.place()).and_then(Client::hold)
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn is_quit(&self) -> bool {
        self.left.is_empty() && self.clients.iter().all(|client| !client.section().is_inside())
    }

    /// A4: it gives up what it holds when a leader that grants has answered.
    pub(super) fn set_willing(&mut self, willing: bool) {
        self.willing = willing;
    }

    fn give_up(&mut self, group: GroupId, out: &mut Vec<Effect>) {
        if self.section(group).is_inside() && self.yielding.insert(group) {
            out.push(Effect::Yield(group));
        }
    }

    /// G1, G4: calls the leader about every group, in one round.
    pub(super) fn call(&mut self, config: &Config, term: Term, out: &mut Vec<Effect>) -> Claims {
        self.round.0 += 1;
        for place in 0..self.clients.len() {
            let group = GroupId::at(place);
            let may_ask = self.willing && !self.left.contains_key(&group);
            let event = match self.section(group) {
                Section::Outside if may_ask => client::Event::Request(claim(group)),
                Section::Waiting if !self.willing => client::Event::Exit,
                Section::Outside => continue,
                _ => client::Event::Timer(client::Timer::Keep),
            };
            self.clients[place].number_next(self.round);
            self.drive(config, group, event, out);
        }
        // Only without this rule it says so before it is outside.
        let is_leaving =
            |group: &GroupId| !config.heeds(Rule::OutsideFirst) && self.yielding.contains(group);
        let held = config
            .ids()
            .filter(|group| !is_leaving(group))
            .filter_map(|group| Some(Entry::new(group, self.section(group).fence()?, term)));
        let left = self.left.keys().copied().chain(config.ids().filter(is_leaving));
        let seen = if self.seen.0 == term { self.seen.1 } else { 0 };
        Claims {
            round: self.round,
            willing: self.willing,
            seen,
            held: held.collect(),
            left: left.collect(),
        }
    }

    /// The leader of `term` answers.
    pub(super) fn on_answers(
        &mut self,
        config: &Config,
        term: Term,
        answers: &Answers,
        out: &mut Vec<Effect>,
    ) {
        let is_next = (term, answers.number) > self.heard;
        if !is_next && config.heeds(Rule::InOrder) {
            return;
        }
        self.heard = self.heard.max((term, answers.number));
        out.push(Effect::SetTimer { timer: Timer::Stale, after: config.lock.expiry() });
        self.left.retain(|_, said| *said > answers.round);
        let held = answers.held.iter().map(|it| (it.group, Verdict::Held(it.fence(term))));
        let gone = answers.gone.iter().map(|&group| (group, Verdict::Gone));
        for (group, verdict) in held.chain(gone) {
            let answer = Answer { claim: claim(group), round: answers.round, term, verdict };
            self.drive(config, group, client::Event::Answer(answer), out);
        }
        answers.yields.iter().for_each(|&group| self.give_up(group, out));
        if !self.willing && !answers.settling {
            config.ids().for_each(|group| self.give_up(group, out));
        }
        if let Some(told) = &answers.table {
            self.table = told.table(term, self.clients.len());
            self.seen = (term, told.version);
        }
    }

    /// The reports of the last leader are out of date. The next one reports everything again.
    pub(super) fn forget_table(&mut self) {
        self.table.fill(None);
        self.seen = Default::default();
    }

    /// G5: a call is worth nothing any more.
    pub(super) fn on_hold(&mut self, config: &Config, round: Round, out: &mut Vec<Effect>) {
        for place in 0..self.clients.len() {
            let event = client::Event::Timer(client::Timer::Hold(round));
            self.drive(config, GroupId::at(place), event, out);
        }
    }

    /// G6: what ran under the lease of the group has ended.
    pub(super) fn leave(&mut self, config: &Config, group: GroupId, out: &mut Vec<Effect>) {
        if self.section(group).is_inside() {
            self.drive(config, group, client::Event::Exit, out);
        }
    }

    /// Hands a client an event. What it calls is in the next rider; the timer of a round is one for all of them, and is not
    /// disarmed for any.
    fn drive(
        &mut self,
        config: &Config,
        group: GroupId,
        event: client::Event,
        out: &mut Vec<Effect>,
    ) {
        let client = &mut self.clients[group.place()];
        let before = client.section();
        let mut effects = Vec::new();
        client.handle(&config.lock, event, &mut effects);
        let after = client.section();
        for effect in effects {
            match effect {
                client::Effect::Announce(section) => out.push(Effect::Announce { group, section }),
                client::Effect::SetTimer { timer: client::Timer::Hold(round), after } => {
                    let set = Effect::SetTimer { timer: Timer::Hold(round), after };
                    if !out.contains(&set) {
                        out.push(set);
                    }
                }
                client::Effect::SetTimer { timer: client::Timer::Keep, .. }
                | client::Effect::CancelTimer(_)
                | client::Effect::Call(_) => {}
            }
        }
        if before.is_inside() && !after.is_inside() {
            self.yielding.remove(&group);
            if config.heeds(Rule::LeavingIsHeard) {
                self.left.insert(group, Round(self.round.0 + 1));
            }
        }
    }
}

/// A client knows one claim, that of its group: riders come in order (A6).
fn claim(group: GroupId) -> ClaimId {
    ClaimId(u128::from(group.0))
}
