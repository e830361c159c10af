//! Whom a member follows: the part that all algorithms share.
//!
//! In textbook mode this is 004's variable `elected` and the members held for dead, nothing more. A claim to lead is
//! followed if it comes from above, and contested if it comes from below.
//!
//! The seeds' algorithms cannot tell an old announcement from a new one (F3) and never make two leaders meet after a
//! partition (F2). **Hardened mode** therefore numbers elections with a durable *epoch* and follows a [`Reign`], the
//! pair (epoch, leader's key), only upwards:
//!
//! - H1: a member that comes up listens for a leader before it starts an election;
//! - H2: a claim at least as large as the last accepted one is followed. Equality counts, or a re-announcement would
//!   be refused and re-elect;
//! - H3: a smaller claim is answered with NACK and the larger epoch, and its owner runs again with a higher one, or
//!   a member that comes back with an old epoch would announce itself in vain; so it would if a better claim of the same
//!   epoch stood whose owner is gone, and then it is told of the next epoch;
//! - H4: a claim by a lower member is borne for the preempt delay, then contested, so that a member that comes and
//!   goes does not move the leadership each time (F9);
//! - H5: a leader says ALIVE to everybody at every heartbeat, and to a member that was away at once. A leader that
//!   hears a larger claim steps down. So two leaders meet as soon as they can talk;
//! - H6: a member that does not lead may say ALIVE about its leader; whoever asked for an election then defers (F8).
//!   What is said about a stranger is ignored;
//! - H7: a member that knows of no leader and learns that somebody is gone listens as if it had just come up, for as long
//!   as an election may take besides: it may be the one that was to elect who is gone.
//!
//! This gives agreement on the best live member once the network behaves. It does not give "at most one leader at any
//! instant": both sides of a partition may have one, even in the same epoch. Only a majority can prevent that.
//!
//! What hardened mode needs and who is held for dead lies behind one pointer, so that a million textbook members stay
//! small.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::members::{Epoch, Key, NodeId, PeerSet};
use crate::protocol::{Boot, Effects, Origin, Protocol, Role, View, varint_len};

/// A claim to lead: `leader` won the election numbered `epoch`. Ordered by epoch, then by key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Reign {
    /// The election's number; zero in textbook mode.
    pub epoch: Epoch,
    /// Its winner.
    pub leader: Key,
}

/// What hardened members say to each other outside elections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Upkeep {
    /// "This one leads": the leader's heartbeat, or a follower's word about its leader.
    Alive {
        /// Who leads, since which election.
        reign: Reign,
    },
    /// "There has been a later election than the one you won."
    Nack {
        /// Its number.
        epoch: Epoch,
    },
}

/// What a hardened member waits for outside elections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UpkeepTimer {
    /// A leader's voice, after coming up.
    Listen,
    /// The end of its patience with a lower leader.
    Preempt,
    /// Its next heartbeat as a leader.
    Heartbeat,
}

impl UpkeepTimer {
    /// Whether it is armed again for ever.
    pub(crate) fn is_upkeep(self) -> bool {
        self == Self::Heartbeat
    }
}

/// What the algorithm is to do about what its allegiance was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Nothing.
    Nothing,
    /// Any election it took part in is over: it follows, or is, the leader.
    Settled,
    /// Call an election.
    Contest,
    /// Somebody else follows this leader; whoever asks for an election should defer to it.
    Defer(Reign),
}

/// Whom a member follows, and what it must remember to choose well.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Allegiance {
    id: NodeId,
    /// For the algorithms that have no other state: it lies in a byte that is free here, a million times.
    participant: bool,
    leader: Option<NodeId>,
    /// None rather than empty, so that equal members are equal.
    extras: Option<Box<Extras>>,
}

/// What few members have.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Extras {
    /// The members held for dead.
    down: PeerSet,
    hardened: Option<Hardened>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Hardened {
    /// The highest epoch seen; durable.
    epoch: Epoch,
    /// The claim accepted last. It outlives its leader, so that an older one is never accepted after it.
    reign: Option<Reign>,
    /// How often an election has failed since a leader was last known.
    attempts: u8,
    /// A lower leader is being borne.
    bearing: bool,
}

/// What an algorithm must be for its members to have an allegiance.
pub(crate) trait Elective:
    Protocol<Config = Config, Durable = Epoch, Message: From<Upkeep>, Timer: From<UpkeepTimer>>
{
}

impl<P> Elective for P where
    P: Protocol<Config = Config, Durable = Epoch, Message: From<Upkeep>, Timer: From<UpkeepTimer>>
{
}

impl Allegiance {
    /// The allegiance of a process that has just started. A joining textbook process is to call an election at once
    /// (000, 002): the verdict says so. A hardened one listens first (H1).
    pub(crate) fn start<P: Elective>(
        id: NodeId,
        config: &Config,
        boot: &Boot<Epoch>,
        out: &mut Effects<P>,
    ) -> (Self, Verdict) {
        let mut me = Self { id, participant: false, leader: None, extras: None };
        if config.hardened() {
            let epoch = boot.durable.unwrap_or_default();
            let hardened = Some(Hardened { epoch, ..Hardened::default() });
            me.extras = Some(Box::new(Extras { hardened, ..Extras::default() }));
        }
        match boot.origin {
            Origin::Founding { leader: None } => (me, Verdict::Nothing),
            Origin::Founding { leader: Some(leader) } => {
                let epoch = if config.hardened() { Epoch(1) } else { Epoch::default() };
                me.accept(config, Reign { epoch, leader: config.members.key(leader) }, out);
                (me, Verdict::Settled)
            }
            Origin::Joining | Origin::Rejoining if config.hardened() => {
                out.rule("H1");
                out.set_timer(UpkeepTimer::Listen.into(), config.timing.listen());
                (me, Verdict::Nothing)
            }
            Origin::Joining | Origin::Rejoining => (me, Verdict::Contest),
        }
    }

    fn hardened(&self) -> Option<&Hardened> {
        self.extras.as_ref()?.hardened.as_ref()
    }

    fn hardened_mut(&mut self) -> Option<&mut Hardened> {
        self.extras.as_mut()?.hardened.as_mut()
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// Whether this member leads.
    pub(crate) fn leads(&self) -> bool {
        self.leader == Some(self.id)
    }

    /// Whether this member takes part in an election, where the algorithm has no other state that tells.
    pub(crate) fn participates(&self) -> bool {
        self.participant
    }

    /// From now on this member takes part in an election, or no longer does.
    pub(crate) fn set_participant(&mut self, participant: bool) {
        self.participant = participant;
    }

    /// Whether `peer` is held for dead.
    #[inline]
    pub(crate) fn is_down(&self, peer: NodeId) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.down.contains(peer))
    }

    /// A message came from `peer`: it lives.
    #[inline]
    pub(crate) fn heard(&mut self, peer: NodeId) {
        if let Some(extras) = &mut self.extras
            && extras.down.remove(peer)
            && **extras == Extras::default()
        {
            self.extras = None;
        }
    }

    /// The highest epoch seen; zero in textbook mode.
    pub(crate) fn epoch(&self) -> Epoch {
        self.hardened().map_or(Epoch::default(), |hardened| hardened.epoch)
    }

    /// The claim accepted last, in hardened mode.
    pub(crate) fn reign(&self) -> Option<Reign> {
        self.hardened().and_then(|hardened| hardened.reign)
    }

    /// The claim this member lives under, if its leader is another one and not held for dead.
    pub(crate) fn live_reign(&self) -> Option<Reign> {
        let leader = self.leader.filter(|&leader| leader != self.id && !self.is_down(leader))?;
        self.reign().filter(|reign| reign.leader.id == leader)
    }

    /// The claim this member lives under, be it its own, unless it participates in an election.
    pub(crate) fn standing_reign(&self) -> Option<Reign> {
        match self.participant {
            true => None,
            false if self.leads() => self.reign(),
            false => self.live_reign(),
        }
    }

    /// Tells `asker`, who wants an election numbered `epoch`, under which claim this member lives. A leader takes over
    /// the number, so that its claim is not older than the question.
    pub(crate) fn vouch<P: Elective>(
        &mut self,
        config: &Config,
        asker: NodeId,
        epoch: Epoch,
        out: &mut Effects<P>,
    ) {
        self.see_epoch(epoch, out);
        if self.leads() {
            self.lead(config, out);
        }
        if let Some(reign) = self.standing_reign() {
            out.send(asker, Upkeep::Alive { reign }.into());
        }
    }

    /// How often an election has failed since a leader was last known; zero in textbook mode.
    pub(crate) fn attempts(&self) -> u8 {
        self.hardened().map_or(0, |hardened| hardened.attempts)
    }

    /// Counts one more election that failed.
    pub(crate) fn election_failed(&mut self) {
        self.leader = None;
        if let Some(hardened) = self.hardened_mut() {
            hardened.attempts = hardened.attempts.saturating_add(1);
        }
    }

    /// Adopts `epoch` if it is larger, durably.
    pub(crate) fn see_epoch<P: Elective>(&mut self, epoch: Epoch, out: &mut Effects<P>) {
        if let Some(hardened) = self.hardened_mut()
            && epoch > hardened.epoch
        {
            hardened.epoch = epoch;
            out.persist(epoch);
        }
    }

    /// Opens a new epoch for an election of this member's own, durably. Zero in textbook mode.
    pub(crate) fn open_epoch<P: Elective>(&mut self, out: &mut Effects<P>) -> Epoch {
        self.see_epoch(self.epoch().next(), out);
        self.epoch()
    }

    /// This member has won the election of the highest epoch it knows.
    pub(crate) fn lead<P: Elective>(&mut self, config: &Config, out: &mut Effects<P>) {
        let reign = Reign { epoch: self.epoch(), leader: config.members.key(self.id) };
        // Only where a peer has used up all epochs a larger claim can stand: then it has not won.
        if self.reign().is_none_or(|last| reign >= last) {
            self.accept(config, reign, out);
        }
    }

    /// Takes note of a leader that only others can hear (H6).
    pub(crate) fn defer_to(&mut self, leader: NodeId) {
        self.leader = Some(leader);
    }

    /// Somebody claims to lead, or is said to. `electing`: this member takes part in an election.
    pub(crate) fn on_claim<P: Elective>(
        &mut self,
        config: &Config,
        offered: Reign,
        electing: bool,
        out: &mut Effects<P>,
    ) -> Verdict {
        let lower = offered.leader < config.members.key(self.id);
        let Some(hardened) = self.hardened() else {
            if lower {
                return Verdict::Contest;
            }
            self.accept(config, offered, out);
            return Verdict::Settled;
        };
        if let Some(reign) = hardened.reign
            && offered < reign
        {
            self.refuse(offered, reign, out);
            return Verdict::Nothing;
        }
        if !lower {
            out.rule("H2");
            self.accept(config, offered, out);
            return Verdict::Settled;
        }
        let unchanged = hardened.reign == Some(offered) && self.leader == Some(offered.leader.id);
        self.see_epoch(offered.epoch, out);
        if self.leads() {
            Verdict::Contest
        } else if electing || unchanged {
            // Its election will end with a claim in the epoch just adopted; its patience is running already.
            Verdict::Nothing
        } else {
            out.rule("H4");
            self.accept(config, offered, out);
            Verdict::Settled
        }
    }

    /// H3: a claim too small is answered with what makes it so.
    fn refuse<P: Elective>(&self, offered: Reign, reign: Reign, out: &mut Effects<P>) {
        out.rule("H3");
        let claimant = offered.leader.id;
        if claimant == self.id {
            // An old claim of its own has come round the ring.
        } else if self.leads() {
            out.send(claimant, Upkeep::Alive { reign }.into());
        } else {
            // In the same epoch the better leader makes itself heard; but not if it is gone. Then only a higher epoch
            // helps the claimant, and nobody else would tell it so.
            let gone = offered.epoch == reign.epoch && self.live_reign() != Some(reign);
            let epoch = if gone { reign.epoch.next() } else { reign.epoch };
            out.send(claimant, Upkeep::Nack { epoch }.into());
        }
    }

    /// Follows this claim, whosever it is: the textbook rings ask no more. A hardened claim must not be smaller than the
    /// last, which [`on_claim`](Self::on_claim) sees to.
    pub(crate) fn accept<P: Elective>(
        &mut self,
        config: &Config,
        reign: Reign,
        out: &mut Effects<P>,
    ) {
        let led = self.leads();
        self.see_epoch(reign.epoch, out);
        self.leader = Some(reign.leader.id);
        let leads = self.leads();
        let lower = reign.leader < config.members.key(self.id);
        let Some(hardened) = self.hardened_mut() else { return };
        assert!(hardened.reign.is_none_or(|last| reign >= last), "reigns only go upwards");
        out.cancel_timer(UpkeepTimer::Listen.into());
        hardened.reign = Some(reign);
        hardened.attempts = 0;
        // Patience is not renewed by a lower leader's next epoch, or whoever keeps asking it would keep it in office.
        match (hardened.bearing, lower) {
            (false, true) => out.set_timer(UpkeepTimer::Preempt.into(), config.timing.preempt),
            (true, false) => out.cancel_timer(UpkeepTimer::Preempt.into()),
            _ => {}
        }
        hardened.bearing = lower;
        if leads && !led {
            out.set_timer(UpkeepTimer::Heartbeat.into(), config.timing.heartbeat);
        } else if led && !leads {
            out.cancel_timer(UpkeepTimer::Heartbeat.into());
        }
    }

    /// Another member speaks outside elections.
    pub(crate) fn on_upkeep<P: Elective>(
        &mut self,
        config: &Config,
        from: NodeId,
        message: Upkeep,
        electing: bool,
        out: &mut Effects<P>,
    ) -> Verdict {
        match message {
            Upkeep::Alive { reign } if !config.members.contains(reign.leader.id) => {
                Verdict::Nothing
            }
            Upkeep::Alive { reign } if reign.leader.id == from => {
                self.on_claim(config, reign, electing, out)
            }
            Upkeep::Alive { reign } => {
                out.rule("H6");
                Verdict::Defer(reign)
            }
            Upkeep::Nack { epoch } => {
                // An equal epoch answers an older claim of this leader's own, or the other leader will be heard.
                let outdone = self.leads() && self.reign().is_some_and(|r| epoch > r.epoch);
                self.see_epoch(epoch, out);
                if !outdone {
                    return Verdict::Nothing;
                }
                out.rule("H3");
                Verdict::Contest
            }
        }
    }

    /// A timer of its own fired.
    pub(crate) fn on_timer<P: Elective>(
        &mut self,
        config: &Config,
        timer: UpkeepTimer,
        electing: bool,
        out: &mut Effects<P>,
    ) -> Verdict {
        match timer {
            UpkeepTimer::Listen => {
                if self.leader.is_none() && !electing {
                    return Verdict::Contest;
                }
            }
            UpkeepTimer::Preempt => {
                if let Some(hardened) = self.hardened_mut() {
                    hardened.bearing = false;
                }
                if !electing {
                    return Verdict::Contest;
                }
            }
            UpkeepTimer::Heartbeat => {
                if let Some(reign) = self.reign()
                    && self.leads()
                {
                    // A leader that runs again is about to claim more than this, or has no claim any more.
                    if !electing {
                        out.rule("H5");
                        for peer in config.members.others(self.id) {
                            out.send(peer, Upkeep::Alive { reign }.into());
                        }
                    }
                    out.set_timer(UpkeepTimer::Heartbeat.into(), config.timing.heartbeat);
                }
            }
        }
        Verdict::Nothing
    }

    /// The failure detector gives `peer` up.
    pub(crate) fn on_peer_down<P: Elective>(
        &mut self,
        config: &Config,
        peer: NodeId,
        electing: bool,
        out: &mut Effects<P>,
    ) -> Verdict {
        self.extras.get_or_insert_default().down.insert(peer);
        if electing {
            return Verdict::Nothing;
        }
        if self.leader == Some(peer) {
            self.leader = None;
            return Verdict::Contest;
        }
        if self.leader.is_none() && self.hardened().is_some() {
            out.rule("H7");
            // An election that goes on may have two circuits of a ring to go, past some that are dead.
            let election = config.timing.reply() * (2 * config.members.len() as u64);
            out.set_timer(UpkeepTimer::Listen.into(), config.timing.listen() + election);
        }
        Verdict::Nothing
    }

    /// The failure detector hears `peer` again.
    pub(crate) fn on_peer_up<P: Elective>(&mut self, peer: NodeId, out: &mut Effects<P>) {
        self.heard(peer);
        if let Some(reign) = self.reign()
            && self.leads()
        {
            out.rule("H5");
            out.send(peer, Upkeep::Alive { reign }.into());
        }
    }

    /// What decides the view of a ring's member, for comparing: cheaper than the view itself.
    #[inline(always)]
    pub(crate) fn stance(&self) -> (u64, Epoch) {
        let epoch = self.reign().map_or(Epoch::default(), |reign| reign.epoch);
        let leader = self.leader.map_or(0, |leader| u64::from(leader.0) + 1);
        (leader << 1 | u64::from(self.participant), epoch)
    }

    /// What this member believes. `electing`: it takes part in an election of which it does not know the end.
    pub(crate) fn view(&self, electing: bool) -> View {
        View {
            leader: self.leader,
            epoch: self.reign().map_or(Epoch::default(), |reign| reign.epoch),
            role: match electing {
                true => Role::Candidate,
                false if self.leads() => Role::Leader,
                false => Role::Follower,
            },
        }
    }
}

impl Upkeep {
    /// Its size on the wire.
    pub(crate) fn encoded_len(&self) -> usize {
        1 + match self {
            Self::Alive { reign } => varint_len(reign.epoch.0) + key_len(reign.leader),
            Self::Nack { epoch } => varint_len(epoch.0),
        }
    }
}

impl std::fmt::Display for Upkeep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Alive { reign } => {
                write!(f, "ALIVE leader={} epoch={}", reign.leader, reign.epoch)
            }
            Self::Nack { epoch } => write!(f, "NACK epoch={epoch}"),
        }
    }
}

/// The size of a key on the wire: signed numbers are zigzag-encoded.
#[inline]
pub(crate) fn key_len(key: Key) -> usize {
    let zigzag = ((key.attr << 1) ^ (key.attr >> 63)) as u64;
    varint_len(zigzag) + varint_len(u64::from(key.id.0))
}
