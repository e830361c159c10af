//! The limits of a request. All are checked before anything runs, or while it runs; none needs a clock.

/// The bytes of a scenario's text.
pub(crate) const TEXT: usize = 200_000;

/// The flags of a source.
pub(crate) const FLAGS: usize = 500;

/// The members of any run.
pub(crate) const MEMBERS: u64 = 1_000_000;

/// The members of a run that is recorded step by step.
pub(crate) const RECORDED_MEMBERS: usize = 200;

/// The steps that are recorded, by default and at most.
pub(crate) const USUAL_STEPS: usize = 5_000;
pub(crate) const STEPS: usize = 50_000;

/// The messages that are recorded for each step on average: one step may send to all members.
pub(crate) const MESSAGES_A_STEP: usize = 4;

/// The election messages of a run, and its events.
pub(crate) const MESSAGES: u64 = 2_000_000;
pub(crate) const EVENTS: u64 = 4_000_000;

/// The bytes that a run may need at its peak.
pub(crate) const MEMORY: u64 = 1_000_000_000;

/// The characters of a message's text.
pub(crate) const MESSAGE_TEXT: usize = 120;

/// The events of a trace that is written as a text.
pub(crate) const TRACE: usize = 100_000;

/// The states that are explored, by default and at most.
pub(crate) const USUAL_STATES: u64 = 300_000;
pub(crate) const STATES: u64 = 3_000_000;

/// The election messages of a scaled run, and its events.
pub(crate) const SCALED_MESSAGES: u64 = 10_000_000;
pub(crate) const SCALED_EVENTS: u64 = 20_000_000;
