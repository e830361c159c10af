//! The flags that describe an election, wherever it is run: simulated or checked. They fill in the same [`Scenario`] that
//! a file does, so there is one set of rules and one set of errors.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use doyen_sim::scenario::{Initiator, Initiators, MemberList, RingOrder, Scenario, ScenarioError};

#[derive(Args, Debug)]
pub(crate) struct Election {
    /// bully, modified-bully, ring-list, ring-active-list, ring-all-ids, chang-roberts, ring-resilient or quorum
    #[arg(long, short, value_name = "NAME", help_heading = "Election")]
    algorithm: Option<String>,

    /// textbook, hardened, or a literal variant (`doyen algorithms` lists them) [default: textbook]
    #[arg(long, value_name = "MODE", help_heading = "Election")]
    mode: Option<String>,

    /// How many, or which: 5 (the members 1 to 5), 0..7 or 17,24,33
    #[arg(long, short = 'n', value_name = "N", help_heading = "Election")]
    members: Option<String>,

    /// Who notices that the coordinator is gone: 1,5 or 5@1.5ms or all or none [default: the lowest live member, or
    /// nobody if --leader names one]
    #[arg(long, value_name = "IDS", help_heading = "Election")]
    initiators: Option<String>,

    /// Who is dead from the beginning
    #[arg(long, value_name = "IDS", value_delimiter = ',', help_heading = "Election")]
    dead: Vec<u32>,

    /// Who leads at the beginning, alive
    #[arg(long, value_name = "ID", help_heading = "Election")]
    leader: Option<u32>,

    /// Election attributes, such as 3=90,1=90; without one a member's id is its attribute
    #[arg(long, value_name = "ID=VALUE", value_delimiter = ',', help_heading = "Election")]
    attr: Vec<String>,

    /// The ring, clockwise: ascending, descending, random or the ids; for `doyen check` also every, one after the other
    /// [default: ascending]
    #[arg(long, value_name = "ORDER", help_heading = "Election")]
    ring: Option<String>,

    /// What --members counts: live (the crashed coordinator stands outside) or configured (the highest member is the
    /// crashed coordinator) [default: live]
    #[arg(long, value_name = "NAME", help_heading = "Election")]
    convention: Option<String>,

    /// The members do not know who is dead, and contact them in vain
    #[arg(long, help_heading = "Election")]
    contact_dead: bool,

    /// To whom a bully announces itself: lower or all [default: lower]
    #[arg(long, value_name = "WHO", help_heading = "Election")]
    announce: Option<String>,

    /// Links keep the order of their messages [default: where the algorithm needs it]
    #[arg(long, help_heading = "Network")]
    fifo: bool,

    /// Send everything over the reliable link: acknowledged, retransmitted, in order
    #[arg(long, help_heading = "Network")]
    reliable: bool,

    /// W, how long a modified bully collects before it answers [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    window: Option<String>,

    /// How often a hardened leader says that it leads [default: 5 D]
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    heartbeat: Option<String>,

    /// How long a hardened member bears a lower leader [default: 20 D]
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    preempt: Option<String>,

    /// Detect failures with heartbeats of this period
    #[arg(long, value_name = "PERIOD", help_heading = "Timing")]
    detector: Option<String>,
}

impl Election {
    /// Whether `--ring every` asks for all rings instead of one.
    pub(crate) fn wants_every_ring(&self) -> bool {
        self.ring.as_deref() == Some("every")
    }

    /// Sets in `scenario` what the flags say.
    pub(crate) fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        if let Some(algorithm) = &self.algorithm {
            scenario.algorithm.clone_from(algorithm);
        }
        set(&mut scenario.mode, &self.mode);
        set(&mut scenario.convention, &self.convention);
        set(&mut scenario.announce, &self.announce);
        set(&mut scenario.leader, &self.leader);
        set(&mut scenario.fifo, &self.fifo.then_some(true));
        set(&mut scenario.window, &self.window);
        set(&mut scenario.heartbeat, &self.heartbeat);
        set(&mut scenario.preempt, &self.preempt);
        set(&mut scenario.detector, &self.detector);
        scenario.contact_dead |= self.contact_dead;
        scenario.reliable |= self.reliable;
        if !self.dead.is_empty() {
            scenario.dead.clone_from(&self.dead);
        }
        if let Some(members) = &self.members {
            scenario.members = Some(parse_members(members)?);
        }
        if let Some(ring) = &self.ring {
            scenario.ring = Some(parse_ring(ring)?);
        }
        if let Some(initiators) = &self.initiators {
            scenario.initiators = Some(parse_initiators(initiators)?);
        }
        self.apply_attributes(scenario)
    }

    fn apply_attributes(&self, scenario: &mut Scenario) -> Result<()> {
        for attr in &self.attr {
            let (id, value) = attr.split_once('=').with_context(|| {
                format!("--attr: `{attr}` is not ID=VALUE; write for example 3=90")
            })?;
            let value = value.trim().parse().map_err(|_| {
                anyhow!("--attr: `{value}` is not a whole number; write for example 3=90")
            })?;
            let id = id.trim().to_owned();
            if self.attr.iter().filter(|other| other.starts_with(&format!("{id}="))).count() > 1 {
                bail!("--attr: member {id} is given two attributes");
            }
            scenario.attr.insert(id, value);
        }
        Ok(())
    }
}

pub(crate) fn set<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        field.clone_from(flag);
    }
}

pub(crate) fn number(flag: &str, text: &str) -> Result<u32> {
    text.trim().parse().map_err(|_| anyhow!("--{flag}: `{text}` is not a member's number"))
}

fn parse_members(text: &str) -> Result<MemberList> {
    if text.contains("..") {
        return Ok(MemberList::Range(text.to_owned()));
    }
    if text.contains(',') {
        let ids = text.split(',').map(|id| number("members", id)).collect::<Result<_>>()?;
        return Ok(MemberList::Listed(ids));
    }
    let count = text.trim().parse().map_err(|_| {
        anyhow!("--members: `{text}` is neither a number, a range such as 0..7 nor a list of ids")
    })?;
    Ok(MemberList::Count(count))
}

fn parse_ring(text: &str) -> Result<RingOrder> {
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return Ok(RingOrder::Named(text.to_owned()));
    }
    Ok(RingOrder::Listed(text.split(',').map(|id| number("ring", id)).collect::<Result<_>>()?))
}

fn parse_initiators(text: &str) -> Result<Initiators> {
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return Ok(Initiators::Named(text.to_owned()));
    }
    let parse = |text: &str| match text.split_once('@') {
        None => Ok(Initiator::AtOnce(number("initiators", text)?)),
        Some((id, at)) => {
            Ok(Initiator::At { member: number("initiators", id)?, at: at.to_owned() })
        }
    };
    Ok(Initiators::Listed(text.split(',').map(parse).collect::<Result<_>>()?))
}

/// An error of a scenario made of flags: the key is a flag.
pub(crate) fn as_flag(error: &ScenarioError) -> String {
    let key = match error.key.split_once('[') {
        Some((_, rest)) => rest.split_once('.').map_or(rest, |(_, key)| key),
        None => error.key.as_str(),
    };
    let flag = match key {
        "for" => "pause",
        "rate" | "skew" => "clock",
        key if key.starts_with("chaos.") => "chaos",
        key => key,
    };
    format!("--{}: {}", flag.replace('_', "-"), error.problem)
}
