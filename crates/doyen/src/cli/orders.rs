//! What an operator can order: `resign`, `transfer`, `drain`, `undrain`, `prefer`, `campaign`, `reload-keys`.
//!
//! An order goes to the node that is asked, and is not passed on: those for the leader go to the leader's node. A node
//! that does not lead says who does.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use doyen::api::{
    Accepted, Drain as DrainBody, MemberRef, Prefer as PreferBody, Problem, Transfer as To,
};
use serde::Serialize;
use serde_json::json;

use super::Answer;
use super::client::{NodeFlags, Obeyed, TokenFlags, parse_time};

const EXITS: &str =
    "Exit: 0 it obeys, 1 it does not, 2 wrong usage or token, 3 it cannot be reached.";

const PREFER: &str = "\
Examples:
  doyen prefer n2 --for 2h
  doyen prefer n2 --for 0s       take it back

A member that lost its office lately ranks behind others for a while, preferred or not; `doyen
transfer` has it lead all the same.
Exit: 0 it obeys, 1 it does not, 2 wrong usage or token, 3 it cannot be reached.";

const CAMPAIGN: &str = "\
In a quorum nothing happens while somebody leads: no member disturbs a leader.
Exit: 0 it obeys, 1 it does not, 2 wrong usage or token, 3 it cannot be reached.";

/// Have the leader hand over to the best of the others
#[derive(Args, Debug)]
#[command(after_help = EXITS)]
pub(crate) struct Resign {
    #[command(flatten)]
    order: OrderFlags,
}

/// Have the leader hand over to a certain member
#[derive(Args, Debug)]
#[command(after_help = EXITS)]
pub(crate) struct Transfer {
    /// The member that is to lead, by name or id
    #[arg(value_name = "MEMBER")]
    to: String,

    #[command(flatten)]
    order: OrderFlags,
}

/// Keep a member from leading as long as another can; if it leads, it hands over
#[derive(Args, Debug)]
#[command(after_help = EXITS)]
pub(crate) struct Drain {
    /// For how long, for example 2h; until `undrain` without it; 0s is refused
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    lasting: Option<Duration>,

    /// Never lead, not even if every member that could lead is drained; until `undrain`
    #[arg(long, conflicts_with = "lasting")]
    never: bool,

    #[command(flatten)]
    order: OrderFlags,
}

/// Let a drained member lead again
#[derive(Args, Debug)]
#[command(after_help = EXITS)]
pub(crate) struct Undrain {
    #[command(flatten)]
    order: OrderFlags,
}

/// Have a member lead while it can, for a while; asked of the leader
#[derive(Args, Debug)]
#[command(after_help = PREFER)]
pub(crate) struct Prefer {
    /// The member that is to lead, by name or id
    #[arg(value_name = "MEMBER")]
    member: String,

    /// For how long, for example 2h; 0s takes the preference back
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    lasting: Duration,

    #[command(flatten)]
    order: OrderFlags,
}

/// Have a member call an election
#[derive(Args, Debug)]
#[command(after_help = CAMPAIGN)]
pub(crate) struct Campaign {
    #[command(flatten)]
    order: OrderFlags,
}

/// Have a node read its keys again, after their file has changed
#[derive(Args, Debug)]
#[command(after_help = EXITS)]
pub(crate) struct ReloadKeys {
    #[command(flatten)]
    order: OrderFlags,
}

/// What all orders have in common.
#[derive(Args, Debug)]
struct OrderFlags {
    #[command(flatten)]
    node: NodeFlags,

    #[command(flatten)]
    token: TokenFlags,

    /// Only if the term is still this one
    #[arg(long, value_name = "TERM", help_heading = "Node")]
    if_term: Option<u64>,

    /// Print one JSON object: what was accepted, or the problem
    #[arg(long)]
    json: bool,
}

impl Resign {
    pub(crate) fn run(self) -> Result<Answer> {
        self.order.give("resign", &json!({}))
    }
}

impl Transfer {
    pub(crate) fn run(self) -> Result<Answer> {
        self.order.give("transfer", &To { to: MemberRef::Name(self.to) })
    }
}

impl Drain {
    pub(crate) fn run(self) -> Result<Answer> {
        self.order.give("drain", &DrainBody { lasting: self.lasting.map(words), never: self.never })
    }
}

impl Undrain {
    pub(crate) fn run(self) -> Result<Answer> {
        self.order.give("undrain", &json!({}))
    }
}

impl Prefer {
    pub(crate) fn run(self) -> Result<Answer> {
        let member = MemberRef::Name(self.member);
        self.order.give("prefer", &PreferBody { member, lasting: words(self.lasting) })
    }
}

impl Campaign {
    pub(crate) fn run(self) -> Result<Answer> {
        self.order.give("campaign", &json!({}))
    }
}

impl ReloadKeys {
    pub(crate) fn run(self) -> Result<Answer> {
        self.order.give("reload-keys", &json!({}))
    }
}

fn words(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}

impl OrderFlags {
    fn give(self, order: &str, body: &impl Serialize) -> Result<Answer> {
        let client = self.node.connect()?;
        let token = self.token.read(&self.node)?;
        let obeyed = client.order(&format!("/v1/{order}"), body, &token, self.if_term)?;
        let mut out = io::stdout().lock();
        match obeyed {
            Obeyed::Yes(accepted) => {
                match self.json {
                    true => writeln!(out, "{}", serde_json::to_string(&accepted)?)?,
                    false => write_accepted(&mut out, &accepted)?,
                }
                Ok(Answer::Yes)
            }
            Obeyed::No(problem) => {
                if self.json {
                    writeln!(out, "{}", serde_json::to_string(&problem)?)?;
                }
                refused(&problem)
            }
        }
    }
}

fn write_accepted(out: &mut impl Write, accepted: &Accepted) -> io::Result<()> {
    let Accepted { name, accepted, term, note } = accepted;
    writeln!(out, "{name} {accepted} (term {term})")?;
    note.iter().try_for_each(|note| writeln!(out, "{note}"))
}

/// What a refusal comes to: an answer, if the order was right and the member says no.
fn refused(problem: &Problem) -> Result<Answer> {
    let Problem { detail, status, .. } = problem;
    let says_no = matches!(status, 409 | 412) || problem.kind.ends_with(":keys-unreadable");
    if !says_no {
        return Err(anyhow!("{detail}"));
    }
    match &problem.leader {
        Some(leader) if problem.kind.ends_with(":not-leader") => {
            let name = &leader.name;
            eprintln!(
                "doyen: {detail}; give this order on {name}'s machine, or with --node and --token-file"
            );
        }
        _ => eprintln!("doyen: {detail}"),
    }
    Ok(Answer::No)
}
