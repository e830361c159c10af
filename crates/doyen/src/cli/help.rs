//! What clap lacks: headings in the list of commands, and negative numbers as values of all flags.

use std::fmt::Write;

use clap::{Arg, Command};

const GROUPS: &[(&str, &[&str])] = &[
    (
        "Run a cluster",
        &["lab", "cluster", "init", "keygen", "node", "run", "lock", "rejoin", "fence"],
    ),
    ("Observe a running cluster", &["status", "wait", "watch", "history", "explain", "doctor"]),
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

/// Lists the subcommands under headings.
pub(crate) fn grouped(command: Command) -> Command {
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let others: Vec<&str> = shown.map(Command::get_name).filter(|name| !grouped(name)).collect();
    let groups = GROUPS.iter().copied().chain([("Others", others.as_slice())]);
    let mut list = String::new();
    for (heading, names) in groups {
        let known: Vec<_> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if known.is_empty() {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(list, "{heading}:");
        for subcommand in known {
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {:<12} {about}", subcommand.get_name());
        }
        list.push('\n');
    }
    let template =
        format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}");
    command.help_template(template)
}
