//! A member of the cluster, what the user did to it, and its last answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use doyen::node::status::{Entry, Status};
use rustix::process::Signal;
use serde_json::Value;

use crate::cli::client::{Client, CommandResult};
use crate::cli::commands::render;
use crate::local::member::{Member as LocalMember, ProcessChange};

const POLL: Duration = Duration::from_millis(150);

/// What is shown of a member that was told to stop and has not ended yet.
pub(super) const STOPPING: &str = "stopping";

#[derive(Debug)]
pub(super) struct Member {
    inner: LocalMember,
    /// What the user did to it; empty while it runs normally.
    pub(super) fate: &'static str,
    answers: Arc<Mutex<Answers>>,
}

/// The last answers of the member.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) status: Option<Status>,
    pub(super) history: Vec<Entry>,
}

impl Member {
    /// It does not run yet.
    pub(super) fn new(inner: LocalMember) -> Result<Self> {
        let answers = Arc::new(Mutex::new(Answers::default()));
        poll(Arc::clone(&inner.client), Arc::clone(&answers))?;
        Ok(Self { inner, fate: "not started", answers })
    }

    pub(super) fn id(&self) -> u32 {
        self.inner.id
    }

    pub(super) fn name(&self) -> &str {
        &self.inner.name
    }

    pub(super) fn url(&self) -> &str {
        self.inner.client.url()
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.inner.pid().map(|pid| pid.as_raw_nonzero().get())
    }

    /// Empty if it does not run.
    pub(super) fn answers(&self) -> Answers {
        match self.inner.pid() {
            Some(_) => self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            None => Answers::default(),
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.answers().status.is_some_and(|status| status.role.leads())
    }

    pub(super) fn start(&mut self) -> Result<String> {
        if self.inner.pid().is_some() {
            return Ok(format!("{} is running already", self.name()));
        }
        self.inner.start()?;
        self.fate = "";
        Ok(format!("{} started", self.name()))
    }

    /// Notices what has happened to its process.
    pub(super) fn look(&mut self) {
        while let Some(change) = self.inner.change() {
            self.fate = match change {
                ProcessChange::Paused => "paused",
                ProcessChange::Continued => "",
                ProcessChange::Ended(_) => {
                    *self.answers.lock().unwrap_or_else(PoisonError::into_inner) =
                        Answers::default();
                    match self.fate {
                        "" => "ended unexpectedly: see its log",
                        STOPPING => "stopped",
                        fate => fate,
                    }
                }
            };
        }
    }

    pub(super) fn signal(&mut self, signal: Signal, fate: &'static str) -> Result<String> {
        self.inner.signal(signal)?;
        self.fate = if signal == Signal::CONT { "" } else { fate };
        Ok(format!("{} {fate}", self.name()))
    }

    pub(super) fn command(&self, command: &str, body: &Value) -> Result<String> {
        let name = self.name();
        match self.inner.command(command, body)? {
            CommandResult::Accepted(accepted) => Ok(render(&accepted).trim_end().to_owned()),
            CommandResult::Rejected(why) => bail!("{name}: {command} rejected: {}", why.detail),
        }
    }

    /// Asks it to stop, paused or not.
    pub(super) fn stop(&mut self) {
        self.inner.stop();
    }

    /// Waits for its end until `deadline`, and kills it then.
    pub(super) fn wait(&mut self, deadline: Instant) {
        self.inner.wait(deadline);
    }
}

/// Fetches the answers again and again until the member is dropped.
fn poll(client: Arc<Client>, answers: Arc<Mutex<Answers>>) -> Result<()> {
    thread::Builder::new().name("doyen-poll".to_owned()).spawn(move || {
        while Arc::strong_count(&answers) > 1 {
            let history = client.get("/v1/history").unwrap_or_default();
            let latest = Answers { status: client.status().ok(), history };
            *answers.lock().unwrap_or_else(PoisonError::into_inner) = latest;
            thread::sleep(POLL);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_member_that_has_stopped_is_no_longer_stopping() {
        let process = LocalMember::running(1, Command::new("sleep").arg("60"));
        let mut member = Member { fate: "", ..Member::new(process).expect("a member") };
        member.signal(Signal::TERM, STOPPING).expect("it runs");
        let deadline = Instant::now() + Duration::from_secs(30);
        while member.pid().is_some() && Instant::now() < deadline {
            assert_eq!(member.fate, STOPPING);
            member.look();
        }
        assert_eq!(member.fate, "stopped");
    }
}
