//! An operator's orders: what reaches the loop, and what does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use doyen::api::{Limits, Server, TOKEN_FILE};
use doyen::node::NotDone;
use doyen::node::status::MemberStatus;
use doyen_core::members::NodeId;
use doyen_core::protocol::Refusal;

use crate::fake::{Fake, Folder, follower_of_n3, try_start};
use crate::http::exchange;

#[test]
fn every_order_reaches_the_loop() {
    let fake = Fake::leader();
    for (path, body, asked, accepted) in [
        ("resign", "", "resign", "resigns"),
        ("resign", "{}", "resign", "resigns"),
        ("transfer", r#"{"to":"n2"}"#, "transfer to 2", "hands over to n2"),
        ("transfer", r#"{"to":3}"#, "transfer to 3", "hands over to n3"),
        ("transfer", r#"{"to":"3"}"#, "transfer to 3", "hands over to n3"),
        ("campaign", "", "campaign", "calls no election: it leads, and nothing happens"),
        ("drain", "", "drain", "does not lead until told otherwise, unless no other member can"),
        (
            "drain",
            r#"{"for":"2h"}"#,
            "drain for 7200s",
            "does not lead for 2h, unless no other member can",
        ),
        ("drain", r#"{"never":true}"#, "drain, never lead", "never leads until told otherwise"),
        ("undrain", "", "undrain", "may lead again"),
        ("prefer", r#"{"member":"n3","for":"90s"}"#, "prefer 3 for 90s", "prefers n3 for 90s"),
        ("prefer", r#"{"member":"n3","for":"0s"}"#, "prefer 3 for 0", "prefers nobody"),
        ("reload-keys", "", "reload keys", "has read its keys, and seals and opens with 00ecce3a"),
    ] {
        let answer = fake.order(&format!("/v1/{path}"), body);
        assert_eq!(answer.status, 202, "{path} {body}: {answer:?}");
        assert_eq!(answer.json()["accepted"], accepted, "{path} {body}");
        assert_eq!(answer.json()["term"], 7);
        assert_eq!(fake.asked(), [asked], "{path} {body}");
    }
}

#[test]
fn a_name_goes_before_an_id_that_looks_the_same() {
    let fake = Fake::leader();
    fake.publish(|status| status.members[1].name = "3".to_owned());
    assert_eq!(fake.order("/v1/transfer", r#"{"to":"3"}"#).status, 202);
    assert_eq!(fake.order("/v1/transfer", r#"{"to":3}"#).status, 202);
    assert_eq!(fake.asked(), ["transfer to 2", "transfer to 3"]);
}

#[test]
fn who_does_not_lead_names_the_leader() {
    let fake = Fake::follower();
    fake.refuse(Refusal::NotLeading);
    let answer = fake.order("/v1/resign", "");
    let detail = answer.problem(409, "not-leader");
    assert_eq!(detail, "n1 does not lead; n3 does");
    assert_eq!(answer.json()["leader"], serde_json::json!({"id": 3, "name": "n3"}));
    fake.publish(|status| status.leader = None);
    let detail = fake.order("/v1/resign", "").problem(409, "not-leader");
    assert_eq!(detail, "n1 does not lead, and knows of nobody who does");
}

/// The reason that applies, as far as the node can tell.
#[test]
fn who_cannot_lead_is_told_why() {
    let fake = Fake::leader();
    let told = |change: fn(&mut MemberStatus)| {
        fake.publish(|status| change(&mut status.members[1]));
        fake.refuse(Refusal::Unfit(NodeId(2)));
        fake.order("/v1/transfer", r#"{"to":"n2"}"#).problem(409, "unfit")
    };
    assert_eq!(told(|n2| n2.heard = false), "n2 cannot lead now: it is not heard");
    let drained = "n2 cannot lead now: it is drained, or stands back";
    assert_eq!(told(|n2| n2.eligible = false), drained);
    assert_eq!(told(|n2| n2.witness = true), "n2 is a witness, which never leads");
    fake.refuse(Refusal::Unfit(NodeId(1)));
    let detail = fake.order("/v1/transfer", r#"{"to":"n1"}"#).problem(409, "unfit");
    assert_eq!(detail, "n1 leads already");
}

#[test]
fn who_resigns_in_favour_of_nobody_is_told_so() {
    let fake = Fake::leader();
    assert_eq!(fake.order("/v1/resign", "").json()["note"], serde_json::Value::Null);
    fake.publish(|status| status.next = None);
    let note = "but nobody else could lead now, so it may soon lead again";
    assert_eq!(fake.order("/v1/resign", "").json()["note"], note);
}

#[test]
fn whatever_the_member_refuses_is_explained() {
    let fake = Fake::leader();
    fake.refuse(Refusal::Unfit(NodeId(2)));
    let detail = fake.order("/v1/transfer", r#"{"to":"n2"}"#).problem(409, "unfit");
    assert_eq!(detail, "n2 cannot lead now: it has just restarted, or reaches no majority");
    fake.refuse(Refusal::NobodyElse);
    fake.order("/v1/drain", "").problem(409, "nobody-else");
    fake.refuse(Refusal::Rejoining);
    fake.order("/v1/drain", "").problem(409, "rejoining");
    fake.fail(NotDone::Rejoining);
    fake.order("/v1/drain", "").problem(409, "rejoining");
    fake.fail(NotDone::Busy);
    fake.order("/v1/drain", "").problem(503, "busy");
    fake.fail(NotDone::Keys("no such file".to_owned()));
    let detail = fake.order("/v1/reload-keys", "").problem(500, "keys-unreadable");
    let stay = "the keys stay as they are, for the new ones were refused: no such file";
    assert_eq!(detail, stay);
}

#[test]
fn an_order_for_another_term_changes_nothing() {
    let fake = Fake::leader();
    let detail =
        fake.order_with("/v1/resign", "", "if-match: \"6\"\r\n").problem(412, "other-term");
    assert_eq!(detail, "the term is 7, and the order is for \"6\"");
    fake.order_with("/v1/resign", "", "if-match: 7\r\n").problem(400, "bad-request");
    assert_eq!(fake.asked(), [] as [&str; 0]);
    assert_eq!(fake.order_with("/v1/resign", "", "if-match: \"7\"\r\n").status, 202);
    assert_eq!(fake.asked(), ["resign"]);
}

#[test]
fn nobody_gives_orders_without_the_token() {
    let fake = Fake::leader();
    let orders = ["resign", "transfer", "campaign", "drain", "undrain", "prefer", "reload-keys"];
    for order in orders {
        let path = format!("/v1/{order}");
        let answer = fake.post(&path, "", "");
        answer.problem(401, "no-token");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        let wrong = "0".repeat(64);
        fake.post(&path, "", &format!("authorization: Bearer {wrong}\r\n"))
            .problem(401, "no-token");
    }
    assert_eq!(fake.asked(), [] as [&str; 0]);
}

#[test]
fn a_page_from_elsewhere_gives_no_orders_even_with_the_token() {
    let fake = Fake::leader();
    let port = fake.address().port();
    let origin = |origin: &str| fake.order_with("/v1/resign", "", &format!("origin: {origin}\r\n"));
    origin("http://evil.example").problem(403, "wrong-origin");
    origin("null").problem(403, "wrong-origin");
    origin("http://127.0.0.1:1").problem(403, "wrong-origin");
    let host = |host: &str| fake.order_with("/v1/resign", "", &format!("host: {host}\r\n"));
    host("evil.example").problem(421, "wrong-host");
    host(&format!("127.0.0.2:{port}")).problem(421, "wrong-host");
    assert_eq!(fake.asked(), [] as [&str; 0]);
    assert_eq!(origin(&format!("http://127.0.0.1:{port}")).status, 202);
    assert_eq!(host(&format!("localhost:{port}")).status, 202);
}

#[test]
fn a_body_that_is_wrong_is_refused_with_what_is_wrong() {
    let fake = Fake::leader();
    for (path, body, words) in [
        ("transfer", "", "missing field `to`"),
        ("transfer", "{", "EOF"),
        ("transfer", r#"{"to":true}"#, "by its name or its id"),
        ("transfer", r#"{"to":"n2","now":1}"#, "unknown field `now`"),
        ("resign", r#"{"to":"n2"}"#, "unknown field `to`"),
        ("drain", r#"{"for":"soon"}"#, "`soon` is not a length of time"),
        ("drain", r#"{"for":7}"#, "invalid type"),
        ("drain", r#"{"for":"0s"}"#, "`undrain` lets a drained member lead again"),
        ("prefer", r#"{"member":"n2"}"#, "missing field `for`"),
        ("prefer", r#"{"member":"n2","for":"1000 years"}"#, "too long"),
    ] {
        let detail = fake.order(&format!("/v1/{path}"), body).problem(400, "bad-request");
        assert!(detail.contains(words), "{path} {body}: {detail}");
    }
    let detail = fake.order("/v1/transfer", r#"{"to":"n9"}"#).problem(422, "unknown-member");
    assert_eq!(detail, "n9 is not a member; there are n1, n2, n3");
    let token = format!("authorization: Bearer {}\r\n", fake.token());
    fake.post("/v1/transfer", r#"{"to":"n2"}"#, &token).problem(415, "not-json");
    let long = format!(r#"{{"to":"{}"}}"#, "n".repeat(5000));
    fake.order("/v1/transfer", &long).problem(413, "too-large");
    assert_eq!(fake.asked(), [] as [&str; 0]);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let limits = Limits { body_within: Duration::from_millis(200), ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    let (address, token) = (fake.address(), fake.token());
    let head = format!("POST /v1/resign HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let headers = format!("authorization: Bearer {token}\r\ncontent-length: 9\r\n");
    exchange(address, &format!("{head}{headers}\r\n{{")).problem(408, "too-slow");
}

#[test]
fn a_loop_that_does_not_answer_is_not_waited_for_for_ever() {
    let limits = Limits { answer_within: Duration::from_millis(200), ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    fake.manners.lock().expect("nobody panics").is_stuck = true;
    fake.order("/v1/resign", "").problem(504, "no-answer");
    fake.manners.lock().expect("nobody panics").ends = true;
    fake.order("/v1/resign", "").problem(503, "stopped");
    fake.order("/v1/resign", "").problem(503, "stopped");
}

#[test]
fn algorithms_without_leases_say_that_they_take_no_orders() {
    let mut status = follower_of_n3();
    status.algorithm = "bully".to_owned();
    let fake = Fake::serving(status, Limits::default());
    fake.fail(NotDone::NoLeases);
    let detail = fake.order("/v1/drain", "").problem(409, "no-orders");
    assert!(detail.starts_with("bully: "), "{detail}");
}

#[test]
fn the_token_is_made_once_and_for_its_user_only() {
    let fake = Fake::leader();
    let file = fake.folder.path().join(TOKEN_FILE);
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fake.token();
    assert!(token.len() == 64 && token.bytes().all(|digit| digit.is_ascii_hexdigit()), "{token}");
    assert_ne!(token, Fake::leader().token());
    let left: Vec<_> = fs::read_dir(fake.folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "no draft is left: {left:?}");
}

/// What becomes of a server whose token's file is this.
fn start_with(text: &str, mode: u32) -> Result<(), String> {
    let folder = Folder::new();
    let file = folder.path().join(TOKEN_FILE);
    fs::write(&file, text).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("its mode");
    try_start(folder.path()).map(Server::stop).map_err(|error| error.to_string())
}

#[test]
fn a_token_that_is_no_secret_is_refused() {
    let token = "ab".repeat(32);
    assert_eq!(start_with(&format!("{token}\n"), 0o600), Ok(()));
    let error = start_with(&token, 0o644).expect_err("others can read it");
    assert!(error.contains("chmod 600"), "{error}");
    for wrong in ["", "secret", &token[1..], &"zz".repeat(32)] {
        let error = start_with(wrong, 0o600).expect_err("no token");
        assert!(error.contains("remove it to have one made"), "{error}");
    }
}
