//! The scenarios that are built in: the figures and examples of the sources, what they say of mutual exclusion, the flaws,
//! incidents of other systems. One row a
//! file of `scenarios/`; a test compares the two.

use doyen_core::registry::Algorithm;
use doyen_sim::scenario::Scenario;

/// A group of scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its short name, for addresses.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its scenarios.
    pub entries: &'static [Entry],
    /// Whether the lab shows it: the lab shows elections.
    pub in_lab: bool,
}

/// A scenario that is built in.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name of its file in `scenarios/`, without `.toml`.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

impl Entry {
    /// The scenario.
    pub fn scenario(&self) -> Scenario {
        Scenario::parse(self.name, self.text).expect("what is built in has been tested")
    }
}

/// Every group, in the order in which they are shown.
pub const GROUPS: &[Group] = &[
    Group { name: "figures", title: "Figures of the sources", entries: FIGURES, in_lab: true },
    Group { name: "exclusion", title: "Mutual exclusion", entries: EXCLUSION, in_lab: true },
    Group { name: "flaws", title: "Flaws", entries: FLAWS, in_lab: true },
    Group { name: "incidents", title: "Incidents", entries: INCIDENTS, in_lab: true },
    Group { name: "services", title: "Snapshots and services", entries: SERVICES, in_lab: false },
];

/// A stop of the tour: a question, a scenario that answers it, and the step at which to look.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Its title.
    pub title: &'static str,
    /// The question before the run.
    pub question: &'static str,
    /// What the run shows, in two sentences.
    pub about: &'static str,
    /// The scenario; none for the stop that is at the running cluster.
    pub scenario: Option<&'static str>,
    /// Flags on top of the scenario.
    pub flags: &'static [(&'static str, &'static str)],
    /// The step to show.
    pub step: usize,
}

/// The tour: an election understood in five minutes.
pub const FIVE_MINUTES: &[Stop] = &[
    Stop {
        title: "Who wins",
        question: "7 is down and 4 starts an election. Who will lead?",
        about: "Every member that is asked answers and asks the members above it, so the question travels upwards. 6 gets \
                no answer, because only 7 is higher and 7 is down: 6 leads.",
        scenario: Some("kordafshari/figure-1"),
        flags: &[],
        step: 10,
    },
    Stop {
        title: "What it costs",
        question: "The lowest of ten members starts the election. How many messages does it take?",
        about: "Every member asks every higher one, and every question is answered: the number grows with the square of the \
                members. The count beside the diagram equals the formula of the literature, n² − 1.",
        scenario: Some("kordafshari/worst-case-bully"),
        flags: &[],
        step: 0,
    },
    Stop {
        title: "A ring costs less",
        question: "Ten members in a ring pass on the highest number that they know. How many messages until all know the winner?",
        about: "A member replaces a lower number by its own, so only the highest comes round: 9 messages to reach 10, 10 \
                until it knows that it won, 10 to tell. That is 3n − 1, where bully took n² − 1; but one lost message stops it.",
        scenario: Some("cs425/ring-worst-case"),
        flags: &[("members", "10")],
        step: 0,
    },
    Stop {
        title: "The winner crashes before it announces itself",
        question: "6 has told 4 and 5 to stop, and crashes. Who finds out, and when?",
        about: "4 and 5 have been answered and wait for an announcement that never comes. When they have waited long \
                enough they start again, and 5 leads.",
        scenario: Some("kordafshari/figure-1"),
        flags: &[("crash", "6@2.5ms")],
        step: 9,
    },
    Stop {
        title: "A slow leader",
        question: "The leader 3 is up, but its messages are slow. How many leaders will there be?",
        about: "2 cannot tell a slow leader from a dead one: it takes over, and 3 still leads. No timeout is long enough to \
                rule this out.",
        scenario: Some("flaws/f01-slow-leader"),
        flags: &[],
        step: 1,
    },
    Stop {
        title: "The same with a quorum",
        question: "3 is as slow as before, and wins the election only when its votes arrive. Will a second member lead?",
        about: "2 suspects 3 and sends no question: while a vote lease to 3 runs, no member opens a new term. 3 leads once a majority \
                has answered. However slow it is, there is at most one leader at every instant.",
        scenario: Some("quorum/f01-slow-leader"),
        flags: &[],
        step: 7,
    },
    Stop {
        title: "Your own partition",
        question: "Partition the five running nodes into two and three. Which side has a leader?",
        about: "Draw a line across the ring. The side with a majority has a leader, the other one has none, and when you \
                heal the partition they agree again.",
        scenario: None,
        flags: &[],
        step: 0,
    },
];

/// Every scenario.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|group| group.entries)
}

/// The scenarios that the lab shows.
pub fn in_lab() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().filter(|group| group.in_lab).flat_map(|group| group.entries)
}

/// The scenario called `name`.
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// The scenario called `name`, with or without the ends of its file's name; an error says which one was probably meant.
pub fn find(name: &str) -> Result<&'static Entry, String> {
    let name = name.trim_start_matches("scenarios/").trim_end_matches(".toml");
    if let Some(entry) = entry(name) {
        return Ok(entry);
    }
    let distance = |entry: &&Entry| {
        // A name without its folder counts too, and the beginning of a name suggests the scenarios that begin with it.
        let file = entry.name.split_once('/').map_or(entry.name, |(_, file)| file);
        match [entry.name, file].iter().any(|full| !name.is_empty() && full.starts_with(name)) {
            true => 0,
            false => strsim::osa_distance(name, entry.name).min(strsim::osa_distance(name, file)),
        }
    };
    let nearest = entries().min_by_key(distance).filter(|it| distance(it) <= name.len() / 2);
    let hint = match nearest {
        _ if name.parse::<Algorithm>().is_ok() => format!("did you mean --algorithm {name}?"),
        Some(entry) => format!("did you mean {}?", entry.name),
        None => "`doyen scenarios` lists them".to_owned(),
    };
    Err(format!("there is no scenario `{name}`; {hint}"))
}

macro_rules! entries {
    ($($name:literal)*) => {
        &[$(Entry {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        }),*]
    };
}

#[rustfmt::skip]
const FIGURES: &[Entry] = entries! {
    "kordafshari/all-members-detect"
    "kordafshari/best-case-modified"
    "kordafshari/example-bully"
    "kordafshari/example-modified"
    "kordafshari/figure-1"
    "kordafshari/figure-1-stage-by-stage"
    "kordafshari/figure-2"
    "kordafshari/figure-3"
    "kordafshari/figure-4"
    "kordafshari/granted-dies"
    "kordafshari/granted-dies-hardened"
    "kordafshari/higher-comes-up-bully"
    "kordafshari/higher-comes-up-bully-hardened"
    "kordafshari/higher-comes-up-modified"
    "kordafshari/higher-comes-up-modified-hardened"
    "kordafshari/initiator-dies-after-election"
    "kordafshari/initiator-dies-after-oks"
    "kordafshari/initiator-dies-hardened"
    "kordafshari/literal-timers"
    "kordafshari/process-comes-up-unanswered"
    "kordafshari/several-detect"
    "kordafshari/several-detect-bully"
    "kordafshari/stop"
    "kordafshari/worst-case-bully"
    "kordafshari/worst-case-modified"
    "cs425/attribute-bully"
    "cs425/attribute-ring"
    "cs425/bully-best-case"
    "cs425/bully-example"
    "cs425/bully-winner-dies"
    "cs425/bully-worst-case"
    "cs425/bully-worst-case-pipelined"
    "cs425/last-survivor-bully"
    "cs425/last-survivor-ring"
    "cs425/modified-ring"
    "cs425/modified-ring-initiator-dies"
    "cs425/modified-ring-many-elections"
    "cs425/modified-ring-winner-dies"
    "cs425/modified-ring-winner-dies-later"
    "cs425/ring-best-case"
    "cs425/ring-in-progress"
    "cs425/ring-loses-the-winner"
    "cs425/ring-loses-the-winner-hardened"
    "cs425/ring-orphan"
    "cs425/ring-pictured"
    "cs425/ring-worst-case"
    "cs425/single-member-bully"
    "cs425/single-member-ring"
    "cs677/bully"
    "cs677/bully-all-at-once"
    "cs677/bully-lower-recovers"
    "cs677/bully-lower-recovers-hardened"
    "cs677/bully-no-guard"
    "cs677/bully-no-time-out"
    "cs677/ring"
    "cs677/ring-initiator-dies"
    "cs677/ring-initiator-dies-hardened"
    "cs677/ring-many-elections"
    "cs677/ring-many-elections-harm"
    "cs677/ring-many-elections-harm-hardened"
    "cs677/ring-polls-the-dead"
    "cs677/ring-recovers"
    "cs677/ring-recovers-hardened"
    "os-textbook/bully-parallel"
    "os-textbook/refined-ring-all-initiators"
    "os-textbook/refined-ring-no-swallowing"
    "os-textbook/refined-ring-two-initiators"
    "os-textbook/refined-ring-worst-case"
    "os-textbook/ring-all-ids"
    "os-textbook/ring-all-ids-absorbed"
    "os-textbook/ring-all-ids-failure"
    "os-textbook/ring-all-ids-failure-hardened"
    "os-textbook/ring-all-ids-parallel"
    "os-textbook/ring-control-part-forwards"
    "notes/bully-answerer-dies"
    "notes/bully-coordinator-silent"
    "notes/bully-no-answer"
    "notes/bully-one-timer"
    "notes/bully-two-timers"
    "notes/ring-active-list"
    "notes/ring-active-list-all-at-once"
    "notes/ring-example"
    "notes/ring-example-polled"
};

#[rustfmt::skip]
const EXCLUSION: &[Entry] = entries! {
    "cs677/a-crashed-holder-blocks-all"
    "cs677/a-crashed-member-loses-the-token"
    "cs677/a-forgetful-voter-lets-two-in"
    "cs677/a-lost-token-blocks-the-ring"
    "cs677/a-serial-medium-delays-2-n-minus-1"
    "cs677/an-empty-table-lets-two-in"
    "cs677/any-crash-blocks-ricart-agrawala"
    "cs677/asking-just-after-the-token-waits-almost-n"
    "cs677/centralised-at-the-coordinator-costs-nothing"
    "cs677/centralised-costs-3"
    "cs677/ricart-agrawala-costs-2-n-minus-1"
    "cs677/the-coordinator-crash-blocks-all"
    "cs677/the-token-ring-costs-1-when-all-want"
    "cs677/two-tokens-let-two-in"
    "cs677/voting-costs-3m-at-the-first-attempt"
    "cs677/voting-never-costs-3mk-after-a-failed-attempt"
    "cs677/voting-with-equal-back-off-never-ends"
    "cs425/a-dead-arbiter-blocks-its-sets"
    "cs425/a-doubled-reply-lets-two-in"
    "cs425/a-false-report-lets-two-in"
    "cs425/an-inner-crash-splits-the-tree"
    "cs425/an-overtaken-waiter-deadlocks"
    "cs425/causal-order-needs-the-clock-on-all-messages"
    "cs425/exit-sends-only-deferred-replies"
    "cs425/lamport-costs-3-n-minus-1"
    "cs425/lamport-without-fifo-lets-two-in"
    "cs425/maekawa-costs-3-k-minus-1-when-idle"
    "cs425/maekawa-costs-4-k-minus-1-when-saturated"
    "cs425/maekawa-without-fifo-lets-two-in"
    "cs425/plain-maekawa-deadlocks"
    "cs425/raymond-sends-nothing-at-an-idle-exit"
    "cs425/star-line-and-binary-tree-cost-the-same-when-saturated"
    "cs425/the-line-is-the-worst-tree"
    "cs425/the-star-has-diameter-2"
    "exclusion/a-crashed-holder-takes-the-token"
    "exclusion/a-doubled-token-lets-two-in"
    "exclusion/suzuki-kasami-costs-n"
};

#[rustfmt::skip]
const FLAWS: &[Entry] = entries! {
    "flaws/f01-slow-leader"
    "flaws/f02-partition-heals"
    "flaws/f03-stale-coordinator"
    "flaws/f04-no-announcement-timer"
    "flaws/f05-one-timer"
    "flaws/f06-leader-only-says-ok"
    "flaws/f07-late-ok"
    "flaws/f08-no-way-to-the-leader"
    "flaws/f09-flapping"
    "flaws/f10-literal-timers"
    "flaws/f11a-lowest-wins"
    "flaws/f11b-grants-to-the-dead"
    "flaws/f12-all-members-take-over"
    "flaws/f13-booting-member-ignored"
    "flaws/f14-participants-forever"
    "flaws/f15-orphan"
    "flaws/f16-list-without-end"
    "flaws/f17-two-elections-cross"
    "flaws/f18-winner-dies-after-the-list"
    "flaws/f19-old-initiators-kept"
};

#[rustfmt::skip]
const INCIDENTS: &[Entry] = entries! {
    "quorum/a-clock-jumps-an-hour-at-a-follower"
    "quorum/a-clock-jumps-an-hour-at-the-leader"
    "quorum/a-clone-of-a-running-member"
    "quorum/a-crash-hand-over"
    "quorum/a-crash-hand-over-waits-for-a-permit"
    "quorum/a-crash-is-counted-once"
    "quorum/a-disk-lost-twice"
    "quorum/a-drift-that-is-set"
    "quorum/a-follower-stuck-on-an-old-leader"
    "quorum/a-half-dead-switch-non-transitive"
    "quorum/a-half-dead-switch-one-way"
    "quorum/a-higher-one-joins-in-mid-election"
    "quorum/a-lapse-is-a-gap"
    "quorum/a-late-release-of-an-earlier-term"
    "quorum/a-leader-resumes-after-its-lease"
    "quorum/a-lost-disk-rejoins"
    "quorum/a-measured-attribute-of-the-best"
    "quorum/a-measured-attribute-of-the-leader"
    "quorum/a-member-founded-twice"
    "quorum/a-pause-and-a-dead-leader"
    "quorum/a-pause-and-a-leader-that-is-cut-off"
    "quorum/a-pause-and-a-lost-transfer"
    "quorum/a-pause-and-a-transfer"
    "quorum/a-planned-restart"
    "quorum/a-rejoin-asks-again-at-once"
    "quorum/a-rejoin-beneath-a-longer-vote-lease"
    "quorum/a-rejoin-while-others-restart"
    "quorum/a-restart-at-another-address"
    "quorum/a-restart-beside-a-rejoin"
    "quorum/a-restart-with-a-shorter-vote-lease"
    "quorum/a-start-up-partition"
    "quorum/a-stop-hook-longer-than-the-grace"
    "quorum/a-successor-dies-during-a-transfer"
    "quorum/a-winner-leaves-at-once"
    "quorum/a-winner-whose-heartbeats-get-lost"
    "quorum/all-drained-and-one-undrained"
    "quorum/all-drained-at-once"
    "quorum/an-attribute-below-the-margin"
    "quorum/an-old-disk-answered-late"
    "quorum/an-old-disk-behind-a-heartbeat"
    "quorum/an-old-disk-of-an-earlier-life"
    "quorum/an-old-disk-of-the-last-life"
    "quorum/braft-405-a-vote-is-no-lease"
    "quorum/every-machine-is-replaced-in-turn"
    "quorum/f01-slow-leader"
    "quorum/f02-partition-heals"
    "quorum/gen-leader-the-best-boots-while-a-lower-leads"
    "quorum/hazelcast-16643-demoted-in-its-own-term"
    "quorum/locks-25-a-heal-with-two-leaders"
    "quorum/nuraft-30-only-the-lowest-reaches-a-majority"
    "quorum/the-followers-were-stopped"
    "quorum/the-longest-vote-lease-falls"
    "quorum/the-old-machine-wakes-beside-its-replacement"
    "quorum/tikv-15035-a-restart-forgets-a-vote-lease"
    "quorum/two-leaders-that-both-step-down"
    "quorum/two-members-alone"
    "quorum/two-members-and-a-witness"
    "quorum/yugabyte-a-chain-of-transfers"
};

#[rustfmt::skip]
const SERVICES: &[Entry] = entries! {
    "cs425/a-marker-that-overtakes-loses-30"
    "cs425/every-initiator-can-record-it"
    "cs425/snapshot-90-80-70-totals-290"
    "services/a-holder-keeps-its-lock-over-a-failover"
    "services/a-holder-that-raises-its-token-makes-two"
    "services/a-late-grant-of-an-old-term-is-refused"
    "services/a-lost-token-is-made-once"
    "services/a-majority-of-claims-is-not-enough"
    "services/a-paused-holder-is-fenced"
    "services/a-probe-keeps-a-live-token"
    "services/a-silent-member-costs-one-grant-time"
    "services/a-stable-sequencer-delivers-what-a-majority-has"
    "services/an-eager-sequencer-loses-what-it-delivered"
    "services/an-empty-table-lets-two-in"
    "services/no-message-is-delivered-twice"
    "services/the-sequencer-renumbers-after-a-gap"
};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use doyen_report::{expectation, formula};
    use doyen_sim::run;

    use super::*;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
    }

    #[test]
    fn every_file_is_built_in_once() {
        let mut files = Vec::new();
        for source in std::fs::read_dir(folder()).unwrap().map(Result::unwrap) {
            let Ok(entries) = std::fs::read_dir(source.path()) else { continue };
            for file in entries.map(Result::unwrap) {
                let name = [source.file_name(), file.file_name()];
                let [source, file] = name.map(|it| it.to_string_lossy().into_owned());
                files.extend(file.strip_suffix(".toml").map(|file| format!("{source}/{file}")));
            }
        }
        let mut names: Vec<&str> = entries().map(|entry| entry.name).collect();
        files.sort();
        names.sort_unstable();
        assert_eq!(names, files);
    }

    #[test]
    fn every_scenario_gives_what_it_says() {
        for entry in entries() {
            let case = entry.scenario().resolve().unwrap();
            let outcome = run::run(&case, None);
            let formula = formula::of(&case);
            let differences = expectation::differences(&case, &outcome, formula.as_ref());
            assert!(differences.is_empty(), "{}: {differences:?}", entry.name);
            assert!(!case.title.is_empty(), "{} has no title", entry.name);
        }
    }

    #[test]
    fn a_name_is_found_and_a_typing_error_is_guessed() {
        for name in ["flaws/f09-flapping", "scenarios/flaws/f09-flapping.toml"] {
            assert!(find(name).unwrap().text.contains("algorithm"));
        }
        for name in ["flaws/f09-flaping", "f09-flapping", "flaws/f9-flapping", "f09"] {
            let problem = find(name).unwrap_err();
            assert!(problem.ends_with("did you mean flaws/f09-flapping?"), "{problem}");
        }
        let problem = find("bully").expect_err("an algorithm");
        assert!(problem.ends_with("did you mean --algorithm bully?"), "{problem}");
        assert!(find("nothing like it").unwrap_err().contains("doyen scenarios"));
    }
}
