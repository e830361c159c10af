//! The flags that describe a run. They fill in the same [`Scenario`] that a file does.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use doyen_core::time::Span;
use doyen_sim::scenario::{ChaosEntry, DiskEntry, FaultEntry, Scenario, Share};

use crate::cli::election::{Election, number, set};

#[derive(Args, Debug)]
pub(super) struct Flags {
    #[command(flatten)]
    election: Election,

    /// How long a message takes: 1ms, uniform:1ms..2ms or exp:1ms [default: 1ms]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    delay: Option<String>,

    /// How long a member takes to reply, at most [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    processing: Option<String>,

    /// D, the bound on delays from which time-outs are made [default: the longest delay; for exp, ten times the mean]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    bound: Option<String>,

    /// How many messages are lost, such as 5%
    #[arg(long, value_name = "SHARE", help_heading = "Network")]
    loss: Option<String>,

    /// How many messages arrive twice, such as 1%
    #[arg(long, value_name = "SHARE", help_heading = "Network")]
    duplicate: Option<String>,

    /// End the run at this time at the latest
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    until: Option<String>,

    /// End the run once so many election messages are sent [default: 1000000000]
    #[arg(long, value_name = "COUNT", help_heading = "Timing")]
    message_limit: Option<u64>,

    /// The seed of everything random [default: 1]
    #[arg(long, value_name = "SEED", help_heading = "Timing")]
    seed: Option<u64>,

    /// A member crashes: 5@3ms; with its control part still forwarding: 5@3ms,forwards
    #[arg(long, value_name = "ID@TIME", help_heading = "Faults")]
    crash: Vec<String>,

    /// A member comes up again: 5@9ms; without its disk: 5@9ms,fresh
    #[arg(long, value_name = "ID@TIME", help_heading = "Faults")]
    restart: Vec<String>,

    /// A member does nothing for a while: 3@2ms+10ms
    #[arg(long, value_name = "ID@TIME+TIME", help_heading = "Faults")]
    pause: Vec<String>,

    /// A member's clock changes its rate: 3=0.9@0 (and 3=1.0@5ms+2ms jumps ahead by 2ms)
    #[arg(long, value_name = "ID=RATE@TIME", help_heading = "Faults")]
    clock: Vec<String>,

    /// Nothing gets from one member to another any more: 1>3@2ms
    #[arg(long, value_name = "ID>ID@TIME", help_heading = "Faults")]
    cut: Vec<String>,

    /// The members fall apart into groups: 1,2/3,4@2ms
    #[arg(long, value_name = "IDS/IDS@TIME", help_heading = "Faults")]
    partition: Vec<String>,

    /// Every cut and partition is over: 50ms
    #[arg(long, value_name = "TIME", help_heading = "Faults")]
    heal: Vec<String>,

    /// Crashes at random: every 50ms on average, for 20ms on average, until 1s: 50ms,20ms,1s
    #[arg(long, value_name = "EVERY,FOR,UNTIL", help_heading = "Faults")]
    chaos: Option<String>,
}

impl Flags {
    /// Sets in `scenario` what the flags say.
    pub(super) fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        self.election.apply(scenario)?;
        self.apply_network(scenario);
        self.apply_faults(scenario)
    }

    fn apply_network(&self, scenario: &mut Scenario) {
        set(&mut scenario.seed, &self.seed);
        set(&mut scenario.until, &self.until);
        set(&mut scenario.message_limit, &self.message_limit);
        set(&mut scenario.delay, &self.delay);
        set(&mut scenario.processing, &self.processing);
        set(&mut scenario.bound, &self.bound);
        set(&mut scenario.loss, &self.loss.clone().map(Share::Text));
        set(&mut scenario.duplicate, &self.duplicate.clone().map(Share::Text));
    }

    fn apply_faults(&self, scenario: &mut Scenario) -> Result<()> {
        let faults = &mut scenario.fault;
        for text in &self.crash {
            let (text, forwards) = strip("crash", text, ",forwards")?;
            let (id, at) = at("crash", text)?;
            let crash = Some(number("crash", id)?);
            faults.push(FaultEntry { at, crash, forwards, ..FaultEntry::default() });
        }
        for text in &self.restart {
            let (text, fresh) = strip("restart", text, ",fresh")?;
            let (id, at) = at("restart", text)?;
            let restart = Some(number("restart", id)?);
            let disk = Some(DiskEntry::Kept(!fresh));
            faults.push(FaultEntry { at, restart, disk, ..FaultEntry::default() });
        }
        for text in &self.pause {
            let (text, lasting) = text.split_once('+').with_context(|| {
                format!("--pause: `{text}` does not say for how long; write for example 3@2ms+10ms")
            })?;
            let (id, at) = at("pause", text)?;
            let (pause, lasting) = (Some(number("pause", id)?), Some(lasting.to_owned()));
            faults.push(FaultEntry { at, pause, lasting, ..FaultEntry::default() });
        }
        for text in &self.clock {
            faults.push(parse_clock(text)?);
        }
        for text in &self.cut {
            let (link, at) = at("cut", text)?;
            let (from, to) = link.split_once('>').with_context(|| {
                format!("--cut: `{text}` is not FROM>TO@TIME; write for example '1>3@2ms'")
            })?;
            let cut = Some([number("cut", from)?, number("cut", to)?]);
            faults.push(FaultEntry { at, cut, ..FaultEntry::default() });
        }
        for text in &self.partition {
            let (groups, at) = at("partition", text)?;
            let group = |ids: &str| ids.split(',').map(|id| number("partition", id)).collect();
            let partition = Some(groups.split('/').map(group).collect::<Result<_>>()?);
            faults.push(FaultEntry { at, partition, ..FaultEntry::default() });
        }
        for time in &self.heal {
            time.parse::<Span>().map_err(|problem| anyhow!("--heal: {problem}"))?;
            let at = Some(time.clone());
            faults.push(FaultEntry { at, heal: true, ..FaultEntry::default() });
        }
        if let Some(chaos) = &self.chaos {
            scenario.chaos = Some(parse_chaos(chaos)?);
        }
        Ok(())
    }
}

fn strip<'a>(flag: &str, text: &'a str, suffix: &str) -> Result<(&'a str, bool)> {
    match text.strip_suffix(suffix) {
        Some(text) => Ok((text, true)),
        None if text.contains(',') => {
            bail!("--{flag}: `{text}`: only `{suffix}` may follow the time")
        }
        None => Ok((text, false)),
    }
}

fn at<'a>(flag: &str, text: &'a str) -> Result<(&'a str, Option<String>)> {
    let (what, time) = text.rsplit_once('@').with_context(|| {
        format!("--{flag}: `{text}` does not say when; write for example @3ms at its end")
    })?;
    let first = time.split('+').next().unwrap_or(time);
    first.parse::<Span>().map_err(|problem| anyhow!("--{flag}: {problem}"))?;
    Ok((what, Some(time.to_owned())))
}

/// Reads `3=0.9@5ms` and `3=1.0@5ms+2ms`.
fn parse_clock(text: &str) -> Result<FaultEntry> {
    let (change, time) = at("clock", text)?;
    let (id, rate) = change.split_once('=').with_context(|| {
        format!("--clock: `{text}` is not ID=RATE@TIME; write for example 3=0.9@0")
    })?;
    let rate = rate.parse().map_err(|_| anyhow!("--clock: `{rate}` is not a rate such as 0.9"))?;
    let time = time.unwrap_or_default();
    let (at, skew) = match time.split_once('+') {
        None => (time, None),
        Some((at, skew)) => (at.to_owned(), Some(skew.to_owned())),
    };
    let clock = Some(number("clock", id)?);
    Ok(FaultEntry { at: Some(at), clock, rate: Some(rate), skew, ..FaultEntry::default() })
}

fn parse_chaos(text: &str) -> Result<ChaosEntry> {
    let [crash_every, down_for, until] = text.split(',').collect::<Vec<_>>()[..] else {
        bail!("--chaos: `{text}` is not EVERY,FOR,UNTIL; write for example 50ms,20ms,1s");
    };
    Ok(ChaosEntry {
        crash_every: Some(crash_every.to_owned()),
        down_for: Some(down_for.to_owned()),
        until: Some(until.to_owned()),
        ..ChaosEntry::default()
    })
}
