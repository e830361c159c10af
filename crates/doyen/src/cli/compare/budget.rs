//! `doyen compare --budget`: what an operator gets for a timing.

use std::io::{self, Write};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use doyen_core::algorithm::quorum::settings::Profile;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::dead_air::{self, Budget, Quantiles, Question};
use serde_json::json;

use crate::cli::progress;

/// More members than anybody elects among by these means.
const MOST_MEMBERS: u32 = 1000;
const MOST_TRIALS: u32 = 1_000_000;

/// What the budget is about.
#[derive(Args, Debug)]
pub(super) struct BudgetArgs {
    /// Show what an operator gets for a timing: dead air, false failovers, messages
    #[arg(long, conflicts_with_all = ["plan", "csv", "html", "evidence"])]
    pub(super) budget: bool,

    /// The timing: fast, lan or wan
    #[arg(
        long,
        value_name = "PROFILE",
        requires = "budget",
        default_value = "lan",
        help_heading = "Budget"
    )]
    profile: Profile,

    /// How long a message and its answer take on average [default: 0.2ms fast, 1ms lan, 100ms wan]
    #[arg(long, value_name = "TIME", requires = "budget", help_heading = "Budget")]
    round_trip: Option<Span>,

    /// How many messages are lost, as a fraction or as a percentage
    #[arg(long, value_name = "SHARE", requires = "budget", default_value = "0", value_parser = parse_share, help_heading = "Budget")]
    loss: f64,

    /// How many members there are
    #[arg(
        long,
        value_name = "COUNT",
        requires = "budget",
        default_value_t = 5,
        help_heading = "Budget"
    )]
    members: u32,

    /// How often each experiment is made
    #[arg(
        long,
        value_name = "COUNT",
        requires = "budget",
        default_value_t = 200,
        help_heading = "Budget"
    )]
    trials: u32,

    /// What everything random is drawn from
    #[arg(
        long,
        value_name = "SEED",
        requires = "budget",
        default_value_t = 1,
        help_heading = "Budget"
    )]
    seed: u64,
}

impl BudgetArgs {
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

    /// Measures everything; the answer as text, or as JSON.
    pub(super) fn run(&self, as_json: bool) -> Result<String> {
        let question = self.question()?;
        let bar = progress::bar(
            Algorithm::ALL.iter().map(|&algorithm| dead_air::work(algorithm, &question)).sum(),
            "runs",
        );
        let measure = |algorithm: Algorithm| {
            dead_air::measure(algorithm, &question, &mut || bar.inc(1))
                .map_err(|error| anyhow!("{algorithm}: {error}"))
        };
        let budgets = Algorithm::ALL.into_iter().map(measure).collect::<Result<Vec<Budget>>>()?;
        bar.finish_and_clear();
        if as_json {
            let document = json!({
                "profile": question.profile.name(),
                "round_trip_ns": question.round_trip.as_nanos(),
                "loss": question.loss,
                "members": question.members,
                "trials": question.trials,
                "seed": question.seed,
                "algorithms": budgets,
            });
            return Ok(format!("{}\n", serde_json::to_string_pretty(&document)?));
        }
        let mut text = Vec::new();
        write(&mut text, &question, &budgets)?;
        Ok(String::from_utf8(text)?)
    }
}

fn write(out: &mut impl Write, question: &Question, budgets: &[Budget]) -> io::Result<()> {
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
        "", "dead air after a crash, ms", "in a hand-over, ms", "false", "messages", "two leaders"
    )?;
    writeln!(
        out,
        "{:width$}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>14}{:>12}{:>12}",
        "", "p50", "p99", "max", "p50", "p99", "max", "failovers/h", "a second", "at once"
    )?;
    for budget in budgets {
        let hand_over =
            budget.hand_over.map_or([const { String::new() }; 3].map(|_| "-".to_owned()), cells);
        let [a, b, c] = cells(budget.crash);
        let [d, e, f] = hand_over;
        writeln!(
            out,
            "{:width$}{a:>9}{b:>9}{c:>9}{d:>9}{e:>9}{f:>9}{:>14.2}{:>12.0}{:>12}",
            budget.algorithm,
            budget.false_failovers_an_hour,
            budget.messages_a_second,
            if budget.one_leader { "never" } else { "possible" }
        )?;
    }
    for budget in budgets {
        let hand_over = budget.hand_over.map_or(0, |quantiles| quantiles.never);
        for (never, what) in [(budget.crash.never, "crashes"), (hand_over, "hand-overs")] {
            if never > 0 {
                let name = budget.algorithm;
                writeln!(out, "{name}: after {never} {what} nobody led when the time was up")?;
            }
        }
    }
    Ok(())
}

/// The quantiles in milliseconds, to a hundredth.
fn cells(quantiles: Quantiles) -> [String; 3] {
    let Quantiles { p50, p99, max, .. } = quantiles;
    [p50, p99, max].map(|nanos| format!("{:.2}", nanos as f64 / 1e6))
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
