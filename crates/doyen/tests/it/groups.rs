//! A hundred groups on five real members: who leads which, what happens when a host dies, and what the groups cost.
//!
//! The leases of groups are longer here than the profile's, so that a busy machine does not end them; the bound is the same
//! function of the lease. That of each profile is asserted where time is exact: `tests/it/group.rs` in doyen-check.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Plan, Trial, complaint};
use doyen::api::{GroupList, GroupReport, Name, PermitGiven};
use doyen_core::members::Term;

const GROUPS: usize = 100;

/// The lease of a group, and how long the groups of a dead host are without a leader at most, as `docs/groups.md` promises
/// it: by the slowest clock that the profile `lan` allows for, and a message.
const LEASE: &str = "3s";
const BOUND: Duration = Duration::from_millis(3_000 * 110 * 100 / (90 * 90) + 10 + 5);

/// L1 of the profile `lan`, and by how much longer a patient cluster waits for the lease of a dead leader: what an election of
/// the cluster's leader takes besides.
const ELECTION: Duration = Duration::from_millis(772 + 1_300);

/// How late a busy machine may be.
const LATE: Duration = Duration::from_secs(4);

/// Groups with their leaders and fencing tokens.
type Led = BTreeMap<String, (String, u64)>;

fn start(groups: usize) -> Trial {
    let flags = (0..groups).flat_map(|number| ["--group".to_owned(), format!("g{number:03}")]);
    let plan = Plan { members: 5, init: flags.collect(), patient: true, ..Plan::default() };
    let mut trial = Trial::found(&plan);
    for member in trial.everybody() {
        let file = trial.folder_of(member).join("doyen.toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        let lease = format!("group_lease = \"{LEASE}\"\n\n[timing]");
        fs::write(&file, text.replacen("[timing]", &lease, 1)).expect("a configuration");
        trial.run(member);
    }
    trial
}

fn list(trial: &Trial, member: usize) -> Option<Vec<GroupReport>> {
    let list: GroupList = serde_json::from_str(&trial.get(member, "/v1/groups")?).ok()?;
    Some(list.groups)
}

/// Who leads which group, once each has a leader.
fn led(trial: &Trial, member: usize) -> Option<Led> {
    let groups = list(trial, member)?.into_iter();
    groups.map(|group| Some((group.name, (group.leader?.name, group.token?)))).collect()
}

/// Waits until each group is led by the best of `members`, and all of them know it.
fn wait_for_order(trial: &Trial, members: &[usize]) -> Led {
    trial.wait(&format!("{members:?} lead all groups"), || {
        let tables: Option<Vec<Led>> = members.iter().map(|&member| led(trial, member)).collect();
        let tables = tables?;
        let all_preferred = list(trial, members[0])?.into_iter().all(|group| {
            let is_here = |name: &Name| members.iter().any(|it| name.name == format!("n{it}"));
            let (leader, preferred) = (group.leader, group.preferred);
            leader.as_ref().is_some_and(is_here)
                && (leader == preferred || !preferred.as_ref().is_some_and(is_here))
        });
        let agree = tables.iter().all(|table| *table == tables[0]);
        (agree && all_preferred).then(|| tables[0].clone())
    })
}

/// The groups whose leaders or tokens are others.
fn moved<'a>(before: &'a Led, after: &Led) -> Vec<&'a str> {
    let is_moved = |(name, lead): &(&'a String, &(String, u64))| after.get(*name) != Some(lead);
    before.iter().filter(is_moved).map(|(name, _)| name.as_str()).collect()
}

fn led_by<'a>(table: &'a Led, leader: &str) -> Vec<&'a str> {
    let is_own = |(_, (led_by, _)): &(&String, &(String, u64))| led_by == leader;
    table.iter().filter(is_own).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_host_that_dies_moves_its_groups_and_no_others() {
    let mut trial = start(GROUPS);
    trial.follow(5, &[1, 2, 3, 4, 5]);
    let before = wait_for_order(&trial, &[1, 2, 3, 4, 5]);
    let loads: Vec<usize> = (1..=5).map(|it| led_by(&before, &format!("n{it}")).len()).collect();
    assert!(loads.iter().all(|&load| load >= 8), "spread over all: {loads:?}");

    // One that does not lead the quorum.
    trial.kill(2);
    let begun = Instant::now();
    let after = wait_for_order(&trial, &[1, 3, 4, 5]);
    let took = begun.elapsed();
    assert_eq!(moved(&before, &after), led_by(&before, "n2"), "exactly its own");
    assert!(took < BOUND + LATE, "{took:?}");
    println!("groups of a dead host were led again after {took:?} at the latest");
    assert!((1..=5).filter(|&it| it != 2).all(|it| {
        led_by(&after, &format!("n{it}")).len() > led_by(&before, &format!("n{it}")).len()
    }));

    // It is back, and gets exactly them back.
    trial.run(2);
    let back = wait_for_order(&trial, &[1, 2, 3, 4, 5]);
    assert_eq!(led_by(&back, "n2"), led_by(&before, "n2"));
    assert_eq!(moved(&after, &back), led_by(&before, "n2"));

    // The leader of the quorum dies: the others go on leading their groups.
    let leader = trial.agree(&[1, 2, 3, 4, 5]);
    let name = format!("n{leader}");
    trial.kill(leader);
    let begun = Instant::now();
    let others: Vec<usize> = (1..=5).filter(|&it| it != leader).collect();
    let after = wait_for_order(&trial, &others);
    let took = begun.elapsed();
    assert!(took < ELECTION + BOUND + LATE, "{took:?}");
    println!("groups of the leader's host were led again after {took:?} at the latest");
    assert_eq!(moved(&back, &after), led_by(&back, &name), "a failover disturbs no other group");
    let rises = led_by(&back, &name).iter().all(|group| after[*group].1 > back[*group].1);
    assert!(rises, "fencing tokens rise");
}

#[test]
fn what_programs_and_people_see_and_a_drain() {
    let mut trial = start(12);
    let before = wait_for_order(&trial, &[1, 2, 3, 4, 5]);
    let group = before.keys().next().expect("a group");
    let path = format!("/groups/{group}/leader");
    trial.wait("one node says that it leads the group", || {
        let answers = (1..=5).map(|it| Some((it, trial.response(it, &path)?.0)));
        let answers: Vec<(usize, u16)> = answers.collect::<Option<_>>()?;
        let yes: Vec<usize> =
            answers.iter().filter(|(_, code)| *code == 200).map(|(it, _)| *it).collect();
        let codes = answers.iter().all(|(_, code)| [200, 503].contains(code));
        (codes && yes.len() == 1 && before[group].0 == format!("n{}", yes[0])).then_some(())
    });
    assert_eq!(trial.response(1, "/groups/none/leader").map(|it| it.0), Some(404));
    assert_eq!(trial.response(1, "/v1/groups/none").map(|it| it.0), Some(404));
    let report: GroupReport =
        serde_json::from_str(&trial.get(1, &format!("/v1/groups/{group}")).unwrap()).unwrap();
    assert_eq!(report.leader, report.preferred);
    let permit = |member| {
        trial.post(member, &format!("/v1/groups/{group}/permit"), "{\"for\": \"100ms\"}").unwrap()
    };
    let leader = before[group].0.trim_start_matches('n').parse().expect("a number");
    let (code, given) = permit(leader);
    assert_eq!(code, 200, "{given}");
    let given: PermitGiven = serde_json::from_str(&given).unwrap();
    assert_eq!(given.token, before[group].1, "a permit has the token of the grant");
    assert_eq!(permit(leader % 5 + 1).0, 409);
    let shown = trial.command(1, &["groups"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(shown.status.code(), Some(0), "{text}{}", complaint(&shown));
    assert!(text.lines().count() == 13 && text.contains(group.as_str()), "{text}");
    let led: u64 = (1..=5).filter_map(|it| trial.metric(it, "doyen_groups_led", "")).sum();
    assert_eq!(led, 12);

    // Drained, it gives them up; undrained, it gets them back.
    let own = led_by(&before, "n3");
    assert!(!own.is_empty());
    let drained = trial.command(3, &["drain"]);
    assert!(drained.status.success(), "{}", complaint(&drained));
    let after = trial.wait("n3 leads no group", || {
        self::led(&trial, 1).filter(|table| led_by(table, "n3").is_empty())
    });
    assert_eq!(moved(&before, &after), own);
    let undrained = trial.command(3, &["undrain"]);
    assert!(undrained.status.success(), "{}", complaint(&undrained));
    let back = wait_for_order(&trial, &[1, 2, 3, 4, 5]);
    assert_eq!(led_by(&back, "n3"), own);

    // A member that stops hands its groups over before it ends.
    assert_eq!(trial.stop(3), Some(0));
    let log = trial.log(3);
    let left = log.lines().filter(|line| line.contains("no longer leads group")).count();
    assert_eq!(left, 2 * own.len(), "{log}");
    let after = wait_for_order(&trial, &[1, 2, 4, 5]);
    assert_eq!(moved(&back, &after), own);
}

/// Datagrams and bytes that all members have sent, and the rounds of heartbeats among them.
fn sent(trial: &Trial, leader: usize) -> [f64; 3] {
    let read = |member, name| trial.metric(member, name, "").expect("a metric") as f64;
    let all = |name| (1..=5).map(|member| read(member, name)).sum();
    let rounds = read(leader, "doyen_datagrams_sent_total") / 4.0;
    [all("doyen_datagrams_sent_total"), all("doyen_sent_bytes_total"), rounds]
}

/// The term in which n5 leads, as all members see it, and how many entries its history has.
fn led_by_n5(trial: &Trial) -> (Term, usize) {
    trial.follow(5, &[1, 2, 3, 4, 5]);
    (trial.wait_for_status(5).term, trial.history(5).len())
}

#[test]
fn a_hundred_groups_cost_no_datagrams_and_few_bytes() {
    // Side by side, so that both meet the same load of the machine.
    let trials = [1, GROUPS].map(start);
    for trial in &trials {
        trial.follow(5, &[1, 2, 3, 4, 5]);
        wait_for_order(trial, &[1, 2, 3, 4, 5]);
    }
    // While another member leads, or a lease lapses, there is other traffic: then it is measured again.
    let measured = (0..4).find_map(|_| {
        let led = trials.each_ref().map(led_by_n5);
        let before = trials.each_ref().map(|trial| sent(trial, 5));
        std::thread::sleep(Duration::from_secs(5));
        let after = trials.each_ref().map(|trial| sent(trial, 5));
        let is_steady = led == trials.each_ref().map(led_by_n5);
        is_steady.then_some((before, after))
    });
    let (before, after) = measured.expect("five seconds in which n5 leads without a gap");
    let [one, many] = [0, 1].map(|at| {
        let [datagrams, bytes, rounds] = std::array::from_fn(|it| after[at][it] - before[at][it]);
        (datagrams / rounds, bytes / rounds)
    });
    let growth = (many.1 - one.1) / (GROUPS - 1) as f64;
    println!(
        "a round of heartbeats: {:.2} datagrams and {:.0} bytes with one group, {:.2} and {:.0} with {GROUPS}: {growth:.1} \
         bytes a group",
        one.0, one.1, many.0, many.1
    );
    assert!(many.0 < one.0 * 1.1, "{many:?} {one:?}");
    assert!(growth < 16.0, "{growth}");
    assert!(growth > 2.0, "every group is renewed by itself: {growth}");
}
