//! A world of clocks with offsets and rates, and of ways that take any time between two bounds.

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

/// A clock: what it shows at the beginning, how fast it runs, and what it has yet to be slewed by.
#[derive(Clone, Debug)]
struct Clock {
    shows: i64,
    rate_ppm: i64,
    slew: i64,
}

impl Clock {
    fn at(shows: i64) -> Self {
        Self { shows, rate_ppm: 0, slew: 0 }
    }

    /// Runs for this long. B4: a correction changes its rate, and nothing else.
    fn run(&mut self, nanos: i64) {
        let most = nanos * SLEW_PPM as i64 / 1_000_000;
        let part = self.slew.clamp(-most, most);
        self.slew -= part;
        self.shows += nanos + nanos * self.rate_ppm / 1_000_000 + part;
    }

    /// What it shows once it has been slewed.
    fn target(&self) -> i64 {
        self.shows + self.slew
    }
}

/// How long POLL to a member takes, and CLOCK back.
type Ways = (i64, i64);

/// One round at an instant: every clock is read while POLL and CLOCK are under way, by an observer whose clock shows 0 when
/// the round begins.
fn play(clocks: &mut [Clock], ways: &[Ways], limits: &Limits) -> Round<usize> {
    let readings = clocks.iter().zip(ways).map(|(clock, &(there, back))| {
        let mut read = clock.clone();
        read.run(there);
        Reading { sent: 0, received: there + back, clock: read.target() }
    });
    let readings: BTreeMap<usize, Reading> = readings.enumerate().collect();
    let round = round(clocks.len(), &readings, limits);
    for (&member, finding) in &round.members {
        clocks[member].slew += finding.slew.unwrap_or(0);
    }
    round
}

fn largest_difference(shown: impl Iterator<Item = i64> + Clone) -> i64 {
    shown.clone().max().unwrap_or(0) - shown.min().unwrap_or(0)
}

/// Clocks within 40 ms of each other, and ways of 1 ms to 5 ms.
fn group() -> impl Strategy<Value = (Vec<Clock>, Vec<Ways>)> {
    let clock = (-20 * MS..20 * MS).prop_map(Clock::at);
    let ways = (MS..=5 * MS, MS..=5 * MS);
    proptest::collection::vec((clock, ways), 3..12).prop_map(|all| all.into_iter().unzip())
}

/// ε, half of what the two ways can differ by.
const ASYMMETRY: i64 = (5 - 1) * MS / 2;
const LIMITS: Limits = Limits { round_trip: Span::from_millis(10), gamma: Span::from_millis(50) };

/// The midpoint and the average are rounded.
const ROUNDING: i64 = 2;

proptest! {
    #[test]
    fn clocks_agree_within_twice_the_asymmetry((mut clocks, ways) in group()) {
        let round = play(&mut clocks, &ways, &LIMITS);
        prop_assert!(round.average.is_some());
        let difference = largest_difference(clocks.iter().map(Clock::target));
        prop_assert!(difference <= 2 * ASYMMETRY + ROUNDING, "{difference}: {clocks:?} {round:?}");
        for (member, finding) in &round.members {
            let (there, back) = ways[*member];
            let error = finding.reading.offset().abs_diff(clocks[*member].shows);
            prop_assert!(error <= finding.reading.uncertainty().as_nanos());
            prop_assert!(error <= there.abs_diff(back).div_ceil(2));
        }
    }

    #[test]
    fn between_rounds_they_differ_by_what_their_rates_add(
        (clocks, ways) in group(),
        rates in proptest::collection::vec(-50i64..=50, 12),
    ) {
        let mut clocks = clocks;
        for (clock, rate_ppm) in clocks.iter_mut().zip(rates) {
            clock.rate_ppm = rate_ppm;
        }
        // Long enough for 50 ms to be slewed at 500 ppm.
        let period = 100_000 * MS;
        for _ in 0..4 {
            play(&mut clocks, &ways, &LIMITS);
            let before: Vec<i64> = clocks.iter().map(|clock| clock.shows).collect();
            clocks.iter_mut().for_each(|clock| clock.run(period));
            let is_monotonic = clocks.iter().zip(before).all(|(clock, before)| clock.shows > before);
            prop_assert!(is_monotonic, "time steps back");
        }
        // 2ε + 2ρT, and the rates while the ways were under way.
        let bound = 2 * ASYMMETRY + 2 * period / 20_000 + MS;
        let difference = largest_difference(clocks.iter().map(|clock| clock.shows));
        prop_assert!(difference <= bound, "{difference} > {bound}");
    }

    #[test]
    fn an_outlier_is_not_averaged((mut clocks, ways) in group(), ahead in 200i64..100_000, sign in any::<bool>()) {
        let last = clocks.len() - 1;
        let without = {
            let mut clocks = clocks[..last].to_vec();
            play(&mut clocks, &ways[..last], &LIMITS).average
        };
        clocks[last].shows = if sign { ahead * MS } else { -ahead * MS };
        let round = play(&mut clocks, &ways, &LIMITS);
        prop_assert_eq!(round.average, without, "it moves no other clock");
        prop_assert_eq!(round.members[&last].standing, Standing::Outlier);
        // It is corrected nevertheless.
        let difference = largest_difference(clocks.iter().map(Clock::target));
        prop_assert!(difference <= 2 * ASYMMETRY + ROUNDING);
    }
}

/// M24: a clock that no one can correct, and that is always γ ahead of the others.
#[test]
fn a_clock_that_stays_within_gamma_pulls_all_others_along() {
    let gamma = LIMITS.gamma.as_nanos() as i64;
    let mut clocks = vec![Clock::at(0); 5];
    for _ in 0..100 {
        clocks[4] = Clock::at(clocks[0].target() + gamma);
        let round = play(&mut clocks, &[(MS, MS); 5], &LIMITS);
        assert!(round.members.values().all(|it| it.standing == Standing::Averaged), "{round:?}");
    }
    assert!(clocks[..4].iter().all(|clock| clock.target() == 20 * gamma), "{clocks:?}");
}

#[test]
fn without_a_majority_that_agrees_no_clock_is_corrected() {
    let mut clocks: Vec<Clock> = [0, 10, 200, 210].map(|shows| Clock::at(shows * MS)).into();
    let round = play(&mut clocks, &[(MS, MS); 4], &LIMITS);
    assert_eq!(round.average, None);
    assert!(round.members.values().all(|it| it.slew.is_none()));
    assert!(round.members.values().all(|it| it.standing == Standing::Outlier));

    // Two of three answer and agree; two of five are too few.
    let answers = BTreeMap::from([(1, reading(0, 2, 1)), (2, reading(0, 2, 3))]);
    assert_eq!(super::round(3, &answers, &LIMITS).average, Some(MS));
    assert_eq!(super::round(5, &answers, &LIMITS).average, None);
    assert_eq!(super::round(0, &BTreeMap::<u8, Reading>::new(), &LIMITS).average, None);
}

/// Times in milliseconds.
fn reading(sent: i64, received: i64, clock: i64) -> Reading {
    Reading { sent: sent * MS, received: received * MS, clock: clock * MS }
}

#[test]
fn an_answer_that_took_too_long_is_dropped() {
    let answers = BTreeMap::from([
        (1, reading(0, 2, 1)),
        (2, reading(0, 2, 1)),
        // Its clock is right, but the answer was under way for 30 ms.
        (3, reading(0, 32, 1)),
    ]);
    let round = round(3, &answers, &LIMITS);
    assert_eq!((round.average, round.members[&3].standing), (Some(0), Standing::Slow));
    assert_eq!(round.members[&3].slew, None);
}

#[test]
fn of_several_answers_the_fastest_says_most() {
    let best = best([reading(0, 9, 8), reading(20, 22, 21), reading(40, 47, 41)]);
    assert_eq!(best, Some(reading(20, 22, 21)));
    assert_eq!(best.map(|it| (it.offset(), it.uncertainty())), Some((0, Span::from_millis(1))));
    assert_eq!(super::best([]), None);
}

#[test]
fn readings_of_any_size_do_no_harm() {
    let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
    let mut readings = BTreeMap::new();
    for sent in extremes {
        for received in extremes {
            for clock in extremes {
                readings.insert((sent, received, clock), Reading { sent, received, clock });
            }
        }
    }
    let limits =
        Limits { round_trip: Span::from_nanos(u64::MAX), gamma: Span::from_nanos(u64::MAX) };
    let round = round(readings.len(), &readings, &limits);
    for finding in round.members.values() {
        slewing_time(finding.slew.unwrap_or(i64::MIN));
    }
}
