//! `doyen doctor`: asks every member about itself, compares the answers, and says what to mend.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;
use doyen::api::Diagnosis;
use doyen::node::status::MemberStatus;
use serde::Serialize;

use super::Answer;
use super::client::{self, AdminClient, NodeFlags, SecretFlags, path_to};
use super::terminal::{BAD, FAINT, GOOD, count, styled};

/// Clocks that differ by more make histories and logs of different members hard to compare.
const CLOCK_OFFSET_MS: i64 = 1000;

/// Compare keys, member lists, versions, clocks and reachability of all members, and say what to mend
#[derive(Args, Debug)]
#[command(after_help = "\
Every member is asked through this one, over the sealed channel. Each line is one finding: `must` keeps a member from
the election or will, `should` is harmless for now.

Examples:
  doyen doctor
  doyen doctor --json

Exit: 0 nothing must be mended, 1 something must, 3 the node cannot be reached.")]
pub(crate) struct Doctor {
    #[command(flatten)]
    node: NodeFlags,

    #[command(flatten)]
    secret: SecretFlags,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Severity {
    /// It keeps a member from the election, or will.
    Must,
    /// It is harmless for now.
    Should,
}

/// Something to mend.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
struct Finding {
    severity: Severity,
    /// Where it is to be mended.
    member: String,
    problem: String,
    fix: String,
}

/// The answer of a member.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) name: String,
    /// Why there is no answer, or the answer.
    pub(crate) answer: Result<Diagnosis, String>,
    /// How far its clock is ahead of this machine's, in milliseconds.
    clock_offset_ms: i64,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    cluster: &'a str,
    asked_through: &'a str,
    members: usize,
    healthy: bool,
    findings: &'a [Finding],
}

/// Asks all members about themselves; the one that is asked first, and then the others.
pub(crate) fn examine(client: &AdminClient) -> Result<(Diagnosis, Vec<Examined>)> {
    let own: Diagnosis = client.get("/v1/diagnosis")?;
    let members: Vec<String> = own.status.members.iter().map(|it| it.name.clone()).collect();
    let answers = client::in_parallel(&members, |name| {
        let before = unix_ms();
        let answer = path_to("/v1/diagnosis", Some(name))
            .and_then(|path| client.get::<Diagnosis>(&path))
            .map_err(|error| format!("{error:#}"));
        let now = i64::midpoint(before, unix_ms());
        let clock_offset_ms = answer.as_ref().map_or(0, |answer| answer.unix_ms as i64 - now);
        Examined { name: name.clone(), answer, clock_offset_ms }
    });
    Ok((own, answers))
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}

impl Doctor {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.node.connect_admin(&self.secret)?;
        let (own, examined) = examine(&client)?;
        let findings = findings(&own, &examined);
        let healthy = findings.iter().all(|finding| finding.severity != Severity::Must);
        let (cluster, name) = (&own.status.cluster, &own.status.name);
        let text = match self.json {
            true => {
                let (members, findings) = (examined.len(), &findings[..]);
                let report = Report { cluster, asked_through: name, members, healthy, findings };
                serde_json::to_string(&report)? + "\n"
            }
            false => render(&own, examined.len(), &findings),
        };
        anstream::stdout().lock().write_all(text.as_bytes())?;
        Ok(if healthy { Answer::Yes } else { Answer::No })
    }
}

fn render(own: &Diagnosis, members: usize, findings: &[Finding]) -> String {
    let (status, members) = (&own.status, count(members as u64, "member"));
    let mut text = String::new();
    for Finding { severity, member, problem, fix } in findings {
        let severity = match severity {
            Severity::Must => styled(BAD, "must  "),
            Severity::Should => styled(FAINT, "should"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{severity}  {member}: {problem}: {fix}");
    }
    let asked = format!("{members} of {}, asked through {}", status.cluster, status.name);
    let _ = match findings {
        [] => writeln!(text, "{}: {asked}", styled(GOOD, "nothing to mend")),
        some => writeln!(text, "{} to mend: {asked}", count(some.len() as u64, "thing")),
    };
    text
}

/// What is to be mended, the most urgent first.
fn findings(own: &Diagnosis, examined: &[Examined]) -> Vec<Finding> {
    let mut list = List(Vec::new());
    let answers: Vec<(&Examined, &Diagnosis)> =
        examined.iter().filter_map(|it| Some((it, it.answer.as_ref().ok()?))).collect();
    for Examined { name, answer, .. } in examined {
        if let Err(why) = answer {
            list.silent(own, name, why);
        }
    }
    list.leadership(own);
    for (examined, answer) in &answers {
        list.member(own, examined, answer);
        list.reachability(answer, examined);
        for (other, theirs) in &answers {
            list.keys(&examined.name, answer, &other.name, theirs);
        }
    }
    let List(mut findings) = list;
    findings.sort();
    findings.dedup();
    findings
}

/// The findings so far.
struct List(Vec<Finding>);

impl List {
    fn add(
        &mut self,
        severity: Severity,
        member: &str,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let (member, problem, fix) = (member.to_owned(), problem.into(), fix.into());
        self.0.push(Finding { severity, member, problem, fix });
    }

    /// A member that does not answer: as far as the asked one knows, why.
    fn silent(&mut self, own: &Diagnosis, name: &str, why: &str) {
        let asked = &own.status.name;
        let member = own.status.members.iter().find(|member| member.name == name);
        let fix = match member.and_then(MemberStatus::rejected_for) {
            Some("key") => format!(
                "copy the key file of {asked} to its machine (mode 0600), then `doyen reload-keys` there"
            ),
            Some("version") => "upgrade it, or finish the upgrade of the others".to_owned(),
            Some("cluster") => format!("set `cluster` as {asked} has it, and restart it"),
            Some("configuration") => format!(
                "compare `cluster`, `algorithm` and the member list in its doyen.toml with those of {asked}, correct one of them and \
                 restart it"
            ),
            _ if why.contains("older version") => "upgrade it".to_owned(),
            _ => "start its node; if it runs, let UDP to and from its address pass".to_owned(),
        };
        let problem = why.strip_prefix(&format!("{name} ")).unwrap_or(why);
        self.add(Severity::Must, name, problem, fix);
    }

    fn leadership(&mut self, own: &Diagnosis) {
        if own.status.leader.is_none() {
            let fix = "`doyen explain` says what an election waits for";
            self.add(Severity::Must, &own.status.name, "knows no leader", fix);
        }
    }

    /// What is wrong with a member by itself, or as compared with the one that was asked first.
    fn member(&mut self, own: &Diagnosis, examined: &Examined, answer: &Diagnosis) {
        let (name, status, asked) = (&examined.name, &answer.status, &own.status.name);
        if status.rejoining {
            let fix = "start every member that it waits for (`doyen status` on it names them)";
            self.add(Severity::Must, name, "lost its state and rejoins", fix);
        }
        if status.version != own.status.version {
            let (theirs, ours) = (&status.version, &own.status.version);
            let problem = format!("runs doyen {theirs}, and {asked} runs {ours}");
            self.add(Severity::Should, name, problem, "finish the upgrade");
        }
        let offset = examined.clock_offset_ms;
        if offset.abs() > CLOCK_OFFSET_MS {
            let way = if offset > 0 { "ahead of" } else { "behind" };
            let seconds = offset.abs() as f64 / 1000.0;
            let problem = format!("its clock is {seconds:.1} s {way} that of {asked}");
            self.add(Severity::Should, name, problem, "synchronise the clocks (chrony, NTP)");
        }
        for member in &status.members {
            let Some(ours) = own.status.member(member.id) else { continue };
            if (&member.name, &member.address) != (&ours.name, &ours.address) {
                let problem = format!(
                    "lists {} at {}, and {asked} lists {} at {}",
                    member.name, member.address, ours.name, ours.address
                );
                let fix = "write the same [[member]] in every doyen.toml, and restart one member after the other";
                self.add(Severity::Should, name, problem, fix);
            }
        }
        let keys = &answer.keys;
        match (&keys.in_file, &keys.problem) {
            (None, Some(problem)) if !is_unset(problem) => {
                let fix = "mend the file before the next restart, which would fail";
                self.add(Severity::Must, name, problem.clone(), fix);
            }
            (Some(file), _) if *file != keys.in_use => {
                let problem = format!(
                    "uses the keys {}, and its key file has {}",
                    keys.in_use.join(", "),
                    file.join(", ")
                );
                self.add(Severity::Should, name, problem, "run `doyen reload-keys` on it");
            }
            _ => {}
        }
    }

    /// Members that do not reach each other though both answer.
    fn reachability(&mut self, answer: &Diagnosis, examined: &Examined) {
        let others = answer.status.members.iter().filter(|it| it.id != answer.status.id);
        for other in others.filter(|it| !it.reachable && !answer.status.rejoining) {
            let reason = other.rejection().map_or_else(String::new, |it| format!(" ({it})"));
            let problem = format!("does not reach {}{reason}", other.name);
            let fix = format!(
                "if {} runs, let UDP between the two machines pass ({})",
                other.name, other.address
            );
            self.add(Severity::Must, &examined.name, problem, fix);
        }
    }

    /// Whether `other` can open what `name` seals.
    fn keys(&mut self, name: &str, answer: &Diagnosis, other: &str, theirs: &Diagnosis) {
        let (ours, theirs) = (&answer.keys.in_use, &theirs.keys.in_use);
        let Some(seals) = ours.first() else { return };
        if !theirs.contains(seals) {
            let problem = format!("seals with {seals}, which {other} does not have");
            let fix =
                format!("copy the key file of {name} to {other}, then `doyen reload-keys` there");
            self.add(Severity::Must, name, problem, fix);
        } else if ours.len() > 1 {
            let keys = count(ours.len() as u64, "key");
            let fix = format!("continue with `doyen keys rotate --to {seals}`");
            self.add(
                Severity::Should,
                name,
                format!("has {keys}: a rotation is not complete"),
                fix,
            );
        }
    }
}

/// A node without a key file, on loopback.
fn is_unset(problem: &str) -> bool {
    problem.contains("no key_file")
}
