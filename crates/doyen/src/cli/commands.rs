//! Admin commands: `resign`, `transfer`, `drain`, `undrain`, `prefer`, `pause`, `resume`, `reload`, `reload-keys`.
//!
//! The node forwards a command that is for the leader, or for another member, and passes on the answer.

use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use doyen::api::{Accepted, Drain, MemberRef, Pause, Prefer, Problem, Transfer};
use doyen::clock;
use serde::Serialize;
use serde_json::json;

use super::awaited::ask_one;
use super::client::{CommandResult, OperatorFlags, parse_time, path_to};
use super::{Answer, system, terminal};

const EXITS: &str = "\
Any member may be asked: it forwards what is for another one.
Exit: 0 accepted, 1 rejected, 2 wrong usage or admin secret, 3 the node or the member cannot be reached.";

const DRAIN: &str = "\
Examples:
  doyen drain --for 2h           this member
  doyen drain n2 --for 2h        n2, asked through this member

Exit: 0 accepted, 1 rejected, 2 wrong usage or admin secret, 3 the node or the member cannot be reached.";

const PAUSE: &str = "\
Examples:
  doyen pause --for 1h           before work on the network
  doyen resume                   when it is done

While elections are paused, no member campaigns, except by a transfer: `transfer`, `resign`, `drain`
and a planned shutdown work as usual. Leases end as usual too, and `doyen run` then stops its command:
a leader that loses its majority stops. (In Patroni's pause a primary continues.) If the leader
dies, there is none until `resume` or until the time is over.
Any member takes the command and tells the others; no leader is needed.
Exit: 0 accepted, 1 rejected, 2 wrong usage or admin secret, 3 the node cannot be reached.";

const RELOAD: &str = "\
Used at once: keys, admin secret, log, hooks, this member's priority. From the next term on: timing.jitter, stagger,
tenure, penalty_decay and probe, and preemption. Everything else needs a restart: then nothing changes, and the answer
says which setting it is and why. SIGHUP does the same; the log says what came of it.

Exit: 0 reloaded, 1 refused, 2 wrong usage or admin secret, 3 the node or the member cannot be reached.";

const PREFER: &str = "\
Examples:
  doyen prefer n2 --for 2h
  doyen prefer n2 --for 0s       end the preference

Any member may be asked: it forwards the command to the leader. A recent failure as leader
counts more than a preference; `doyen transfer` makes the member leader nevertheless.
Exit: 0 accepted, 1 rejected, 2 wrong usage or admin secret, 3 the node or the leader cannot be reached.";

#[derive(Subcommand, Debug)]
pub(crate) enum Admin {
    /// Make the leader transfer leadership to the best other member
    #[command(after_help = EXITS)]
    Resign(CommandFlags),

    /// Make the leader transfer leadership to a given member
    #[command(after_help = EXITS)]
    Transfer {
        /// The next leader, by name or id
        #[arg(value_name = "MEMBER")]
        to: String,
        #[command(flatten)]
        flags: CommandFlags,
    },

    /// Keep a member from leading while another can; a leader transfers first
    #[command(after_help = DRAIN)]
    Drain {
        /// The member to drain, by name or id [default: the node itself]
        #[arg(value_name = "MEMBER")]
        member: Option<String>,
        /// End the drain after this time, for example 2h [default: until `undrain`]
        #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
        duration: Option<Duration>,
        /// Never lead, even if every other eligible member is drained too; until `undrain`
        #[arg(long, conflicts_with = "duration")]
        never: bool,
        #[command(flatten)]
        flags: CommandFlags,
    },

    /// Let a drained member lead again
    #[command(after_help = EXITS)]
    Undrain {
        /// The drained member, by name or id [default: the node itself]
        #[arg(value_name = "MEMBER")]
        member: Option<String>,
        #[command(flatten)]
        flags: CommandFlags,
    },

    /// Prefer a member as leader for some time
    #[command(after_help = PREFER)]
    Prefer {
        /// The preferred member, by name or id
        #[arg(value_name = "MEMBER")]
        member: String,
        /// How long, for example 2h; 0s ends the preference
        #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
        duration: Duration,
        #[command(flatten)]
        flags: CommandFlags,
    },

    /// Pause elections for some time: no member campaigns, except by a transfer
    #[command(after_help = PAUSE)]
    Pause {
        /// How long, for example 1h
        #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
        duration: Duration,
        #[command(flatten)]
        flags: CommandFlags,
    },

    /// End a pause of elections
    #[command(after_help = EXITS)]
    Resume(CommandFlags),

    /// Make a node read its configuration, its keys and its admin secret again
    #[command(after_help = RELOAD)]
    Reload {
        /// The member that reloads, by name or id [default: the node itself]
        #[arg(value_name = "MEMBER")]
        member: Option<String>,
        #[command(flatten)]
        flags: CommandFlags,
    },

    /// Make a node read its key file again
    #[command(after_help = EXITS)]
    ReloadKeys(CommandFlags),
}

#[derive(Args, Debug)]
pub(crate) struct CommandFlags {
    #[command(flatten)]
    operator: OperatorFlags,

    /// Reject the command unless this is the current term
    #[arg(long, value_name = "TERM", help_heading = "Node")]
    if_term: Option<u64>,

    /// Print one JSON object: what was accepted, or the problem
    #[arg(long)]
    json: bool,
}

impl Admin {
    pub(crate) fn run(self) -> Result<Answer> {
        let text = clock::in_days;
        match self {
            Self::Resign(flags) => flags.send("resign", &json!({})),
            Self::Transfer { to, flags } => {
                flags.send("transfer", &Transfer { to: MemberRef::Name(to) })
            }
            Self::Drain { member, duration, never, flags } => {
                let drain = Drain { lasting: duration.map(text), never };
                flags.send_to(member.as_ref(), "drain", &drain)
            }
            Self::Undrain { member, flags } => {
                flags.send_to(member.as_ref(), "undrain", &json!({}))
            }
            Self::Prefer { member, duration, flags } => {
                let member = MemberRef::Name(member);
                flags.send("prefer", &Prefer { member, lasting: text(duration) })
            }
            Self::Pause { duration, flags } => {
                flags.send("pause", &Pause { lasting: text(duration) })
            }
            Self::Resume(flags) => flags.send("resume", &json!({})),
            Self::Reload { member, flags } => flags.send_to(member.as_ref(), "reload", &json!({})),
            Self::ReloadKeys(flags) => flags.send("reload-keys", &json!({})),
        }
    }
}

impl CommandFlags {
    fn send(self, command: &str, body: &impl Serialize) -> Result<Answer> {
        self.send_to(None, command, body)
    }

    /// Sends a command for this member, or the node itself.
    fn send_to(
        self,
        member: Option<&String>,
        command: &str,
        body: &impl Serialize,
    ) -> Result<Answer> {
        let client = self.operator.connect_admin()?;
        let path = path_to(&format!("/v1/{command}"), member)?;
        let send = || client.command(&path, body, self.if_term);
        match ask_one(member.map(String::as_str), send)? {
            CommandResult::Accepted(accepted) => {
                terminal::print(self.json, &accepted, render)?;
                Ok(Answer::Yes)
            }
            CommandResult::Rejected(problem) => {
                terminal::print(self.json, &problem, |_| String::new())?;
                rejected(&problem)
            }
        }
    }
}

/// `n3 transfers leadership to n2 (term 1)`, and a note if there is one.
pub(super) fn render(Accepted { name, accepted, term, note }: &Accepted) -> String {
    let note = note.iter().map(|note| format!("{note}\n"));
    format!("{name} {accepted} (term {term})\n") + &note.collect::<String>()
}

/// A correct command that the node rejects is an answer; everything else is an error.
fn rejected(problem: &Problem) -> Result<Answer> {
    let Problem { detail, status, .. } = problem;
    let is_answer = [":keys-unreadable", ":forwarding-off"];
    if !matches!(status, 409 | 412) && !is_answer.iter().any(|it| problem.kind.ends_with(it)) {
        return Err(anyhow!("{detail}"));
    }
    system::note(format_args!("{detail}"));
    Ok(Answer::No)
}
