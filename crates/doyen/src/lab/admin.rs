//! Commands of an operator, for the nodes: the same ones that `doyen transfer` and `doyen drain` send, and a priority.

use std::io;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::PRIORITY_FILE;
use super::faults::Command;
use super::problem::problem;
use super::shared::Shared;
use crate::cli::client::CommandResult;
use crate::local::member::{Member, admin_command};

/// The way to the nodes for commands of an operator.
#[derive(Debug)]
pub(crate) struct Admin {
    nodes: Vec<(String, PathBuf)>,
}

impl Admin {
    pub(crate) fn of(members: &[Member]) -> Self {
        let node = |it: &Member| (it.name.clone(), it.folder.clone());
        Self { nodes: members.iter().map(node).collect() }
    }

    /// Gives a command to the node that it is for, and waits for the answer.
    pub(crate) fn give(&self, command: &Command, shared: &Shared) -> Response {
        let named = |name: &String| self.nodes.iter().position(|(known, _)| known == name);
        let (Command::Transfer(name)
        | Command::Drain(name)
        | Command::Undrain(name)
        | Command::Priority(name, _)) = command;
        let Some(place) = named(name) else {
            let detail = format!("there is no member `{name}`");
            return problem(StatusCode::UNPROCESSABLE_ENTITY, "unknown-member", detail);
        };
        match command {
            Command::Transfer(to) => {
                let leader =
                    shared.with(|monitor| monitor.leadership.current().next().map(|it| it.member));
                match leader {
                    Some(leader) => self.send(leader, "transfer", &json!({ "to": to })),
                    None => problem(StatusCode::CONFLICT, "no-leader", "there is no leader now"),
                }
            }
            Command::Drain(_) => self.send(place, "drain", &json!({})),
            Command::Undrain(_) => self.send(place, "undrain", &json!({})),
            Command::Priority(_, priority) => self.prioritize(place, *priority, shared),
        }
    }

    fn send(&self, place: usize, command: &str, body: &Value) -> Response {
        let (name, folder) = &self.nodes[place];
        match admin_command(folder, command, body) {
            Ok(CommandResult::Accepted(done)) => {
                let note = done.note.map_or_else(String::new, |note| format!("; {note}"));
                accepted(&format!("{} {}{note}", done.name, done.accepted))
            }
            Ok(CommandResult::Rejected(problem)) => problem.into_response(),
            Err(error) => {
                let detail = format!("{name} does not answer: {error:#}");
                problem(StatusCode::SERVICE_UNAVAILABLE, "no-answer", detail)
            }
        }
    }

    /// The node reads its priority from a file, as any attribute that is measured.
    fn prioritize(&self, place: usize, priority: i64, shared: &Shared) -> Response {
        let (name, folder) = &self.nodes[place];
        let algorithm = shared.with(|monitor| monitor.setup.algorithm);
        if !algorithm.has_leases() {
            let detail = format!("{algorithm} has fixed priorities; only quorum can change them");
            return problem(StatusCode::CONFLICT, "no-commands", detail);
        }
        match replace(folder, priority) {
            Ok(()) => accepted(&format!("{name} gets priority {priority}")),
            Err(error) => {
                let detail = format!("cannot write the priority of {name}: {error}");
                problem(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail)
            }
        }
    }
}

/// Replaces the file as a whole: the node may read it at any time.
fn replace(folder: &Path, priority: i64) -> io::Result<()> {
    let draft = folder.join(format!("{PRIORITY_FILE}.draft"));
    std::fs::write(&draft, format!("{priority}\n"))?;
    std::fs::rename(&draft, folder.join(PRIORITY_FILE))
}

/// What has been done, or has begun.
pub(crate) fn accepted(done: &str) -> Response {
    (StatusCode::ACCEPTED, Json(json!({ "accepted": done }))).into_response()
}
