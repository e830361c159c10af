//! The command line: data to stdout, everything else to stderr.
//!
//! Exit codes: 0 yes; 1 a negative answer (an expectation not met, a formula that does not hold where it should, a
//! property violated, nobody leads); 2 wrong usage or configuration; 3 a node cannot be reached; 4 a limit reached before
//! the answer was; 101 doyen itself failed; 130 interrupted before the answer was reached.

mod algorithms;
mod check;
mod client;
mod cluster;
mod compare;
mod election;
mod estimate;
mod explain;
mod help;
mod history;
mod init;
mod keygen;
mod memory;
mod node;
mod orders;
mod output;
mod progress;
mod replay;
mod signals;
mod sim;
mod status;
mod terminal;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// What a command comes to, if nothing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Yes,
    No,
    /// A limit was reached before the answer was.
    Limit,
    /// Somebody had enough before the answer was reached.
    Interrupted,
    /// There is a mistake in doyen, and what it did when that showed has been said.
    Panicked,
}

const INTRODUCTION: &str = "\
doyen elects one coordinator among many processes, and proves that it did.

The member with the highest priority leads; when it fails, the next one takes over. The election algorithms of the
literature are here as they are taught (textbook mode) and as they can be run (hardened mode), and one that survives
partitions (quorum). The same code is simulated, checked and run.

Try:
  doyen cluster                                      five real processes on this machine: kill the leader, watch
  doyen compare                                      what each algorithm costs, formula and count
  doyen sim --algorithm bully --members 5            watch an election, message by message
  doyen sim --algorithm chang-roberts --members 6 --initiators all --svg ring.svg
                                                     draw one
  doyen sim scenarios/kordafshari/figure-1.toml              a figure of the literature, as it really runs
  doyen check --algorithm chang-roberts --members 4 --initiators all --crashes 1
                                                     explore every run, find one that fails
  doyen algorithms                                   what each algorithm promises, and what it needs for it

`doyen help` lists all commands, `doyen help sim` explains one.
";

/// Elects one coordinator among many processes, and proves that it did.
#[derive(Parser, Debug)]
#[command(name = "doyen", version, max_term_width = 118, disable_help_subcommand = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Cluster(cluster::Cluster),
    Init(Box<init::Init>),
    Keygen(keygen::Keygen),
    Node(Box<node::Node>),
    Sim(Box<sim::Sim>),
    Check(Box<check::Check>),
    Replay(replay::Replay),
    Compare(compare::Compare),
    Estimate(estimate::Estimate),
    Algorithms(algorithms::Algorithms),
    Status(status::Status),
    Watch(watch::Watch),
    History(history::History),
    Explain(explain::Explain),
    Resign(orders::Resign),
    Transfer(orders::Transfer),
    Drain(orders::Drain),
    Undrain(orders::Undrain),
    Prefer(orders::Prefer),
    Campaign(orders::Campaign),
    ReloadKeys(orders::ReloadKeys),
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Limit) => ExitCode::from(4),
        Ok(Answer::Interrupted) => ExitCode::from(signals::INTERRUPTED),
        Ok(Answer::Panicked) => ExitCode::from(101),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever reads our errors may have gone.
            let _ = writeln!(io::stderr(), "doyen: {error:#}");
            ExitCode::from(if error.is::<client::CannotReach>() { 3 } else { 2 })
        }
    }
}

fn run() -> Result<Answer> {
    if std::env::args_os().len() == 1 {
        io::stdout().write_all(INTRODUCTION.as_bytes())?;
        return Ok(Answer::Yes);
    }
    let command = help::grouped(help::with_negative_numbers(Arguments::command()));
    let matches = command.try_get_matches();
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    match arguments.command {
        Command::Cluster(cluster) => cluster.run(),
        Command::Init(init) => init.run(),
        Command::Keygen(keygen) => keygen.run(),
        Command::Node(node) => node.run(),
        Command::Sim(sim) => sim.run(),
        Command::Check(check) => check.run(),
        Command::Replay(replay) => replay.run(),
        Command::Compare(compare) => compare.run(),
        Command::Estimate(estimate) => estimate.run(),
        Command::Algorithms(algorithms) => algorithms.run(),
        Command::Status(status) => status.run(),
        Command::Watch(watch) => watch.run(),
        Command::History(history) => history.run(),
        Command::Explain(explain) => explain.run(),
        Command::Resign(resign) => resign.run(),
        Command::Transfer(transfer) => transfer.run(),
        Command::Drain(drain) => drain.run(),
        Command::Undrain(undrain) => undrain.run(),
        Command::Prefer(prefer) => prefer.run(),
        Command::Campaign(campaign) => campaign.run(),
        Command::ReloadKeys(reload) => reload.run(),
    }
}

/// Help and version are answers; everything else is one line like all our errors.
fn explain(error: &clap::Error) -> Result<Answer> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        error.print()?;
        return Ok(Answer::Yes);
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.trim_start_matches("error: ").split_whitespace().collect();
    Err(anyhow!("{}; `doyen help` and `doyen help COMMAND` explain", words.join(" ")))
}

/// Whoever reads our output has had enough: `doyen sim … | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_broken))
}
