//! The leader's half: which member gets which group. That a group has one leader at a time is the grantor's concern.

use std::collections::{BTreeMap, BTreeSet};

use super::rider::{Answers, Claims, Entry, Told};
use super::{Config, Effect, GroupId, Rule, Table, Timer};
use crate::config::quorum::Preemption;
use crate::lock::grantor::{self, Caller, Grantor};
use crate::lock::{Call, ClaimId, Origin, Request, Round, Verdict};
use crate::members::{NodeId, SessionId, Term};
use crate::protocol::Fence;
use crate::time::Span;

/// A3: how many groups are on their way back at once.
const MOST_MOVES: usize = 4;

/// What the leader of the quorum knows of the groups and of the members that may lead them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assigner {
    grantor: Grantor,
    members: BTreeMap<NodeId, Member>,
    /// The number of the last rider.
    number: u64,
    /// A3: the groups whose holders have been asked to give them up, with the fences under which they hold them.
    moving: BTreeMap<GroupId, Fence>,
    table: Table,
    /// Of the table, within the term.
    version: u64,
    /// The members whose answers do not wait for the next heartbeat.
    urgent: BTreeSet<NodeId>,
}

/// A member that has called in this term.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Member {
    session: SessionId,
    /// Its last call.
    round: Round,
    willing: bool,
    /// A2: it is not silent.
    is_live: bool,
    /// A3: it has not been silent for a while.
    is_steady: bool,
    /// The version of the table that it knows.
    seen: u64,
    /// What is answered to its last call.
    held: BTreeMap<GroupId, Fence>,
    gone: Vec<GroupId>,
}

impl Member {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            round: Round::default(),
            willing: false,
            is_live: false,
            is_steady: false,
            seen: 0,
            held: BTreeMap::new(),
            gone: Vec::new(),
        }
    }

    fn is_ready(&self) -> bool {
        self.is_live && self.willing
    }
}

/// A claim of a process of a member.
type By = (NodeId, SessionId);

impl Assigner {
    pub(super) fn settles(&self) -> bool {
        self.grantor.settles()
    }

    /// The first lease in a term: nothing of what it knew counts.
    pub(super) fn begin(&mut self, config: &Config, lease: Option<Term>, out: &mut Vec<Effect>) {
        if lease.is_some_and(|term| term > self.grantor.term()) {
            for &member in self.members.keys() {
                out.push(Effect::CancelTimer(Timer::Silent(member)));
                out.push(Effect::CancelTimer(Timer::Steady(member)));
            }
            let (grantor, number) = (std::mem::take(&mut self.grantor), self.number);
            *self = Self { grantor, number, ..Self::default() };
        }
        self.grant(config, lease, grantor::Event::Lease, out);
    }

    pub(super) fn on_timer(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        timer: Timer,
        out: &mut Vec<Effect>,
    ) {
        match timer {
            Timer::Settle => {
                let event = grantor::Event::Timer(grantor::Timer::Settle);
                self.grant(config, lease, event, out);
            }
            Timer::Expire(group, member, session) => {
                let name = config.name(group).clone();
                let expire = grantor::Timer::Expire(name, claim((member, session), group));
                self.grant(config, lease, grantor::Event::Timer(expire), out);
            }
            Timer::Silent(member) => {
                out.push(Effect::CancelTimer(Timer::Steady(member)));
                if let Some(member) = self.members.get_mut(&member) {
                    (member.is_live, member.is_steady) = (false, false);
                }
            }
            Timer::Steady(member) => {
                self.members.entry(member).and_modify(|member| member.is_steady = member.is_live);
            }
            Timer::Hold(_) | Timer::Keep | Timer::Stale => {}
        }
    }

    /// A member calls about every group.
    pub(super) fn on_claims(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        by: By,
        term: Term,
        claims: &Claims,
        out: &mut Vec<Effect>,
    ) {
        let (id, session) = by;
        let member = self.members.entry(id).or_insert_with(|| Member::new(session));
        if member.session != session {
            *member = Member::new(session);
        }
        if claims.round <= member.round && config.heeds(Rule::InOrder) {
            return;
        }
        // It has shown what it leads, and need not wait for a confirmation.
        let is_first = member.round == Round::default();
        (member.round, member.willing, member.seen) = (claims.round, claims.willing, claims.seen);
        member.held.clear();
        member.gone.clear();
        if is_first && !claims.held.is_empty() {
            self.urgent.insert(id);
        }
        self.notice(config, id, out);
        for &group in &claims.left {
            self.ask(config, lease, by, group, Request::Release, out);
        }
        for entry in &claims.held {
            let request = Request::Keep { fence: entry.fence(term) };
            self.ask(config, lease, by, entry.group, request, out);
        }
        // What it was given, and does not know yet or does not want.
        let is_listed = |group| claims.held.iter().any(|entry| entry.group == group);
        for group in config.ids().filter(|&group| !is_listed(group)) {
            if self.holder_of(config, group).is_some_and(|(_, holder)| holder == claim(by, group)) {
                let acquire = Request::Acquire { ticket: None };
                let request = if claims.willing { acquire } else { Request::Release };
                self.ask(config, lease, by, group, request, out);
            }
        }
    }

    /// A2, A3: something arrives from a member.
    fn notice(&mut self, config: &Config, id: NodeId, out: &mut Vec<Effect>) {
        let silence = config.lock.keep_interval() * 2;
        out.push(Effect::SetTimer { timer: Timer::Silent(id), after: silence });
        let Some(member) = self.members.get_mut(&id) else { return };
        if !std::mem::replace(&mut member.is_live, true) {
            let after = match config.preemption {
                Preemption::Never => return,
                Preemption::Delayed => config.delay,
                Preemption::Immediate => Span::ZERO,
            };
            out.push(Effect::SetTimer { timer: Timer::Steady(id), after });
        }
    }

    /// A1, A3: gives free groups to members, and asks for groups back.
    pub(super) fn assign(&mut self, config: &Config, lease: Option<Term>, out: &mut Vec<Effect>) {
        if lease.is_some_and(|term| term == self.grantor.term()) {
            if !self.grantor.settles() {
                config.ids().for_each(|group| self.assign_if_free(config, lease, group, out));
                self.ask_back(config);
            }
            self.note_table(config);
        }
    }

    fn assign_if_free(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        group: GroupId,
        out: &mut Vec<Effect>,
    ) {
        if self.grantor.locks().contains_key(config.name(group)) {
            return;
        }
        let member = |id: &NodeId| Some((*id, self.members.get(id)?));
        let mut ready = config.order(group).iter().filter_map(member);
        let Some((id, member)) = ready.find(|(_, member)| member.is_ready()) else { return };
        let by = (id, member.session);
        self.urgent.insert(id);
        self.ask(config, lease, by, group, Request::Acquire { ticket: None }, out);
    }

    /// The members that are to be answered at once.
    pub(super) fn take_urgent(&mut self) -> BTreeSet<NodeId> {
        std::mem::take(&mut self.urgent)
    }

    /// A3: which holders are asked to give up which groups.
    fn ask_back(&mut self, config: &Config) {
        let mut moving = BTreeMap::new();
        for group in config.ids() {
            let Some((fence, holder)) = self.holder_of(config, group) else { continue };
            let is_steady = |id: &&NodeId| {
                self.members.get(id).is_some_and(|member| member.is_ready() && member.is_steady)
            };
            let mut better = config.order(group).iter().take_while(|&&id| id != member_of(holder));
            if better.any(|id| is_steady(&id)) {
                moving.insert(group, fence);
            }
        }
        // Those that have been asked go first.
        let is_asked = |group: &GroupId, fence: &Fence| self.moving.get(group) == Some(fence);
        let (mut asked, waiting): (BTreeMap<_, _>, BTreeMap<_, _>) =
            moving.into_iter().partition(|(group, fence)| is_asked(group, fence));
        let room = MOST_MOVES.saturating_sub(asked.len());
        for (group, fence) in waiting.into_iter().take(room) {
            asked.insert(group, fence);
            let holder = self.holder_of(config, group).map(|(_, holder)| member_of(holder));
            self.urgent.extend(holder);
        }
        self.moving = asked;
    }

    /// The rider to a member.
    pub(super) fn answers_to(&mut self, term: Term, to: NodeId) -> Answers {
        self.number += 1;
        let number = self.number;
        let Some(member) = self.members.get(&to) else {
            return Answers { number, ..Answers::default() };
        };
        let holds = |(group, fence): (&GroupId, &Fence)| {
            let held = self.table.get(group.place()).copied().flatten();
            (held == Some((to, *fence))).then_some(*group)
        };
        let entry = |(&group, &fence): (&GroupId, &Fence)| Entry::new(group, fence, term);
        let lead = |(place, lead): (usize, &Option<(NodeId, Fence)>)| {
            lead.map(|(member, fence)| (member, Entry::new(GroupId::at(place), fence, term)))
        };
        let table = (member.seen != self.version).then(|| Told {
            version: self.version,
            leads: self.table.iter().enumerate().filter_map(lead).collect(),
        });
        Answers {
            number,
            round: member.round,
            held: member.held.iter().map(entry).collect(),
            gone: member.gone.clone(),
            yields: self.moving.iter().filter_map(holds).collect(),
            settling: self.grantor.settles(),
            table,
        }
    }

    fn holder_of(&self, config: &Config, group: GroupId) -> Option<(Fence, ClaimId)> {
        let lock = self.grantor.locks().get(config.name(group))?;
        lock.holder().map(|(fence, claim)| (fence, claim.id))
    }

    fn note_table(&mut self, config: &Config) {
        let lead = |group| {
            let (fence, holder) = self.holder_of(config, group)?;
            Some((member_of(holder), fence))
        };
        let table: Table = config.ids().map(lead).collect();
        if table != self.table {
            self.table = table;
            self.version += 1;
        }
    }

    /// Makes a call of a member, in the round of its last rider, and notes the answer.
    fn ask(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        by: By,
        group: GroupId,
        request: Request,
        out: &mut Vec<Effect>,
    ) {
        let Some(round) = self.members.get(&by.0).map(|member| member.round) else { return };
        let call = Call { claim: claim(by, group), round, request };
        let caller = Caller { origin: Origin(u128::from(by.0.0)), owner: "".into() };
        let lock = config.name(group).clone();
        self.grant(config, lease, grantor::Event::Call { lock, call, by: caller }, out);
    }

    /// Hands the grantor an event.
    fn grant(
        &mut self,
        config: &Config,
        lease: Option<Term>,
        event: grantor::Event,
        out: &mut Vec<Effect>,
    ) {
        let mut effects = Vec::new();
        self.grantor.handle(&config.lock, lease, event, &mut effects);
        for effect in effects {
            match effect {
                grantor::Effect::Answer { lock, answer } => {
                    let Some(group) = config.find(&lock) else { continue };
                    self.note_answer(group, answer.claim, &answer.verdict);
                }
                grantor::Effect::SetTimer { timer, after } => {
                    let timer = timer_of(config, &timer);
                    out.extend(timer.map(|timer| Effect::SetTimer { timer, after }));
                }
                grantor::Effect::CancelTimer(timer) => {
                    out.extend(timer_of(config, &timer).map(Effect::CancelTimer));
                }
            }
        }
    }

    fn note_answer(&mut self, group: GroupId, to: ClaimId, verdict: &Verdict) {
        let Some(member) = self.members.get_mut(&member_of(to)) else { return };
        if member.session != session_of(to) {
            return;
        }
        match verdict {
            Verdict::Held(fence) => {
                member.held.insert(group, *fence);
            }
            Verdict::Gone => member.gone.push(group),
            Verdict::Waiting { .. } | Verdict::Released | Verdict::Full(_) | Verdict::NotLeader => {
            }
        }
    }
}

/// The claim of a process of a member to a group.
fn claim((member, session): By, group: GroupId) -> ClaimId {
    let (session, member) = (u128::from(session.get()), u128::from(member.0));
    ClaimId(session << 40 | member << 8 | u128::from(group.0))
}

fn member_of(ClaimId(claim): ClaimId) -> NodeId {
    NodeId((claim >> 8) as u32)
}

fn session_of(ClaimId(claim): ClaimId) -> SessionId {
    SessionId::from_random((claim >> 40) as u64)
}

fn timer_of(config: &Config, timer: &grantor::Timer) -> Option<Timer> {
    match timer {
        grantor::Timer::Settle => Some(Timer::Settle),
        grantor::Timer::Expire(name, claim) => {
            Some(Timer::Expire(config.find(name)?, member_of(*claim), session_of(*claim)))
        }
    }
}
