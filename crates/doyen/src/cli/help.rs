//! Features that clap lacks: headings in the list of commands, and negative numbers as values of all flags.

use std::fmt::Write;

use clap::{Arg, Command};

/// A line of the source to which a word could not be added is at least as long.
const NARROWEST: usize = 100;

const GROUPS: &[(&str, &[&str])] = &[
    (
        "Run a cluster",
        &["lab", "cluster", "init", "keygen", "node", "run", "lock", "rejoin", "fence"],
    ),
    (
        "Observe a running cluster",
        &["status", "groups", "wait", "watch", "history", "explain", "doctor", "clocks"],
    ),
    (
        "Control a running cluster",
        &[
            "resign",
            "transfer",
            "drain",
            "undrain",
            "prefer",
            "pause",
            "resume",
            "keys",
            "reload",
            "reload-keys",
        ],
    ),
    (
        "Study an election",
        &["sim", "check", "replay", "compare", "estimate", "algorithms", "scenarios"],
    ),
];

/// Lets flags take `-1` as a value, so that the error is about the value and not about an unknown flag.
pub(crate) fn with_negative_numbers(command: Command) -> Command {
    let takes = |arg: Arg| match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_subcommands(|subcommand| subcommand.mut_args(takes))
}

/// Texts after the flags are as wide as the terminal: what was wrapped in the source is not wrapped again.
pub(crate) fn with_flowing_texts(command: Command) -> Command {
    command.mut_subcommands(|subcommand| {
        let text = subcommand.get_after_help().map(ToString::to_string);
        match text {
            Some(text) => with_flowing_texts(subcommand.after_help(flowing(&text))),
            None => with_flowing_texts(subcommand),
        }
    })
}

/// Joins lines that only the width of the source has kept apart.
fn flowing(text: &str) -> String {
    let mut flowing = String::new();
    let mut last = "";
    for line in text.lines() {
        let next = line.split(' ').next().unwrap_or_default();
        let is_text = !last.starts_with(' ') && !next.is_empty();
        let is_wrapped = last.chars().count() + 1 + next.chars().count() > NARROWEST;
        flowing.push_str(match is_text && is_wrapped {
            _ if flowing.is_empty() => "",
            true => " ",
            false => "\n",
        });
        flowing.push_str(line);
        last = line;
    }
    flowing
}

/// Lists the subcommands under headings.
pub(crate) fn grouped(command: Command) -> Command {
    let mut list = String::new();
    for (heading, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(list, "{heading}:");
        for subcommand in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {:<12} {about}", subcommand.get_name());
        }
        list.push('\n');
    }
    let template =
        format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}");
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_the_source_wrapped_are_joined_and_all_others_stay() {
        let long = "word ".repeat(20) + "more";
        let text = format!("{long}\nwrapped here.\n\nExamples:\n  doyen sim\n{long}\n  doyen x\n");
        let flows = format!("{long} wrapped here.\n\nExamples:\n  doyen sim\n{long}\n  doyen x");
        assert_eq!(flowing(&text), flows);
    }

    #[test]
    fn every_command_is_in_one_group_and_every_name_is_a_command() {
        let command = <crate::cli::Arguments as clap::CommandFactory>::command();
        let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    /// Where a terminal is narrower, nothing helps; without one, clap takes it to be this wide.
    #[test]
    fn examples_fit_into_a_hundred_columns() {
        let command = <crate::cli::Arguments as clap::CommandFactory>::command();
        for subcommand in command.get_subcommands() {
            let text = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 98, "{}: {line}", subcommand.get_name());
            }
        }
    }
}
