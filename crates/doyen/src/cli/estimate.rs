//! `doyen estimate`: downtime, false failovers and messages of a timing, measured in simulated runs.

use std::io::Write;

use anyhow::{Result, anyhow};
use clap::{Args, value_parser};
use doyen_core::config::quorum::Profile;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_report::availability::{self, Estimate as Estimated, Quantiles, Question};
use serde_json::json;

use super::Answer;
use super::progress::Progress;
use super::terminal::{count, table};

/// Estimate the downtime, false failovers and messages of a timing
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen estimate                                  profile lan, five members
  doyen estimate --profile wan --loss 1%          a wide-area network that loses messages
  doyen estimate --members 3 --trials 1000 --json

Every number is measured in simulated runs of the state machines that a node runs.")]
pub(crate) struct Estimate {
    /// The timing: fast, lan or wan
    #[arg(long, value_name = "PROFILE", default_value = "lan")]
    profile: Profile,

    /// Average time for a message and its answer [default: 0.2ms fast, 1ms lan, 100ms wan]
    #[arg(long, value_name = "TIME")]
    round_trip: Option<Span>,

    /// Share of messages that are lost, such as 5%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    loss: f64,

    /// Number of members
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = value_parser!(u32).range(2..=1000))]
    members: u32,

    /// How often each experiment is repeated
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = value_parser!(u32).range(1..=1_000_000))]
    trials: u32,

    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

impl Estimate {
    fn question(&self) -> Question {
        let usual = match self.profile {
            Profile::Fast => Span::from_micros(200),
            Profile::Lan => Span::from_millis(1),
            Profile::Wan => Span::from_millis(100),
        };
        let Self { profile, loss, members, trials, seed, .. } = *self;
        let round_trip = self.round_trip.unwrap_or(usual);
        Question { profile, round_trip, loss, members, trials, seed }
    }

    pub(crate) fn run(self) -> Result<Answer> {
        let question = self.question();
        let work =
            Algorithm::ELECTIONS.iter().map(|&algorithm| availability::work(algorithm, &question));
        let progress = Progress::bar(work.sum(), "runs");
        let measure = |algorithm: Algorithm| {
            availability::measure(algorithm, &question, &mut || progress.inc())
                .map_err(|error| anyhow!("{algorithm}: {error}"))
        };
        let estimates =
            Algorithm::ELECTIONS.into_iter().map(measure).collect::<Result<Vec<Estimated>>>()?;
        drop(progress);
        let mut out = anstream::stdout().lock();
        if self.json {
            let document = json!({
                "profile": question.profile.name(),
                "round_trip_ns": question.round_trip.as_nanos(),
                "loss": question.loss,
                "members": question.members,
                "trials": question.trials,
                "seed": question.seed,
                "algorithms": estimates,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        } else {
            out.write_all(as_text(&question, &estimates).as_bytes())?;
        }
        Ok(Answer::Yes)
    }
}

fn as_text(question: &Question, estimates: &[Estimated]) -> String {
    let Question { profile, round_trip, loss, members, trials, seed } = *question;
    let heading = [
        "",
        "crash p50",
        "p99",
        "max",
        "transfer p50",
        "p99",
        "max",
        "false failovers/h",
        "messages/s",
        "overlap",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for estimate in estimates {
        let name = &estimate.algorithm;
        let transfer = estimate.transfer.map_or_else(|| ["-"; 3].map(str::to_owned), cells);
        let mut row = vec![name.to_string()];
        row.extend(cells(estimate.crash).into_iter().chain(transfer));
        row.push(format!("{:.2}", estimate.false_failovers_per_hour));
        row.push(format!("{:.0}", estimate.messages_per_second));
        row.push(if estimate.one_leader { "never" } else { "possible" }.to_owned());
        rows.push(row);
        let transfer = estimate.transfer.map_or(0, |quantiles| quantiles.never);
        for (never, what) in [(estimate.crash.never, "crashes"), (transfer, "transfers")] {
            if never > 0 {
                notes += &format!("{name}: no leader in time after {never} {what}\n");
            }
        }
    }
    format!(
        "{}, profile {}, round trip {round_trip}, loss {} %, {} each, seed {seed}\n\
         Downtime in milliseconds after a crash and in a transfer:\n\n{}{notes}",
        count(members, "member"),
        profile.name(),
        loss * 100.0,
        count(trials, "trial"),
        table("lrrrrrrrrr", &rows),
    )
}

/// The quantiles in milliseconds, to a hundredth.
fn cells(quantiles: Quantiles) -> [String; 3] {
    let Quantiles { p50_ns, p99_ns, max_ns, .. } = quantiles;
    [p50_ns, p99_ns, max_ns].map(|nanos| format!("{:.2}", nanos as f64 / 1e6))
}

fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number / unit);
    share
        .ok()
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is not a share below 1, such as 0.05 or 5%"))
}
