//! `doyen groups`: which member leads which group.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use doyen::api::{GroupList, GroupReport, Name};

use super::client::NodeFlags;
use super::terminal::{BAD, GOOD, span, styled, table};
use super::{Answer, terminal};

/// Show which member leads which group
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  doyen groups
  doyen groups --node http://127.0.0.1:7400 --json

Columns, as the node that answers knows them:
  leader      the member that leads the group
  since       how long ago the node learned of that, or of a new token of the same leader
  token       the fencing token, which rises with every change
  preferred   the member that leads the group if all members are there

Exit: 0 every group has a leader, 1 one has none, 3 the node cannot be reached.")]
pub(crate) struct Groups {
    #[command(flatten)]
    node: NodeFlags,

    /// Print one JSON object, as /v1/groups does
    #[arg(long)]
    json: bool,
}

impl Groups {
    pub(crate) fn run(self) -> Result<Answer> {
        let list: GroupList = self.node.connect_reader()?.get("/v1/groups")?;
        terminal::print(self.json, &list, render)?;
        let all = list.groups.iter().all(|group| group.leader.is_some());
        Ok(if all { Answer::Yes } else { Answer::No })
    }
}

fn render(list: &GroupList) -> String {
    if list.groups.is_empty() {
        return "there are no groups; `groups` in doyen.toml lists them\n".to_owned();
    }
    let heading = ["group", "leader", "since", "token", "preferred"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> =
        std::iter::once(heading).chain(list.groups.iter().map(row)).collect();
    table("llrrl", &rows)
}

fn row(group: &GroupReport) -> Vec<String> {
    let name = |name: &Option<Name>| name.as_ref().map(|it| it.name.clone());
    let (leader, preferred) = (name(&group.leader), name(&group.preferred));
    let is_preferred = leader == preferred;
    let leader = match leader {
        Some(leader) if is_preferred => styled(GOOD, leader),
        Some(leader) => leader,
        None => styled(BAD, "none"),
    };
    vec![
        group.name.clone(),
        leader,
        match group.since_ms {
            0 => "now".to_owned(),
            millis => span(Duration::from_millis(millis)),
        },
        group.token.map_or_else(|| "-".to_owned(), |token| token.to_string()),
        preferred.unwrap_or_else(|| "-".to_owned()),
    ]
}
