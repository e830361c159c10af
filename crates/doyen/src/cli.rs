//! The command line: data to stdout, everything else to stderr.
//!
//! Exit codes: 0 yes; 1 a negative answer (an expectation not met, a formula that does not hold where it should);
//! 2 wrong usage or configuration.

mod algorithms;
mod compare;
mod memory;
mod output;
mod progress;
mod sim;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command comes to, if nothing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Yes,
    No,
}

const INTRODUCTION: &str = "\
doyen elects one coordinator among many processes, and proves that it did.

The member with the highest priority leads; when it fails, the next one takes over. The election algorithms of the
literature are here as they are taught (textbook mode) and as they can be run (hardened mode), and every message is
counted.

Try:
  doyen compare                                      what each algorithm costs, formula beside measurement
  doyen sim --algorithm bully --members 5            watch an election, message by message
  doyen sim --algorithm chang-roberts --members 6 --initiators all --svg ring.svg
                                                     draw one
  doyen sim scenarios/002-figure-1.toml              a figure of the literature, as it really runs
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
    Sim(Box<sim::Sim>),
    Compare(compare::Compare),
    Algorithms(algorithms::Algorithms),
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        print!("{INTRODUCTION}");
        return ExitCode::SUCCESS;
    }
    let answer = match Arguments::parse().command {
        Command::Sim(sim) => sim.run(),
        Command::Compare(compare) => compare.run(),
        Command::Algorithms(algorithms) => algorithms.run(),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("doyen: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whoever reads our output has had enough: `doyen sim … | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_broken))
}
