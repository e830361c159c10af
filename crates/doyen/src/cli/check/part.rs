//! The flags with which a part of the quorum is explored in place of an election that is described.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, value_parser};
use doyen_check::part::{Part, Scope};
use doyen_core::algorithm::quorum::rules::Rule;

/// How long such an exploration takes at most unless one says otherwise: it answers within a minute.
pub(super) const MOST_TIME: Duration = Duration::from_secs(50);

/// The flags that describe something else. A part has settings of its own.
const OTHERS: [&str; 21] = [
    "file",
    "mode",
    "initiators",
    "dead",
    "leader",
    "attr",
    "ring",
    "convention",
    "contact_dead",
    "announce",
    "fifo",
    "reliable",
    "window",
    "heartbeat",
    "preempt",
    "detector",
    "suspicions",
    "timers",
    "detection",
    "from",
    "unordered",
];

/// Which part of the quorum is explored.
#[derive(Args, Debug)]
pub(super) struct Parts {
    /// Explore this part of the quorum, in every run: votes, sessions, leases or whole. Unless one says otherwise there
    /// are 3 members, any number of crashes, restarts, losses and duplications, and 50 s to explore them; of sessions one
    /// replacement, and no crashes
    #[arg(long, value_name = "PART", conflicts_with_all = OTHERS, help_heading = "Quorum")]
    part: Option<Part>,

    /// The last term that is opened [default: 2]
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = value_parser!(u64).range(1..=100),
        requires = "part",
        help_heading = "Quorum"
    )]
    terms: Option<u64>,

    /// One member asks for longer vote leases than the others
    #[arg(long, requires = "part", help_heading = "Quorum")]
    mixed_timings: bool,

    /// Take this rule away from all members, which must be noticed; `list` names the rules
    #[arg(long, value_name = "RULE", conflicts_with_all = OTHERS, hide = true)]
    without: Option<String>,
}

impl Parts {
    /// Whether the names of the rules are asked for.
    pub(super) fn lists_rules(&self) -> bool {
        self.without.as_deref() == Some("list")
    }

    /// The rule that is taken away.
    pub(super) fn without(&self) -> Result<Option<Rule>> {
        let rule = self.without.as_deref().map(str::parse).transpose();
        rule.map_err(|problem: String| anyhow!("--without: {problem}"))
    }

    /// What is explored, if it is a part of the quorum.
    pub(super) fn scope(&self) -> Result<Option<Scope>> {
        let scope = match (self.part, self.without()?) {
            (None, None) => return Ok(None),
            (Some(part), without) => Scope { without, ..Scope::new(part) },
            (None, Some(rule)) => match Scope::that_misses(rule) {
                Some(scope) => scope,
                None => bail!(
                    "--without: no exploration notices that {rule} is missing; try --random, or see quorum_mutants.rs"
                ),
            },
        };
        let terms = self.terms.unwrap_or(scope.terms);
        Ok(Some(Scope { terms, mixed: scope.mixed || self.mixed_timings, ..scope }))
    }
}
