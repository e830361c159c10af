use std::collections::BTreeMap;
use std::fs;

use doyen_core::config::Mode;
use doyen_core::config::quorum::{Preemption, Profile};
use doyen_core::time::Span;

use super::schema::DefaultValue;
use super::*;
use crate::key::KeyReaders;
use crate::scratch::Scratch;

const THREE: &str = r#"
cluster = "orders"
id = 1
key_file = "key"
state_dir = "state"

[[member]]
id = 1
name = "a"
address = "10.0.0.1:7400"
priority = 5

[[member]]
id = 2
name = "b"
address = "10.0.0.2:7400"

[[member]]
id = 3
address = "c.example:7400"
witness = true
"#;

/// A folder with a `doyen.toml`, and nothing around it.
struct Scene {
    folder: Scratch,
    flags: Vec<Override>,
    env: Env,
}

impl Scene {
    fn new(text: &str) -> Self {
        let folder = Scratch::new();
        fs::write(folder.join("doyen.toml"), text).unwrap();
        let env = Env {
            variables: BTreeMap::new(),
            folder: folder.to_path_buf(),
            system: folder.join("etc"),
        };
        Self { folder, flags: Vec::new(), env }
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.env.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn flag(mut self, key: &'static str, value: &str) -> Self {
        self.flags.push(Override { key, value: value.to_owned() });
        self
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn load(&self) -> Result<Configuration, ConfigError> {
        Configuration::load(None, &self.flags, &self.env)
    }

    fn settings(&self) -> Settings {
        self.load().unwrap().settings
    }

    fn problems(&self) -> Vec<String> {
        self.load().unwrap_err().problems
    }

    fn warnings(&self) -> Vec<String> {
        self.load().unwrap().warnings
    }
}

/// [`THREE`] with `line` in the place of the line that begins as it does, up to the `=`, or else in front.
fn with(line: &str) -> String {
    let key = line.split('=').next().unwrap();
    match THREE.lines().find(|old| old.starts_with(key)) {
        Some(old) => THREE.replacen(old, line, 1),
        None => format!("{line}\n{THREE}"),
    }
}

#[test]
fn a_file_becomes_settings() {
    let scene = Scene::new(THREE);
    let settings = scene.settings();
    assert_eq!(settings.me, NodeId(1));
    assert_eq!(settings.own().name, "a");
    assert_eq!(settings.listen, "10.0.0.1:7400".parse().unwrap(), "its own address");
    assert_eq!(settings.http, Some("127.0.0.1:7400".parse().unwrap()));
    let key_file = KeyFile { path: scene.folder.join("key"), readers: KeyReaders::Owner };
    assert_eq!(settings.key_file, Some(key_file));
    assert_eq!(settings.state_dir, scene.folder.join("state"));
    assert_eq!(settings.algorithm, Algorithm::Quorum);
    assert_eq!(settings.attribute, Attribute::Priority);
    assert_eq!(settings.grace, Duration::from_secs(10));
    assert_eq!(settings.trace, None);
    let names: Vec<&str> = settings.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "n3"], "a member without a name has its id's");

    let core = &settings.core;
    assert_eq!(core.mode, Mode::Hardened);
    assert_eq!(core.timing, Profile::Lan.timing());
    assert_eq!(core.members.highest(), NodeId(1));
    assert_eq!(core.members.by_rank(0), NodeId(2), "equal priorities are decided by the higher id");
    assert_eq!(core.quorum.pace, Profile::Lan.settings().pace);
    assert_eq!(core.quorum.witnesses.iter().collect::<Vec<_>>(), [NodeId(3)]);
    assert_eq!(core.quorum.cluster, cluster_number("orders"));
}

#[test]
fn each_value_comes_from_the_first_layer_that_sets_it() {
    let scene = Scene::new(&with("grace = \"1s\""))
        .file(
            "home/doyen/doyen.toml",
            "grace = \"2s\"\ntrace = \"of-user\"\ntiming.profile = \"wan\"",
        )
        .file(
            "etc/doyen.toml",
            "timing.profile = \"fast\"\ntiming.tenure = \"9s\"\ncluster = \"other\"",
        );
    let home = scene.folder.join("home").display().to_string();
    let scene = scene
        .variable("XDG_CONFIG_HOME", &home)
        .variable("DOYEN_ID", "b")
        .variable("DOYEN_LISTEN", "10.0.0.9:7000")
        .variable("DOYEN_STATE_DIR", "from-variable")
        .flag("listen", "10.0.0.8:7000");
    let settings = scene.settings();
    assert_eq!(settings.listen, "10.0.0.8:7000".parse().unwrap(), "the flag's");
    assert_eq!(settings.me, NodeId(2), "the variable's");
    assert_eq!(settings.state_dir, scene.folder.join("from-variable"), "from the working folder");
    assert_eq!((settings.grace, settings.cluster.as_str()), (Duration::from_secs(1), "orders"));
    let of_user = scene.folder.join("home/doyen/of-user");
    assert_eq!(settings.trace, Some(of_user), "relative to the file that sets it");
    assert_eq!(settings.core.timing.heartbeat, Profile::Wan.timing().heartbeat, "the user's");
    assert_eq!(settings.core.quorum.tenure, Span::from_millis(9_000), "the system's");
}

#[test]
fn a_file_that_is_named_takes_the_place_of_the_working_folders() {
    let scene = Scene::new("cluster = 1").file("conf/node.toml", THREE);
    let file = Path::new("conf/node.toml");
    let load = |scene: &Scene, file| Configuration::load(file, &[], &scene.env);
    let settings = load(&scene, Some(file)).unwrap().settings;
    assert_eq!(settings.state_dir, scene.folder.join("conf/state"));
    let missing = load(&scene, Some(Path::new("conf/other.toml"))).unwrap_err();
    assert!(missing.problems[0].starts_with("conf/other.toml: cannot be read: "), "{missing}");
    let scene = scene.variable("DOYEN_CONFIG", "conf/node.toml");
    assert_eq!(load(&scene, None).unwrap().settings, settings);
}

#[test]
fn beside_a_file_that_is_named_others_may_be_unreadable() {
    // Root can read every file, but no folder as one.
    let scene = Scene::new(THREE).file("etc/doyen.toml/x", "").variable("DOYEN_CONFIG", "");
    let system = scene.folder.join("etc/doyen.toml").display().to_string();
    let named = Configuration::load(Some(Path::new("doyen.toml")), &[], &scene.env).unwrap();
    let [warning] = &named.warnings[..] else { panic!("{:?}", named.warnings) };
    assert!(warning.starts_with(&format!("{system}: ignored, it cannot be read: ")), "{warning}");
    let [problem] = &scene.problems()[..] else { panic!("{:?}", scene.problems()) };
    assert!(problem.starts_with(&format!("{system}: cannot be read: ")), "{problem}");
    assert!(problem.ends_with("name the file of the node (--config FILE)"), "{problem}");
}

#[test]
fn without_any_file_the_error_lists_where_one_was_looked_for() {
    let scene = Scene::new(THREE);
    fs::remove_file(scene.folder.join("doyen.toml")).unwrap();
    let problem = scene.problems().remove(0);
    let system = scene.folder.join("etc/doyen.toml").display().to_string();
    assert!(problem.contains("none of doyen.toml, ") && problem.contains(&system), "{problem}");
    assert!(problem.contains("doyen init"), "{problem}");
}

/// A line of the file, and how the first mistake begins: its line, or none, and what is wrong.
const MISTAKES: &str = r#"
clustre = "x" => 1: clustre: there is no such key; did you mean `cluster`?
cluster = 5 => 2: cluster: expected a string in quotes, found `5`
cluster = "" => 2: cluster: is empty; write a name such as orders
cluster = "a b" => 2: cluster: `a b` contains ` `; use letters
id = 9 => 3: id: `9` is not a member; there are a (1), b (2), n3 (3)
id = "z" => 3: id: `z` is not a member;
id = -1 => 3: id: expected a member's id from 0 to 4294967295, or its name, found `-1`
listen = "10.0.0.1:0" => 1: listen: expected an IP address with a port
http = "10.0.0.1:80" => 1: http: 10.0.0.1:80 can be reached from other machines
http = "on" => 1: http: expected an IP address with a port
algorithm = "buly" => 1: algorithm: `buly` is unknown; did you mean `bully`?
grace = "5" => 1: grace: `5` lacks a unit; write for example 5ms or 5s
key_file = "" => 4: key_file: is empty; write a path
timing.profile = "slow" => 1: timing.profile: `slow` is unknown; use one of fast, lan, wan
timing.drift = 1.5 => 1: timing.drift: expected a number of at least 0 and below 1, such as 0.1, found `1.5`
timing.heartbeat = "90ms" => 1: timing.heartbeat: 3 × heartbeat + 2 × transmission + processing ≤ lease
timing.heart_beat = "90ms" => 1: timing.heart_beat: there is no such key; did you mean `heartbeat`?
timing.state_dir = "state" => 1: timing.state_dir: there is no such key here; it belongs above all tables
timing.address = "x" => 1: timing.address: there is no such key here; it belongs below [[member]]
http_open = "yes" => 1: http_open: expected true or false, without quotes, found `"yes"`
timing.probe = "0" => 1: timing.probe: must be longer than 0
preemption.policy = "soon" => 1: preemption.policy: `soon` is unknown; use one of
attribute.source = "disk" => 1: attribute.source: `disk` is unknown; use one of priority
attribute.source = "command" =>  attribute.command: is missing; name the program
attribute.command = ["x"] => 1: attribute.command: needs source =
attribute.source = "file" =>  attribute.file: is missing; name the file
attribute.file = "x" => 1: attribute.file: needs source =
attribute.every = "1ms" => 1: attribute.every: 1ms is too short
address = "10.0.0.1" => 10: member 1 (a): address: `10.0.0.1` is not an address
address = "10.0.0.300:1" => 10: member 1 (a): address: `10.0.0.300:1` is not an address
address = "fd00::1:7400" => 10: member 1 (a): address: `fd00::1:7400` is not an address
address = "0.0.0.0:7400" => 10: member 1 (a): address: cannot send to 0.0.0.0:7400
address = "10.0.0.2:7400" => 16: member 2 (b): address: 10.0.0.2:7400 is another member's
name = "b" => 15: member 2 (b): name: `b` is another member's;
name = "7" => 9: member 1 (7): name: `7` would be taken for an id
priority = "high" => 11: member 1 (a): priority: expected a whole number, without quotes, found `"high"`
listen = "127.0.0.1:7400" => 1: listen: 127.0.0.1:7400 cannot reach a at 10.0.0.1:7400: it listens on this
listen = "[fd00::1]:7400" => 1: listen: [fd00::1]:7400 cannot reach a at 10.0.0.1:7400: it listens on an IPv6
"#;

#[test]
fn every_mistake_is_named_with_its_line_and_a_way_out() {
    for row in MISTAKES.trim().lines() {
        let (line, expected) = row.split_once(" => ").expect("a line and its mistake");
        let problems = Scene::new(&with(line)).problems();
        assert!(problems[0].starts_with(&format!("doyen.toml:{expected}")), "{row}: {problems:?}");
    }
}

#[test]
fn what_is_missing_is_named() {
    for (key, expected) in [
        ("cluster", "doyen.toml: cluster: is missing; give the cluster a name"),
        ("id", "doyen.toml: id: is missing; say which member this is"),
        (
            "key_file",
            "doyen.toml: key_file: is missing; 10.0.0.1:7400 can be reached from other machines",
        ),
        ("state_dir", "doyen.toml: state_dir: is missing; say where"),
    ] {
        let line = THREE.lines().find(|line| line.starts_with(key)).unwrap();
        let problems = Scene::new(&THREE.replacen(line, "", 1)).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(expected), "{problems:?}");
    }
    let problems = Scene::new(&THREE.replace("address = \"10.0.0.2:7400\"", "")).problems();
    assert!(
        problems[0].starts_with("doyen.toml:13: member 2 (b): address: is missing;"),
        "{problems:?}"
    );
    let (top, _) = THREE.split_once("[[").unwrap();
    let problems = Scene::new(top).problems();
    assert!(
        problems[0].starts_with("doyen.toml: member: is missing; list all members"),
        "{problems:?}"
    );
}

/// The members are there, but under another name.
#[test]
fn a_misspelt_table_is_the_only_mistake() {
    let problems = Scene::new(&THREE.replace("[[member]]", "[[members]]")).problems();
    assert_eq!(problems, ["doyen.toml:7: members: there is no such key; did you mean `member`?"]);
}

#[test]
fn an_id_that_no_member_has_hides_no_other_mistake() {
    let text = with("id = \"z\"").replace("key_file", "# key_file");
    let problems = Scene::new(&text.replace("priority = 5", "priority = \"high\"")).problems();
    for wanted in ["id: `z` is not a member", "priority: expected", "key_file: is missing"] {
        assert!(problems.iter().any(|it| it.contains(wanted)), "{wanted}: {problems:#?}");
    }
}

#[test]
fn the_mistakes_of_all_layers_are_reported_at_once() {
    let scene = Scene::new(&with("clustre = 1"))
        .variable("DOYEN_ATTRIBUTE_STEP", "-1")
        .variable("DOYEN_HTTP_OPEN", "yes")
        .flag("id", "z")
        .file("etc/doyen.toml", "grace = 10\n[timings]\n");
    let problems = scene.problems();
    let system = scene.folder.join("etc/doyen.toml").display().to_string();
    let expected = [
        "DOYEN_HTTP_OPEN: expected true or false, found `yes`".to_owned(),
        "DOYEN_ATTRIBUTE_STEP: expected a whole number of at least 0, found `-1`".to_owned(),
        "doyen.toml:1: clustre: there is no such key; did you mean `cluster`?".to_owned(),
        format!(
            "{system}:1: grace: expected a length of time in quotes, such as \"10s\", found `10`"
        ),
        format!("{system}:2: timings: there is no such key; did you mean `timing`?"),
        "--id: `z` is not a member; there are a (1), b (2), n3 (3)".to_owned(),
    ];
    assert_eq!(problems, expected, "{problems:#?}");
}

#[test]
fn a_syntax_error_hides_only_the_rest_of_its_file() {
    let scene = Scene::new("cluster = \nid = 1\nlisten \"x\"\n").flag("http", "on");
    let problems = scene.problems();
    assert!(problems.iter().any(|it| it.starts_with("doyen.toml:1: ")), "{problems:?}");
    assert!(problems.iter().any(|it| it.starts_with("doyen.toml:3: ")), "{problems:?}");
    assert!(!problems.iter().any(|it| it.contains("is missing")), "{problems:?}");
}

/// What a refused timing says can be read without the specification, and what it proposes holds.
#[test]
fn an_unsafe_timing_names_keys_values_lines_and_what_would_do() {
    let problems = Scene::new(&with("timing.heartbeat = \"90ms\"")).problems();
    let expected = "doyen.toml:1: timing.heartbeat: 3 × heartbeat + 2 × transmission + processing ≤ lease does not hold: \
         295ms is longer than 228.09ms, where lease = vote_lease × (1 − drift) / (1 + drift) − 1ms, heartbeat = 90ms \
         (doyen.toml:1), vote_lease = 280ms (profile lan), drift = 0.1 (profile lan), transmission = 10ms (profile lan), \
         processing = 5ms (profile lan); set heartbeat to at most 67ms, or vote_lease to at least 362ms \
         [0 < h ≤ (Λ_L − (2D + p)) / 3]";
    assert_eq!(problems, [expected], "{problems:#?}");
    for line in [
        "timing.heartbeat = \"67ms\"",
        "timing.heartbeat = \"90ms\"\ntiming.vote_lease = \"362ms\"",
    ] {
        Scene::new(&with(line)).settings();
    }
}

#[test]
fn an_unsafe_timing_names_the_place_and_the_remedy() {
    for (values, place, remedy) in [
        (&["vote_lease = \"100ms\""][..], "1: timing.vote_lease: 3", "at least 216ms"),
        (&["drift = 0.5", "vote_lease = \"280ms\""], "2: timing.vote_lease: 3", "at least 528ms"),
        (&["transmission = \"100ms\""], "1: timing.transmission: 3", "at most 7.69ms"),
        (&["processing = \"1s\""], "1: timing.processing: 3", "; set vote_lease to at least 1"),
        (&["heartbeat = \"0\""], "1: timing.heartbeat: heartbeat > 0", "write for example 50ms"),
        (&["vote_lease = \"61s\""], "1: timing.vote_lease: vote_lease ≤ 60s", "shorten it"),
        (&["drift = 0.9999"], "1: timing.drift: drift < 1", "for example 0.1"),
        (&["drift = 0.999"], "1: timing.drift: vote_lease ≤ 60s", "; lower drift ["),
        (
            &["vote_lease = \"280ms\"", "drift = 0.999"],
            "1: timing.vote_lease: 3",
            "; lower drift, transmission or processing [",
        ),
    ] {
        let lines: Vec<String> = values.iter().map(|value| format!("timing.{value}\n")).collect();
        let problems = Scene::new(&format!("{}{THREE}", lines.concat())).problems();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0].starts_with(&format!("doyen.toml:{place}")), "{problems:#?}");
        assert!(problems[0].contains(remedy), "{problems:#?}");
    }
}

#[test]
fn a_node_on_loopback_needs_no_key() {
    let local = THREE.replace("10.0.0.", "127.0.0.").replace("key_file = \"key\"\n", "");
    let warnings = Scene::new(&local).warnings();
    assert!(
        warnings[0].starts_with("key_file: without a key any process on this machine"),
        "{warnings:?}"
    );
    let named = Scene::new(&local).variable("DOYEN_ID", "3");
    let problems = named.problems();
    assert!(
        problems[0].contains("listen: is missing; its own address `c.example:7400` is a host name"),
        "{problems:?}"
    );
}

#[test]
fn http_is_open_only_if_http_open_is_set() {
    let open = with("http = \"0.0.0.0:8080\"\nhttp_open = true");
    assert_eq!(Scene::new(&open).settings().http, Some("0.0.0.0:8080".parse().unwrap()));
    let warns = |more: &str| {
        let warnings = Scene::new(&with(more)).warnings();
        warnings.iter().any(|it| it.starts_with("http_admin: other machines reach HTTP"))
    };
    assert!(warns("http = \"0.0.0.0:8080\"\nhttp_open = true\nhttp_admin = true"));
    assert!(!warns("http = \"127.0.0.1:8080\"\nhttp_open = true\nhttp_admin = true"), "a proxy");
    assert!(!warns("http = \"0.0.0.0:8080\"\nhttp_open = true"));
    assert_eq!(Scene::new(&with("http = \"off\"")).settings().http, None);
    assert_eq!(
        Scene::new(&with("http = \"[::1]:80\"")).settings().http.map(|it| it.port()),
        Some(80)
    );
}

#[test]
fn a_witness_has_no_priority_and_only_a_quorum_has_witnesses() {
    let text = THREE.replace("witness = true", "witness = true\npriority = 1");
    let problems = Scene::new(&text).problems();
    assert!(
        problems[0].starts_with("doyen.toml:22: member 3: priority: has no meaning"),
        "{problems:?}"
    );
    let problems = Scene::new(&with("algorithm = \"bully\"")).problems();
    assert_eq!(
        problems,
        ["doyen.toml:22: member: n3 is a witness, and bully has none; leave it out, or use quorum"]
    );
    let no_candidate = THREE
        .replace("priority = 5", "witness = true")
        .replace("10.0.0.2:7400\"", "10.0.0.2:7400\"\nwitness = true");
    let problems = Scene::new(&no_candidate).problems();
    let expected = "doyen.toml:7: member: every member is a witness, and a witness never leads";
    assert!(problems[0].starts_with(expected), "{problems:?}");
}

#[test]
fn a_cluster_without_failover_is_warned_of() {
    let cut = |count: usize| {
        let parts: Vec<&str> = THREE.split("[[member]]").collect();
        parts[..=count].join("[[member]]")
    };
    let one = Scene::new(&cut(1)).warnings();
    assert!(one[0].contains("there is only one"), "{one:?}");
    let two = Scene::new(&cut(2)).warnings();
    assert!(two[0].contains("a majority of two is two"), "{two:?}");
    let three = Scene::new(THREE).warnings();
    assert!(three.is_empty(), "{three:?}");
    let lonely = THREE.replace("10.0.0.2:7400\"", "10.0.0.2:7400\"\nwitness = true");
    assert!(Scene::new(&lonely).warnings()[0].contains("only one may lead"));
}

#[test]
fn clocks_that_are_trusted_entirely_are_warned_of() {
    let warnings = Scene::new(&with("timing.drift = 0")).warnings();
    assert!(warnings[0].starts_with("doyen.toml:1: timing.drift: 0 trusts every"), "{warnings:?}");
    assert!(Scene::new(&with("timing.drift = 0.05")).warnings().is_empty());
}

#[test]
fn textbook_algorithms_run_hardened_and_with_a_warning() {
    let text = with("algorithm = \"bully\"").replace("witness = true", "");
    let scene = Scene::new(&text);
    assert_eq!(scene.settings().core.mode, Mode::Hardened);
    assert!(scene.warnings()[0].contains("only quorum tolerates"), "{:?}", scene.warnings());
    for (line, expected) in [
        ("preemption.policy = \"never\"", "preemption.policy: bully supports `delayed` only"),
        (
            "attribute.source = \"load\"",
            "attribute.source: bully does not support attributes that change",
        ),
        ("timing.transmission = \"0\"", "timing.transmission: must be longer than 0"),
    ] {
        let problems = Scene::new(&format!("{line}\n{text}")).problems();
        assert!(problems[0].contains(expected), "{problems:?}");
    }
}

#[test]
fn no_line_of_a_file_that_is_no_configuration_is_shown() {
    let secret = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let keys = Scene::new(&format!("# one\ndoyen-key-1:{secret}   # May\n")).problems();
    assert_eq!(keys, ["doyen.toml: this is a key file; give a configuration (doyen.toml)"]);
    let other = Scene::new(&format!("{secret}\n")).problems();
    assert!(other[0].starts_with("doyen.toml:1: ") && !other[0].contains("9f86"), "{other:?}");
}

#[test]
fn a_variable_that_nothing_reads_is_warned_of() {
    let scene = Scene::new(THREE).variable("DOYEN_STATEDIR", "x").variable("DOYEN_LOG", "debug");
    // The command line reads it.
    let scene = scene.variable("DOYEN_CA_FILE", "ca.pem");
    assert_eq!(
        scene.warnings(),
        ["DOYEN_STATEDIR: ignored, no setting has this name; did you mean DOYEN_STATE_DIR?"]
    );
}

#[test]
fn values_of_every_kind_are_read() {
    let text = with(
        "timing = { profile = \"fast\", drift = 0.0501, probe = \"off\", jitter = \"2ms\", penalty_decay = \"4s\", tenure = \"1h 30m\" }\n\
         preemption = { policy = \"immediate\" }\n\
         attribute = { source = \"command\", command = [\"score\", \"-q\"], every = \"2s\", step = 10 }",
    );
    let settings = Scene::new(&text).settings();
    let quorum = &settings.core.quorum;
    assert_eq!(quorum.pace.drift, 51, "upwards, which is safe");
    assert_eq!((quorum.probe, quorum.jitter), (None, Span::from_millis(2)));
    assert_eq!(quorum.penalty_decay, Span::from_millis(4_000));
    assert_eq!(quorum.tenure, Span::from_millis(5_400_000));
    assert_eq!(quorum.preemption, Preemption::Immediate);
    assert_eq!(quorum.pace.heartbeat, Profile::Fast.timing().heartbeat);
    let source = Source::Command(vec!["score".to_owned(), "-q".to_owned()]);
    let every = Duration::from_secs(2);
    assert_eq!(settings.attribute, Attribute::Measured { source, every, step: 10 });
}

/// An attribute that falls because a member leads must not move leadership at once.
#[test]
fn the_margin_suits_what_is_measured() {
    let margin = |text: &str| Scene::new(&with(text)).settings().core.quorum.margin;
    assert_eq!(margin(""), 0, "priorities decide as they are");
    assert_eq!(margin("attribute.source = \"free-memory\""), 512, "mebibytes");
    assert_eq!(margin("attribute.source = \"load\""), 100, "hundredths of a processor");
    assert_eq!(margin("attribute.source = \"load\"\npreemption.margin = 7"), 7);
}

#[test]
fn what_is_printed_means_the_same() {
    for text in [
        with(
            "trace = \"events\"\nhttp = \"off\"\ntiming.probe = \"off\"\ntiming.vote_lease = \"1.5s\"",
        ),
        with("http = \"0.0.0.0:1\"\nhttp_open = true\npreemption.policy = \"never\""),
        with("attribute = { source = \"command\", command = [\"a \\\"b\\\"\"], step = 3 }"),
    ] {
        let scene = Scene::new(&text).variable("DOYEN_GRACE", "3s");
        let Configuration { settings, report, .. } = scene.load().unwrap();
        let printed = report.to_string();
        assert!(printed.contains("# DOYEN_GRACE\n"), "{printed}");
        let again = Scene::new(&printed).settings();
        assert_eq!(again, settings, "{printed}");
    }
}

#[test]
fn the_example_is_sound_and_what_is_commented_out_is_the_default() {
    let example = example();
    let scene = Scene::new(&example);
    let settings = scene.settings();
    let warnings = scene.warnings();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(settings.members.len(), 3);
    let is_default = |line: &&str| {
        let key = line.strip_prefix("# ").and_then(|rest| rest.split_once(" = "));
        key.is_some_and(|(key, _)| {
            !key.contains(' ')
                && !["trace", "command", "file", "leader", "not_leader", "change", "groups"]
                    .contains(&key)
        })
    };
    let commented = example.lines().filter(is_default).count();
    assert!(commented > 10, "there are {commented} of them");
    let lines = example.lines().map(|line| if is_default(&line) { &line[2..] } else { line });
    let uncommented = lines.collect::<Vec<_>>().join("\n");
    let relocated =
        |settings: Settings| Settings { key_file: None, state_dir: "".into(), ..settings };
    assert_eq!(relocated(Scene::new(&uncommented).settings()), relocated(settings));
}

/// The table of settings in `docs/node.md`.
fn reference() -> String {
    let mut text = "| key | default | |\n|---|---|---|\n".to_owned();
    for key in &schema::KEYS {
        let default = match key.default {
            DefaultValue::Required(_) => "required".to_owned(),
            DefaultValue::Is(toml) => format!("`{}`", toml.trim_matches('"')),
            DefaultValue::Profile => "by profile".to_owned(),
            DefaultValue::Derived(from) => from.to_owned(),
            DefaultValue::Unset(meaning) => format!("none: {meaning}"),
        };
        let about = format!("{}. {}", key.help, key.details);
        let about = if key.details.is_empty() { key.help } else { &about };
        text += &format!("| `{}` | {default} | {about} |\n", key.name);
    }
    text
}

/// Files that are generated from the schema. `make golden` writes them.
#[test]
fn the_example_file_and_the_table_in_the_docs_are_those_of_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_to_string(root.join("docs/node.md")).unwrap();
    let begin = "<!-- settings, generated from config/schema.rs -->\n";
    let (before, rest) = docs.split_once(begin).expect("the beginning is marked");
    let (_, after) = rest.split_once("<!-- end of settings -->").expect("the end is marked");
    let docs = format!("{before}{begin}{}<!-- end of settings -->{after}", reference());
    for (file, expected) in [("examples/doyen.toml", example()), ("docs/node.md", docs)] {
        let path = root.join(file);
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{file} is not up to date");
    }
}

#[test]
fn the_configurations_number_is_its_cluster_voters_and_algorithm() {
    let number = |text: &str| Scene::new(text).settings().configuration_id();
    let plain = THREE.replace("witness = true", "");
    let usual = number(&plain);
    let same = [
        plain.replace("10.0.0.2:7400", "10.0.0.77:99"),
        plain.replace("priority = 5", "priority = -3"),
        plain.replace("\"a\"", "\"other\""),
        format!("timing.profile = \"wan\"\n{plain}"),
        plain.replace("id = 1\nkey", "id = 2\nkey"),
    ];
    for text in same {
        assert_eq!(number(&text), usual, "{text}");
    }
    let other = [
        THREE.to_owned(),
        plain.replace("orders", "order"),
        plain.replace("id = 3", "id = 4"),
        format!("algorithm = \"bully\"\n{plain}"),
        format!("groups = [\"x\"]\n{plain}"),
        format!("groups = [\"x\"]\ngroup_lease = \"1s\"\n{plain}"),
    ];
    let groups = |names: &str| number(&format!("groups = [{names}]\n{plain}"));
    assert_eq!(groups("\"x\""), groups("\"y\", \"z=b\""), "lists may differ for a while");
    assert_ne!(number(&other[4]), number(&other[5]));
    for text in other {
        assert_ne!(number(&text), usual, "{text}");
    }
    // Members of different versions must compute the same.
    assert_eq!(usual, 544_529_538);
}

#[test]
fn groups_are_named_once_and_led_by_members() {
    let with = |setting: &str| Scene::new(&format!("{setting}\n{THREE}"));
    let groups = with("groups = [\"mail\", \"billing=b,a\"]").settings().groups.unwrap();
    let names: Vec<&str> = groups.groups().iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["billing", "mail"], "in the order of their names");
    let billing = groups.find(&"billing".parse().unwrap()).unwrap();
    assert_eq!(groups.order(billing), [NodeId(2), NodeId(1)], "a witness leads none");
    assert_eq!(groups.lock.lease, Profile::Lan.group_lease());
    assert_eq!(with("groups = []").settings().groups, None);
    for (setting, wanted) in [
        ("groups = [\"a b\"]", "`a b` is not the name of a group"),
        ("groups = [\"x=d\"]", "x: `d` is not the name of a member"),
        ("groups = [\"x=n3\"]", "x: n3 is a witness, which leads no group"),
        ("groups = [\"x\", \"x=a\"]", "x is listed twice"),
        ("groups = [\"a b\", \"x=n3\", \"x=d\"]", "x: `d` is not the name of a member"),
        ("groups = [\"x\"]\ngroup_lease = \"100ms\"", "100ms does not suit: three heartbeats"),
        ("groups = [\"x\"]\ngroup_lease = \"2m\"", "must be at most 60s"),
        ("groups = [\"x\"]\nalgorithm = \"bully\"", "bully has no leases"),
    ] {
        let problems = with(setting).problems();
        assert!(problems.iter().any(|it| it.contains(wanted)), "{setting}: {problems:?}");
    }
    let many: Vec<String> = (0..257).map(|number| format!("\"g{number}\"")).collect();
    let problems = with(&format!("groups = [{}]", many.join(", "))).problems();
    assert!(problems[0].contains("257 groups are too many"), "{problems:?}");
}
