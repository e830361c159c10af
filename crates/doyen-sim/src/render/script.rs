//! A schedule as a golden script: the commands that play it in the tests of the algorithms.
//!
//! The text is a whole file for `crates/doyen-core/tests/scripts/<algorithm>/<claim>`. It lacks the story alone, which
//! the tests write down when they are told to:
//!
//! ```text
//! UPDATE_GOLDENFILES=1 cargo test -p doyen-core --test scripts
//! ```
//!
//! Scripts host bare algorithms. A schedule of members with a link or a detector beneath them cannot be told there,
//! nor can one in which the incarnation filter has work to do, that is, in which a hardened member restarts.

use std::fmt::Write;

use doyen_core::algorithm::quorum::rules::Rules;
use doyen_core::config::Announce;
use doyen_core::members::{Key, NodeId};

use crate::check::schedule::{Happening, Mail, Move};
use crate::scenario::Case;

/// The longest line of the comment.
const WIDTH: usize = 116;

/// Writes the `steps` that follow on the scene of `case` as a script that begins with `claim`; or says why it cannot.
pub fn golden(case: &Case, claim: &str, steps: &[Move]) -> Result<String, String> {
    check_bare(case, steps)?;
    let mut script = comment(claim);
    script.push_str(&group(case));
    if !case.contact_dead && !case.dead.is_empty() {
        let live: Vec<NodeId> =
            case.members().iter().filter(|id| !case.dead.contains(id)).collect();
        for dead in &case.dead {
            let _ = writeln!(script, "down \"{}\" {dead}", ids(&live));
        }
    }
    let initiators: Vec<String> = case.initiators.iter().map(|(id, _)| id.to_string()).collect();
    if !initiators.is_empty() {
        let _ = writeln!(script, "campaign {}", initiators.join(" "));
    }
    for step in steps {
        script.push_str(&command(step));
    }
    Ok(script + "views\n---\n")
}

fn check_bare(case: &Case, steps: &[Move]) -> Result<(), String> {
    let restarts = |step: &Move| matches!(step.what, Happening::Restart(_));
    let needs_operator =
        |step: &Move| matches!(step.what, Happening::Rejoin(_) | Happening::Command { .. });
    let beneath = if case.reliable {
        "the reliable link"
    } else if case.detector.is_some() {
        "the failure detector"
    } else if case.is_layered() && steps.iter().any(restarts) {
        "the filter that tells a restarted member from what it was"
    } else if steps.iter().any(needs_operator) || case.config.quorum.rules != Rules::default() {
        "an operator, or members without one of their rules"
    } else {
        return Ok(());
    };
    Err(format!("scripts host bare algorithms, and this run needs {beneath}"))
}

/// `text` as lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.len() + word.len() < WIDTH {
            let _ = write!(line, " {word}");
        } else {
            lines.push(format!("# {word}"));
        }
    }
    lines.join("\n") + "\n"
}

/// The command that founds the group.
fn group(case: &Case) -> String {
    let config = &case.config;
    let members = case.members();
    let all: Vec<NodeId> = members.iter().collect();
    let mut text = format!("group members=\"{}\" mode={}", ids(&all), case.mode());
    if let Some(leader) = case.leader {
        let _ = write!(text, " leader={leader}");
    }
    if !case.dead.is_empty() {
        let _ = write!(text, " dead=\"{}\"", ids(&case.dead));
    }
    let attrs: Vec<String> = all
        .iter()
        .map(|&id| members.key(id))
        .filter(|key| key.attr != i64::from(key.id.0))
        .map(|Key { id, attr }| format!("{id}:{attr}"))
        .collect();
    if !attrs.is_empty() {
        let _ = write!(text, " attr=\"{}\"", attrs.join(","));
    }
    let first = members.at(0);
    let ring: Vec<NodeId> =
        std::iter::once(first).chain(members.clockwise(first).take(all.len() - 1)).collect();
    if ring != all {
        let _ = write!(text, " ring=\"{}\"", ids(&ring));
    }
    if config.announce == Announce::All {
        text.push_str(" announce=all");
    }
    let (window, unit) = (config.timing.window.as_nanos(), config.timing.transmission.as_nanos());
    if window > 0 {
        let _ = write!(text, " window={}", window as f64 / unit.max(1) as f64);
    }
    text + "\n"
}

/// The commands that take a step. Time stands still in a script that is told what happens next, so it need not wait.
fn command(step: &Move) -> String {
    let (member, command) = match &step.what {
        Happening::Deliver(mail) => (mail.to, letter("deliver", mail)),
        Happening::Double(mail) => (mail.to, letter("double", mail)),
        Happening::Lose(mail) => (mail.to, letter("drop", mail)),
        Happening::Expire { member, timer } => {
            (*member, format!("expire {member} {}", quoted(bare(timer))))
        }
        Happening::Report { member, peer, up: true } => (*member, format!("up {member} {peer}")),
        Happening::Report { member, peer, up: false } => (*member, format!("down {member} {peer}")),
        Happening::Campaign(member) => (*member, format!("campaign {member}")),
        Happening::Crash(member) => (*member, format!("crash {member}")),
        Happening::Restart(member) => (*member, format!("restart {member}")),
        // Time stands still in a script, and scripts have no operator: see `check_bare`.
        Happening::Wait(_) | Happening::Rejoin(_) | Happening::Command { .. } => {
            return String::new();
        }
    };
    match step.crash_after {
        Some(acts) => format!("doom {member} {acts}\n{command}\n"),
        None => command + "\n",
    }
}

fn letter(verb: &str, mail: &Mail) -> String {
    format!("{verb} {} {} {}", mail.from, mail.to, quoted(&mail.text))
}

/// A timer as the bare algorithm calls it.
fn bare(timer: &str) -> &str {
    timer.strip_prefix("Inner(").and_then(|inner| inner.strip_suffix(')')).unwrap_or(timer)
}

/// A word as it is, anything else in quotes.
fn quoted(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn ids(ids: &[NodeId]) -> String {
    ids.iter().map(NodeId::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn steps(lines: &[&str]) -> Vec<Move> {
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    fn written(scenario: &str, lines: &[&str]) -> Result<String, String> {
        let case = Scenario::from_toml("test", scenario).unwrap();
        golden(&case, "A claim.", &steps(lines))
    }

    #[test]
    fn every_step_is_a_command() {
        let text = written(
            "algorithm = \"bully\"\nmembers = 4\ndead = [4]\nring = [1, 3, 2, 4]\nattr = { 2 = 9 }\n\
             announce = \"all\"\nleader = 3\ninitiators = [1, 2]",
            &[
                "deliver ELECTION from 1 to 2, crash after 1",
                "wait 2 ticks",
                "double OK epoch=1 from 3 to 1",
                "lose OK from 3 to 1",
                "expire Reply at 1",
                "expire Inner(Upkeep(Heartbeat)) at 3",
                "report 2 down to 1",
                "report 2 up to 1",
                "campaign 1",
                "crash 3",
                "restart 3",
            ],
        );
        let expected = "\
# A claim.
group members=\"1,2,3,4\" mode=textbook leader=3 dead=\"4\" attr=\"2:9\" ring=\"1,3,2,4\" announce=all
down \"1,2,3\" 4
campaign 1 2
doom 2 1
deliver 1 2 ELECTION
double 3 1 \"OK epoch=1\"
drop 3 1 OK
expire 1 Reply
expire 3 \"Upkeep(Heartbeat)\"
down 1 2
up 1 2
campaign 1
crash 3
restart 3
views
---
";
        assert_eq!(text.as_deref(), Ok(expected));
    }

    #[test]
    fn what_lies_beneath_the_algorithm_cannot_be_scripted() {
        let bully = "algorithm = \"bully\"\nmembers = 3\n";
        let hardened = format!("{bully}mode = \"hardened\"");
        assert!(written(&hardened, &["crash 2"]).is_ok());
        for (scenario, lines, needs) in [
            (hardened.clone(), &["crash 2", "restart 2"][..], "the filter that tells"),
            (format!("{bully}reliable = true"), &[], "the reliable link"),
            (format!("{hardened}\ndetector = \"5ms\""), &[], "the failure detector"),
        ] {
            let refused = written(&scenario, lines).unwrap_err();
            assert!(refused.contains(needs), "{refused}");
        }
        assert!(written(bully, &["crash 2", "restart 2"]).is_ok());
    }

    #[test]
    fn a_long_claim_takes_several_lines() {
        let claim = "word ".repeat(60);
        let text = comment(&claim);
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().all(|line| line.starts_with("# word") && line.len() <= WIDTH));
    }
}
