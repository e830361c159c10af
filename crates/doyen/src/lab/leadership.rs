//! Intervals of leadership, and what follows from them: downtime, overlap, failovers.
//!
//! Only intervals are recorded; everything else is computed from them, so it does not matter in which order the news of
//! several members arrives. A leadership under a lease ends when the process dies, the lease is given up, or the lease
//! runs out, whichever comes first. Without leases it lasts as long as the member says that it leads.

use std::collections::VecDeque;

use doyen::clock::Moment;
use doyen_core::change::ElectionReason;

/// How many intervals are kept.
const MOST: usize = 1000;

/// Why a leadership ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The process of the leader ended.
    Died,
    /// Its lease was not renewed.
    Lapsed,
    /// It gave its lease up, or says that it leads no longer.
    GivenUp,
}

/// An interval in which a member led.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Interval {
    /// Its place among the members.
    pub(crate) member: usize,
    pub(crate) term: u64,
    pub(crate) from: Moment,
    /// When it ended, and why; none while it lasts.
    pub(crate) to: Option<(Moment, End)>,
    /// The deadline of its lease, if it leads under one.
    pub(crate) deadline: Option<Moment>,
    /// How it came to lead, once the member has told.
    pub(crate) campaign: Option<Campaign>,
}

impl Interval {
    /// When it ended; one that lasts ends after all others.
    fn end(&self) -> Moment {
        self.to.map_or(Moment::from_nanos(u64::MAX), |(to, _)| to)
    }

    /// Whether it led at any time: the news of an end may be dated before that of the beginning.
    fn led(&self) -> bool {
        self.end() > self.from
    }

    /// For how long this and another one led both, in microseconds, if one of them has ended.
    fn overlap(&self, other: &Self) -> u64 {
        let end = self.to.into_iter().chain(other.to).map(|(to, _)| to).min();
        end.map_or(0, |end| micros(self.from.max(other.from), end))
    }
}

/// How a member came to lead, as it tells itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Campaign {
    pub(crate) reason: Option<ElectionReason>,
    /// The reason as text.
    pub(crate) why: String,
    /// When it noticed that the last leader was gone, if it did.
    pub(crate) lost_contact: Option<Moment>,
    /// How long it campaigned until it led, in microseconds.
    pub(crate) campaign_us: Option<u64>,
}

/// Leadership passed from one member to another, or came back after a gap.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Failover<'a> {
    pub(crate) before: &'a Interval,
    pub(crate) after: &'a Interval,
    pub(crate) downtime_us: u64,
    pub(crate) overlap_us: u64,
}

impl Failover<'_> {
    /// The same leader in the same term: its lease lapsed and came back.
    pub(crate) fn is_gap(&self) -> bool {
        (self.before.member, self.before.term) == (self.after.member, self.after.term)
    }
}

/// A time in which no member led, or several did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) from: Moment,
    /// None while it lasts.
    pub(crate) to: Option<Moment>,
    /// The members that led, in the order of their places; empty if none did.
    pub(crate) members: Vec<usize>,
}

/// The intervals, in the order of their beginnings.
#[derive(Debug, Default)]
pub(crate) struct Leadership {
    intervals: VecDeque<Interval>,
}

impl Leadership {
    pub(crate) fn intervals(&self) -> impl DoubleEndedIterator<Item = &Interval> {
        self.intervals.iter()
    }

    /// The members that lead, the latest first.
    pub(crate) fn current(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().rev().filter(|interval| interval.to.is_none())
    }

    /// Whether a member leads.
    pub(crate) fn leads(&self, member: usize) -> Option<&Interval> {
        self.current().find(|interval| interval.member == member)
    }

    /// A member leads, under a lease until `deadline` if it has one. Returns whether that is news.
    pub(crate) fn lead(
        &mut self,
        member: usize,
        term: u64,
        at: Moment,
        deadline: Option<Moment>,
    ) -> bool {
        if let Some(interval) = self.open(member) {
            if interval.term == term {
                interval.deadline = deadline.max(interval.deadline);
                return false;
            }
            self.end(member, at, End::GivenUp);
        }
        let interval = Interval { member, term, from: at, to: None, deadline, campaign: None };
        let place = self.intervals.partition_point(|other| other.from <= at);
        self.intervals.insert(place, interval);
        while self.intervals.len() > MOST {
            self.intervals.pop_front();
        }
        true
    }

    /// A member leads no longer. Returns whether that is news.
    pub(crate) fn end(&mut self, member: usize, at: Moment, why: End) -> bool {
        let Some(interval) = self.open(member) else { return false };
        // The news may come late, and a lease ends by itself.
        let end = match interval.deadline {
            Some(deadline) if deadline < at => (deadline, End::Lapsed),
            _ => (at, why),
        };
        interval.to = Some((end.0.max(interval.from), end.1));
        true
    }

    /// A member tells how it came to lead in this term.
    pub(crate) fn explain(&mut self, member: usize, term: u64, campaign: Campaign) {
        let is_it = |interval: &&mut Interval| (interval.member, interval.term) == (member, term);
        if let Some(interval) = self.intervals.iter_mut().find(is_it) {
            interval.campaign = Some(campaign);
        }
    }

    /// When the next lease ends that is not renewed.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.current().filter_map(|interval| interval.deadline).min()
    }

    /// Forgets what ended before `then`; the last leadership is kept.
    pub(crate) fn forget(&mut self, then: Moment) {
        let is_old = |interval: &Interval| interval.to.is_some_and(|(to, _)| to < then);
        while self.intervals.len() > 1 && self.intervals.front().is_some_and(is_old) {
            self.intervals.pop_front();
        }
    }

    /// The times between two leaders, the last one perhaps still going on.
    pub(crate) fn downtime(&self) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.members.is_empty()).collect()
    }

    /// The times with several leaders.
    pub(crate) fn overlap(&self) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.members.len() > 1).collect()
    }

    /// Every change from one leader to the next, the oldest first. The leader before is the one that ended last, which may be
    /// after the next one began.
    pub(crate) fn failovers(&self) -> Vec<Failover<'_>> {
        let mut failovers = Vec::new();
        let mut last: Option<&Interval> = None;
        let mut lasting: Vec<&Interval> = Vec::new();
        for after in self.intervals.iter().filter(|it| it.led()) {
            // They begin later and later, so one that has ended overlaps none of those to come.
            lasting.retain(|it| it.end() > after.from);
            if let Some(before) = last {
                let downtime_us = micros(before.end(), after.from);
                let overlap_us = lasting.iter().map(|it| it.overlap(after)).sum();
                failovers.push(Failover { before, after, downtime_us, overlap_us });
            }
            lasting.push(after);
            last = last.filter(|it| it.end() > after.end()).or(Some(after));
        }
        failovers
    }

    /// How this one came to lead after another, if another one led before.
    pub(crate) fn failover_to(&self, leader: &Interval) -> Option<Failover<'_>> {
        self.failovers().into_iter().rfind(|failover| failover.after == leader)
    }

    /// The leadership that ended last, or lasts.
    pub(crate) fn last(&self) -> Option<&Interval> {
        self.intervals.iter().max_by_key(|it| it.end())
    }

    fn open(&mut self, member: usize) -> Option<&mut Interval> {
        self.intervals.iter_mut().find(|it| it.member == member && it.to.is_none())
    }

    /// The time from the first leader to now, cut wherever the set of leaders changes.
    fn spans(&self) -> Vec<Span> {
        let mut changes: Vec<(Moment, bool, usize)> = Vec::new();
        for interval in self.intervals.iter().filter(|it| it.led()) {
            changes.push((interval.from, true, interval.member));
            changes.extend(interval.to.map(|(to, _)| (to, false, interval.member)));
        }
        changes.sort_unstable();
        let mut spans: Vec<Span> = Vec::new();
        let mut members: Vec<usize> = Vec::new();
        for (at, begins, member) in changes {
            match begins {
                true => members.push(member),
                false => {
                    if let Some(place) = members.iter().position(|&it| it == member) {
                        members.remove(place);
                    }
                }
            }
            // Of several changes at one instant the last one counts.
            spans.pop_if(|last| last.from == at);
            if let Some(last) = spans.last_mut() {
                last.to = Some(at);
            }
            let mut leaders = members.clone();
            leaders.sort_unstable();
            spans.push(Span { from: at, to: None, members: leaders });
        }
        spans
    }
}

/// The time from `from` to `to` in microseconds; 0 if `to` is earlier.
pub(crate) fn micros(from: Moment, to: Moment) -> u64 {
    to.since(from).as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn lengths(spans: &[Span]) -> Vec<(Moment, Option<Moment>)> {
        spans.iter().map(|span| (span.from, span.to)).collect()
    }

    /// The news of an end may be dated before that of the beginning.
    #[test]
    fn a_leadership_of_no_length_is_neither_overlap_nor_an_end_of_downtime() {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.end(4, ms(50), End::Died);
        leadership.lead(3, 2, ms(101), None);
        leadership.end(3, ms(100), End::GivenUp);
        leadership.lead(2, 3, ms(200), None);
        assert_eq!(lengths(&leadership.overlap()), []);
        assert_eq!(lengths(&leadership.downtime()), [(ms(50), Some(ms(200)))]);
    }

    #[test]
    fn downtime_lasts_from_the_death_of_the_leader_to_the_lease_of_the_next() {
        let mut leadership = Leadership::default();
        assert!(leadership.lead(4, 1, ms(100), Some(ms(330))));
        assert!(!leadership.lead(4, 1, ms(150), Some(ms(380))), "a renewal is no news");
        assert!(leadership.end(4, ms(200), End::Died));
        assert_eq!(lengths(&leadership.downtime()), [(ms(200), None)]);
        assert!(leadership.lead(3, 2, ms(440), Some(ms(670))));
        assert_eq!(lengths(&leadership.downtime()), [(ms(200), Some(ms(440)))]);
        let failovers = leadership.failovers();
        let [failover] = &failovers[..] else { panic!("{failovers:?}") };
        assert_eq!((failover.before.member, failover.after.member), (4, 3));
        assert_eq!((failover.downtime_us, failover.overlap_us), (240_000, 0));
        assert!(leadership.overlap().is_empty() && !failover.is_gap());
    }

    #[test]
    fn a_lease_that_is_not_renewed_ends_by_itself_however_late_that_is_noticed() {
        let mut leadership = Leadership::default();
        leadership.lead(0, 1, ms(0), Some(ms(230)));
        assert_eq!(leadership.next_deadline(), Some(ms(230)));
        leadership.end(0, ms(900), End::Died);
        assert_eq!(leadership.intervals().next().unwrap().to, Some((ms(230), End::Lapsed)));
        leadership.lead(1, 2, ms(300), Some(ms(530)));
        assert!(leadership.overlap().is_empty());
        assert_eq!(leadership.failovers()[0].downtime_us, 70_000);
    }

    #[test]
    fn two_who_claim_to_lead_overlap_until_one_gives_way() {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.lead(3, 2, ms(100), None);
        let [overlap] = &leadership.overlap()[..] else { panic!("one overlap") };
        assert_eq!((overlap.from, overlap.to, &overlap.members[..]), (ms(100), None, &[3, 4][..]));
        leadership.end(4, ms(112), End::GivenUp);
        assert_eq!(lengths(&leadership.overlap()), [(ms(100), Some(ms(112)))]);
        let failover = &leadership.failovers()[0];
        assert_eq!((failover.downtime_us, failover.overlap_us), (0, 12_000));
    }

    fn members(failovers: &[Failover<'_>]) -> Vec<(usize, usize)> {
        failovers.iter().map(|it| (it.before.member, it.after.member)).collect()
    }

    #[test]
    fn the_leader_before_is_the_one_that_ended_last() {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.lead(3, 2, ms(50), None);
        leadership.end(3, ms(100), End::GivenUp);
        leadership.end(4, ms(200), End::Died);
        assert_eq!(leadership.last().map(|it| it.member), Some(4));
        leadership.lead(2, 3, ms(250), None);
        let failovers = leadership.failovers();
        assert_eq!(members(&failovers), [(4, 3), (4, 2)]);
        assert_eq!(failovers.iter().map(|it| it.overlap_us).collect::<Vec<_>>(), [50_000, 0]);
        assert_eq!(failovers.iter().map(|it| it.downtime_us).collect::<Vec<_>>(), [0, 50_000]);
    }

    #[test]
    fn one_that_still_claims_to_lead_is_the_leader_before() {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.lead(3, 2, ms(50), None);
        leadership.end(3, ms(100), End::Died);
        leadership.lead(2, 3, ms(150), None);
        assert_eq!(members(&leadership.failovers()), [(4, 3), (4, 2)]);
        leadership.end(4, ms(180), End::GivenUp);
        assert_eq!(members(&leadership.failovers()), [(4, 3), (4, 2)], "its end changes nothing");
        assert_eq!(leadership.failovers()[1].overlap_us, 30_000);
    }

    #[test]
    fn a_leadership_of_no_length_is_no_failover() {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.end(4, ms(50), End::Died);
        leadership.lead(3, 2, ms(101), None);
        leadership.end(3, ms(100), End::GivenUp);
        leadership.lead(2, 3, ms(200), None);
        assert_eq!(members(&leadership.failovers()), [(4, 2)]);
        assert_eq!(leadership.failovers()[0].downtime_us, 150_000);
    }

    #[test]
    fn news_that_come_in_the_wrong_order_give_the_same_result() {
        let mut leadership = Leadership::default();
        leadership.lead(4, 1, ms(0), None);
        leadership.lead(3, 2, ms(101), None);
        leadership.end(4, ms(100), End::GivenUp);
        assert!(leadership.overlap().is_empty());
        assert_eq!(lengths(&leadership.downtime()), [(ms(100), Some(ms(101)))]);
    }

    #[test]
    fn a_leader_that_comes_back_in_its_term_had_a_gap() {
        let mut leadership = Leadership::default();
        leadership.lead(2, 1, ms(0), Some(ms(230)));
        leadership.end(2, ms(240), End::Lapsed);
        leadership.lead(2, 1, ms(260), Some(ms(490)));
        assert!(leadership.failovers()[0].is_gap());
        assert_eq!(leadership.failovers()[0].downtime_us, 30_000);
        leadership.forget(ms(250));
        assert_eq!(leadership.intervals().count(), 1);
        leadership.forget(ms(9000));
        assert_eq!(leadership.current().count(), 1, "the last one is kept");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut leadership = Leadership::default();
        for round in 0..3000 {
            leadership.lead(0, round, ms(round * 10), None);
        }
        assert_eq!(leadership.intervals().count(), MOST);
    }
}
