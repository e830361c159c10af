//! The flags that describe an election, for `doyen sim` and `doyen check`. They fill in the same [`Scenario`] as a file, so
//! there is one set of rules and one set of errors.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use doyen_core::config::Mode;
use doyen_core::registry::Algorithm;
use doyen_core::time::Span;
use doyen_sim::scenario::{Convention, Initiators, MemberList, RingOrder, Scenario, ScenarioError};

#[derive(Args, Debug)]
pub(crate) struct Election {
    /// One that elects (bully, quorum, ...) or one that excludes (ricart-agrawala, ...); `doyen algorithms` lists them
    #[arg(long, short, value_name = "NAME", value_parser = algorithm(), hide_possible_values = true, help_heading = "Election")]
    algorithm: Option<Algorithm>,

    /// How many, or which: 5 (the members 1 to 5), 0..7 or 17,24,33
    #[arg(long, short = 'n', value_name = "N", help_heading = "Election")]
    members: Option<MemberList>,

    /// textbook, hardened, or a literal variant (`doyen algorithms` lists them) [default: textbook]
    #[arg(long, value_name = "MODE", help_heading = "Election")]
    mode: Option<Mode>,

    /// The members that notice the coordinator's crash: 1,5 or 5@1.5ms or all or none [default: the lowest live member;
    /// none with --leader]
    #[arg(long, value_name = "IDS", help_heading = "Election")]
    initiators: Option<Initiators>,

    /// Members that are dead from the beginning
    #[arg(long, value_name = "IDS", value_delimiter = ',', help_heading = "Election")]
    dead: Vec<u32>,

    /// Member that leads at the beginning, alive; of an exclusion, the coordinator, or where the token begins
    #[arg(long, value_name = "ID", help_heading = "Election")]
    leader: Option<u32>,

    /// Election attributes, such as 3=90,1=90 [default: a member's id]
    #[arg(long, value_name = "ID=VALUE", value_delimiter = ',', value_parser = attribute, help_heading = "Election")]
    attr: Vec<(u32, i64)>,

    /// The ring, clockwise: ascending, descending, random or the ids [default: ascending]
    #[arg(long, value_name = "ORDER", help_heading = "Election")]
    ring: Option<RingOrder>,

    /// What --members counts: live (without the crashed coordinator) or configured (the highest member is the crashed
    /// coordinator) [default: live]
    #[arg(long, value_name = "NAME", help_heading = "Election")]
    convention: Option<Convention>,

    /// Contact dead members too, as members that do not know which are dead
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Election")]
    contact_dead: Option<bool>,

    /// The members to which a bully announces itself: lower or all [default: lower]
    #[arg(long, value_name = "WHICH", help_heading = "Election")]
    announce: Option<String>,

    /// Keep the order of messages on each link [default: where the algorithm needs it]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Network")]
    fifo: Option<bool>,

    /// Send everything over the reliable link: acknowledged, retransmitted, in order
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Network")]
    reliable: Option<bool>,

    /// W, how long a modified bully collects before it answers [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    window: Option<Span>,

    /// How often a hardened leader announces itself [default: 5 D]
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    heartbeat: Option<Span>,

    /// How long a hardened member tolerates a lower leader [default: 20 D]
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    preempt: Option<Span>,

    /// Detect failures with heartbeats of this period
    #[arg(long, value_name = "PERIOD", help_heading = "Timing")]
    detector: Option<Span>,
}

impl Election {
    /// Sets in `scenario` what the flags say.
    pub(crate) fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        // Every flag is named, so that none is accepted and ignored.
        #[rustfmt::skip]
        let Self {
            algorithm, members, mode, initiators, dead, leader, attr, ring, convention, contact_dead, announce, fifo, reliable,
            window, heartbeat, preempt, detector,
        } = self;
        set!(scenario: algorithm, members, mode, initiators, leader, ring, convention, announce, fifo);
        set!(scenario: window, heartbeat, preempt, detector);
        scenario.contact_dead = contact_dead.unwrap_or(scenario.contact_dead);
        scenario.reliable = reliable.unwrap_or(scenario.reliable);
        if !dead.is_empty() {
            scenario.dead.clone_from(dead);
        }
        for (place, (id, value)) in attr.iter().enumerate() {
            if attr[..place].iter().any(|(other, _)| other == id) {
                bail!("--attr: member {id} is given two attributes");
            }
            scenario.attr.insert(id.to_string(), *value);
        }
        Ok(())
    }
}

/// Any algorithm, by its name.
pub(crate) fn algorithm() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Reads `3=90`.
fn attribute(text: &str) -> Result<(u32, i64), String> {
    let pair = text
        .split_once('=')
        .and_then(|(id, value)| Some((id.trim().parse().ok()?, value.trim().parse().ok()?)));
    pair.ok_or_else(|| {
        format!("`{text}` is not ID=VALUE with whole numbers; write for example 3=90")
    })
}

/// Sets fields of a scenario from the flags of the same names, where these are given.
macro_rules! set {
    ($scenario:ident: $($flag:ident),+) => {
        $(if $flag.is_some() {
            $scenario.$flag.clone_from($flag);
        })+
    };
}
pub(crate) use set;

/// An error of a scenario made of flags: the key is a flag.
#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn as_flag(error: ScenarioError) -> anyhow::Error {
    anyhow!("--{}: {}", error.flag(), error.problem)
}
