//! `doyen doctor`: asks every member about itself, compares the answers, and says what to fix.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use doyen::api::Diagnosis;
use doyen::node::status::{Detour, JobPart, MemberStatus, Status, Stranger};
use doyen_core::clocks::Reading;
use doyen_core::protocol::Role;
use doyen_sim::words::listed;
use serde::Serialize;

use super::awaited::in_parallel;
use super::client::{AdminClient, OperatorFlags, path_to};
use super::clocks::timed;
use super::keys::ways_on;
use super::terminal::{BAD, FAINT, GOOD, count, span, styled};
use super::{Answer, absence, terminal};

/// Clocks that differ by more make histories and logs of different members hard to compare.
const CLOCK_OFFSET_MS: i64 = 1000;

/// A leader that is about to transfer leadership for longer waits for something that may not end.
const RETIRING_MS: u64 = 10_000;

/// Compare keys, lists, timing, versions, clocks and reachability of all members, and say what to fix
#[derive(Args, Debug)]
#[command(after_help = "\
Every member is asked through this one, over the sealed channel, also whether its hooks and its command fail. Each
finding has its fix in the line below: `must` keeps a member from the election or from its work, or will; `should` is
harmless for now.

Examples:
  doyen doctor
  doyen doctor --json

Exit: 0 nothing must be fixed, 1 something must, 3 the node cannot be reached.")]
pub(crate) struct Doctor {
    #[command(flatten)]
    operator: OperatorFlags,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Severity {
    /// It keeps a member from the election or from its work, or will.
    Must,
    /// It is harmless for now.
    Should,
}

/// Something to fix.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
struct Finding {
    severity: Severity,
    /// The member on which it is to be fixed.
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
    let answers = in_parallel(&members, |name| {
        let (answer, sent, received) = timed(|| {
            path_to("/v1/diagnosis", Some(name)).and_then(|path| client.get::<Diagnosis>(&path))
        });
        let clock_offset_ms = answer.as_ref().map_or(0, |answer| {
            let clock = i64::try_from(answer.unix_ms).unwrap_or(i64::MAX).saturating_mul(1_000_000);
            Reading { sent, received, clock }.offset() / 1_000_000
        });
        let answer = answer.map_err(|error| format!("{error:#}"));
        Examined { name: name.clone(), answer, clock_offset_ms }
    });
    // Why a member is silent, others have noticed meanwhile. The answers count, even if this node gives no other one.
    let own = match answers.iter().any(|it| it.answer.is_err()) {
        true => client.get("/v1/diagnosis").unwrap_or(own),
        false => own,
    };
    Ok((own, answers))
}

impl Doctor {
    pub(crate) fn run(self) -> Result<Answer> {
        let client = self.operator.connect_admin()?;
        let (own, examined) = examine(&client)?;
        let findings = findings(&own, &examined);
        let healthy = findings.iter().all(|finding| finding.severity != Severity::Must);
        let (cluster, name) = (&own.status.cluster, &own.status.name);
        let (members, findings) = (examined.len(), &findings[..]);
        let report = Report { cluster, asked_through: name, members, healthy, findings };
        terminal::print(self.json, &report, |_| render(&own, members, findings))?;
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
        let _ = writeln!(text, "{severity}  {member}: {problem}\n        {fix}");
    }
    let asked = format!("{members} of {}, asked through {}", status.cluster, status.name);
    let _ = match findings {
        [] => writeln!(text, "{}: {asked}", styled(GOOD, "nothing to fix")),
        some => writeln!(text, "{} to fix: {asked}", count(some.len() as u64, "thing")),
    };
    text
}

/// What is to be fixed, the most urgent first.
fn findings(own: &Diagnosis, examined: &[Examined]) -> Vec<Finding> {
    let mut list = List(Vec::new());
    let answers: Vec<(&Examined, &Diagnosis)> =
        examined.iter().filter_map(|it| Some((it, it.answer.as_ref().ok()?))).collect();
    list.pause(own);
    if is_cut_off(own) && answers.iter().all(|(_, answer)| answer.status.id == own.status.id) {
        list.add(
            Severity::Must,
            &own.status.name,
            "receives nothing from any other member",
            "check the network of its own machine; if that works, start the other nodes",
        );
    } else {
        for Examined { name, answer, .. } in examined {
            if let Err(why) = answer {
                list.silent(own, name, why);
            }
        }
        list.leadership(own);
    }
    list.rotation(&answers, &ways_on(answers.iter().map(|(_, answer)| &answer.keys)));
    for (examined, answer) in &answers {
        list.member(own, examined, answer);
        list.stranger(&examined.name, &answer.status);
        list.job(&examined.name, &answer.status);
        list.history(&examined.name, &answer.status);
        list.command(&examined.name, &answer.status, &answers);
        list.reachability(answer, examined, |name| {
            answers.iter().find(|(it, _)| it.name == name).map(|(_, answer)| *answer)
        });
        list.timing(own, examined, answer);
        for (other, theirs) in &answers {
            list.keys(&examined.name, answer, &other.name, theirs);
            list.priority(&examined.name, answer, &other.name, theirs);
        }
    }
    let List(mut findings) = list;
    findings.sort();
    findings.dedup();
    findings
}

/// Whether nothing arrives at the asked member. Then the others need not be told, each, to start.
fn is_cut_off(own: &Diagnosis) -> bool {
    let mut others = own.status.members.iter().filter(|member| member.id != own.status.id);
    own.status.members.len() > 2
        && others.all(|member| !member.reachable && member.rejected_for().is_none())
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
        if let Some(detour) = member.and_then(|member| own.status.detour(member)) {
            return self.add(Severity::Must, name, detour.problem, detour.fix);
        }
        let fix = match member.and_then(MemberStatus::rejected_for) {
            Some("key") => "first look on both machines which of the two runs from the folder of an earlier member list, if any: \
                 stop that one, for its id may be another member's now. Otherwise give both the same key file (mode 0600), from \
                 a member that reaches a majority; then `doyen reload-keys` there"
                .to_owned(),
            Some("version") => "upgrade it, or finish the upgrade of the others".to_owned(),
            Some("cluster") => format!("set `cluster` as {asked} has it, and restart it"),
            Some("configuration") => format!(
                "compare the member list, `algorithm`, `groups` and `group_lease` in its doyen.toml with those of {asked}, and \
                 correct what is new there. The list of a cluster that has run stays as it is; to change it: docs/operations.md, \
                 \"Changing the members\""
            ),
            _ if why.contains("older version") => "upgrade it".to_owned(),
            _ => "start its node; if it runs, let UDP to and from its address pass".to_owned(),
        };
        let problem = why.strip_prefix(&format!("{name} ")).unwrap_or(why);
        self.add(Severity::Must, name, problem, fix);
    }

    fn pause(&mut self, own: &Diagnosis) {
        if let Some(paused) = own.status.paused() {
            let severity = match own.status.leader {
                Some(_) => Severity::Should,
                None => Severity::Must,
            };
            self.add(severity, &own.status.name, paused, "`doyen resume` ends the pause");
        }
    }

    /// That there is no leader, unless a pause of elections is why.
    fn leadership(&mut self, own: &Diagnosis) {
        let (status, name) = (&own.status, &own.status.name);
        if status.leader.is_some() || status.paused().is_some() {
            return;
        }
        if let Some((why, Detour { fix, via, .. })) = status.leader_is_elsewhere() {
            let fix = format!("{fix}; until then run commands on {}", via.join(" or "));
            return self.add(Severity::Must, name, format!("knows no leader: {why}"), fix);
        }
        if let Some(why) = absence::none_may_lead(status) {
            let fix = "`doyen undrain` a member, or start one that may lead";
            return self.add(Severity::Must, name, format!("knows no leader: {why}"), fix);
        }
        let fix = match self.0.iter().any(|found| found.severity == Severity::Must) {
            true => "fix the other findings first: an election needs a majority",
            false => "`doyen explain` says what an election waits for",
        };
        self.add(Severity::Must, name, "knows no leader", fix);
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
            let far = span(Duration::from_millis(offset.unsigned_abs()));
            let problem = format!("its clock is {far} {way} that of {asked}");
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
                let fix = "correct the file before the next restart, which would fail";
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

    /// A node that is on no list sends datagrams to a member.
    fn stranger(&mut self, name: &str, status: &Status) {
        let Some(Stranger { id, address }) = &status.stranger else { return };
        let problem = format!(
            "drops datagrams from {address}, whose sender has id {id}: that is not on its member list"
        );
        let fix = "compare the member lists, or stop the node there";
        self.add(Severity::Must, name, problem, fix);
    }

    /// What keeps a member from its work though the election is well.
    fn job(&mut self, name: &str, status: &Status) {
        let leads = matches!(status.role, Role::Leader | Role::Retiring);
        let retiring = status
            .retiring_ms
            .map(|millis| format!("has been retiring for {}", span(Duration::from_millis(millis))));
        match (status.job_failure(), retiring) {
            (Some(failure), retiring) if failure.of == JobPart::NotLeader => {
                let effect = retiring.unwrap_or_else(|| "can start nothing".to_owned());
                let fix = "fix the hook, which is run again until it succeeds; `doyen reload` adopts another one";
                self.add(Severity::Must, name, format!("{effect}: {failure}"), fix);
            }
            // Once is not enough: it may have been started again and run well.
            (Some(failure), _) if leads && failure.times > 1 => {
                let fix = format!(
                    "fix it there, or let another member lead: `doyen drain {name}`; its log says more"
                );
                self.add(Severity::Must, name, format!("leads, and {failure}"), fix);
            }
            (_, Some(retiring)) if status.retiring_ms > Some(RETIRING_MS) => {
                let fix = "wait for what runs under its lease (`doyen status` on it), or end that";
                self.add(Severity::Should, name, retiring, fix);
            }
            _ => {}
        }
        if status.drained && status.drained_remaining_ms.is_none() {
            let fix = format!("`doyen undrain {name}`, once it may lead again");
            let severity = match absence::none_may_lead(status) {
                Some(_) => Severity::Must,
                None => Severity::Should,
            };
            self.add(severity, name, "is drained until `undrain`", fix);
        }
    }

    /// The election does not need the history, but the disk that it is on.
    fn history(&mut self, name: &str, status: &Status) {
        let Some(problem) = &status.history_problem else { return };
        let fix = "make room, or let its node write there: a node that cannot write its state, in the same folder, stops";
        self.add(Severity::Should, name, problem, fix);
    }

    /// Whether a member that may lead runs no command, while others do.
    fn command(&mut self, name: &str, status: &Status, answers: &[(&Examined, &Diagnosis)]) {
        let runs = |status: &Status| status.job.as_ref().is_some_and(|job| job.command);
        let others = answers.iter().filter(|(_, answer)| runs(&answer.status));
        let others: Vec<String> = others.map(|(it, _)| it.name.clone()).collect();
        let is_witness = status.member(status.id).is_some_and(|own| own.witness);
        if others.is_empty() || is_witness || status.job.is_none() || runs(status) {
            return;
        }
        let verb = if others.len() == 1 { "does" } else { "do" };
        let problem = format!("runs no command when it leads, and {} {verb}", listed(&others));
        let fix = "start it with `doyen run` too, unless `doyen run --attach` runs beside it";
        self.add(Severity::Should, name, problem, fix);
    }

    /// Timing and preemption that differ from those of the member that was asked first.
    fn timing(&mut self, own: &Diagnosis, examined: &Examined, answer: &Diagnosis) {
        let (Some(ours), Some(theirs)) = (&own.settings, &answer.settings) else { return };
        let differ = theirs.timing.iter().filter_map(|(name, value)| {
            let ours = ours.timing.get(name).filter(|ours| *ours != value)?;
            Some(format!("{name} = {value}, and {} has {ours}", own.status.name))
        });
        for problem in differ {
            let fix = "write the same in every doyen.toml, then `doyen reload`, which says what needs a restart";
            self.add(Severity::Should, &examined.name, format!("has {problem}"), fix);
        }
    }

    /// Whether `other` has `name` on its list with the priority that it has.
    fn priority(&mut self, name: &str, answer: &Diagnosis, other: &str, theirs: &Diagnosis) {
        let listed = |of: &Diagnosis| of.settings.as_ref()?.priorities.get(name).copied();
        if let (Some(has), Some(listed)) = (listed(answer), listed(theirs))
            && has != listed
        {
            let problem = format!("lists {name} with priority {listed}, and {name} has {has}");
            let fix = format!(
                "write priority = {has} for {name} in its doyen.toml, then `doyen reload {other}`"
            );
            self.add(Severity::Should, other, problem, fix);
        }
    }

    /// Members that do not reach each other though both answer.
    fn reachability<'a>(
        &mut self,
        answer: &Diagnosis,
        examined: &Examined,
        answer_of: impl Fn(&str) -> Option<&'a Diagnosis>,
    ) {
        let (status, name) = (&answer.status, &examined.name);
        let Some(own) = status.member(status.id).filter(|_| !status.rejoining) else { return };
        for other in status.members.iter().filter(|it| it.id != own.id && !it.reachable) {
            // A member that rejoins takes no part in the election, whatever the network does.
            let theirs = answer_of(&other.name).filter(|theirs| !theirs.status.rejoining);
            let Some(theirs) = theirs else { continue };
            let reaches_us = theirs.status.member(own.id).is_some_and(|it| it.reachable);
            let them = &other.name;
            let (problem, fix) = match other.rejection() {
                None if other.arrives => (
                    format!("gets no answer from {them}, whose datagrams arrive"),
                    format!("let UDP from {name} to {them} ({}) pass", other.address),
                ),
                None if reaches_us => (
                    format!("receives nothing from {them}, which receives from it"),
                    format!("let UDP from {them} to {name} ({}) pass", own.address),
                ),
                rejection => (
                    format!(
                        "does not reach {them}{}",
                        rejection.map_or_else(String::new, |it| format!(" ({it})"))
                    ),
                    format!("let UDP between the two machines pass ({})", other.address),
                ),
            };
            self.add(Severity::Must, name, problem, fix);
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
        }
    }

    /// A rotation that is not complete, once for all members that have several keys. `way_on`: how it is continued or taken
    /// back.
    fn rotation(&mut self, answers: &[(&Examined, &Diagnosis)], way_on: &str) {
        let mut rotating = answers.iter().filter(|(_, answer)| answer.keys.in_use.len() > 1);
        let Some((first, answer)) = rotating.next() else { return };
        let keys = count(answer.keys.in_use.len() as u64, "key");
        let others: Vec<String> = rotating.map(|(it, _)| it.name.clone()).collect();
        let like =
            if others.is_empty() { String::new() } else { format!(" like {}", listed(&others)) };
        let problem = format!("has {keys}{like}: a rotation is not complete");
        self.add(Severity::Should, &first.name, problem, way_on);
    }
}

/// A node without a key file, on loopback.
fn is_unset(problem: &str) -> bool {
    problem.contains("no key_file")
}

#[cfg(test)]
mod tests;
