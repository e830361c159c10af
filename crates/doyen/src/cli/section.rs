//! The flags that describe a critical section and who asks to enter it, for `doyen sim` and `doyen check`. They fill in the
//! same [`Scenario`] as a file.

use std::fs;
use std::path::Path;

use clap::Args;
use doyen_core::config::exclusion::{Sets, Tree};
use doyen_core::time::Span;
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::{Initiators, Scenario};

use super::election::set;

#[derive(Args, Debug)]
pub(crate) struct Section {
    /// The members that ask to enter: 1,3 or 3@2ms or all or none [default: the lowest live member]
    #[arg(long, value_name = "IDS", help_heading = "Critical section")]
    requests: Option<Initiators>,

    /// How long a member stays inside: 5ms, uniform:1ms..2ms or exp:1ms [default: D]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    hold: Option<DelayModel>,

    /// How often each of them asks [default: 1]
    #[arg(long, value_name = "COUNT", help_heading = "Critical section")]
    repeat: Option<u32>,

    /// How long a member waits before it asks again, as --hold [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    think: Option<DelayModel>,

    /// The voting sets of maekawa: cyclic, grid, plane or majority [default: cyclic]
    #[arg(long, value_name = "NAME", help_heading = "Critical section")]
    sets: Option<Sets>,

    /// The tree of raymond: star, line, binary, its edges (1-2,1-3) or a file with an edge on each line [default: star]
    #[arg(long, value_name = "NAME or FILE", value_parser = tree, help_heading = "Critical section")]
    tree: Option<Tree>,

    /// How long a grant of lock-service lasts [default: as long as three vote leases]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    grant: Option<Span>,

    /// How many members are voters of voting, the highest ones [default: all]
    #[arg(long, value_name = "COUNT", help_heading = "Critical section")]
    voters: Option<u32>,

    /// How many votes let a member in [default: a majority of the voters]
    #[arg(long, value_name = "COUNT", help_heading = "Critical section")]
    votes: Option<u32>,

    /// Ask all voters, not only as many as are needed
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Critical section")]
    ask_all: Option<bool>,

    /// How long a member waits after too few votes, as --hold [default: from D/2 to 4 D]
    #[arg(long, value_name = "TIME", help_heading = "Critical section")]
    back_off: Option<DelayModel>,
}

/// Reads the name of a tree, its edges, or a file that has them: `1-2` on each line, and comments after `#`.
fn tree(text: &str) -> Result<Tree, String> {
    let written = text.parse::<Tree>();
    if written.is_ok() || !Path::new(text).exists() {
        return written.map_err(|problem| format!("{problem}; there is no file of that name"));
    }
    let lines = fs::read_to_string(text).map_err(|error| format!("cannot read {text}: {error}"))?;
    let mut edges = Vec::new();
    for (line, number) in lines.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match line.parse() {
            Ok(Tree::Listed(_)) => edges.push(line),
            _ => return Err(format!("{text}:{number}: `{line}` is not an edge such as 1-2")),
        }
    }
    edges.join(",").parse().map_err(|_| format!("{text} has no edges; write one on each line: 1-2"))
}

impl Section {
    /// Sets in `scenario` what the flags say.
    pub(crate) fn apply(&self, scenario: &mut Scenario) {
        // Every flag is named, so that none is accepted and ignored.
        #[rustfmt::skip]
        let Self { requests, hold, repeat, think, sets, tree, grant, voters, votes, ask_all, back_off } = self;
        set!(scenario: requests, hold, repeat, think, sets, tree, grant, voters, votes, back_off);
        scenario.ask_all = ask_all.unwrap_or(scenario.ask_all);
    }

    /// The flag that says how long something takes, if there is one: an exploration tries every time.
    pub(crate) fn timed(&self) -> Option<&'static str> {
        let flags = [
            ("hold", self.hold.is_some()),
            ("think", self.think.is_some()),
            ("grant", self.grant.is_some()),
        ];
        flags.into_iter().find(|&(_, is_given)| is_given).map(|(flag, _)| flag)
    }
}
