use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;

use doyen::api;
use serde_json::{Value, json};

use super::*;
use crate::cli::admin_socket::LocalAdmin;
use crate::cli::testing::member;

fn diagnosis(id: u32, keys: &[&str]) -> Value {
    json!({
        "status": {
            "cluster": "orders", "algorithm": "quorum", "version": "0.1.0", "id": id, "name": format!("n{id}"),
            "incarnation": 1, "role": "follower", "leader": 3, "term": 4, "lease": null, "why": null,
            "rejoining": false, "drained": false, "never_leads": false, "drained_remaining_ms": null,
            "preference": null, "next": 2, "succession": [3, 2, 1],
            "members": (1..=3).map(member).collect::<Vec<_>>(),
        },
        "datagrams": 4,
        "keys": { "in_use": keys, "in_file": keys, "problem": null },
        "unix_ms": 0,
        "settings": {
            "priorities": { "n1": 1, "n2": 2, "n3": 3 },
            "timing": { "timing.tenure": "5s", "preemption.policy": "delayed" },
        },
    })
}

/// What is found if the second of three members is like this, and its clock is ahead by so much.
fn found(second: Value, clock_offset_ms: i64) -> Vec<(Severity, String, String)> {
    let read = |value| serde_json::from_value::<Diagnosis>(value).expect("a diagnosis");
    let examined = |name: &str, answer, clock_offset_ms| Examined {
        name: name.to_owned(),
        answer,
        clock_offset_ms,
    };
    let all = [
        examined("n1", Ok(read(diagnosis(1, &["aa"]))), 0),
        examined("n2", Ok(read(second)), clock_offset_ms),
        examined("n3", Ok(read(diagnosis(3, &["aa"]))), 0),
    ];
    let found = findings(&read(diagnosis(1, &["aa"])), &all);
    found.into_iter().map(|it| (it.severity, it.member, it.problem)).collect()
}

#[test]
fn members_that_are_alike_need_no_mending() {
    assert_eq!(found(diagnosis(2, &["aa"]), 900), []);
}

#[test]
fn each_difference_is_one_finding() {
    let of_n2 = |severity, problem: &str| vec![(severity, "n2".to_owned(), problem.to_owned())];
    let told = "its clock is 4.2 s behind that of n1";
    assert_eq!(found(diagnosis(2, &["aa"]), -4200), of_n2(Severity::Should, told));
    let told = "its clock is 1h ahead of that of n1";
    assert_eq!(found(diagnosis(2, &["aa"]), 3_600_000), of_n2(Severity::Should, told));
    let told = "has 2 keys: a rotation is not complete";
    assert_eq!(found(diagnosis(2, &["aa", "bb"]), 0), of_n2(Severity::Should, told));
    let changed = |path: &str, value: Value| {
        let mut second = diagnosis(2, &["aa"]);
        *second.pointer_mut(path).expect("it is there") = value;
        found(second, 0)
    };
    let told = "runs doyen 0.2.0, and n1 runs 0.1.0";
    assert_eq!(changed("/status/version", json!("0.2.0")), of_n2(Severity::Should, told));
    let told = "lists n3 at 192.0.2.9:7400, and n1 lists n3 at 192.0.2.3:7400";
    let address = changed("/status/members/2/address", json!("192.0.2.9:7400"));
    assert_eq!(address, of_n2(Severity::Should, told));
    let told = "the history s/history cannot be written (full); a restart would lose it";
    let mut second = diagnosis(2, &["aa"]);
    second["status"]["history_problem"] = json!(told);
    assert_eq!(found(second, 0), of_n2(Severity::Should, told));
    let reachable = changed("/status/members/2/reachable", json!(false));
    assert_eq!(
        reachable,
        of_n2(Severity::Must, "receives nothing from n3, which receives from it")
    );
    let told = "uses the keys aa, and its key file has aa, bb";
    assert_eq!(changed("/keys/in_file", json!(["aa", "bb"])), of_n2(Severity::Should, told));
    let told = "lists n3 with priority 9, and n3 has 3";
    let priority = changed("/settings/priorities/n3", json!(9));
    assert_eq!(priority, of_n2(Severity::Should, told));
    let told = "has timing.tenure = 2s, and n1 has 5s";
    let timing = changed("/settings/timing/timing.tenure", json!("2s"));
    assert_eq!(timing, of_n2(Severity::Should, told));
    assert_eq!(changed("/settings", Value::Null), [], "an older release");
    let rejoins = changed("/status/rejoining", json!(true));
    assert_eq!(rejoins, of_n2(Severity::Must, "lost its state and rejoins"));
}

#[test]
fn a_member_that_rejoins_is_not_said_to_be_cut_off() {
    let mut asked = diagnosis(1, &["aa"]);
    asked["status"]["members"][1]["reachable"] = json!(false);
    asked["status"]["members"][1]["arrives"] = json!(true);
    let mut second = diagnosis(2, &["aa"]);
    second["status"]["rejoining"] = json!(true);
    let [asked, second] =
        [asked, second].map(|it| serde_json::from_value::<Diagnosis>(it).expect("a diagnosis"));
    let all = [("n1", asked.clone()), ("n2", second)].map(|(name, answer)| Examined {
        name: name.to_owned(),
        answer: Ok(answer),
        clock_offset_ms: 0,
    });
    let found = findings(&asked, &all);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.problem, "lost its state and rejoins");
}

/// The election is well, and the service is not.
#[test]
fn what_fails_under_the_lease_is_found() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut second = diagnosis(2, &["aa"]);
        change(&mut second["status"]);
        found(second, 0)
    };
    let of_n2 = |severity, problem: &str| vec![(severity, "n2".to_owned(), problem.to_owned())];
    let job = |of: &str, text: &str, times: u32| json!({ "command": false, "failure": { "of": of, "text": text, "times": times } });
    let hook = "hooks.not_leader ended with exit code 3";
    let retires = changed(&|status| {
        (status["role"], status["retiring_ms"]) = (json!("retiring"), json!(3000));
        status["job"] = job("not-leader", hook, 4);
    });
    let told = format!("has been retiring for 3.0 s: {hook}, 4 times in a row");
    assert_eq!(retires, of_n2(Severity::Must, &told));
    let starts = changed(&|status| status["job"] = job("not-leader", hook, 1));
    assert_eq!(starts, of_n2(Severity::Must, &format!("can start nothing: {hook}")));
    let fails = |role: &str, times| {
        changed(&|status| {
            status["role"] = json!(role);
            status["job"] = job("command", "the command ended with exit code 1", times);
        })
    };
    let told = "leads, and the command ended with exit code 1, 5 times in a row";
    assert_eq!(fails("leader", 5), of_n2(Severity::Must, told));
    assert_eq!(fails("leader", 1), [], "it has been started again");
    assert_eq!(fails("follower", 5), [], "another member leads");
    let waits = changed(&|status| {
        (status["role"], status["retiring_ms"]) = (json!("retiring"), json!(12_000));
    });
    assert_eq!(waits, of_n2(Severity::Should, "has been retiring for 12.0 s"));
    let drained = |left: Value| {
        changed(&|status| {
            (status["drained"], status["drained_remaining_ms"]) = (json!(true), left.clone());
        })
    };
    assert_eq!(drained(Value::Null), of_n2(Severity::Should, "is drained until `undrain`"));
    assert_eq!(drained(json!(1000)), []);
}

#[test]
fn a_member_without_the_command_of_the_others_is_found() {
    let found = |commands: [Option<bool>; 3]| {
        let answers = (1..).zip(commands).map(|(id, command)| {
            let mut answer = diagnosis(id, &["aa"]);
            answer["status"]["job"] =
                json!(command.map(|command| json!({ "command": command, "failure": null })));
            let answer = serde_json::from_value::<Diagnosis>(answer).expect("a diagnosis");
            Examined { name: format!("n{id}"), answer: Ok(answer), clock_offset_ms: 0 }
        });
        let answers: Vec<Examined> = answers.collect();
        let own = answers[0].answer.as_ref().expect("an answer");
        let found = findings(own, &answers);
        found.into_iter().map(|it| (it.member, it.problem)).collect::<Vec<_>>()
    };
    let told = "runs no command when it leads, and n1 and n2 do".to_owned();
    assert_eq!(found([Some(true), Some(true), Some(false)]), [("n3".to_owned(), told)]);
    assert_eq!(found([Some(true), Some(true), None]), [], "an older release");
    assert_eq!(found([Some(false); 3]), []);
}

#[test]
fn a_rotation_that_is_not_complete_is_one_finding() {
    let all = [1, 2, 3].map(|id| {
        let answer = diagnosis(id, &["aa", "bb"]);
        serde_json::from_value::<Diagnosis>(answer).expect("a diagnosis")
    });
    let own = all[0].clone();
    let examined = (1..).zip(all).map(|(id, answer)| Examined {
        name: format!("n{id}"),
        answer: Ok(answer),
        clock_offset_ms: 0,
    });
    let found = findings(&own, &examined.collect::<Vec<_>>());
    let found: Vec<_> = found.iter().map(|it| (&*it.member, &*it.problem)).collect();
    assert_eq!(found, [("n1", "has 2 keys like n2 and n3: a rotation is not complete")]);
}

/// Whichever key seals, the way on is to the newest one.
#[test]
fn a_rotation_is_continued_with_the_newest_key() {
    let fix = |keys: [&str; 2], newest: Option<&str>| {
        let mut first = diagnosis(1, &keys);
        first["keys"]["newest"] = json!(newest);
        let mut second = diagnosis(2, &["aa"]);
        second["keys"]["newest"] = json!("aa");
        let all = [first, second, diagnosis(3, &["aa"])];
        let all = all.map(|it| serde_json::from_value::<Diagnosis>(it).expect("a diagnosis"));
        let examined = (1..).zip(all.clone()).map(|(id, answer)| Examined {
            name: format!("n{id}"),
            answer: Ok(answer),
            clock_offset_ms: 0,
        });
        let found = findings(&all[0], &examined.collect::<Vec<_>>());
        found.into_iter().find(|it| it.problem.starts_with("has 2 keys")).expect("a finding").fix
    };
    let to = |key: &str| format!("`doyen keys rotate --to {key}`");
    let [aa, bb] = ["aa", "bb"].map(to);
    let back = format!("continue with {bb}, or revert it with {aa}");
    assert_eq!(fix(["aa", "bb"], Some("bb")), back, "it is being added");
    let back = format!("continue with {aa}, or revert it with {bb}");
    assert_eq!(fix(["aa", "bb"], Some("aa")), back, "the other is being retired");
    let both = format!("give the key that is to remain: {aa} or {bb}");
    assert_eq!(fix(["aa", "bb"], None), both);
}

#[test]
fn a_pause_of_elections_is_a_finding() {
    let found = |leader: Value| {
        let mut own = diagnosis(1, &["aa"]);
        own["status"]["leader"] = leader;
        own["status"]["pause"] = json!({ "number": 2, "by": 1, "remaining_ms": 60_000 });
        let found = findings(&serde_json::from_value(own).expect("a diagnosis"), &[]);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.fix, "`doyen resume` ends the pause");
        assert!(finding.problem.starts_with("elections are paused for another "), "{finding:?}");
        finding.clone()
    };
    assert_eq!(found(json!(3)).severity, Severity::Should);
    let without = found(Value::Null);
    assert_eq!(without.severity, Severity::Must);
    assert!(without.problem.contains("there is no leader until"), "{without:?}");
}

#[test]
fn a_member_that_cannot_open_what_another_seals_is_found_first() {
    let found = found(diagnosis(2, &["bb"]), 5000);
    let musts: Vec<&str> = found
        .iter()
        .take_while(|(severity, ..)| *severity == Severity::Must)
        .map(|(_, _, problem)| problem.as_str())
        .collect();
    assert!(musts.contains(&"seals with bb, which n1 does not have"), "{musts:?}");
    assert!(musts.contains(&"seals with aa, which n2 does not have"), "{musts:?}");
}

#[test]
fn a_member_that_receives_nothing_from_the_asked_one_is_not_told_to_start() {
    let mut first = diagnosis(1, &["aa"]);
    first["status"]["members"][2]["unreachable"] = json!([1]);
    let own = serde_json::from_value::<Diagnosis>(first).expect("a diagnosis");
    let why = "n3 does not answer n1: it is reachable, but too slow".to_owned();
    let silent = Examined { name: "n3".to_owned(), answer: Err(why), clock_offset_ms: 0 };
    let found = findings(&own, &[silent]);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.problem, "receives nothing from n1, which receives from it");
    assert!(finding.fix.starts_with("let UDP from n1 to n3"), "{}", finding.fix);
}

/// A node that ends after it has answered once, and does not reach the others.
#[test]
fn what_a_node_has_answered_counts_though_it_ends() {
    let folder = std::env::temp_dir().join(format!("doyen-doctor-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let listener = UnixListener::bind(folder.join(api::SOCKET_FILE)).expect("a socket");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let lines = BufReader::new(&stream).lines().map_while(Result::ok);
        lines.take_while(|line| !line.is_empty()).for_each(drop);
        let body = diagnosis(1, &["aa"]).to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).expect("it is read");
    });
    let client = AdminClient::Socket(LocalAdmin::of(&folder, Duration::from_secs(10)));
    let (own, examined) = examine(&client).expect("its first answer");
    assert_eq!((&*own.status.name, examined.len()), ("n1", 3));
    assert!(examined.iter().all(|it| it.answer.is_err()), "{examined:?}");
    fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn a_member_that_does_not_answer_is_one_finding() {
    let read = |id: u32| {
        let mut answer = diagnosis(id, &["aa"]);
        answer["status"]["members"][2]["reachable"] = json!(false);
        answer["status"]["members"][2]["rejected"] = json!("key");
        serde_json::from_value::<Diagnosis>(answer).expect("a diagnosis")
    };
    let examined =
        |name: &str, answer| Examined { name: name.to_owned(), answer, clock_offset_ms: 0 };
    let silent = Err("n3 does not answer n1: it does not use a key of this node".to_owned());
    let all = [examined("n1", Ok(read(1))), examined("n2", Ok(read(2))), examined("n3", silent)];
    let found = findings(&read(1), &all);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.member, "n3");
    assert!(finding.fix.contains("the same key file"), "{}", finding.fix);
    let text = render(&read(1), 3, &found);
    assert!(text.contains("a key of this node\n        first look on both machines"), "{text}");
}

#[test]
fn a_member_that_is_cut_off_looks_at_its_own_network_first() {
    let mut alone = diagnosis(1, &["aa"]);
    alone["status"]["leader"] = json!(null);
    for other in [1, 2] {
        alone["status"]["members"][other]["reachable"] = json!(false);
    }
    let mut paused = alone.clone();
    paused["status"]["pause"] = json!({ "number": 2, "by": 1, "remaining_ms": 60_000 });
    let alone = || serde_json::from_value::<Diagnosis>(alone.clone()).expect("a diagnosis");
    let examined =
        |name: &str, answer| Examined { name: name.to_owned(), answer, clock_offset_ms: 0 };
    let silent = |name: &str| examined(name, Err(format!("{name} does not answer n1")));
    let found = findings(&alone(), &[examined("n1", Ok(alone())), silent("n2"), silent("n3")]);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (&*finding.member, &*finding.problem),
        ("n1", "receives nothing from any other member")
    );
    let paused = serde_json::from_value::<Diagnosis>(paused).expect("a diagnosis");
    let found = findings(&paused, &[silent("n2"), silent("n3")]);
    let fixes: Vec<&str> = found.iter().map(|finding| &*finding.fix).collect();
    assert!(fixes.len() == 2 && fixes.contains(&"`doyen resume` ends the pause"), "{found:?}");
}
