//! Goal: a plan gives the same rows however it is cut, ordered and stored. Method: one small plan, compared byte by
//! byte.

use super::*;

const PLAN: &str = r#"
    seed = 7
    [base]
    delay = "exp:1ms"
    [[sweep]]
    name = "sizes"
    algorithms = "bully"
    modes = ["textbook", "hardened"]
    members = [2, 5, 8]
    initiator = ["lowest", "random"]
    seeds = 3
    [[sweep]]
    name = "losses"
    algorithms = "bully"
    modes = "hardened"
    members = 4
    loss = ["0%", "20%"]
    seeds = "1..2"
"#;

fn plan() -> Plan {
    Plan::from_toml("test", PLAN, &Limits::default()).unwrap()
}

fn part(shard: &str) -> Part {
    run(&plan(), shard.parse().unwrap(), &Limits::default(), |_, _| {}).unwrap()
}

#[test]
fn shards_merged_in_any_order_give_the_bytes_of_one_run() {
    let whole = part("1/1");
    assert_eq!(whole.rows.len(), 2 * 3 * 2 * 3 + 2 * 2);
    let merged = merge(vec![part("3/3"), part("1/3"), part("2/3")]).unwrap();
    assert_eq!(merged.to_csv().unwrap(), whole.to_csv().unwrap());
    assert_eq!(merged.to_json().unwrap(), whole.to_json().unwrap());
}

#[test]
fn shards_that_were_stored_give_the_bytes_of_one_run() {
    let whole = part("1/1");
    let stored = |shard: &str, csv: bool| {
        let part = part(shard);
        let text = if csv { part.to_csv() } else { part.to_json() }.unwrap();
        Part::read(shard, &text).unwrap()
    };
    let merged =
        merge(vec![stored("1/3", true), stored("2/3", false), stored("3/3", true)]).unwrap();
    assert_eq!(merged, whole);
    assert_eq!(merged.to_csv().unwrap(), whole.to_csv().unwrap());
    assert_eq!(merged.to_json().unwrap(), whole.to_json().unwrap());
}

#[test]
fn more_shards_than_runs_leave_some_empty() {
    let parts: Vec<Part> = (1..=50).map(|index| part(&format!("{index}/50"))).collect();
    assert!(parts[49].rows.is_empty());
    let empty = Part::read("50", &parts[49].to_csv().unwrap()).unwrap();
    assert_eq!(empty, parts[49]);
    assert_eq!(merge(parts).unwrap(), part("1/1"));
}

#[test]
fn a_missing_a_doubled_and_a_foreign_shard_are_refused() {
    let missing = merge(vec![part("1/3"), part("3/3")]).unwrap_err();
    assert!(missing.contains("13 of 40 runs are missing, the first of them run 2"), "{missing}");
    let missing = merge(vec![part("1/2")]).unwrap_err();
    assert!(missing.contains("20 of 40 runs are missing, the first of them run 2"), "{missing}");
    let doubled = merge(vec![part("1/2"), part("2/2"), part("2/2")]).unwrap_err();
    assert!(doubled.contains("run 2 is there twice"), "{doubled}");
    let other = Plan::from_toml("other", &PLAN.replace("seed = 7", "seed = 8"), &Limits::default());
    let other =
        run(&other.unwrap(), "2/2".parse().unwrap(), &Limits::default(), |_, _| {}).unwrap();
    let foreign = merge(vec![part("1/2"), other]).unwrap_err();
    assert!(foreign.contains("they do not belong together"), "{foreign}");
    assert!(merge(Vec::new()).is_err());
}

#[test]
fn rows_that_were_tampered_with_are_refused_with_their_line() {
    let csv = part("1/1").to_csv().unwrap();
    let bad = csv.replacen(",textbook,", ",textbook,too much,", 1);
    assert!(Part::read("rows.csv", &bad).unwrap_err().starts_with("rows.csv:4: "), "{bad}");
    let headless: String = csv.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert!(Part::read("rows.csv", &headless).unwrap_err().starts_with("rows.csv:1: "));
    let json = part("1/1").to_json().unwrap();
    assert!(
        Part::read("rows.json", &json[..json.len() / 2]).unwrap_err().starts_with("rows.json:")
    );
}

#[test]
fn every_run_is_reported_once_and_the_last_report_is_complete() {
    let seen = std::sync::Mutex::new(Vec::new());
    run(&plan(), Shard::ALL, &Limits::default(), |done, total| {
        seen.lock().unwrap().push((done, total));
    })
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (1..=40).map(|done| (done, 40)).collect::<Vec<_>>());
}

#[test]
fn a_row_is_the_scenario_it_names() {
    let plan = plan();
    let job = plan.job(17).unwrap();
    let text = toml::to_string(&job.scenario).unwrap();
    let again = crate::scenario::Scenario::from_toml("run 17", &text).unwrap();
    let outcome = run::run(&again, None);
    assert_eq!(row(&plan, 17).unwrap().digest, format!("{:016x}", outcome.digest));
}

#[test]
fn the_paper_s_example_is_counted_in_a_sweep() {
    let text = r#"
        [base]
        members = 1000
        [[sweep]]
        algorithms = "bully"
        initiator = [100, 1000]
    "#;
    let plan = Plan::from_toml("figure 5", text, &Limits::default()).unwrap();
    let part = run(&plan, Shard::ALL, &Limits::default(), |_, _| {}).unwrap();
    let counted: Vec<(Option<u64>, u64)> =
        part.rows.iter().map(|row| (row.initiator, row.messages)).collect();
    assert_eq!(counted, [(Some(100), 811_899), (Some(1000), 999)]);
}

#[test]
fn what_is_not_a_shard_is_refused() {
    for bad in ["", "1", "0/3", "4/3", "a/b", "1/0", "1/3/5", "-1/3"] {
        assert!(bad.parse::<Shard>().is_err(), "{bad}");
    }
    assert_eq!("2/3".parse::<Shard>().map(|shard| shard.to_string()), Ok("2/3".to_owned()));
}
