//! The commands that talk to a node, as a user runs them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use doyen::api::{Limits, SECRET_FILE, SOCKET_FILE};
use doyen::node::CommandError;
use doyen::node::status::{LastLeader, Paused, Preferred};
use doyen_core::members::NodeId;
use doyen_core::protocol::{Refusal, Role};
use serde_json::Value;

use super::fake::{Fake, Folder, follower_of_n3};

/// `doyen` in a folder of its own, with nothing in its environment that says which node.
fn doyen(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doyen"));
    command.args(arguments).current_dir(env!("CARGO_TARGET_TMPDIR")).env("NO_COLOR", "1");
    command.env_remove("DOYEN_NODE").env_remove("DOYEN_SECRET_FILE");
    command
}

/// What a command came to.
#[derive(Debug)]
struct Came {
    code: i32,
    stdout: String,
    stderr: String,
}

fn came(output: Output) -> Came {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("no signal ended it");
    Came { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Came {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Fake {
    fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Runs a command against this node.
    fn run(&self, arguments: &[&str]) -> Came {
        let output = doyen(arguments).env("DOYEN_NODE", self.url()).output();
        came(output.expect("it runs"))
    }

    /// Runs an admin command with the secret.
    fn admin(&self, arguments: &[&str]) -> Came {
        let secret = self.folder.path().join(SECRET_FILE);
        let output = doyen(arguments)
            .env("DOYEN_NODE", self.url())
            .env("DOYEN_SECRET_FILE", secret)
            .output();
        came(output.expect("it runs"))
    }
}

#[test]
fn status_shows_who_leads_who_is_there_and_who_hears_whom() {
    let fake = Fake::follower();
    fake.publish(|status| {
        status.members[1].reachable = false;
        status.members[1].last_seen_ms = Some(12_345);
        status.members[2].unreachable = Some(vec![NodeId(2)]);
        status.next = None;
        status.preference = Some(Preferred { member: NodeId(2), remaining_ms: 7_199_000 });
    });
    let came = fake.run(&["status"]);
    assert_eq!((came.code, came.stderr.as_str()), (0, ""));
    let expected = "\
n3 leads test in term 7: elected; no previous leader known
no failover possible: losing n3 would leave 1 of 3 members, and 2 are needed
n2 is preferred for another 1h 59m 59s
seen from n1 (start 4), quorum, doyen 0.1.0

  id  name  role      term  lease  priority  last seen               round trip  address
   1  n1    follower     7      -        10  this node                        -  192.0.2.1:7070
   2  n2    down         -      -        20  unreachable for 12.3 s      310 us  192.0.2.2:7070
   3  n3    leader       7      -        30  12 ms ago                   310 us  192.0.2.3:7070

Reachability: a row reaches (+) a column, does not (-), or does not report it (?)

      n1  n2  n3
  n1   .   -   +
  n2   ?   .   ?
  n3   +   -   .
";
    assert_eq!(came.stdout, expected);
}

#[test]
fn status_marks_who_lost_its_office_and_says_how_long_a_drain_lasts() {
    let fake = Fake::follower();
    fake.publish(|status| {
        (status.drained, status.drained_remaining_ms) = (true, Some(7_199_001));
        status.pause = Some(Paused { number: 4, by: NodeId(2), remaining_ms: 3_599_001 });
        status.members[1].recent_failures = 2;
        status.members[1].failed_ms_ago = Some(12_000);
        status.members[1].penalty_remaining_ms = Some(48_000);
    });
    let came = fake.run(&["status"]);
    for line in [
        "elections are paused for another 1h (command at n2): if n3 is lost, there is no leader until then or until `doyen resume`\n",
        "n1 is drained for another 2h: it leads only if no other member can\n",
        "   2  n2    follower     -      -       20*  12 ms ago      310 us  192.0.2.2:7070\n",
        "  * n2 failed as leader 2 times, last 12 s ago; ranked last for another 48 s\n",
    ] {
        assert!(came.stdout.contains(line), "{line} in {}", came.stdout);
    }
    assert!(!came.stdout.contains("is next"), "not while elections are paused: {}", came.stdout);
    let json = fake.run(&["status", "--json"]).json();
    assert_eq!(
        (&json["drained_remaining_ms"], &json["members"][1]["recent_failures"]),
        (&7_199_001.into(), &2.into())
    );
}

#[test]
fn status_says_when_a_drained_member_leads() {
    let fake = Fake::follower();
    let says = |role: Role, never: bool| {
        fake.publish(|status| {
            (status.role, status.drained, status.never_leads) = (role, true, never);
        });
        fake.run(&["status"]).stdout
    };
    for (role, never, words) in [
        (Role::Follower, false, "it leads only if no other member can"),
        (Role::Leader, false, "it leads because no other member can"),
        (Role::Retiring, false, "it leads until its job or hook has stopped"),
        (Role::Retiring, true, "it leads until its job or hook has stopped"),
        (Role::Follower, true, "it never leads"),
    ] {
        let line = format!("n1 is drained until `undrain`: {words}\n");
        let said = says(role, never);
        assert!(said.contains(&line), "{line} in {said}");
    }
}

#[test]
fn algorithms_in_which_members_do_not_say_whom_they_hear_are_not_made_to() {
    let fake = Fake::follower();
    fake.publish(|status| {
        status.algorithm = "bully".to_owned();
        status.next = None;
        status.members[1..].iter_mut().for_each(|member| member.unreachable = None);
    });
    let came = fake.run(&["status"]);
    assert!(
        came.stdout.ends_with("  n1   .   +   +\n  n2   ?   .   ?\n  n3   ?   ?   .\n"),
        "{came:?}"
    );
    assert!(!came.stdout.contains("no failover"), "{came:?}");
}

#[test]
fn status_shows_the_lease_of_who_is_asked() {
    let came = Fake::leader().run(&["status"]);
    let line = came.stdout.lines().find(|line| line.contains("this node")).expect("its line");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words[..4].join(" ").as_str(), words[5]), ("1 n1 leader 7", "s"), "{line}");
    let left: f64 = words[4].parse().expect("a number");
    assert!((30.0..=60.0).contains(&left), "{line}");
}

#[test]
fn status_says_no_where_nobody_leads() {
    let fake = Fake::follower();
    fake.publish(|status| (status.leader, status.drained) = (None, true));
    let came = fake.run(&["status"]);
    assert_eq!(came.code, 1);
    assert!(came.stdout.starts_with("no leader of test is known (term 7)\n"), "{came:?}");
    let drained = "n1 is drained until `undrain`: it leads only if no other member can\n";
    assert!(came.stdout.contains(drained), "{came:?}");
    let came = fake.run(&["status", "--json"]);
    assert_eq!((came.code, &came.json()["leader"]), (1, &Value::Null));
}

#[test]
fn wait_ends_with_a_leader_or_when_its_time_is_over() {
    let fake = Fake::follower();
    fake.publish(|status| status.leader = None);
    let came = fake.run(&["wait", "--timeout", "300ms"]);
    assert_eq!((came.code, came.stdout.as_str()), (4, ""));
    assert_eq!(came.stderr, "doyen: not within 300ms: no leader is known\n");
    let waiting =
        doyen(&["wait", "--node", &fake.url()]).stdout(Stdio::piped()).spawn().expect("it runs");
    thread::sleep(Duration::from_millis(300));
    fake.publish(|status| status.leader = Some(NodeId(2)));
    let came = came_of(waiting);
    assert_eq!((came.code, came.stdout.as_str()), (0, "n2 leads in term 7\n"));
}

#[test]
fn wait_is_for_one_member_or_for_a_node_that_has_settled() {
    let fake = Fake::follower();
    let came = fake.run(&["wait", "--leader", "n1", "--timeout", "200ms"]);
    assert_eq!(
        (came.code, came.stderr.as_str()),
        (4, "doyen: not within 200ms: n3 leads, not n1\n")
    );
    let came = fake.run(&["wait", "--leader", "n3"]);
    assert_eq!((came.code, came.stdout.as_str()), (0, "n3 leads in term 7\n"));
    assert_eq!(fake.run(&["wait", "--leader", "n9"]).code, 2);
    let came = fake.run(&["wait", "--ready", "--timeout", "200ms"]);
    assert_eq!(came.code, 4, "it has not been seen for a second: {came:?}");
    let begun = Instant::now();
    assert_eq!(fake.run(&["wait", "--ready"]).code, 0);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

fn came_of(child: Child) -> Came {
    came(child.wait_with_output().expect("it ends"))
}

#[test]
fn the_node_and_its_token_are_found_by_its_configuration() {
    let fake = Fake::leader();
    let (folder, file) = configured(&fake);
    let run = |arguments: &[&str]| {
        came(doyen(arguments).current_dir(folder.path()).output().expect("it runs"))
    };
    assert_eq!(run(&["status"]).code, 0);
    let obeyed = run(&["drain", "--for", "2h"]);
    let said = "n1 is drained for 2h: it leads only if no other member can (term 7)\n";
    assert_eq!((obeyed.code, obeyed.stdout.as_str()), (0, said));
    assert_eq!(fake.received(), ["drain for 2h"]);
    let mut elsewhere = doyen(&["undrain", "--config", &file]);
    elsewhere.env("DOYEN_NODE", "127.0.0.1:1").env("DOYEN_SECRET_FILE", "nowhere");
    assert_eq!(came(elsewhere.output().expect("it runs")).code, 0, "flags go before variables");
    assert_eq!(fake.received(), ["undrain"]);
}

/// The configuration of a member whose node is this one.
fn configured(fake: &Fake) -> (Folder, String) {
    let folder = Folder::new();
    let (state, address) = (fake.folder.path().display(), fake.address());
    let text = format!(
        "cluster = \"x\"\nid = 1\nhttp = \"{address}\"\nstate_dir = \"{state}\"\n\
         [[member]]\nid = 1\nname = \"n1\"\naddress = \"127.0.0.1:7400\"\n"
    );
    let file = folder.path().join("doyen.toml");
    std::fs::write(&file, text).expect("a file");
    (folder, file.display().to_string())
}

#[test]
fn the_secret_of_a_folder_is_shown_to_its_own_node_only() {
    let (own, stranger) = (Fake::leader(), Fake::leader());
    let (_folder, config) = configured(&own);
    let drain = |node: &str| {
        let command = doyen(&["drain", "--config", &config, "--node", node]).output();
        came(command.expect("it runs"))
    };
    let came = drain(&stranger.url());
    assert_eq!(came.code, 2, "{came:?}");
    let told = format!("{} is not the node that is configured here", stranger.url());
    assert!(came.stderr.contains(&told) && came.stderr.contains("--secret-file"), "{came:?}");
    let calls = |fake: &Fake| fake.metric("doyen_admin_calls_total");
    assert_eq!((calls(&stranger), stranger.received().len()), (0.0, 0));
    let metrics = stranger.get("/metrics").body;
    assert!(metrics.contains("result=\"unauthorized\"} 0\n"), "it was not even asked: {metrics}");
    assert_eq!(drain(&own.url()).code, 0);
    assert_eq!(own.received(), ["drain"]);
}

/// A node of an earlier release has no admin socket.
#[test]
fn a_node_without_a_socket_is_commanded_over_http() {
    let fake = Fake::leader();
    let (_folder, config) = configured(&fake);
    std::fs::remove_file(fake.folder.path().join(SOCKET_FILE)).expect("a socket");
    let came = came(doyen(&["resign", "--config", &config]).output().expect("it runs"));
    assert_eq!((came.code, fake.received()), (0, vec!["resign".to_owned()]), "{came:?}");
}

#[test]
fn a_node_at_its_limit_is_said_to_be_so() {
    let limits = Limits { connections: 0, ..Limits::default() };
    let fake = Fake::serving(follower_of_n3(), limits);
    for command in ["status", "watch", "history", "explain"] {
        let came = fake.run(&[command]);
        let told =
            format!("doyen: cannot reach {}: too many connections; retry later\n", fake.url());
        assert_eq!((came.code, came.stderr), (3, told), "{command}");
    }
}

#[test]
fn orders_are_given_by_name_or_id_and_say_what_is_done() {
    let fake = Fake::leader();
    for (arguments, asked, said) in [
        (&["resign"][..], "resign", "n1 resigns; next in line is n2 (term 7)"),
        (
            &["transfer", "n2"],
            "transfer to 2",
            "n1 transfers leadership to n2 (term 7)\nn3 has a higher priority and takes over again after a while, unless \
             preemption.policy is never; `doyen prefer n2 --for 2h` keeps it from that",
        ),
        (
            &["transfer", "3", "--if-term", "7"],
            "transfer to 3",
            "n1 transfers leadership to n3 (term 7)",
        ),
        (
            &["drain"],
            "drain",
            "n1 is drained until `undrain`: it leads only if no other member can (term 7)",
        ),
        (
            &["drain", "--never"],
            "drain, never lead",
            "n1 is drained until `undrain`: it never leads (term 7)",
        ),
        (&["undrain"], "undrain", "n1 was not drained (term 7)"),
        (
            &["prefer", "n2", "--for", "90m"],
            "prefer 2 for 1h 30m",
            "n1 prefers n2 for 1h 30m (term 7)",
        ),
        (
            &["prefer", "n2", "--for", "0s"],
            "prefer 2 for 0",
            "n1 withdraws the preference (term 7)",
        ),
        (
            &["reload-keys"],
            "reload keys",
            "n1 reloaded its keys: seals and opens with 00ecce3a (term 7)",
        ),
    ] {
        let came = fake.admin(arguments);
        assert_eq!((came.code, came.stdout.trim_end()), (0, said), "{came:?}");
        assert_eq!(fake.received(), [asked]);
    }
    let came = fake.admin(&["resign", "--json"]);
    assert_eq!(
        came.stdout,
        "{\"name\":\"n1\",\"accepted\":\"resigns; next in line is n2\",\"term\":7}\n"
    );
}

#[test]
fn who_prefers_a_member_that_lost_its_office_is_told_that_this_weighs_more() {
    let fake = Fake::leader();
    fake.publish(|status| {
        status.members[1].recent_failures = 1;
        status.members[1].failed_ms_ago = Some(12_000);
        status.members[1].penalty_remaining_ms = Some(48_000);
    });
    let came = fake.admin(&["prefer", "n2", "--for", "2h"]);
    let expected = "\
n1 prefers n2 for 2h (term 7)
n2 failed as leader 12 s ago; ranked last for another 48 s. A penalty outweighs a preference; \
`doyen transfer n2` makes it leader now
";
    assert_eq!((came.code, came.stdout.as_str()), (0, expected));
    assert_eq!(
        fake.admin(&["prefer", "n2", "--for", "0s"]).stdout,
        "n1 withdraws the preference (term 7)\n"
    );
    let json = fake.admin(&["prefer", "n2", "--for", "2h", "--json"]).json();
    assert!(json["note"].as_str().is_some_and(|note| note.contains("outweighs")), "{json}");
    // If everybody has, the preference decides.
    fake.publish(|status| status.members.iter_mut().for_each(|member| member.recent_failures = 1));
    let came = fake.admin(&["prefer", "n2", "--for", "2h"]);
    assert_eq!(came.stdout, "n1 prefers n2 for 2h (term 7)\n");
}

#[test]
fn a_drain_for_no_time_is_refused_and_names_what_ends_one() {
    let fake = Fake::leader();
    let came = fake.admin(&["drain", "--for", "0s"]);
    assert_eq!((came.code, came.stdout.as_str()), (2, ""));
    assert_eq!(came.stderr, "doyen: for: a drain must last longer than 0s; `undrain` ends one\n");
    assert_eq!(fake.received(), [] as [&str; 0]);
}

#[test]
fn an_order_that_is_refused_says_why_and_where_to_go() {
    let fake = Fake::follower();
    fake.reject(Refusal::NotLeading);
    let came = fake.admin(&["resign"]);
    assert_eq!((came.code, came.stdout.as_str()), (3, ""));
    let told = "doyen: n3 does not answer n1: it has not been reached since this node started\n";
    assert_eq!(came.stderr, told);
    fake.publish(|status| status.leader = None);
    let came = fake.admin(&["resign"]);
    assert_eq!((came.code, came.stdout.as_str()), (1, ""));
    let told = "doyen: n1 is not the leader and knows no leader\n";
    assert_eq!(came.stderr, told);
    let came = fake.admin(&["resign", "--json"]);
    assert_eq!((came.code, &came.json()["type"]), (1, &"urn:doyen:not-leader".into()));
    let came = fake.admin(&["resign", "--if-term", "6"]);
    assert_eq!(
        (came.code, came.stderr.as_str()),
        (1, "doyen: the term is 7, but the command is for term \"6\"\n")
    );
    fake.fail(CommandError::Busy);
    assert_eq!(fake.admin(&["resign"]).code, 3, "that is no answer");
    let came = fake.admin(&["transfer", "n9"]);
    assert_eq!(came.code, 2);
    assert_eq!(came.stderr, "doyen: n9 is not a member; the members are n1, n2, n3\n");
}

#[test]
fn an_order_without_the_token_is_not_given() {
    let fake = Fake::leader();
    let came = fake.run(&["resign"]);
    assert_eq!(came.code, 2);
    assert!(came.stderr.contains("--secret-file"), "{came:?}");
    let wrong = fake.folder.path().join("wrong");
    std::fs::write(&wrong, "0".repeat(64)).expect("a file");
    let wrong = wrong.display().to_string();
    let came = fake.run(&["resign", "--secret-file", &wrong]);
    assert_eq!(came.code, 2);
    assert!(came.stderr.contains("not the admin secret"), "{came:?}");
    assert_eq!(fake.received(), [] as [&str; 0]);
}

#[test]
fn history_says_what_happened_and_why() {
    let fake = Fake::follower();
    assert_eq!(fake.run(&["history"]).code, 1, "nothing has happened");
    fake.remember(1..=3);
    let came = fake.run(&["history"]);
    let expected = "\
2026-01-01T00:00:01.000Z  follows 3 (term 1): elected; no previous leader known; downtime 1.5 ms
2026-01-01T00:00:02.000Z  lost contact with leader 3 (term 2)
2026-01-01T00:00:03.000Z  follows 3 (term 3): elected; no previous leader known
";
    assert_eq!((came.code, came.stdout.as_str()), (0, expected));
    let came = fake.run(&["history", "--limit", "1", "--json"]);
    assert_eq!(came.json()[0]["number"], 3);
}

#[test]
fn explain_says_why_this_leader_why_it_moved_and_who_is_next() {
    let fake = Fake::follower();
    fake.remember(1..=3);
    fake.publish(|status| {
        (status.members[0].witness, status.succession) = (true, [2, 3].map(NodeId).to_vec());
    });
    let came = fake.run(&["explain"]);
    let expected = "\
n3 leads in term 7
  elected; no previous leader known

last change, as n1 saw it
  2026-01-01T00:00:02.000Z  lost contact with leader 3 (term 2)
  2026-01-01T00:00:03.000Z  follows 3 (term 3): elected; no previous leader known

succession
  n2 priority 20
  n3 priority 30, leads
  n1 priority 10, ineligible: a witness

if n3 failed now, n2 would lead
";
    assert_eq!((came.code, came.stdout.as_str()), (0, expected));
    let explained = fake.run(&["explain", "--json"]).json();
    assert_eq!(
        (&explained["leader"]["name"], &explained["next"]["name"]),
        (&"n3".into(), &"n2".into())
    );
    assert_eq!(explained["last_change"][0]["number"], 2);
    assert_eq!(explained["ranking"][2]["eligible"], false);
}

#[test]
fn explain_says_why_somebody_is_not_the_first_in_line() {
    let fake = Fake::follower();
    fake.publish(|status| {
        (status.leader, status.next) = (Some(NodeId(1)), None);
        status.succession = [2, 1, 3].map(NodeId).to_vec();
        status.members[1].config_mismatch = true;
        status.members[1].reachable = false;
        status.members[2].recent_failures = 1;
    });
    let came = fake.run(&["explain"]);
    let expected = "\
succession
  n1 priority 10, leads
  n3 priority 30, may have failed as leader; ranked last until a leader says whether it has
  n2 priority 20, has another member list, algorithm or groups/group_lease: compare the configurations

no failover possible: losing n1 would leave 1 of 3 members, and 2 are needed
";
    assert!(came.stdout.ends_with(expected), "{}", came.stdout);
    let ranking = &fake.run(&["explain", "--json"]).json()["ranking"];
    assert_eq!(
        (&ranking[1]["recent_failures"], &ranking[2]["config_mismatch"]),
        (&1.into(), &true.into())
    );
    assert_eq!(&ranking[2]["reachable"], &Value::Bool(false));
}

#[test]
fn explain_says_what_is_missing_where_nobody_leads() {
    let fake = Fake::follower();
    fake.publish(|status| {
        (status.leader, status.why, status.next) = (None, None, None);
        status.members[1].reachable = false;
        status.members[2].reachable = false;
    });
    let came = fake.run(&["explain"]);
    let expected = "\
no leader is known (term 7)
  n1 reaches only itself; 2 of 3 members are needed

succession
  n1 priority 10
  n3 priority 30, unreachable
  n2 priority 20, unreachable
";
    assert_eq!((came.code, came.stdout.as_str()), (1, expected));
}

#[test]
fn a_leader_that_is_known_to_be_lost_is_not_said_to_be_reached() {
    let fake = Fake::follower();
    let told = |lost: Option<&str>| {
        fake.publish(|status| {
            (status.leader, status.why) = (None, None);
            status.members[2].reachable = false;
            status.members[1].unreachable = Some(Vec::new());
            let (member, term, lost) = (NodeId(3), status.term, lost.map(str::to_owned));
            status.last_leader = Some(LastLeader { member, term, last_heard_ms: 5000, lost });
        });
        fake.run(&["status"]).stdout
    };
    let cut_off = told(None);
    let only_here = "n3 led in term 7 when last heard, 5.0 s ago; n2 still reaches it; this node does not reach n3\n";
    assert!(cut_off.contains(only_here), "{cut_off}");
    let dead = told(Some("died and its guardian released the lease"));
    let expected = "\
n3 led in term 7 until 5.0 s ago; it died and its guardian released the lease
n1 reaches 2 members, itself included; 2 of 3 members are needed
";
    assert!(dead.contains(expected), "{dead}");
}

/// What `explain --if-dies` says.
fn if_dies(fake: &Fake, members: &str) -> (i32, String) {
    let came = fake.run(&["explain", "--if-dies", members]);
    (came.code, came.stdout.trim_end().to_owned() + &came.stderr)
}

#[test]
fn explain_rehearses_a_death_with_the_state_machines_themselves() {
    let fake = Fake::follower();
    let says = |code: i32, text: &str| (code, text.to_owned());
    assert_eq!(if_dies(&fake, "n3"), says(0, "if n3 failed now, n2 would lead"));
    assert_eq!(if_dies(&fake, "2"), says(0, "if n2 failed now, n3 would stay leader"));
    let nobody =
        "if n3 and n2 failed now, no member could lead: 1 of 3 would be left, and 2 are needed";
    assert_eq!(if_dies(&fake, "n3,n2,3"), says(1, nobody));
    assert_eq!(if_dies(&fake, " n3, n2"), says(1, nobody));
    fake.publish(|status| status.succession = [1, 3, 2].map(NodeId).to_vec());
    assert_eq!(if_dies(&fake, "n3"), says(0, "if n3 failed now, n1 would lead"));
    assert_eq!(if_dies(&fake, "n2"), says(0, "if n2 failed now, n3 would stay leader"));
    fake.publish(|status| {
        (status.members[0].eligible, status.succession) = (false, [3, 2].map(NodeId).to_vec());
    });
    assert_eq!(if_dies(&fake, "n3"), says(0, "if n3 failed now, n2 would lead"));
    fake.publish(|status| {
        (status.members[1].eligible, status.succession) = (false, vec![NodeId(3)]);
    });
    let (code, text) = if_dies(&fake, "n3");
    assert_eq!(code, 1);
    assert!(text.contains("none of the 2 members left could be elected"), "{text}");
    let unknown = "doyen: --if-dies: `n9`, `` are not members; there are n1, n2, n3\n";
    assert_eq!(if_dies(&fake, "n9, n1,"), says(2, unknown));
    let unknown = "doyen: --if-dies: `n8` is not a member; there are n1, n2, n3\n";
    assert_eq!(if_dies(&fake, "n8"), says(2, unknown));
    let json = fake.run(&["explain", "--if-dies", "n2", "--json"]).json();
    assert_eq!(json["if_dies"]["leaders"][0]["name"], "n3");
}

#[test]
fn a_rehearsal_knows_who_does_not_hear_whom() {
    let fake = Fake::follower();
    // n2 is silent to n1, and n3 hears it: it is alive, but n1 and n2 alone are no majority that hears itself.
    fake.publish(|status| status.members[1].reachable = false);
    let (code, text) = if_dies(&fake, "n3");
    assert_eq!(code, 1, "{text}");
    // And if n3 does not hear it either, it is dead already.
    fake.publish(|status| status.members[2].unreachable = Some(vec![NodeId(2)]));
    let dead = "if n3 failed now, no member could lead: 1 of 3 would be left, and 2 are needed";
    assert_eq!(if_dies(&fake, "n3"), (1, dead.to_owned()));
}

#[test]
fn the_seeds_algorithms_are_rehearsed_too() {
    let fake = Fake::follower();
    fake.publish(|status| {
        status.algorithm = "bully".to_owned();
        status.members[1..].iter_mut().for_each(|member| member.unreachable = None);
    });
    assert_eq!(if_dies(&fake, "n3"), (0, "if n3 failed now, n2 would lead".to_owned()));
}

/// A command whose lines are read as they come.
struct Watching {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watching {
    fn new(fake: &Fake, arguments: &[&str]) -> Self {
        let mut child = doyen(arguments)
            .env("DOYEN_NODE", fake.url())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (tell, lines) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).expect("a line")
    }

    /// The next line without the time in front of it.
    fn news(&self) -> String {
        let line = self.line();
        line.split_once("  ").unwrap_or_else(|| panic!("a time in {line}")).1.to_owned()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_says_what_changes_in_words() {
    let fake = Fake::follower();
    fake.remember(1..=2);
    let watching = Watching::new(&fake, &["watch"]);
    assert_eq!(watching.news(), "n1 follows n3 in term 7");
    fake.remember(1..=3);
    assert_eq!(
        watching.line(),
        "2026-01-01T00:00:03.000Z  n1 follows 3 (term 3): elected; no previous leader known"
    );
    fake.publish(|status| {
        status.leader = Some(NodeId(2));
        status.role = Role::Retiring;
    });
    assert_eq!(watching.news(), "n1 is now retiring", "of the leader it has told already");
    fake.publish(|status| {
        status.leader = None;
        status.members[2].reachable = false;
        status.members[1].priority = 40;
        status.members[1].unreachable = Some(vec![NodeId(3)]);
        status.members[1].recent_failures = 1;
    });
    assert_eq!(watching.news(), "n1 knows no leader (term 7)");
    assert_eq!(watching.news(), "n1 no longer reaches n3");
    assert_eq!(watching.news(), "n2 now has priority 40");
    let penalty = "n2 may have failed as leader; ranked last until a leader says whether it has";
    assert_eq!(watching.news(), penalty);
    assert_eq!(watching.news(), "n2 no longer reaches n3");
    fake.publish(|status| {
        (status.drained, status.members[2].reachable) = (true, true);
        (status.members[1].unreachable, status.members[1].recent_failures) = (Some(vec![]), 0);
        status.preference = Some(Preferred { member: NodeId(2), remaining_ms: 1000 });
    });
    assert_eq!(watching.news(), "n1 is drained");
    assert_eq!(watching.news(), "n2 is preferred");
    assert_eq!(watching.news(), "n1 reaches n3 again");
    assert_eq!(watching.news(), "n2 is no longer penalised for failing as leader");
    assert_eq!(watching.news(), "n2 reaches n3 again");
}

#[test]
fn watch_comes_back_and_misses_nothing() {
    let mut fake = Fake::follower();
    fake.remember(1..=2);
    let watching = Watching::new(&fake, &["watch", "--json"]);
    let event = || -> (String, String) {
        let event: Value = serde_json::from_str(&watching.line()).expect("JSON");
        let text = |field: &str| event[field].as_str().expect(field).to_owned();
        (text("event"), text("id"))
    };
    let pair = |event: &str, id: &str| (event.to_owned(), id.to_owned());
    assert_eq!(event(), pair("snapshot", "1.4.2"));
    fake.restart(|fake| fake.remember(1..=4));
    assert_eq!(event(), pair("change", "1.4.3"));
    assert_eq!(event(), pair("change", "1.4.4"));
    assert_eq!(event(), pair("snapshot", "1.4.4"));
}

#[test]
fn a_node_that_is_not_there_is_said_to_be_so_soon() {
    let url = "http://127.0.0.1:1";
    for command in ["status", "watch", "history", "explain"] {
        let began = Instant::now();
        let came = came(doyen(&[command, "--node", url]).output().expect("it runs"));
        assert_eq!((came.code, came.stdout.as_str()), (3, ""), "{command}");
        let told = format!("doyen: cannot reach {url}: connection refused; is the node running?\n");
        assert_eq!(came.stderr, told, "{command}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn what_is_no_node_is_not_taken_for_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ = std::io::Write::write_all(
                &mut stream,
                b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
            );
        }
    });
    let came = came(doyen(&["status", "--node", &url]).output().expect("it runs"));
    assert_eq!(came.code, 3);
    assert!(came.stderr.contains("not a doyen node"), "{came:?}");
}
