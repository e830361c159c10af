//! What happens to a message on its way: how long it takes, whether it is lost, doubled, overtaken or cut off.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use doyen_core::members::NodeId;
use doyen_core::time::Span;

use crate::hash::FastMap;
use crate::message::Change;
use crate::random::Random;
use crate::time::Time;
use crate::words::time;

/// How long a message takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayModel {
    /// Always the same, in nanoseconds.
    Fixed(u64),
    /// Anything from `min..=max` nanoseconds, each equally likely.
    Uniform {
        /// The shortest.
        min: u64,
        /// The longest.
        max: u64,
    },
    /// Exponential with this mean in nanoseconds: no bound holds for every message.
    Exponential {
        /// The mean.
        mean: u64,
    },
}

impl DelayModel {
    #[inline]
    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(delay) => delay,
            Self::Uniform { min, max } => random.between(min, max),
            Self::Exponential { mean } => random.exponential(mean),
        }
    }

    /// The shortest and the longest that a message takes.
    pub fn range(self) -> RangeInclusive<u64> {
        let shortest = match self {
            Self::Fixed(delay) => delay,
            Self::Uniform { min, .. } => min,
            Self::Exponential { .. } => 0,
        };
        shortest..=self.bound()
    }

    /// The longest time that a message can take; for an exponential delay ten times the mean, which one message in
    /// 22,000 exceeds.
    pub fn bound(self) -> u64 {
        match self {
            Self::Fixed(delay) => delay,
            Self::Uniform { max, .. } => max,
            Self::Exponential { mean } => mean.saturating_mul(10),
        }
    }

    /// The mean delay.
    pub fn mean(self) -> u64 {
        match self {
            Self::Fixed(delay) => delay,
            Self::Uniform { min, max } => min.midpoint(max),
            Self::Exponential { mean } => mean,
        }
    }
}

impl DelayModel {
    /// `2 ms`, `1 ms to 2 ms`, `1 ms on average`.
    pub fn in_words(self) -> String {
        match self {
            Self::Fixed(delay) => time(delay),
            Self::Uniform { min, max } => format!("{} to {}", time(min), time(max)),
            Self::Exponential { mean } => format!("{} on average", time(mean)),
        }
    }
}

impl fmt::Display for DelayModel {
    /// The delay as a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = Span::from_nanos;
        match *self {
            Self::Fixed(delay) => span(delay).fmt(f),
            Self::Uniform { min, max } => write!(f, "uniform:{}..{}", span(min), span(max)),
            Self::Exponential { mean } => write!(f, "exp:{}", span(mean)),
        }
    }
}

impl FromStr for DelayModel {
    type Err = String;

    /// Reads `1ms`, `uniform:1ms..2ms`, `exp:1ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let nanos = |text: &str| text.parse::<Span>().map(Span::as_nanos);
        if let Some(range) = text.strip_prefix("uniform:") {
            let (min, max) = range.split_once("..").ok_or_else(|| {
                format!("`{text}` is not a range; write for example uniform:1ms..2ms")
            })?;
            let (min, max) = (nanos(min)?, nanos(max)?);
            if min > max {
                return Err(format!("`{text}` runs backwards; write the shorter delay first"));
            }
            return Ok(Self::Uniform { min, max });
        }
        if let Some(mean) = text.strip_prefix("exp:") {
            return Ok(Self::Exponential { mean: nanos(mean)? });
        }
        Ok(Self::Fixed(nanos(text)?))
    }
}

/// What a network does to messages when nothing is cut.
#[derive(Clone, PartialEq, Debug)]
pub struct NetworkModel {
    /// How long a message takes.
    pub delay: DelayModel,
    /// The longest time from a receipt to the reaction of the member; drawn uniformly from zero.
    pub processing: u64,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplication: f64,
    /// Whether messages of one member to another arrive in the order in which they were sent.
    pub fifo: bool,
    /// Overrides: the first that matches a message decides.
    pub links: Vec<LinkRule>,
}

impl NetworkModel {
    /// Every message takes `delay` nanoseconds; nothing is lost.
    pub fn fixed(delay: u64) -> Self {
        Self {
            delay: DelayModel::Fixed(delay),
            processing: 0,
            loss: 0.0,
            duplication: 0.0,
            fifo: false,
            links: Vec::new(),
        }
    }
}

/// An override for some links or kinds of messages. `None` matches everything, or changes nothing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkRule {
    /// Only messages from the member at this position.
    pub from: Option<u32>,
    /// Only messages to the member at this position.
    pub to: Option<u32>,
    /// Only messages of this kind.
    pub kind: Option<usize>,
    /// How long they take.
    pub delay: Option<DelayModel>,
    /// How often they are lost.
    pub loss: Option<f64>,
    /// Only this share of them, at random.
    pub share: Option<f64>,
}

impl LinkRule {
    fn fits(&self, from: u32, to: u32, kind: usize) -> bool {
        self.from.is_none_or(|only| only == from)
            && self.to.is_none_or(|only| only == to)
            && self.kind.is_none_or(|only| only == kind)
    }

    /// The messages that it matches, and its effect on them.
    pub fn in_words(
        &self,
        id: impl Fn(u32) -> NodeId,
        name: impl Fn(usize) -> &'static str,
    ) -> String {
        let mut words: Vec<String> =
            self.share.map(|share| format!("{}% of", share * 100.0)).into_iter().collect();
        words.extend(self.kind.map(|kind| name(kind).to_owned()));
        words.push("messages".to_owned());
        words.extend(self.from.map(|from| format!("from {}", id(from))));
        words.extend(self.to.map(|to| format!("to {}", id(to))));
        let delay = self.delay.map(|delay| format!("take {}", delay.in_words()));
        let loss = self.loss.map(|loss| format!("are lost in {}% of all cases", loss * 100.0));
        let fate: Vec<String> = delay.into_iter().chain(loss).collect();
        words.push(if fate.is_empty() { "are as usual".to_owned() } else { fate.join(" and ") });
        words.join(" ")
    }
}

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It never arrives.
    Lost,
    /// It arrives.
    Arrives {
        /// When.
        at: Time,
        /// When its copy arrives, if it has one.
        again: Option<Time>,
    },
}

/// A network at work: the model, and what is cut now. Members are named by their position.
#[derive(Clone, Debug)]
pub struct Network {
    model: NetworkModel,
    /// Only the delay and the order matter: the common case, kept fast.
    plain: bool,
    /// When the last message on a link arrives, for links that keep the order and were not used last by their member.
    arrivals: FastMap<(u32, u32), Time>,
    /// How often each link is cut, one way.
    cuts: FastMap<(u32, u32), u32>,
    /// How often all cuts were ended.
    era: u32,
    /// While there is a partition, the side of each member, and after those the side of each second process.
    sides: Option<Vec<u32>>,
    /// How many members there are, once there are second processes, which come behind them.
    members: u32,
    /// The member of each second process: the process shares the links of its member, unless it is on another side.
    owners: Vec<u32>,
    /// Overrides that were added later, and precede those of the model: the latest first.
    overrides: Vec<LinkRule>,
}

impl Network {
    /// A network in which nothing is cut.
    pub fn new(model: NetworkModel) -> Self {
        let (arrivals, cuts) = (FastMap::default(), FastMap::default());
        let (plain, era, sides, overrides) = (false, 0, None, Vec::new());
        let (members, owners) = (u32::MAX, Vec::new());
        let mut network =
            Self { model, plain, arrivals, cuts, era, sides, members, owners, overrides };
        network.note_what_matters();
        network
    }

    fn note_what_matters(&mut self) {
        let NetworkModel { loss, duplication, ref links, .. } = self.model;
        let uniform = loss == 0.0 && duplication == 0.0 && links.is_empty();
        let whole = self.cuts.is_empty() && self.sides.is_none();
        self.plain = uniform && whole && self.overrides.is_empty();
    }

    /// How long a member takes this time from a receipt to its reaction.
    #[inline]
    pub fn processing(&self, random: &mut Random) -> Span {
        match self.model.processing {
            0 => Span::ZERO,
            longest => Span::from_nanos(random.between(0, longest)),
        }
    }

    /// Whether nothing but the delay and the order of messages matters.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// When a message that is sent now arrives, if the network is plain.
    #[inline(always)]
    pub fn pass(
        &mut self,
        now: Time,
        from: u32,
        to: u32,
        last: &mut LastLink,
        random: &mut Random,
    ) -> Time {
        let at = now + Span::from_nanos(self.model.delay.draw(random));
        self.in_order(from, to, last, at)
    }

    /// Decides what becomes of a message that is sent now. `last` is the link that its sender used last. A `change` draws
    /// no random number: it affects no other messages, except those that wait behind this one on a link that keeps the
    /// order.
    #[expect(clippy::too_many_arguments, reason = "borrows parts of a world that it is a part of")]
    pub fn send(
        &mut self,
        now: Time,
        from: u32,
        to: u32,
        kind: usize,
        change: Option<Change>,
        last: &mut LastLink,
        random: &mut Random,
    ) -> Fate {
        if self.is_cut(from, to) {
            return Fate::Lost;
        }
        let (sender, receiver) = (self.member(from), self.member(to));
        let mut rules = self.overrides.iter().chain(&self.model.links);
        let rule = rules.find(|rule| {
            rule.fits(sender, receiver, kind)
                && rule.share.is_none_or(|share| random.happens(share))
        });
        let delay = rule.and_then(|rule| rule.delay).unwrap_or(self.model.delay);
        let loss = rule.and_then(|rule| rule.loss).unwrap_or(self.model.loss);
        if loss > 0.0 && random.happens(loss) {
            return Fate::Lost;
        }
        let takes = Span::from_nanos(delay.draw(random));
        let doubled = self.model.duplication > 0.0 && random.happens(self.model.duplication);
        let mut again = doubled.then(|| now + Span::from_nanos(delay.draw(random)));
        let mut at = now + takes;
        match change {
            None => {}
            Some(Change::Drop) => return Fate::Lost,
            Some(Change::Delay(by)) => at = at + by,
            Some(Change::Double(after)) => again = Some(at + after.unwrap_or(takes)),
        }
        let at = self.in_order(from, to, last, at);
        let again = again.map(|again| self.in_order(from, to, last, again));
        Fate::Arrives { at, again }
    }

    /// When a message that could arrive `at` does arrive: where links keep the order, not before the one before it.
    #[inline(always)]
    fn in_order(&mut self, from: u32, to: u32, last: &mut LastLink, at: Time) -> Time {
        if !self.model.fifo {
            return at;
        }
        if last.to != to {
            self.change_link(from, to, last);
        }
        let arrives = { last.arrives }.max(at);
        last.arrives = arrives;
        arrives
    }

    #[inline(never)]
    fn change_link(&mut self, from: u32, to: u32, last: &mut LastLink) {
        let LastLink { to: other, arrives } = *last;
        if arrives > Time::ZERO {
            self.arrivals.insert((from, other), arrives);
        }
        let arrives = self.arrivals.get(&(from, to)).copied().unwrap_or_default();
        *last = LastLink { to, arrives };
    }

    /// Whether no message from `from` reaches `to`.
    pub fn is_cut(&self, from: u32, to: u32) -> bool {
        let side = |sides: &Vec<u32>, process: u32| {
            let own = sides.get(process as usize);
            own.copied().unwrap_or_else(|| sides[self.member(process) as usize])
        };
        let apart = |sides: &Vec<u32>| side(sides, from) != side(sides, to);
        self.cuts.contains_key(&(self.member(from), self.member(to)))
            || self.sides.as_ref().is_some_and(apart)
    }

    /// The member of which this is a process.
    fn member(&self, process: u32) -> u32 {
        if process < self.members {
            process
        } else {
            self.owners[(process - self.members) as usize]
        }
    }

    /// The next position belongs to a second process of the member at `owner`; `members` is the number of members.
    pub fn add_process(&mut self, members: u32, owner: u32) {
        self.members = members;
        self.owners.push(owner);
    }

    /// Cuts the link from `from` to `to`. Messages in flight arrive. Returns whether the link was open before.
    pub fn cut(&mut self, from: u32, to: u32) -> bool {
        let cuts = self.cuts.entry((from, to)).or_default();
        *cuts += 1;
        let was_open = *cuts == 1;
        self.note_what_matters();
        was_open
    }

    /// Undoes one [`cut`](Self::cut): each cut of a link needs its own repair. Returns whether that opened the link.
    pub fn mend(&mut self, from: u32, to: u32) -> bool {
        let Some(cuts) = self.cuts.get_mut(&(from, to)) else { return false };
        *cuts -= 1;
        let open = *cuts == 0;
        if open {
            self.cuts.remove(&(from, to));
            self.note_what_matters();
        }
        open
    }

    /// How often all cuts were ended: a cut of an earlier era needs no repair.
    pub fn era(&self) -> u32 {
        self.era
    }

    /// Separates the members: only those with the same number in `sides` reach each other. Second processes may follow
    /// in the list; one that is not listed is on the side of its member.
    pub fn partition(&mut self, sides: Vec<u32>) {
        self.sides = Some(sides);
        self.note_what_matters();
    }

    /// From now on `rule` decides about the messages that it matches, before all others.
    pub fn disturb(&mut self, rule: LinkRule) {
        self.overrides.insert(0, rule);
        self.note_what_matters();
    }

    /// Ends every cut, every partition and every later override.
    pub fn heal(&mut self) {
        self.era += 1;
        self.cuts.clear();
        self.sides = None;
        self.overrides.clear();
        self.note_what_matters();
    }
}

/// The link that a member used last, and when what it sent arrives. Kept with the member: on a ring it has no other.
/// Packed, so that it fits in there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, packed(4))]
pub struct LastLink {
    to: u32,
    arrives: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(fate: Fate) -> u64 {
        match fate {
            Fate::Arrives { at, .. } => at.0,
            Fate::Lost => panic!("lost"),
        }
    }

    #[test]
    fn fifo_links_are_never_overtaken() {
        let delay = DelayModel::Uniform { min: 1, max: 100 };
        let model = NetworkModel { delay, fifo: true, ..NetworkModel::fixed(1) };
        let mut network = Network::new(model);
        let mut random = Random::new(1);
        let mut last = LastLink::default();
        let mut arrivals = [Vec::new(), Vec::new(), Vec::new()];
        for now in 0..200 {
            let to = random.between(0, 2) as u32;
            let fate = network.send(Time(now), 3, to, 0, None, &mut last, &mut random);
            arrivals[to as usize].push(arrival(fate));
        }
        for arrivals in arrivals {
            assert!(arrivals.len() > 20 && arrivals.is_sorted(), "{arrivals:?}");
        }
    }

    #[test]
    fn a_cut_has_one_direction_and_a_heal_ends_everything() {
        let mut network = Network::new(NetworkModel::fixed(1));
        network.cut(0, 1);
        assert!(network.is_cut(0, 1) && !network.is_cut(1, 0));
        network.partition(vec![0, 0, 1]);
        assert!(network.is_cut(0, 2) && network.is_cut(2, 1) && !network.is_cut(1, 0));
        network.heal();
        let (mut last, mut random) = (LastLink::default(), Random::new(1));
        assert_eq!(arrival(network.send(Time(5), 0, 1, 0, None, &mut last, &mut random)), 6);
    }

    #[test]
    fn a_link_is_open_when_each_of_its_cuts_is_mended() {
        let mut network = Network::new(NetworkModel::fixed(1));
        assert!(network.cut(0, 1) && !network.cut(0, 1));
        assert!(!network.mend(0, 1) && network.is_cut(0, 1));
        assert!(network.mend(0, 1) && !network.is_cut(0, 1));
        assert!(!network.mend(0, 1));
    }

    #[test]
    fn the_first_link_rule_that_fits_decides() {
        let slow = LinkRule {
            from: Some(2),
            kind: Some(1),
            delay: Some(DelayModel::Fixed(9)),
            ..LinkRule::default()
        };
        let lossy = LinkRule { to: Some(1), loss: Some(1.0), ..LinkRule::default() };
        let model = NetworkModel { links: vec![slow, lossy], ..NetworkModel::fixed(1) };
        let mut network = Network::new(model);
        let (mut last, mut random) = (LastLink::default(), Random::new(1));
        let mut send = |to, kind| network.send(Time(0), 2, to, kind, None, &mut last, &mut random);
        assert_eq!(arrival(send(1, 1)), 9);
        assert_eq!(send(1, 0), Fate::Lost);
        assert_eq!(arrival(send(0, 0)), 1);
    }

    #[test]
    fn the_latest_disturbance_decides_until_all_is_healed() {
        let mut network = Network::new(NetworkModel::fixed(1));
        let slow = |to, delay| LinkRule {
            to,
            delay: Some(DelayModel::Fixed(delay)),
            ..LinkRule::default()
        };
        network.disturb(slow(None, 5));
        network.disturb(slow(Some(1), 9));
        assert!(!network.is_plain());
        let (mut last, mut random) = (LastLink::default(), Random::new(1));
        let mut send = |network: &mut Network, to| {
            arrival(network.send(Time(0), 2, to, 0, None, &mut last, &mut random))
        };
        assert_eq!((send(&mut network, 1), send(&mut network, 0)), (9, 5));
        network.heal();
        assert_eq!((send(&mut network, 1), network.is_plain()), (1, true));
    }
}
