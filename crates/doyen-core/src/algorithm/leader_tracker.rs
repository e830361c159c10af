//! Which leader a member follows: the part that all election algorithms share.
//!
//! In textbook mode this is the variable `elected` of cs425 and the set of members that are down, nothing more. A member
//! follows a claim to lead that comes from a higher member, and contests one that comes from a lower member.
//!
//! The sources' algorithms cannot tell an old announcement from a new one (F3), and two leaders never meet after a partition
//! (F2). **Hardened mode** therefore numbers elections with a durable *term*. A member follows a [`LeaderClaim`], the pair
//! (term, leader's key), only if it is not smaller than the last:
//!
//! - H1: a member that starts listens for a leader before it starts an election;
//! - H2: a member follows a claim that is at least as large as the last accepted one. Equality counts, or a re-announcement
//!   would be refused and cause an election;
//! - H3: a smaller claim is answered with NACK and the larger term, and its owner starts an election with a higher one;
//!   otherwise a member that returns with an old term would announce itself without effect. If a larger claim of the same
//!   term is known whose owner is gone, the NACK names the next term;
//! - H4: a claim by a lower member is tolerated for the preempt delay, then contested, so that a member that comes and goes
//!   does not move leadership each time (F9);
//! - H5: a leader sends ALIVE to all members at every heartbeat, and at once to a member that was away. A leader that
//!   receives a larger claim steps down. So two leaders meet as soon as they can communicate;
//! - H6: a member that does not lead may send ALIVE about its leader; a member that asked for an election then defers (F8).
//!   ALIVE about an id that is no member is ignored;
//! - H7: a member that knows no leader and learns that a member is gone listens as if it had just started, for the time of
//!   an election longer: the member that is gone may have been about to win.
//!
//! Once the network behaves, all members agree on the highest live member. Hardened mode does not give "at most one leader at
//! any instant": both sides of a partition may have one, even in the same term. Only a majority can prevent that.
//!
//! A member that has hardened mode's data, or knows of members that are down, lies behind a pointer, so that a million textbook
//! members stay small.

pub mod rules;

use serde::{Deserialize, Serialize};

use super::elective::Elective;
use crate::members::{Key, NodeId, PeerSet, Term};
use crate::protocol::{Boot, Context, Family, Kind, Origin, Role, View};

/// A claim to lead: `leader` won the election numbered `term`. Claims are ordered by term, then by key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LeaderClaim {
    /// The election's number; zero in textbook mode.
    pub term: Term,
    /// Its winner.
    pub leader: Key,
}

/// The messages of hardened mode outside elections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Background {
    /// "This member leads": the leader's heartbeat, or a follower's message about its leader.
    Alive { claim: LeaderClaim },
    /// "There has been a later election than the one you won."
    Nack { term: Term },
}

pub(crate) const ALIVE: Kind = Kind::detector("ALIVE", "says that a leader is up");
pub(crate) const NACK: Kind =
    Kind::own("NACK", Family::Refuse, "refuses what is too old, and names the later term");

impl Background {
    /// Which of [`ALIVE`] and [`NACK`] it is.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        match self {
            Self::Alive { .. } => 0,
            Self::Nack { .. } => 1,
        }
    }
}

/// The timers of hardened mode outside elections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BackgroundTimer {
    /// A message from a leader, after the start.
    Listen,
    /// The end of its tolerance of a lower leader.
    Preempt,
    /// Its next heartbeat as a leader.
    Heartbeat,
}

/// What the algorithm must do after an event that its tracker handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// End the election that it takes part in: it follows a leader, or leads.
    EndElection,
    /// Start an election.
    StartElection,
    /// Another member follows this leader: defer to it if an election was asked for.
    Defer(LeaderClaim),
}

/// The leader that a member follows, and what it must remember to choose it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaderTracker(Form);

/// The plain form where it is enough, so that equal members are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Form {
    Plain(Core),
    Extended(Box<Extended>),
}

/// What every member needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Core {
    id: NodeId,
    leader: Option<NodeId>,
    /// For the algorithms that have no other state: this byte is free here, a million times.
    participant: bool,
}

/// A member with what few need.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Extended {
    core: Core,
    /// The members that are down.
    down: PeerSet,
    hardened: Option<Hardened>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Hardened {
    /// The highest term seen; durable.
    term: Term,
    /// The last accepted claim. It outlives its leader, so that an older one is never accepted after it.
    claim: Option<LeaderClaim>,
    /// How often an election has failed since a leader was last known.
    attempts: u8,
    /// It tolerates a lower leader; the preempt timer is armed.
    tolerating: bool,
}

impl LeaderTracker {
    /// The tracker of a process that has just started. A joining textbook process starts an election at once (cs677,
    /// kordafshari); a hardened one listens first (H1).
    pub(crate) fn start<P: Elective>(
        id: NodeId,
        boot: &Boot<Term>,
        cx: &mut Context<'_, P>,
    ) -> (Self, Action) {
        let core = Core { id, leader: None, participant: false };
        let mut me = Self(Form::Plain(core));
        if cx.config.hardened() {
            let term = boot.durable.unwrap_or_default();
            me.extended_mut().hardened = Some(Hardened { term, ..Hardened::default() });
        }
        match boot.origin {
            Origin::Founding { leader: None } => (me, Action::Nothing),
            Origin::Founding { leader: Some(leader) } => {
                let term = if cx.config.hardened() { Term(1) } else { Term::default() };
                me.accept(LeaderClaim { term, leader: cx.config.members.key(leader) }, cx);
                (me, Action::EndElection)
            }
            Origin::Joining | Origin::Rejoining if cx.config.hardened() => {
                cx.rule("H1");
                cx.set_timer(BackgroundTimer::Listen, cx.config.timing.listen());
                (me, Action::Nothing)
            }
            Origin::Joining | Origin::Rejoining => (me, Action::StartElection),
        }
    }

    #[inline(always)]
    fn core(&self) -> &Core {
        match &self.0 {
            Form::Plain(core) => core,
            Form::Extended(extended) => &extended.core,
        }
    }

    #[inline(always)]
    fn core_mut(&mut self) -> &mut Core {
        match &mut self.0 {
            Form::Plain(core) => core,
            Form::Extended(extended) => &mut extended.core,
        }
    }

    #[inline(always)]
    fn extended(&self) -> Option<&Extended> {
        match &self.0 {
            Form::Plain(_) => None,
            Form::Extended(extended) => Some(extended),
        }
    }

    /// Its extended form, into which it changes if it has to.
    fn extended_mut(&mut self) -> &mut Extended {
        if let Form::Plain(core) = self.0 {
            let extended = Extended { core, down: PeerSet::new(), hardened: None };
            self.0 = Form::Extended(Box::new(extended));
        }
        match &mut self.0 {
            Form::Extended(extended) => extended,
            Form::Plain(_) => unreachable!("it has just been extended"),
        }
    }

    fn hardened(&self) -> Option<&Hardened> {
        self.extended()?.hardened.as_ref()
    }

    fn hardened_mut(&mut self) -> Option<&mut Hardened> {
        match &mut self.0 {
            Form::Plain(_) => None,
            Form::Extended(extended) => extended.hardened.as_mut(),
        }
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> NodeId {
        self.core().id
    }

    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.core().leader
    }

    pub(crate) fn leads(&self) -> bool {
        let core = self.core();
        core.leader == Some(core.id)
    }

    /// Whether this member takes part in an election, where the algorithm has no other state that tells.
    #[inline(always)]
    pub(crate) fn participates(&self) -> bool {
        self.core().participant
    }

    /// This member, if it takes part in an election and a tracker of a textbook member knows no member that is down.
    #[inline(always)]
    pub(crate) fn plain_participant(&self) -> Option<NodeId> {
        match self.0 {
            Form::Plain(Core { id, participant: true, .. }) => Some(id),
            Form::Plain(_) | Form::Extended(_) => None,
        }
    }

    /// From now on this member takes part in an election, or no longer does.
    #[inline(always)]
    pub(crate) fn set_participant(&mut self, participant: bool) {
        self.core_mut().participant = participant;
    }

    #[inline(always)]
    pub(crate) fn is_down(&self, peer: NodeId) -> bool {
        self.extended().is_some_and(|extended| extended.down.contains(peer))
    }

    /// A message came from `peer`: it lives.
    #[inline(always)]
    pub(crate) fn mark_alive(&mut self, peer: NodeId) {
        if let Form::Extended(extended) = &mut self.0
            && extended.down.remove(peer)
            && extended.down.is_empty()
            && extended.hardened.is_none()
        {
            self.0 = Form::Plain(extended.core);
        }
    }

    /// The highest term seen; zero in textbook mode.
    pub(crate) fn term(&self) -> Term {
        self.hardened().map_or(Term::default(), |hardened| hardened.term)
    }

    /// The claim accepted last, in hardened mode.
    pub(crate) fn claim(&self) -> Option<LeaderClaim> {
        self.hardened().and_then(|hardened| hardened.claim)
    }

    /// The claim of the leader that it follows, if that is another member and not down.
    pub(crate) fn live_claim(&self) -> Option<LeaderClaim> {
        let leader =
            self.leader().filter(|&leader| leader != self.id() && !self.is_down(leader))?;
        self.claim().filter(|claim| claim.leader.id == leader)
    }

    /// The claim of its leader, perhaps its own, unless it participates in an election.
    pub(crate) fn current_claim(&self) -> Option<LeaderClaim> {
        match self.participates() {
            true => None,
            false if self.leads() => self.claim(),
            false => self.live_claim(),
        }
    }

    /// Tells `asker`, which wants an election numbered `term`, the claim of its leader. A leader adopts the number, so that
    /// its claim is not older than the question.
    pub(crate) fn vouch<P: Elective>(
        &mut self,
        asker: NodeId,
        term: Term,
        cx: &mut Context<'_, P>,
    ) {
        self.see_term(term, cx);
        if self.leads() {
            self.lead(cx);
        }
        if let Some(claim) = self.current_claim() {
            cx.send(asker, Background::Alive { claim });
        }
    }

    /// How often an election has failed since a leader was last known; zero in textbook mode.
    pub(crate) fn attempts(&self) -> u8 {
        self.hardened().map_or(0, |hardened| hardened.attempts)
    }

    /// Counts one more election that failed.
    pub(crate) fn election_failed(&mut self) {
        self.core_mut().leader = None;
        if let Some(hardened) = self.hardened_mut() {
            hardened.attempts = hardened.attempts.saturating_add(1);
        }
    }

    /// Adopts `term` if it is larger, durably.
    pub(crate) fn see_term<P: Elective>(&mut self, term: Term, cx: &mut Context<'_, P>) {
        if let Some(hardened) = self.hardened_mut()
            && term > hardened.term
        {
            hardened.term = term;
            cx.persist(term);
        }
    }

    /// Opens a new term for an election of this member's own, durably. Zero in textbook mode.
    pub(crate) fn open_term<P: Elective>(&mut self, cx: &mut Context<'_, P>) -> Term {
        self.see_term(self.term().next(), cx);
        self.term()
    }

    /// This member has won the election of the highest term it knows.
    pub(crate) fn lead<P: Elective>(&mut self, cx: &mut Context<'_, P>) {
        let claim = LeaderClaim { term: self.term(), leader: cx.config.members.key(self.id()) };
        // A larger claim can exist only if a peer has used up all terms: then this member has not won.
        if self.claim().is_none_or(|last| claim >= last) {
            self.accept(claim, cx);
        }
    }

    /// Records a leader that only other members receive (H6).
    pub(crate) fn defer_to(&mut self, leader: NodeId) {
        self.core_mut().leader = Some(leader);
    }

    /// A member claims to lead, or another member says so. `electing`: this member takes part in an election.
    pub(crate) fn on_claim<P: Elective>(
        &mut self,
        offered: LeaderClaim,
        electing: bool,
        cx: &mut Context<'_, P>,
    ) -> Action {
        let lower = offered.leader < cx.config.members.key(self.id());
        let Some(hardened) = self.hardened() else {
            if lower {
                return Action::StartElection;
            }
            self.accept(offered, cx);
            return Action::EndElection;
        };
        if let Some(claim) = hardened.claim
            && offered < claim
        {
            self.refuse(offered, claim, cx);
            return Action::Nothing;
        }
        if !lower {
            cx.rule("H2");
            self.accept(offered, cx);
            return Action::EndElection;
        }
        let unchanged = hardened.claim == Some(offered) && self.leader() == Some(offered.leader.id);
        self.see_term(offered.term, cx);
        if self.leads() {
            Action::StartElection
        } else if electing || unchanged {
            // Its election will end with a claim in the term just adopted; its preempt timer is armed already.
            Action::Nothing
        } else {
            cx.rule("H4");
            self.accept(offered, cx);
            Action::EndElection
        }
    }

    /// H3: a claim that is too small is answered with the larger one.
    fn refuse<P: Elective>(
        &self,
        offered: LeaderClaim,
        claim: LeaderClaim,
        cx: &mut Context<'_, P>,
    ) {
        cx.rule("H3");
        let claimant = offered.leader.id;
        if claimant == self.id() {
            // An old claim of its own came round the ring.
        } else if self.leads() {
            cx.send(claimant, Background::Alive { claim });
        } else {
            // In the same term the higher leader sends ALIVE itself; but not if it is gone. Then only a higher term helps
            // the claimant, and no other member would tell it so.
            let gone = offered.term == claim.term && self.live_claim() != Some(claim);
            let term = if gone { claim.term.next() } else { claim.term };
            cx.send(claimant, Background::Nack { term });
        }
    }

    /// Follows this claim, whichever member makes it, as the textbook rings do. A hardened claim must not be smaller than the
    /// last, which [`on_claim`](Self::on_claim) ensures.
    pub(crate) fn accept<P: Elective>(&mut self, claim: LeaderClaim, cx: &mut Context<'_, P>) {
        let led = self.leads();
        self.see_term(claim.term, cx);
        self.core_mut().leader = Some(claim.leader.id);
        let leads = self.leads();
        let lower = claim.leader < cx.config.members.key(self.id());
        let Some(hardened) = self.hardened_mut() else { return };
        assert!(hardened.claim.is_none_or(|last| claim >= last), "claims never fall");
        cx.cancel_timer(BackgroundTimer::Listen);
        hardened.claim = Some(claim);
        hardened.attempts = 0;
        // A lower leader's next term does not restart the timer: otherwise a member that keeps asking would keep it leader.
        match (hardened.tolerating, lower) {
            (false, true) => cx.set_timer(BackgroundTimer::Preempt, cx.config.timing.preempt),
            (true, false) => cx.cancel_timer(BackgroundTimer::Preempt),
            _ => {}
        }
        hardened.tolerating = lower;
        if leads && !led {
            cx.set_timer(BackgroundTimer::Heartbeat, cx.config.timing.heartbeat);
        } else if led && !leads {
            cx.cancel_timer(BackgroundTimer::Heartbeat);
        }
    }

    pub(crate) fn on_background<P: Elective>(
        &mut self,
        from: NodeId,
        message: Background,
        electing: bool,
        cx: &mut Context<'_, P>,
    ) -> Action {
        match message {
            Background::Alive { claim } if !cx.config.members.contains(claim.leader.id) => {
                Action::Nothing
            }
            Background::Alive { claim } if claim.leader.id == from => {
                self.on_claim(claim, electing, cx)
            }
            Background::Alive { claim } => {
                cx.rule("H6");
                Action::Defer(claim)
            }
            Background::Nack { term } => {
                // An equal term answers an older claim of this leader, or a message of the other leader will arrive.
                let outdone = self.leads() && self.claim().is_some_and(|r| term > r.term);
                self.see_term(term, cx);
                if !outdone {
                    return Action::Nothing;
                }
                cx.rule("H3");
                Action::StartElection
            }
        }
    }

    pub(crate) fn on_timer<P: Elective>(
        &mut self,
        timer: BackgroundTimer,
        electing: bool,
        cx: &mut Context<'_, P>,
    ) -> Action {
        match timer {
            BackgroundTimer::Listen => {
                if self.leader().is_none() && !electing {
                    return Action::StartElection;
                }
            }
            BackgroundTimer::Preempt => {
                if let Some(hardened) = self.hardened_mut() {
                    hardened.tolerating = false;
                }
                if !electing {
                    return Action::StartElection;
                }
            }
            BackgroundTimer::Heartbeat => {
                if let Some(claim) = self.claim()
                    && self.leads()
                {
                    // A leader that takes part in an election is about to make a larger claim, or has no claim any more.
                    if !electing {
                        cx.rule("H5");
                        for peer in cx.config.members.others(self.id()) {
                            cx.send(peer, Background::Alive { claim });
                        }
                    }
                    cx.set_timer(BackgroundTimer::Heartbeat, cx.config.timing.heartbeat);
                }
            }
        }
        Action::Nothing
    }

    /// The failure detector reports `peer` as down.
    pub(crate) fn on_peer_down<P: Elective>(
        &mut self,
        peer: NodeId,
        electing: bool,
        cx: &mut Context<'_, P>,
    ) -> Action {
        self.extended_mut().down.insert(peer);
        if electing {
            return Action::Nothing;
        }
        if self.leader() == Some(peer) {
            self.core_mut().leader = None;
            return Action::StartElection;
        }
        if self.leader().is_none() && self.hardened().is_some() {
            cx.rule("H7");
            // An election in progress may have two circuits of a ring left, past members that are down.
            let election = cx.config.timing.reply() * (2 * cx.config.members.len() as u64);
            cx.set_timer(BackgroundTimer::Listen, cx.config.timing.listen() + election);
        }
        Action::Nothing
    }

    /// The failure detector reports `peer` as up.
    pub(crate) fn on_peer_up<P: Elective>(&mut self, peer: NodeId, cx: &mut Context<'_, P>) {
        self.mark_alive(peer);
        if let Some(claim) = self.claim()
            && self.leads()
        {
            cx.rule("H5");
            cx.send(peer, Background::Alive { claim });
        }
    }

    /// What determines its view: cheaper to compare than the view itself.
    #[inline(always)]
    pub(crate) fn view_key(&self, electing: bool) -> (u64, Term) {
        let term = self.claim().map_or(Term::default(), |claim| claim.term);
        let leader = self.leader().map_or(0, |leader| u64::from(leader.0) + 1);
        (leader << 1 | u64::from(electing), term)
    }

    /// Its view. `electing`: it takes part in an election that has not ended for it.
    pub(crate) fn view(&self, electing: bool) -> View {
        let term = self.claim().map_or(Term::default(), |claim| claim.term);
        let role = match electing {
            true => Role::Candidate,
            false if self.leads() => Role::Leader,
            false => Role::Follower,
        };
        View::new(self.leader(), term, role)
    }
}

impl std::fmt::Display for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Alive { claim } => {
                write!(f, "ALIVE leader={} term={}", claim.leader, claim.term)
            }
            Self::Nack { term } => write!(f, "NACK term={term}"),
        }
    }
}
