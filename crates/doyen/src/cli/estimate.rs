//! `doyen estimate`: the availability that an operator gets for a timing.

use std::io::{self, Write};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen_core::algorithm::quorum::settings::Profile;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::availability::{self, Estimate as Estimated, Quantiles, Question};
use serde_json::json;

use super::Answer;
use super::progress::Progress;

/// More members than anybody elects among by these means.
const MOST_MEMBERS: u32 = 1000;
const MOST_TRIALS: u32 = 1_000_000;

/// Estimate what a timing gives: downtime, false failovers, messages
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen estimate                                  the profile lan, five members
  doyen estimate --profile wan --loss 1%          a wide-area network that loses messages
  doyen estimate --members 3 --trials 1000 --json

Every number is measured in simulated runs of the state machines that a node runs.")]
pub(crate) struct Estimate {
    /// The timing: fast, lan or wan
    #[arg(long, value_name = "PROFILE", default_value = "lan")]
    profile: Profile,

    /// How long a message and its answer take on average [default: 0.2ms fast, 1ms lan, 100ms wan]
    #[arg(long, value_name = "TIME")]
    round_trip: Option<Span>,

    /// How many messages are lost, as a fraction or as a percentage
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    loss: f64,

    /// How many members there are
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    members: u32,

    /// How often each experiment is made
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    trials: u32,

    /// The random seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

impl Estimate {
    fn question(&self) -> Result<Question> {
        if !(2..=MOST_MEMBERS).contains(&self.members) {
            bail!("--members: {} is not between 2 and {MOST_MEMBERS}", self.members);
        }
        if !(1..=MOST_TRIALS).contains(&self.trials) {
            bail!("--trials: {} is not between 1 and {MOST_TRIALS}", self.trials);
        }
        let usual = match self.profile {
            Profile::Fast => Span::from_micros(200),
            Profile::Lan => Span::from_millis(1),
            Profile::Wan => Span::from_millis(100),
        };
        Ok(Question {
            profile: self.profile,
            round_trip: self.round_trip.unwrap_or(usual),
            loss: self.loss,
            members: self.members,
            trials: self.trials,
            seed: self.seed,
        })
    }

    pub(crate) fn run(self) -> Result<Answer> {
        let question = self.question()?;
        let work = Algorithm::ALL.iter().map(|&algorithm| availability::work(algorithm, &question));
        let progress = Progress::bar(work.sum(), "runs");
        let measure = |algorithm: Algorithm| {
            availability::measure(algorithm, &question, &mut || progress.inc())
                .map_err(|error| anyhow!("{algorithm}: {error}"))
        };
        let estimates =
            Algorithm::ALL.into_iter().map(measure).collect::<Result<Vec<Estimated>>>()?;
        drop(progress);
        let mut out = io::stdout().lock();
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
            write(&mut out, &question, &estimates)?;
        }
        Ok(Answer::Yes)
    }
}

fn write(out: &mut impl Write, question: &Question, estimates: &[Estimated]) -> io::Result<()> {
    let Question { profile, round_trip, loss, members, trials, seed } = *question;
    let percent = loss * 100.0;
    writeln!(
        out,
        "{members} members, profile {}, round trip {round_trip}, loss {percent} %, {trials} trials each, seed {seed}",
        profile.name()
    )?;
    writeln!(out)?;
    let width = 17;
    writeln!(
        out,
        "{:width$}{:>27}{:>27}{:>14}{:>12}{:>12}",
        "", "downtime after a crash, ms", "in a transfer, ms", "false", "messages", "overlap"
    )?;
    writeln!(
        out,
        "{:width$}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>14}{:>12}{:>12}",
        "", "p50", "p99", "max", "p50", "p99", "max", "failovers/h", "per second", ""
    )?;
    for estimate in estimates {
        let [a, b, c] = cells(estimate.crash);
        let [d, e, f] = estimate.transfer.map_or_else(|| ["-"; 3].map(str::to_owned), cells);
        writeln!(
            out,
            "{:width$}{a:>9}{b:>9}{c:>9}{d:>9}{e:>9}{f:>9}{:>14.2}{:>12.0}{:>12}",
            estimate.algorithm,
            estimate.false_failovers_per_hour,
            estimate.messages_per_second,
            if estimate.one_leader { "never" } else { "possible" }
        )?;
    }
    for estimate in estimates {
        let transfer = estimate.transfer.map_or(0, |quantiles| quantiles.never);
        for (never, what) in [(estimate.crash.never, "crashes"), (transfer, "transfers")] {
            if never > 0 {
                let name = estimate.algorithm;
                writeln!(
                    out,
                    "{name}: after {never} {what} there was no leader when the time was up"
                )?;
            }
        }
    }
    Ok(())
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
