//! The command line: data to stdout, everything else to stderr.
//!
//! Exit codes: 0 yes; 1 a negative answer (an expectation not met, a property violated, no leader); 2 wrong usage or
//! configuration; 3 a node cannot be reached; 4 a limit or deadline was reached first; 101 internal error; 130 interrupted.

pub(crate) mod absence;
pub(crate) mod admin_socket;
mod algorithms;
mod awaited;
mod change_hook;
mod check;
pub(crate) mod client;
mod clocks;
mod cluster;
mod commands;
mod compare;
mod doctor;
mod election;
mod estimate;
mod explain;
mod fence;
mod groups;
mod help;
mod history;
mod init;
mod keygen;
mod keys;
mod lab;
mod lease_holder;
mod lock;
mod manual;
mod node;
mod output;
mod progress;
mod rejoin;
mod reload;
mod replay;
mod run;
mod scenarios;
mod section;
pub(crate) mod server_sent;
mod service;
mod sim;
mod status;
mod supervise;
pub(crate) mod system;
pub(crate) mod terminal;
#[cfg(test)]
mod testing;
mod wait;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// The result of a command; it decides the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Yes,
    No,
    /// A limit or deadline was reached first.
    Limit,
    Interrupted,
    /// Internal error, already reported.
    Panicked,
    /// The exit code of a command that was run.
    Code(u8),
}

/// Flags of earlier releases, and the command that does it now.
const NOW_COMMANDS: [(&str, &str); 2] = [
    ("--rejoin", "run `doyen rejoin`, which ends when it is done, then start the node"),
    ("--wait-leader", "`doyen wait`"),
];

const INTRODUCTION: &str = "\
doyen elects one leader among many processes, and proves that it did.

The member with the highest priority leads; when it fails, the next one takes over. doyen has the election algorithms of
the literature, exactly as taught (textbook mode) and hardened for real networks, and quorum, which tolerates
partitions. The same code is simulated, checked and run.

Try:
  doyen lab                                          five real processes and a page: kill the leader, watch
  doyen cluster                                      the same in the terminal
  doyen run --config n1/doyen.toml -- ./job          one copy of a job, on the leader of a cluster
  doyen compare                                      the cost of each algorithm, formula and count
  doyen sim --algorithm bully --members 5            an election, message by message
  doyen sim --algorithm chang-roberts --members 6 --initiators all --svg ring.svg
                                                     the same as a diagram
  doyen sim kordafshari/figure-1                     a figure of the literature, as it really runs
  doyen check --algorithm chang-roberts --members 4 --initiators all --crashes 1
                                                     every run, and one that fails
  doyen algorithms                                   what each algorithm guarantees and needs
  doyen scenarios                                    the figures, flaws and incidents that are built in

`doyen help` lists all commands, `doyen help sim` explains one.
";

/// Elects one leader among many processes, and proves that it did.
#[derive(Parser, Debug)]
#[command(name = "doyen", version, max_term_width = 118, disable_help_subcommand = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands, each with its arguments.
macro_rules! commands {
    ($($(#[$how:meta])? $command:ident($arguments:ty);)*) => {
        #[derive(Subcommand, Debug)]
        enum Command {
            $($(#[$how])? $command($arguments),)*
        }

        impl Command {
            fn run(self) -> Result<Answer> {
                match self {
                    $(Self::$command(command) => command.run(),)*
                }
            }
        }
    };
}

commands! {
    Lab(lab::Lab);
    Cluster(cluster::Cluster);
    Init(Box<init::Init>);
    Keygen(keygen::Keygen);
    Keys(keys::Keys);
    Node(Box<node::Node>);
    Run(Box<run::Run>);
    Lock(Box<lock::Lock>);
    Rejoin(Box<rejoin::Rejoin>);
    Fence(fence::Fence);
    Sim(Box<sim::Sim>);
    Check(Box<check::Check>);
    Replay(replay::Replay);
    Compare(compare::Compare);
    Estimate(estimate::Estimate);
    Algorithms(algorithms::Algorithms);
    Scenarios(scenarios::Scenarios);
    Status(status::Status);
    Groups(groups::Groups);
    Wait(wait::Wait);
    Watch(watch::Watch);
    History(history::History);
    Explain(explain::Explain);
    Doctor(doctor::Doctor);
    Clocks(clocks::Clocks);
    #[command(hide = true)]
    Manual(manual::Manual);
    #[command(flatten)]
    Admin(commands::Admin);
}

impl Command {
    /// Whether this process reads or creates keys of a cluster.
    fn has_keys(&self) -> bool {
        matches!(
            self,
            Self::Lab(_)
                | Self::Cluster(_)
                | Self::Init(_)
                | Self::Keygen(_)
                | Self::Node(_)
                | Self::Run(_)
                | Self::Rejoin(_)
        )
    }
}

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Limit) => ExitCode::from(4),
        Ok(Answer::Interrupted) => ExitCode::from(system::INTERRUPTED),
        Ok(Answer::Panicked) => ExitCode::from(101),
        Ok(Answer::Code(code)) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            system::complain(&error);
            let cannot_reach = error.is::<client::CannotReach>();
            ExitCode::from(if cannot_reach { client::CannotReach::EXIT } else { 2 })
        }
    }
}

fn run() -> Result<Answer> {
    if std::env::args_os().len() == 1 {
        io::stdout().write_all(INTRODUCTION.as_bytes())?;
        return Ok(Answer::Yes);
    }
    let command = help::with_negative_numbers(Arguments::command());
    let command = help::grouped(help::with_flowing_texts(command));
    let matches = command.try_get_matches();
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return explain(error),
    };
    if arguments.command.has_keys() {
        system::protect_memory()?;
    }
    arguments.command.run()
}

/// Help and version are answers; everything else is one line like all our errors.
fn explain(mut error: clap::Error) -> Result<Answer> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        error.print()?;
        return Ok(Answer::Yes);
    }
    let named = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    if let Some((flag, command)) = NOW_COMMANDS.iter().find(|(flag, _)| *flag == named) {
        bail!("`{flag}` is a command of its own: {command}");
    }
    // clap has the most similar command at the end.
    if let Some(ContextValue::Strings(similar)) = error.get(ContextKind::SuggestedSubcommand) {
        let nearest_first = similar.iter().rev().cloned().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nearest_first));
    }
    // With a suggestion, a list of all values says nothing more.
    if error.get(ContextKind::SuggestedValue).is_some() {
        error.remove(ContextKind::ValidValue);
    }
    // The message and clap's suggestion; usage follows.
    let text = error.render().to_string();
    let parts = text.trim_start_matches("error: ").split("\n\n");
    let parts =
        parts.take_while(|part| !part.starts_with("Usage") && !part.starts_with("For more"));
    let parts = parts.filter(|part| !part.contains("tip: to pass"));
    let parts: Vec<String> =
        parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let named = std::env::args().nth(1).unwrap_or_default();
    let is_known = Arguments::command().find_subcommand(&named).is_some();
    let help = if is_known { format!("doyen help {named}") } else { "doyen help".to_owned() };
    Err(anyhow!("{}; see `{help}`", parts.join("; ")))
}

/// The reader has closed the pipe: `doyen sim … | head`. The command ends at once, without a word and with 0: a reader that
/// has seen enough is no failure, and under `set -o pipefail` SIGPIPE's 141 would make it one. (The signal stays ignored: it
/// would end a node whose log is piped to a program that ends.) So nothing may print by `println!` or `eprintln!`, which
/// panic.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_broken))
}
