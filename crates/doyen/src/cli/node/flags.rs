//! The flags of `doyen node`: they come before everything else that configures it.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use doyen::config::{self, Configuration, Env, Override, Settings};

/// Run one member of a cluster
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen init --cluster orders --member n1=10.0.0.1:7400 --member n2=10.0.0.2:7400 --member n3=10.0.0.3:7400
  doyen node --config orders/n1/doyen.toml --check
  doyen node --config orders/n1/doyen.toml
  doyen node --example > doyen.toml

Flags come before DOYEN_* variables, those before ./doyen.toml, then the user's and the system's file.

Exit: 0 stopped as told, or sound (--check); 1 it had to stop, or was stopped by a second signal;
2 it cannot start: the configuration, the keys or the state are wrong.")]
pub(crate) struct Node {
    /// The configuration file [default: ./doyen.toml]
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    overrides: Overrides,

    /// Come back without the old state: it is lost, damaged or refused as an old copy. All other members must be up. A
    /// sound state is kept, and the flag refused
    #[arg(long)]
    pub(super) rejoin: bool,

    /// Show every value and where it came from, and end
    #[arg(long)]
    print_config: bool,

    /// Print a configuration with every setting, its default and what it is for, and end
    #[arg(long, exclusive = true)]
    example: bool,

    /// Say whether configuration, keys and state are sound, and end
    #[arg(long)]
    check: bool,

    /// How the log is written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(super) log_format: LogFormat,

    /// End when the standard input does: for whoever starts nodes and must not leave any behind
    #[arg(long, hide = true)]
    pub(super) while_stdin_is_open: bool,
}

/// The flags that set a setting: the schema of the configuration has them.
#[derive(Debug)]
struct Overrides(Vec<Override>);

impl Args for Overrides {
    fn augment_args(command: Command) -> Command {
        command.args(config::flags().map(|flag| {
            Arg::new(flag.key).long(flag.name).value_name(flag.value_name).help(flag.help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = config::flags().filter_map(|flag| {
            let value = matches.get_one::<String>(flag.key)?.clone();
            Some(Override { key: flag.key, value })
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(super) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// What the flags ask for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// A node.
    Run(Box<Configuration>),
    /// Only what has been said.
    Told,
}

impl Node {
    /// Reads the configuration, and shows or checks it if that is what is asked for.
    pub(super) fn settings(&self) -> Result<Wanted> {
        if self.example {
            io::stdout().write_all(config::example().as_bytes())?;
            return Ok(Wanted::Told);
        }
        let env = Env::of_process();
        let file = self.config.as_deref();
        let configuration = Configuration::load(file, &self.overrides.0, &env)?;
        if self.print_config {
            write!(io::stdout(), "{}", configuration.report)?;
        }
        if self.check {
            configuration.settings.check(self.rejoin)?;
            for warning in &configuration.warnings {
                writeln!(io::stderr(), "doyen: warning: {warning}")?;
            }
            writeln!(io::stdout(), "{}", self.summary(&configuration.settings))?;
        }
        match self.print_config || self.check {
            true => Ok(Wanted::Told),
            false => Ok(Wanted::Run(Box::new(configuration))),
        }
    }

    /// What a check says of what is sound.
    fn summary(&self, settings: &Settings) -> String {
        let Settings { cluster, algorithm, listen, members, .. } = settings;
        let (name, count) = (&settings.own().name, members.len());
        let sound = match (settings.key_file.is_some(), self.rejoin) {
            (true, false) => "keys and state are sound",
            (false, false) => "its state is sound",
            (true, true) => "its keys are sound, its state is made anew",
            (false, true) => "its state is made anew",
        };
        let count = format!("{count} member{}", if count == 1 { "" } else { "s" });
        format!("{name} of cluster {cluster}: {count}, {algorithm}, listens on {listen}; {sound}")
    }
}
