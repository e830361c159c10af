//! Crash hand-over: what must be done before the lease of a dead leader is released.
//!
//! A leader that dies keeps all others waiting until its lease is over, because no other member can tell whether
//! something still acts under it. Its own machine can tell, if that lives. So a second process, the guardian, watches
//! the leader. When the leader is dead, the guardian ends the job that runs under the lease, runs the hooks that undo
//! what the leader had set up, waits until the last permit is over, and then sends what the leader would have sent if it
//! had transferred leadership ([`Event::Crashed`]).
//!
//! This is a rule of safety, so it is decided here, for the guardian of a node and for the simulated one alike. An end that
//! is not confirmed releases nothing: the lease runs out.

use crate::config::rules::{Rule, Rules};
use crate::protocol::{Effects, Event, Protocol};

/// The messages that may be sent in the name of `member` if it dies now, and the rules that fired; no other effects.
pub fn last_messages<P: Protocol>(member: &P, config: &P::Config) -> Effects<P> {
    let mut out = Effects::new();
    member.clone().handle(config, Event::Crashed, &mut out);
    out.keep_messages();
    out
}

/// What is left of a dead leader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remains<T> {
    /// The deadline of its lease.
    pub lease: T,
    /// When its last permit ends.
    pub permit: T,
    /// What it ran under the lease: the job and everything that the job has started.
    pub job: Work,
    /// The hooks for "no longer leader".
    pub hooks: Work,
}

/// Work that depends on a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// It has to be ended; a hook has to be run.
    Due,
    /// There is none, or its end is confirmed.
    Over,
    /// Its end cannot be confirmed, or a hook has failed.
    Unknown,
}

/// What the guardian does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Duty<T> {
    /// End the job, all of it, and confirm that.
    EndJob,
    /// Run the hooks.
    RunHooks,
    /// Wait until then.
    Wait(T),
    /// Send the last messages: nothing relies on the lease any more.
    Release,
    /// Nothing more: the lease is over, or runs out because an end was not confirmed.
    Nothing,
}

impl<T: Copy + Ord> Remains<T> {
    /// What the guardian does next. `rules`: those of the quorum, all of them in force but in a check.
    pub fn duty(&self, now: T, rules: Rules) -> Duty<T> {
        let checks_work = rules.keeps(Rule::JobEndsBeforeRelease);
        let checks_permits = rules.keeps(Rule::PermitEndsBeforeRelease);
        match (self.job, self.hooks) {
            _ if now >= self.lease => Duty::Nothing,
            (Work::Unknown, _) | (_, Work::Unknown) if checks_work => Duty::Nothing,
            (Work::Due, _) if checks_work => Duty::EndJob,
            (_, Work::Due) if checks_work => Duty::RunHooks,
            _ if now < self.permit && checks_permits => Duty::Wait(self.permit),
            _ => Duty::Release,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMAINS: Remains<u32> =
        Remains { lease: 100, permit: 50, job: Work::Due, hooks: Work::Due };

    #[test]
    fn the_job_ends_then_the_hooks_then_the_permits_and_only_then_the_lease() {
        let duty = |remains: Remains<u32>, now| remains.duty(now, Rules::default());
        let ended = Remains { job: Work::Over, ..REMAINS };
        let undone = Remains { hooks: Work::Over, ..ended };
        assert_eq!(duty(REMAINS, 10), Duty::EndJob);
        assert_eq!(duty(ended, 10), Duty::RunHooks);
        assert_eq!(duty(undone, 10), Duty::Wait(50));
        assert_eq!(duty(undone, 50), Duty::Release);
        assert_eq!(duty(undone, 100), Duty::Nothing, "the lease is over");
    }

    #[test]
    fn what_is_not_confirmed_releases_nothing() {
        for remains in [
            Remains { job: Work::Unknown, hooks: Work::Over, ..REMAINS },
            Remains { job: Work::Over, hooks: Work::Unknown, ..REMAINS },
            Remains { job: Work::Due, hooks: Work::Unknown, ..REMAINS },
        ] {
            assert_eq!(remains.duty(60, Rules::default()), Duty::Nothing);
        }
    }
}
