//! Threads that work for a search round by round.
//!
//! They live as long as the search does: to start a thread for every level costs more than a small level.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

/// A thread that makes a `Done` of every `Job`. It ends when this is dropped.
pub(super) struct Helper<Job, Done> {
    jobs: Sender<Job>,
    done: Receiver<Done>,
}

impl<Job: Send, Done: Send> Helper<Job, Done> {
    /// None if the system refuses to start a thread.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        work: impl Fn(Job) -> Done + Send + 'scope,
    ) -> Option<Self>
    where
        Job: 'scope,
        Done: 'scope,
    {
        let (jobs, to_do) = channel();
        let (results, done) = channel();
        let run = move || to_do.into_iter().map(work).try_for_each(|result| results.send(result));
        Builder::new().spawn_scoped(scope, run).ok()?;
        Some(Self { jobs, done })
    }

    /// Gives it a job.
    pub(super) fn give(&self, job: Job) {
        // If it has panicked, `take` notices.
        let _ = self.jobs.send(job);
    }

    /// Waits for its result.
    pub(super) fn take(&self) -> Done {
        self.done.recv().expect("a helper works until it panics")
    }
}
