//! The flags that describe a run. They fill in the same [`Scenario`] that a file does.

use anyhow::{Result, bail};
use clap::Args;
use doyen_core::time::Span;
use doyen_sim::fault::{Chaos, Fault};
use doyen_sim::network::DelayModel;
use doyen_sim::scenario::Scenario;
use doyen_sim::text::Share;

use crate::cli::election::{Election, set};

#[derive(Args, Debug)]
pub(super) struct Flags {
    #[command(flatten)]
    election: Election,

    /// How long a message takes: 1ms, uniform:1ms..2ms or exp:1ms [default: 1ms]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    delay: Option<DelayModel>,

    /// How long a member takes to reply, at most [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    processing: Option<Span>,

    /// D, the bound on delays from which time-outs are made [default: the longest delay; for exp, ten times the mean]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    bound: Option<Span>,

    /// How many messages are lost, such as 5%
    #[arg(long, value_name = "SHARE", help_heading = "Network")]
    loss: Option<Share>,

    /// How many messages arrive twice, such as 1%
    #[arg(long, value_name = "SHARE", help_heading = "Network")]
    duplicate: Option<Share>,

    /// End the run at this time at the latest
    #[arg(long, value_name = "TIME", help_heading = "Timing")]
    until: Option<Span>,

    /// End the run once so many election messages are sent [default: 1000000000]
    #[arg(long, value_name = "COUNT", help_heading = "Timing")]
    message_limit: Option<u64>,

    /// The seed of everything random [default: 1]
    #[arg(long, value_name = "SEED", help_heading = "Timing")]
    seed: Option<u64>,

    /// A member crashes: 5@3ms; with its control part still forwarding: 5@3ms,forwards
    #[arg(long, value_name = "ID@TIME", value_parser = fault("crash"), help_heading = "Faults")]
    crash: Vec<Fault>,

    /// A member comes up again: 5@9ms; without its disk: 5@9ms,fresh
    #[arg(long, value_name = "ID@TIME", value_parser = fault("restart"), help_heading = "Faults")]
    restart: Vec<Fault>,

    /// A member does nothing for a while: 3@2ms+10ms
    #[arg(long, value_name = "ID@TIME+TIME", value_parser = fault("pause"), help_heading = "Faults")]
    pause: Vec<Fault>,

    /// A member's clock changes its rate: 3=0.9@0 (and 3=1.0@5ms+2ms jumps ahead by 2ms)
    #[arg(long, value_name = "ID=RATE@TIME", value_parser = fault("clock"), help_heading = "Faults")]
    clock: Vec<Fault>,

    /// Nothing gets from one member to another any more: 1>3@2ms
    #[arg(long, value_name = "ID>ID@TIME", value_parser = fault("cut"), help_heading = "Faults")]
    cut: Vec<Fault>,

    /// The members fall apart into groups: 1,2/3,4@2ms
    #[arg(long, value_name = "IDS/IDS@TIME", value_parser = fault("partition"), help_heading = "Faults")]
    partition: Vec<Fault>,

    /// Every cut and partition is over: 50ms
    #[arg(long, value_name = "TIME", value_parser = fault("heal"), help_heading = "Faults")]
    heal: Vec<Fault>,

    /// Crashes at random: every 50ms on average, for 20ms on average, until 1s: 50ms,20ms,1s
    #[arg(long, value_name = "EVERY,FOR,UNTIL", help_heading = "Faults")]
    chaos: Option<Chaos>,
}

impl Flags {
    /// Sets in `scenario` what the flags say.
    pub(super) fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        self.election.apply(scenario)?;
        if self.election.wants_every_ring() {
            bail!(
                "--ring: a simulated run has one ring; name it, or use `doyen check` for every ring"
            );
        }
        set(&mut scenario.seed, &self.seed);
        set(&mut scenario.until, &self.until);
        set(&mut scenario.message_limit, &self.message_limit);
        set(&mut scenario.delay, &self.delay);
        set(&mut scenario.processing, &self.processing);
        set(&mut scenario.bound, &self.bound);
        set(&mut scenario.loss, &self.loss);
        set(&mut scenario.duplicate, &self.duplicate);
        set(&mut scenario.chaos, &self.chaos);
        let Self { crash, restart, pause, clock, cut, partition, heal, .. } = self;
        let faults = [crash, restart, pause, clock, cut, partition, heal];
        scenario.fault.extend(faults.into_iter().flatten().cloned());
        Ok(())
    }
}

/// Reads the values of the flag for this kind of faults.
fn fault(kind: &'static str) -> impl Fn(&str) -> Result<Fault, String> + Clone {
    move |text| Fault::from_flag(kind, text)
}
