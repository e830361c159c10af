//! `doyen clocks`: how far the wall clocks of all members are apart, and what one round of Berkeley synchronisation would do.
//!
//! The rules are [`doyen_core::clocks`]. This is their observer: it polls every member through one of them, over the sealed
//! channel, and sets no clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use doyen::api::ClockReading;
use doyen::clock::unix_us;
use doyen_core::clocks::{self, Finding, Limits, Reading, Round, Standing};
use doyen_core::time::Span;
use serde::Serialize;

use super::awaited::in_parallel;
use super::client::{AdminClient, OperatorFlags, parse_time, path_to};
use super::terminal::{BAD, FAINT, count, span, styled, table};
use super::{Answer, terminal};

/// Compare the wall clocks of all members, and say by how much each would have to be corrected
#[derive(Args, Debug)]
#[command(after_help = "\
Every member is polled through this one, over the sealed channel. An offset counts from the clock of this machine. It is
wrong by the time after ± at most, which is half the round trip. Clocks that are close together are averaged if they are a
majority of all members, and the correction brings every clock to the average (Berkeley synchronisation). No clock is set:
use chrony or NTP. Leases do not depend on wall clocks; histories and logs of several members do.

Examples:
  doyen clocks
  doyen clocks --rounds 20 --within 10ms
  doyen clocks --json

Exit: 0 the clocks of all members are close together, 1 they are not, or a member does not answer, 3 the node cannot be
reached.")]
pub(crate) struct Clocks {
    /// Number of polls of each member; the fastest answer counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// How close together clocks must be to be averaged; slower answers do not count
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_time)]
    within: Duration,

    #[command(flatten)]
    operator: OperatorFlags,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    cluster: &'a str,
    asked_through: &'a str,
    leader: Option<&'a str>,
    rounds: u32,
    within_us: u64,
    /// Whether the clocks of all members are close together.
    agreed: bool,
    /// By how much the clocks that count are ahead of this machine's, on average.
    average_us: Option<i64>,
    members: Vec<MemberClock<'a>>,
}

/// What is known of the clock of a member.
#[derive(Debug, Serialize)]
struct MemberClock<'a> {
    name: &'a str,
    standing: &'static str,
    /// Why it has not answered.
    problem: Option<&'a str>,
    #[serde(flatten)]
    measured: Option<Measured>,
}

#[derive(Debug, Serialize)]
struct Measured {
    offset_us: i64,
    uncertainty_us: u64,
    round_trip_us: u64,
    /// The correction, and how long it takes without a step.
    slew_us: Option<i64>,
    slewing_ms: Option<u64>,
}

/// Asks a question, and returns the two moments between which the answer was given, in nanoseconds of this machine's wall
/// clock. A step of that clock in between does no harm.
pub(crate) fn timed<T>(ask: impl FnOnce() -> T) -> (T, i64, i64) {
    let unix = Duration::from_micros(unix_us());
    let begun = Instant::now();
    let answer = ask();
    (answer, nanos(unix), nanos(unix + begun.elapsed()))
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Polls a member, again and again. A member that has answered once counts.
fn poll(client: &AdminClient, member: &String, rounds: u32) -> Result<Reading, String> {
    let path = path_to("/v1/clock", Some(member)).map_err(|error| error.to_string())?;
    let mut best: Option<Reading> = None;
    for _ in 0..rounds {
        let (answer, sent, received) = timed(|| client.get::<ClockReading>(&path));
        match (answer, best) {
            (Ok(ClockReading { unix_us }), _) => {
                let clock = i64::try_from(unix_us).unwrap_or(i64::MAX).saturating_mul(1000);
                best = clocks::best(best.into_iter().chain([Reading { sent, received, clock }]));
            }
            (Err(_), Some(_)) => break,
            (Err(error), None) => return Err(format!("{error:#}")),
        }
    }
    best.ok_or_else(|| "it was not asked".to_owned())
}

impl Clocks {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.operator.connect_admin()?;
        let status = client.status()?;
        let names: Vec<String> = status.members.iter().map(|it| it.name.clone()).collect();
        let answers = in_parallel(&names, |name| poll(&client, name, self.rounds));
        let answers: Vec<(&str, Result<Reading, String>)> =
            names.iter().map(String::as_str).zip(answers).collect();
        let within = Span::from_nanos(u64::try_from(self.within.as_nanos()).unwrap_or(u64::MAX));
        let leader = status.leader.and_then(|leader| status.member(leader));
        let (round, members) = judge(&answers, within);
        let report = Report {
            cluster: &status.cluster,
            asked_through: &status.name,
            leader: leader.map(|leader| leader.name.as_str()),
            rounds: self.rounds,
            within_us: within.as_nanos() / 1000,
            agreed: round.members.len() == names.len()
                && round.members.values().all(|it| it.standing == Standing::Averaged),
            average_us: round.average.map(|average| average / 1000),
            members,
        };
        terminal::print(self.json, &report, Report::render)?;
        Ok(if report.agreed { Answer::Yes } else { Answer::No })
    }
}

/// What a round says of the answers. An answer whose round trip is longer than what clocks may differ by says too little.
fn judge<'a>(
    answers: &'a [(&'a str, Result<Reading, String>)],
    within: Span,
) -> (Round<&'a str>, Vec<MemberClock<'a>>) {
    let readings =
        answers.iter().filter_map(|(name, answer)| Some((*name, *answer.as_ref().ok()?)));
    let readings: BTreeMap<&str, Reading> = readings.collect();
    let limits = Limits { round_trip: within, gamma: within };
    let round = clocks::round(answers.len(), &readings, &limits);
    let is_alone = round.members.len() == 1 && answers.len() > 1;
    let members = answers.iter().map(|(name, answer)| match round.members.get(name) {
        // There is no other clock that it could be apart from.
        Some(finding) if is_alone && finding.standing == Standing::Outlier => {
            MemberClock { standing: "alone", ..MemberClock::measured(name, finding) }
        }
        Some(finding) => MemberClock::measured(name, finding),
        None => {
            let problem = answer.as_ref().err().map(String::as_str);
            MemberClock { name, standing: "silent", problem, measured: None }
        }
    });
    let members = members.collect();
    (round, members)
}

impl<'a> MemberClock<'a> {
    fn measured(name: &'a str, finding: &Finding) -> Self {
        let Finding { reading, standing, slew } = finding;
        let standing = match standing {
            Standing::Averaged => "averaged",
            Standing::Outlier => "outlier",
            Standing::Slow => "slow",
        };
        let measured = Measured {
            offset_us: reading.offset() / 1000,
            uncertainty_us: reading.uncertainty().as_nanos().div_ceil(1000),
            round_trip_us: reading.round_trip().as_nanos() / 1000,
            slew_us: slew.map(|slew| slew / 1000),
            slewing_ms: slew.map(|slew| clocks::slewing_time(slew).as_nanos() / 1_000_000),
        };
        Self { name, standing, problem: None, measured: Some(measured) }
    }

    fn row(&self, leader: Option<&str>) -> Vec<String> {
        let role = if leader == Some(self.name) { " (leader)" } else { "" };
        let name = format!("{}{role}", self.name);
        let standing = match self.standing {
            "averaged" => self.standing.to_owned(),
            other => styled(BAD, other),
        };
        let Some(Measured { offset_us, uncertainty_us, slew_us, slewing_ms, .. }) = &self.measured
        else {
            let problem = self.problem.unwrap_or_default().to_owned();
            return vec![name, String::new(), String::new(), standing, problem];
        };
        let correction = match (slew_us, slewing_ms) {
            (Some(0), _) => "none".to_owned(),
            (Some(slew), Some(millis)) => {
                format!("{}, in {}", signed(*slew), span(Duration::from_millis(*millis)))
            }
            _ => styled(FAINT, "unknown"),
        };
        let uncertainty = span(Duration::from_micros(*uncertainty_us));
        vec![name, signed(*offset_us), uncertainty, standing, correction]
    }
}

fn signed(micros: i64) -> String {
    let sign = if micros < 0 { '-' } else { '+' };
    format!("{sign}{}", span(Duration::from_micros(micros.unsigned_abs())))
}

impl Report<'_> {
    fn render(&self) -> String {
        let heading = ["member", "offset", "±", "clock", "correction"].map(str::to_owned).to_vec();
        let rows = self.members.iter().map(|member| member.row(self.leader));
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
        let within = span(Duration::from_micros(self.within_us));
        let members = count(self.members.len() as u64, "member");
        let averaged = self.members.iter().filter(|it| it.standing == "averaged").count();
        let verdict = match self.average_us {
            Some(average) => {
                let way = if average < 0 { "behind" } else { "ahead of" };
                let far = span(Duration::from_micros(average.unsigned_abs()));
                format!(
                    "{averaged} of {members} of {}: within {within} of each other, on average {far} {way} this machine",
                    self.cluster
                )
            }
            None => format!(
                "no majority of the {members} of {} is within {within} of each other: no average, no correction",
                self.cluster
            ),
        };
        let note = styled(FAINT, format!("asked through {}; no clock was set", self.asked_through));
        format!("{}\n{verdict}\n{note}\n", table("lrrll", &rows))
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    const MS: i64 = 1_000_000;

    /// An answer after 2 ms of a member whose clock is this many milliseconds ahead.
    fn ahead(millis: i64) -> Result<Reading, String> {
        Ok(Reading { sent: 0, received: 2 * MS, clock: (millis + 1) * MS })
    }

    fn rendered(answers: &[(&str, Result<Reading, String>)]) -> String {
        let (round, members) = judge(answers, Span::from_millis(100));
        let report = Report {
            cluster: "orders",
            asked_through: "n1",
            leader: Some("n3"),
            rounds: 5,
            within_us: 100_000,
            agreed: false,
            average_us: round.average.map(|average| average / 1000),
            members,
        };
        strip_str(&report.render()).to_string()
    }

    #[test]
    fn an_outlier_is_shown_with_its_correction_and_a_silent_member_with_its_reason() {
        let text = rendered(&[
            ("n1", ahead(0)),
            ("n2", ahead(30)),
            ("n3", ahead(60)),
            ("n4", ahead(-4200)),
            ("n5", Err("n5 does not answer n1".to_owned())),
        ]);
        let wanted = "  member       offset       ±  clock     correction
  n1            +0 us  1.0 ms  averaged  +30 ms, in 1m
  n2           +30 ms  1.0 ms  averaged  none
  n3 (leader)  +60 ms  1.0 ms  averaged  -30 ms, in 1m
  n4           -4.2 s  1.0 ms  outlier   +4.2 s, in 2h 21m
  n5                           silent    n5 does not answer n1

3 of 5 members of orders: within 100 ms of each other, on average 30 ms ahead of this machine
asked through n1; no clock was set
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn without_a_majority_there_is_no_correction() {
        let text = rendered(&[("n1", ahead(0)), ("n2", ahead(500)), ("n3", ahead(9000))]);
        assert!(text.contains("n2           +500 ms  1.0 ms  outlier  unknown"), "{text}");
        let wanted = "no majority of the 3 members of orders is within 100 ms of each other";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn the_only_clock_that_is_known_is_no_outlier() {
        let silent = |name: &str| Err(format!("{name} does not answer n1"));
        let text = rendered(&[("n1", ahead(0)), ("n2", silent("n2")), ("n3", silent("n3"))]);
        assert!(text.contains("n1            +0 us  1.0 ms  alone   unknown"), "{text}");
    }
}
