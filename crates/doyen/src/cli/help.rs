//! What clap does not do of itself: the list of commands under headings, which it has for flags only, and negative
//! numbers.

use std::fmt::Write;

use clap::{Arg, Command};

/// Which commands stand under which heading, in this order.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run a cluster", &["cluster", "init", "keygen", "node"]),
    ("See a running cluster", &["status", "watch", "history", "explain"]),
    (
        "Steer a running cluster",
        &["resign", "transfer", "drain", "undrain", "prefer", "campaign", "reload-keys"],
    ),
    ("Study an election", &["sim", "check", "replay", "compare", "estimate", "algorithms"]),
];

/// The same command, whose flags take `-1` for a value, so that what is wrong with it is said, not that there is no such
/// flag.
pub(crate) fn with_negative_numbers(command: Command) -> Command {
    let takes = |arg: Arg| match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_subcommands(|subcommand| subcommand.mut_args(takes))
}

/// The same command, whose help has its subcommands under headings.
pub(crate) fn grouped(command: Command) -> Command {
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> =
        command.get_subcommands().map(Command::get_name).filter(|name| !grouped(name)).collect();
    let groups = GROUPS.iter().copied().chain([("Others", others.as_slice())]);
    let mut list = String::new();
    for (heading, names) in groups {
        let known: Vec<_> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if known.is_empty() {
            continue;
        }
        // A string takes whatever is written into it.
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
