//! Admin commands: which reach the loop, and which do not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use doyen::api::{Limits, SECRET_FILE, Server};
use doyen::node::CommandError;
use doyen::node::status::{MemberStatus, Paused, Preferred, Status};
use doyen_core::members::NodeId;
use doyen_core::protocol::Refusal;

use super::fake::{Fake, Folder, follower_of_n3, try_start};
use super::http::exchange;
use crate::support::{PASSING, is_passing};

#[test]
fn every_command_reaches_the_loop() {
    let fake = Fake::leader();
    for (path, body, received, accepted) in [
        ("resign", "", "resign", "resigns; next in line is n2"),
        ("resign", "{}", "resign", "resigns; next in line is n2"),
        ("transfer", r#"{"to":"n2"}"#, "transfer to 2", "transfers leadership to n2"),
        ("transfer", r#"{"to":3}"#, "transfer to 3", "transfers leadership to n3"),
        ("transfer", r#"{"to":"3"}"#, "transfer to 3", "transfers leadership to n3"),
        ("campaign", "", "campaign", "starts no election: n1 is the leader"),
        ("drain", "", "drain", "is drained until `undrain`: it leads only if no other member can"),
        (
            "drain",
            r#"{"for":"2h"}"#,
            "drain for 2h",
            "is drained for 2h: it leads only if no other member can",
        ),
        (
            "drain",
            r#"{"never":true}"#,
            "drain, never lead",
            "is drained until `undrain`: it never leads",
        ),
        ("undrain", "", "undrain", "was not drained"),
        ("prefer", r#"{"member":"n3","for":"90s"}"#, "prefer 3 for 1m 30s", "prefers n3 for 90s"),
        ("prefer", r#"{"member":"n3","for":"0s"}"#, "prefer 3 for 0", "withdraws the preference"),
        ("reload-keys", "", "reload keys", "reloaded its keys: seals and opens with 00ecce3a"),
    ] {
        let answer = fake.command(&format!("/v1/{path}"), body);
        assert_eq!(answer.status, 202, "{path} {body}: {answer:?}");
        assert_eq!(answer.json()["accepted"], accepted, "{path} {body}");
        assert_eq!(answer.json()["term"], 7);
        assert_eq!(fake.received(), [received], "{path} {body}");
    }
}

#[test]
fn a_drain_says_what_it_changes() {
    let fake = Fake::leader();
    let accepted = |path: &str| fake.command(path, "").json()["accepted"].clone();
    fake.publish(|status| status.drained = true);
    assert_eq!(accepted("/v1/undrain"), "is no longer drained");
    fake.publish(|status| status.members[0].witness = true);
    let witness = "is drained until `undrain`: it is a witness and never leads anyway";
    assert_eq!(accepted("/v1/drain"), witness);
}

#[test]
fn a_name_takes_precedence_over_an_id() {
    let fake = Fake::leader();
    fake.publish(|status| status.members[1].name = "3".to_owned());
    assert_eq!(fake.command("/v1/transfer", r#"{"to":"3"}"#).status, 202);
    assert_eq!(fake.command("/v1/transfer", r#"{"to":3}"#).status, 202);
    assert_eq!(fake.received(), ["transfer to 2", "transfer to 3"]);
}

#[test]
fn a_follower_names_the_leader() {
    let fake = Fake::follower();
    fake.reject(Refusal::NotLeading);
    let answer = fake.command("/v1/resign", "");
    let detail = answer.problem(504, "unreachable");
    assert_eq!(detail, "n3 does not answer n1: it has not been reached since this node started");
    assert_eq!(answer.json()["leader"], serde_json::json!({"id": 3, "name": "n3"}));
    let answer = fake.command("/v1/resign?member=n1", "");
    let detail = answer.problem(409, "not-leader");
    assert_eq!(detail, "n1 is not the leader; n3 is", "it is for n1 and no other");
    assert_eq!(answer.json()["leader"], serde_json::json!({"id": 3, "name": "n3"}));
    fake.publish(|status| status.leader = None);
    let detail = fake.command("/v1/resign", "").problem(409, "not-leader");
    assert_eq!(detail, "n1 is not the leader and knows no leader");
    fake.publish(|status| {
        status.pause = Some(Paused { number: 4, by: NodeId(2), remaining_ms: 60_000 });
    });
    let detail = fake.command("/v1/resign", "").problem(409, "not-leader");
    let paused = "elections are paused for another 1m (command at n2): there is no leader until then or until `doyen resume`";
    assert_eq!(detail, format!("n1 is not the leader and knows no leader: {paused}"));
}

#[test]
fn a_transfer_to_an_ineligible_member_says_why() {
    let fake = Fake::leader();
    let detail = |change: fn(&mut MemberStatus)| {
        fake.publish(|status| change(&mut status.members[1]));
        fake.reject(Refusal::Unfit(NodeId(2)));
        fake.command("/v1/transfer", r#"{"to":"n2"}"#).problem(409, "not-eligible")
    };
    assert_eq!(detail(|n2| n2.reachable = false), "n1 does not reach n2");
    assert_eq!(detail(|n2| n2.eligible = false), "n2 is drained; `doyen undrain n2` lets it lead");
    assert_eq!(detail(|n2| n2.witness = true), "n2 is a witness and never leads");
    fake.reject(Refusal::Unfit(NodeId(1)));
    let detail = fake.command("/v1/transfer", r#"{"to":"n1"}"#).problem(409, "not-eligible");
    assert_eq!(detail, "n1 is the leader already");
}

/// `Trial::succession` repeats a command for these reasons, and must not for others.
#[test]
fn rejections_that_pass_are_known_to_the_tests_of_clusters() {
    let fake = Fake::leader();
    let told = |refusal: Refusal, change: fn(&mut Status)| {
        fake.publish(|status| {
            (status.leader, status.members) = (Some(NodeId(1)), follower_of_n3().members);
            change(status);
        });
        fake.reject(refusal);
        let answer = fake.command("/v1/transfer?member=n1", r#"{"to":"n2"}"#);
        answer.json()["detail"].as_str().expect("a reason").to_owned()
    };
    let unfit = Refusal::Unfit(NodeId(2));
    let passing = [
        told(unfit, |status| status.members[1].reachable = false),
        told(unfit, |_| ()),
        told(Refusal::NoOtherCandidate, |_| ()),
        told(Refusal::NotLeading, |status| status.leader = None),
        told(Refusal::NotLeading, |status| status.leader = Some(NodeId(3))),
    ];
    for (number, (told, why)) in passing.iter().zip(PASSING).enumerate() {
        let matching: Vec<_> = PASSING.iter().filter(|why| told.contains(**why)).collect();
        assert_eq!(matching, [&why], "{number}: {told}");
    }
    for lasting in [
        told(unfit, |status| status.members[1].eligible = false),
        told(unfit, |status| status.members[1].witness = true),
        told(Refusal::Unfit(NodeId(1)), |_| ()),
        told(Refusal::NotPaused, |_| ()),
        told(Refusal::Rejoining, |_| ()),
    ] {
        assert!(!is_passing(&lasting), "{lasting}");
    }
}

#[test]
fn a_leader_that_resigns_without_a_successor_says_so() {
    let fake = Fake::leader();
    assert_eq!(fake.command("/v1/resign", "").json()["note"], serde_json::Value::Null);
    fake.publish(|status| status.next = None);
    let note = "no other member can lead now, so n1 may become leader again";
    assert_eq!(fake.command("/v1/resign", "").json()["note"], note);
}

#[test]
fn a_command_that_replaces_a_pending_transfer_says_so() {
    let fake = Fake::leader();
    fake.publish(|status| status.retiring_ms = Some(12_345));
    let note = "this replaces the transfer that n1 began 12 s ago and has not completed";
    assert_eq!(fake.command("/v1/transfer", r#"{"to":"n2"}"#).json()["note"], note);
    assert_eq!(fake.command("/v1/resign", "").json()["note"], note);
}

#[test]
fn what_will_not_last_or_ends_something_else_is_said() {
    let fake = Fake::leader();
    let note = |path: &str, json: &str| fake.command(path, json).json()["note"].clone();
    fake.publish(|status| {
        status.preference = Some(Preferred { member: NodeId(1), remaining_ms: 59_001 });
    });
    let preferred = "n1 is preferred for another 1m and takes over again at once; `doyen prefer n1 --for 0s` ends that";
    assert_eq!(note("/v1/transfer", r#"{"to":"n2"}"#), preferred);
    fake.publish(|status| status.members[0].recent_failures = 1);
    let penalized = note("/v1/transfer", r#"{"to":"n2"}"#);
    assert_eq!(penalized, serde_json::Value::Null, "a penalty outweighs a preference");
    assert_eq!(note("/v1/pause", r#"{"for":"1m"}"#), serde_json::Value::Null);
    fake.publish(|status| {
        status.pause = Some(Paused { number: 1, by: NodeId(2), remaining_ms: 3_540_000 });
    });
    let replaced = "this replaces the pause for another 59m that n2 was told to begin";
    assert_eq!(note("/v1/pause", r#"{"for":"1m"}"#), replaced);
}

#[test]
fn every_rejection_is_explained() {
    let fake = Fake::leader();
    fake.reject(Refusal::Unfit(NodeId(2)));
    let detail = fake.command("/v1/transfer", r#"{"to":"n2"}"#).problem(409, "not-eligible");
    assert_eq!(detail, "n2 has just restarted or does not reach a majority");
    fake.reject(Refusal::NoOtherCandidate);
    let detail = fake.command("/v1/drain", "").problem(409, "no-successor");
    assert!(detail.ends_with("start or undrain one first"), "{detail}");
    fake.reject(Refusal::Rejoining);
    fake.command("/v1/drain", "").problem(409, "rejoining");
    fake.fail(CommandError::Rejoining);
    fake.command("/v1/drain", "").problem(409, "rejoining");
    fake.fail(CommandError::Busy);
    fake.command("/v1/drain", "").problem(503, "busy");
    fake.fail(CommandError::InvalidKeys("no such file".to_owned()));
    let detail = fake.command("/v1/reload-keys", "").problem(500, "keys-unreadable");
    let stay = "the new keys cannot be used, and the node keeps its old ones: no such file";
    assert_eq!(detail, stay);
}

#[test]
fn a_reload_that_fails_changes_neither_the_keys_nor_the_secret() {
    let fake = Fake::leader();
    let (old, new) = (fake.secret(), "ab".repeat(32));
    let reload = |secret: &str| {
        fake.post("/v1/reload-keys", "", &format!("authorization: Bearer {secret}\r\n"))
    };
    fs::write(fake.folder.path().join(SECRET_FILE), &new).expect("it is written");
    fake.fail(CommandError::Busy);
    reload(&old).problem(503, "busy");
    reload(&new).problem(401, "unauthorized");
    fake.manners.lock().expect("no panic").error = None;
    assert_eq!(reload(&old).status, 202);
    reload(&old).problem(401, "unauthorized");
    assert_eq!(reload(&new).status, 202);
}

#[test]
fn a_command_for_another_term_changes_nothing() {
    let fake = Fake::leader();
    let detail =
        fake.command_with("/v1/resign", "", "if-match: \"6\"\r\n").problem(412, "term-mismatch");
    assert_eq!(detail, "the term is 7, but the command is for term \"6\"");
    fake.command_with("/v1/resign", "", "if-match: 7\r\n").problem(400, "bad-request");
    assert_eq!(fake.received(), [] as [&str; 0]);
    assert_eq!(fake.command_with("/v1/resign", "", "if-match: \"7\"\r\n").status, 202);
    assert_eq!(fake.received(), ["resign"]);
}

#[test]
fn no_command_is_accepted_without_the_secret() {
    let fake = Fake::leader();
    let commands = ["resign", "transfer", "campaign", "drain", "undrain", "prefer", "reload-keys"];
    for command in commands {
        let path = format!("/v1/{command}");
        let answer = fake.post(&path, "", "");
        answer.problem(401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        let wrong = "0".repeat(64);
        fake.post(&path, "", &format!("authorization: Bearer {wrong}\r\n"))
            .problem(401, "unauthorized");
    }
    assert_eq!(fake.received(), [] as [&str; 0]);
}

#[test]
fn a_page_from_another_origin_gives_no_commands_even_with_the_secret() {
    let fake = Fake::leader();
    let port = fake.address().port();
    let origin =
        |origin: &str| fake.command_with("/v1/resign", "", &format!("origin: {origin}\r\n"));
    origin("http://evil.example").problem(403, "wrong-origin");
    origin("null").problem(403, "wrong-origin");
    origin("http://127.0.0.1:1").problem(403, "wrong-origin");
    let host = |host: &str| fake.command_with("/v1/resign", "", &format!("host: {host}\r\n"));
    host("evil.example").problem(421, "wrong-host");
    host(&format!("127.0.0.2:{port}")).problem(421, "wrong-host");
    assert_eq!(fake.received(), [] as [&str; 0]);
    assert_eq!(origin(&format!("http://127.0.0.1:{port}")).status, 202);
    assert_eq!(host(&format!("localhost:{port}")).status, 202);
}

#[test]
fn an_invalid_body_is_rejected_with_a_reason() {
    let fake = Fake::leader();
    for (path, body, words) in [
        ("transfer", "", "missing field `to`"),
        ("transfer", "{", "EOF"),
        ("transfer", r#"{"to":true}"#, "expected the name or the id of a member"),
        ("transfer", r#"{"to":"n2","now":1}"#, "unknown field `now`"),
        ("resign", r#"{"to":"n2"}"#, "unknown field `to`"),
        ("drain", r#"{"for":"soon"}"#, "`soon` is not a length of time"),
        ("drain", r#"{"for":7}"#, "invalid type"),
        ("drain", r#"{"for":"0s"}"#, "`undrain` ends one"),
        ("prefer", r#"{"member":"n2"}"#, "missing field `for`"),
        ("prefer", r#"{"member":"n2","for":"1000 years"}"#, "too long"),
    ] {
        let detail = fake.command(&format!("/v1/{path}"), body).problem(400, "bad-request");
        assert!(detail.contains(words), "{path} {body}: {detail}");
    }
    let detail = fake.command("/v1/transfer", r#"{"to":"n9"}"#).problem(422, "unknown-member");
    assert_eq!(detail, "n9 is not a member; the members are n1, n2, n3");
    let secret = format!("authorization: Bearer {}\r\n", fake.secret());
    fake.post("/v1/transfer", r#"{"to":"n2"}"#, &secret).problem(415, "not-json");
    let long = format!(r#"{{"to":"{}"}}"#, "n".repeat(5000));
    fake.command("/v1/transfer", &long).problem(413, "too-large");
    assert_eq!(fake.received(), [] as [&str; 0]);
}

#[test]
fn a_body_that_does_not_arrive_times_out() {
    let limits = Limits { body_timeout: Duration::from_millis(200), ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    let (address, secret) = (fake.address(), fake.secret());
    let head = format!("POST /v1/resign HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let headers = format!("authorization: Bearer {secret}\r\ncontent-length: 9\r\n");
    exchange(address, &format!("{head}{headers}\r\n{{")).problem(408, "too-slow");
}

#[test]
fn a_loop_that_does_not_answer_times_out() {
    let limits = Limits { command_timeout: Duration::from_millis(200), ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    fake.manners.lock().expect("no panic").is_stuck = true;
    fake.command("/v1/resign", "").problem(504, "no-answer");
    fake.manners.lock().expect("no panic").ends = true;
    fake.command("/v1/resign", "").problem(503, "stopped");
    fake.command("/v1/resign", "").problem(503, "stopped");
}

#[test]
fn algorithms_without_leases_accept_no_commands() {
    let mut status = follower_of_n3();
    status.algorithm = "bully".to_owned();
    let fake = Fake::serving(status, Limits::default());
    fake.fail(CommandError::NoLeases);
    let detail = fake.command("/v1/drain", "").problem(409, "no-commands");
    assert!(detail.starts_with("bully: "), "{detail}");
}

#[test]
fn the_secret_is_created_once_and_only_for_its_user() {
    let fake = Fake::leader();
    let file = fake.folder.path().join(SECRET_FILE);
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let secret = fake.secret();
    assert!(
        secret.len() == 64 && secret.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{secret}"
    );
    assert_ne!(secret, Fake::leader().secret());
    let left: Vec<_> = fs::read_dir(fake.folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 2, "the secret, the socket, and no draft: {left:?}");
}

#[test]
fn what_rejects_an_admin_call_is_counted() {
    let fake = Fake::leader();
    let secret = format!("authorization: Bearer {}\r\n", fake.secret());
    let json = "content-type: application/json\r\n";
    fake.post("/v1/resign", "", "").problem(401, "unauthorized");
    fake.post("/v1/token", "", "").problem(401, "unauthorized");
    fake.post("/v1/resign", "", &format!("{secret}origin: null\r\n")).problem(403, "wrong-origin");
    fake.post("/v1/resign", "", &format!("{secret}host: evil\r\n")).problem(421, "wrong-host");
    fake.command("/v1/transfer", r#"{"to":"n9"}"#).problem(422, "unknown-member");
    fake.post("/v1/drain", "{", &format!("{secret}{json}")).problem(400, "bad-request");
    assert_eq!(fake.command("/v1/resign", "").status, 202);
    fake.reject(Refusal::NotLeading);
    fake.command("/v1/resign", "").problem(409, "not-leader");
    let metrics = fake.get("/metrics").body;
    for (result, count) in [
        ("accepted", 1),
        ("unauthorized", 2),
        ("wrong-origin", 1),
        ("wrong-host", 1),
        ("unknown-member", 1),
        ("bad-request", 1),
        ("not-leader", 1),
    ] {
        let line = format!(
            "doyen_admin_calls_total{{cluster=\"test\",member=\"n1\",result=\"{result}\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

/// Starts a server with this file as its secret.
fn start_with(text: &str, mode: u32) -> Result<(), String> {
    let folder = Folder::new();
    let file = folder.path().join(SECRET_FILE);
    fs::write(&file, text).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("its mode");
    try_start(folder.path()).map(Server::stop).map_err(|error| error.to_string())
}

#[test]
fn a_file_that_is_not_secret_is_rejected() {
    let secret = "ab".repeat(32);
    assert_eq!(start_with(&format!("{secret}\n"), 0o600), Ok(()));
    let error = start_with(&secret, 0o644).expect_err("others can read it");
    assert!(error.contains("chmod 600"), "{error}");
    for wrong in ["", "secret", &secret[1..], &"zz".repeat(32)] {
        let error = start_with(wrong, 0o600).expect_err("no secret");
        assert!(error.contains("remove it and a new admin secret is created"), "{error}");
    }
}
