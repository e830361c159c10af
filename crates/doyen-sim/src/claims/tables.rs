//! Every algorithm's best, worst and average case.

use doyen_core::config::Variant;
use doyen_core::registry::Algorithm::{
    self, Bully, ChangRoberts, ModifiedBully, RingActiveList, RingAllIds, RingList, RingResilient,
};
use serde::Serialize;

use super::setting::Setting;
use super::{Measured, Runner, same};
use crate::scenario::{Case, Convention};

/// The costs of one algorithm.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// One row a case and size.
    pub rows: Vec<Row>,
}

/// Theory and measurement of one case at one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// `best`, `worst`, `average` or another word.
    pub case: &'static str,
    /// What makes it that case.
    pub about: &'static str,
    /// `textbook`, `hardened` or a literal variant.
    pub mode: String,
    /// Which members n counts.
    pub convention: Convention,
    /// Whether crashed members are contacted, because nobody knows that they crashed.
    pub contact_dead: bool,
    /// How many members that are.
    pub n: u32,
    /// How many messages it takes, in terms of n.
    pub formula: &'static str,
    /// The value of the formula.
    pub expected: f64,
    /// The messages counted; their mean, if it is an average.
    pub messages: f64,
    /// Whether the two are the same; for a sample, whether they are within five percent of each other.
    pub matches: bool,
    /// How many runs were made.
    pub runs: usize,
    /// Whether these are all runs that the case stands for.
    pub exhaustive: bool,
    /// The longest chain of messages, each sent because of the one before; the mean, if it is an average.
    pub stages: f64,
    /// From the first election to the last receipt in units of D; the mean, if it is an average.
    pub turnaround: f64,
    /// From the first election until everybody knows the leader in units of D; the mean, if it is an average.
    pub informed: f64,
}

/// The costs of every algorithm.
pub fn tables(runner: Runner<'_>) -> Vec<Table> {
    let plans = [
        bully(),
        modified_bully(),
        list_ring(),
        active_list(),
        all_ids(),
        chang_roberts(),
        resilient(),
    ];
    let cases: Vec<Case> = plans.iter().flatten().flat_map(Line::cases).collect();
    let mut measured = runner(&cases).into_iter();
    let rows = |lines: Vec<Line>| -> Vec<Row> {
        lines.iter().map(|line| line.row(&mut measured)).collect()
    };
    let rows: Vec<Vec<Row>> = plans.into_iter().map(rows).collect();
    let table = |(algorithm, rows): (Algorithm, _)| Table { algorithm: algorithm.name(), rows };
    Algorithm::SEEDS.into_iter().zip(rows).map(table).collect()
}

/// One row in the making.
#[derive(Clone)]
struct Line {
    case: &'static str,
    about: &'static str,
    n: u32,
    formula: &'static str,
    expected: f64,
    settings: Vec<Setting>,
    exhaustive: bool,
}

impl Line {
    fn cases(&self) -> impl Iterator<Item = Case> {
        self.settings.iter().map(Setting::case)
    }

    fn row(&self, measured: &mut impl Iterator<Item = Measured>) -> Row {
        let measured: Vec<Measured> = measured.take(self.settings.len()).collect();
        let mean =
            |of: fn(&Measured) -> f64| measured.iter().map(of).sum::<f64>() / measured.len() as f64;
        let messages = mean(|one| one.messages as f64);
        let case = self.settings[0].case();
        Row {
            case: self.case,
            about: self.about,
            mode: case.mode().to_string(),
            convention: case.convention,
            contact_dead: case.contact_dead,
            n: self.n,
            formula: self.formula,
            expected: self.expected,
            messages,
            matches: match self.exhaustive {
                true => same(messages, self.expected),
                false => (messages / self.expected - 1.0).abs() < 0.05,
            },
            runs: measured.len(),
            exhaustive: self.exhaustive,
            stages: mean(|one| f64::from(one.stages)),
            turnaround: mean(|one| one.turnaround),
            informed: mean(|one| one.informed),
        }
    }
}

/// A case of an algorithm, for any size.
#[derive(Clone, Copy)]
struct Plan {
    case: &'static str,
    about: &'static str,
    formula: &'static str,
    expected: fn(f64) -> f64,
    /// The runs of which the case consists.
    runs: fn(u32) -> Vec<Setting>,
    exhaustive: bool,
}

/// Sizes for what grows slowly, and for what does not.
const WIDE: &[u32] = &[5, 10, 100, 1000];
const NARROW: &[u32] = &[5, 10, 100];

impl Plan {
    fn new(
        [case, about, formula]: [&'static str; 3],
        expected: fn(f64) -> f64,
        runs: fn(u32) -> Vec<Setting>,
    ) -> Self {
        Self { case, about, formula, expected, runs, exhaustive: true }
    }

    fn lines(self, sizes: &[u32], set: fn(Setting) -> Setting) -> Vec<Line> {
        let line = |&n: &u32| Line {
            case: self.case,
            about: self.about,
            n,
            formula: self.formula,
            expected: (self.expected)(f64::from(n)),
            settings: (self.runs)(n).into_iter().map(set).collect(),
            exhaustive: self.exhaustive,
        };
        sizes.iter().map(line).collect()
    }

    fn textbook(self, sizes: &[u32]) -> Vec<Line> {
        self.lines(sizes, |setting| setting)
    }

    fn hardened(self, sizes: &[u32]) -> Vec<Line> {
        self.lines(sizes, Setting::hardened)
    }

    /// In textbook mode, and in hardened mode if the group is not large.
    fn both(self, sizes: &[u32]) -> Vec<Line> {
        [self.textbook(sizes), self.hardened(NARROW)].concat()
    }

    /// Not all the runs of the case, but enough for a good mean.
    fn sampled(self) -> Self {
        Self { exhaustive: false, ..self }
    }
}

const HIGHEST_DETECTS: &str = "the highest live member detects";
const LOWEST_DETECTS: &str = "the lowest member detects";
const ANY_DETECTS: &str = "each member detects in turn";
const ALL_DETECT: &str = "all members detect at once";

fn bully() -> Vec<Line> {
    let best = Plan::new(
        ["best", HIGHEST_DETECTS, "n-1"],
        |n| n - 1.0,
        |n| vec![Setting::live(Bully, n).start(&[n])],
    );
    let eager = Plan::new(
        ["best", "the highest live member detects and does not wait for answers", "n-1"],
        |n| n - 1.0,
        |n| vec![Setting::live(Bully, n).start(&[n]).read_as(Variant::Eager)],
    );
    let second = Plan::new(
        ["best", "the second highest detects and knows that it is the highest now", "N-2"],
        |n| n - 2.0,
        |n| vec![Setting::configured(Bully, n).start(&[n - 1])],
    );
    let second_asks = Plan::new(
        ["best", "the second highest detects and asks the crashed one", "N-1"],
        |n| n - 1.0,
        |n| vec![Setting::configured(Bully, n).contacting().start(&[n - 1])],
    );
    let worst = Plan::new(
        ["worst", LOWEST_DETECTS, "n^2-1"],
        |n| n * n - 1.0,
        |n| vec![Setting::live(Bully, n)],
    );
    let contacted = Plan::new(
        ["worst", LOWEST_DETECTS, "(N-1)^2+N-2"],
        |n| (n - 1.0) * (n - 1.0) + n - 2.0,
        |n| vec![Setting::configured(Bully, n).contacting()],
    );
    let all_told =
        Plan { formula: "(N-1)^2+N-1", expected: |n| (n - 1.0) * (n - 1.0) + n - 1.0, ..contacted };
    let average = Plan::new(
        ["average", ANY_DETECTS, "(n^2-1)/3+n-1"],
        |n| (n * n - 1.0) / 3.0 + n - 1.0,
        |n| (1..=n).map(|r| Setting::live(Bully, n).start(&[r])).collect(),
    );
    let all = Plan::new(
        ["all start", ALL_DETECT, "n^2-1"],
        |n| n * n - 1.0,
        |n| vec![Setting::live(Bully, n).all_start()],
    );
    [
        best.both(WIDE),
        eager.textbook(WIDE),
        second.textbook(WIDE),
        second_asks.textbook(WIDE),
        worst.both(WIDE),
        contacted.textbook(NARROW),
        all_told.hardened(NARROW),
        average.both(NARROW),
        all.both(NARROW),
    ]
    .concat()
}

fn modified_bully() -> Vec<Line> {
    let best = Plan::new(
        ["best", HIGHEST_DETECTS, "n-1"],
        |n| n - 1.0,
        |n| vec![Setting::live(ModifiedBully, n).start(&[n])],
    );
    let worst = Plan::new(
        ["worst", LOWEST_DETECTS, "3n-2"],
        |n| 3.0 * n - 2.0,
        |n| vec![Setting::live(ModifiedBully, n)],
    );
    let contacted = Plan::new(
        ["worst", LOWEST_DETECTS, "3N-3"],
        |n| 3.0 * n - 3.0,
        |n| vec![Setting::configured(ModifiedBully, n).contacting()],
    );
    let average = Plan::new(
        ["average", ANY_DETECTS, "2n-1-1/n"],
        |n| 2.0 * n - 1.0 - 1.0 / n,
        |n| (1..=n).map(|r| Setting::live(ModifiedBully, n).start(&[r])).collect(),
    );
    let all = Plan::new(
        ["all start", ALL_DETECT, "(n^2+3n-2)/2"],
        |n| (n * n + 3.0 * n - 2.0) / 2.0,
        |n| vec![Setting::live(ModifiedBully, n).all_start()],
    );
    [best.both(WIDE), worst.both(WIDE), contacted.both(WIDE), average.both(NARROW), all.both(WIDE)]
        .concat()
}

/// What the two rings with a list have in common.
fn lists(one: fn(u32) -> Vec<Setting>, all: fn(u32) -> Vec<Setting>) -> [Plan; 2] {
    let every = Plan::new(["every", "any member detects", "2n"], |n| 2.0 * n, one);
    let all = Plan::new(["all start", ALL_DETECT, "2n^2"], |n| 2.0 * n * n, all);
    [every, all]
}

fn list_ring() -> Vec<Line> {
    let [every, all] = lists(
        |n| [1, n / 2, n].map(|id| Setting::live(RingList, n).start(&[id])).to_vec(),
        |n| vec![Setting::live(RingList, n).all_start()],
    );
    let polled = Plan::new(
        ["one dead", "the dead member is polled in both circuits", "2N"],
        |n| 2.0 * n,
        |n| vec![Setting::configured(RingList, n).contacting()],
    );
    [every.both(WIDE), polled.both(WIDE), all.textbook(NARROW)].concat()
}

fn resilient() -> Vec<Line> {
    let [every, all] = lists(
        |n| [1, n / 2, n].map(|id| Setting::live(RingResilient, n).start(&[id])).to_vec(),
        |n| vec![Setting::live(RingResilient, n).all_start()],
    );
    let repeated = Plan::new(
        [
            "winner dies",
            "the winner crashes once it is on the list, and is probed in three circuits",
            "4n",
        ],
        |n| 4.0 * n,
        |n| vec![Setting::live(RingResilient, n).crash_at(n, f64::from(n) - 0.5)],
    );
    [every.both(WIDE), repeated.textbook(WIDE), all.textbook(NARROW)].concat()
}

fn active_list() -> Vec<Line> {
    let every = Plan::new(
        ["every", "any member detects", "n^2"],
        |n| n * n,
        |n| vec![Setting::live(RingActiveList, n)],
    );
    let all = Plan::new(
        ["all start", ALL_DETECT, "n^2"],
        |n| n * n,
        |n| vec![Setting::live(RingActiveList, n).all_start()],
    );
    [every.both(NARROW), all.textbook(NARROW)].concat()
}

fn all_ids() -> Vec<Line> {
    let every = Plan::new(
        ["every", "any member detects", "n^2+n"],
        |n| n * n + n,
        |n| vec![Setting::live(RingAllIds, n)],
    );
    let absorbed = Plan::new(
        ["every", "one member detects and takes the others' messages off the ring", "n(n+1)/2+n"],
        |n| n * (n + 1.0) / 2.0 + n,
        |n| vec![Setting::live(RingAllIds, n).read_as(Variant::Absorb)],
    );
    let all = Plan::new(
        ["all start", ALL_DETECT, "2n^2"],
        |n| 2.0 * n * n,
        |n| vec![Setting::live(RingAllIds, n).all_start()],
    );
    [every.both(NARROW), absorbed.textbook(NARROW), all.textbook(NARROW)].concat()
}

fn chang_roberts() -> Vec<Line> {
    let best = Plan::new(
        ["best", HIGHEST_DETECTS, "2n"],
        |n| 2.0 * n,
        |n| vec![Setting::live(ChangRoberts, n).start(&[n])],
    );
    let worst = Plan::new(
        ["worst", "the successor of the highest member detects", "3n-1"],
        |n| 3.0 * n - 1.0,
        |n| vec![Setting::live(ChangRoberts, n).start(&[1])],
    );
    let average = Plan::new(
        ["average", ANY_DETECTS, "2n+(n-1)/2"],
        |n| 2.0 * n + (n - 1.0) / 2.0,
        |n| (1..=n).map(|id| Setting::live(ChangRoberts, n).start(&[id])).collect(),
    );
    let rising = Plan::new(
        ["all start, best", "all members detect at once, keys rising clockwise", "3n-1"],
        |n| 3.0 * n - 1.0,
        |n| vec![Setting::live(ChangRoberts, n).all_start()],
    );
    let falling = Plan::new(
        ["all start, worst", "all members detect at once, keys falling clockwise", "n(n+1)/2+n"],
        |n| n * (n + 1.0) / 2.0 + n,
        |n| vec![Setting::live(ChangRoberts, n).falling().all_start()],
    );
    let every_ring = Plan::new(
        ["all start, average", "all members detect at once, over all rings", "n*H(n)+n"],
        |n| n * harmonic(n) + n,
        |n| rings(n).iter().map(|ring| Setting::ring(ChangRoberts, ring).all_start()).collect(),
    );
    let some_rings = Plan::new(
        ["all start, average", "all members detect at once, over some rings", "n*H(n)+n"],
        |n| n * harmonic(n) + n,
        |n| {
            (1..=50).map(|seed| Setting::live(ChangRoberts, n).shuffled(seed).all_start()).collect()
        },
    );
    [
        best.both(WIDE),
        worst.both(WIDE),
        average.both(NARROW),
        rising.both(WIDE),
        falling.both(WIDE),
        every_ring.textbook(&[5, 6, 7]),
        some_rings.sampled().textbook(&[100, 1000]),
    ]
    .concat()
}

/// 1 + 1/2 + … + 1/n.
fn harmonic(n: f64) -> f64 {
    (1..=n as u32).map(|k| 1.0 / f64::from(k)).sum()
}

/// All rings of `1..=n`: n first, and the others in every order.
fn rings(n: u32) -> Vec<Vec<u32>> {
    let mut rings = vec![vec![n]];
    for next in 1..n {
        let insert = |ring: &Vec<u32>| {
            let ring = ring.clone();
            (1..=ring.len()).map(move |place| {
                let mut longer = ring.clone();
                longer.insert(place, next);
                longer
            })
        };
        rings = rings.iter().flat_map(insert).collect();
    }
    rings
}
