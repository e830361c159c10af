//! Every command line in README.md and docs/ is run; what cannot be is listed with the reason, and its flags are parsed.
//!
//! They run in one folder, in the order of the text, beside a cluster `orders` of three nodes: so `orders/n1` is a member, and
//! `orders-n1` its copy "on its machine". Each has to exit with 0, or with 1 where the text is about a negative answer.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Plan, Trial, complaint, new_folder, program};

/// Programs that documented lines begin with, and why they are not run here.
const OTHERS: &[(&str, &str)] = &[
    ("cargo", "builds; the tests that it names are run as such"),
    ("chown", "no user for the service"),
    ("cp", "copies a folder to where systemd expects it"),
    ("echo", "shows the exit code of the line before"),
    ("for", "starts nodes that run until they are stopped"),
    ("mkdir", "tests/it/members.rs walks these steps"),
    ("podman", "no container runtime"),
    ("python3", "tests/it/lease_file.rs runs the readers of the lease file"),
    ("scp", "no other machine"),
    ("secret=$(cat", "a variable for curl"),
    ("systemctl", "no systemd; tests/it/systemd.rs runs the commands of the units"),
];

/// Commands of doyen that are only parsed, and why.
const PARSED: &[(&str, &str)] = &[
    ("lab", "runs until it is stopped: tests/it/lab.rs"),
    ("cluster", "runs until it is stopped: tests/it/trial.rs"),
    ("run", "runs until it is stopped: tests/it/run.rs"),
    ("lock", "needs a leader that has settled: tests/it/lock.rs"),
    ("rejoin", "needs a member that has lost its state: tests/it/members.rs"),
    ("status --node https://n1.example:7443", "needs a proxy with TLS: tests/it/https.rs"),
    ("check --random", "takes minutes: doyen-check has tests of it"),
];

/// Commands of doyen whose answer is no (exit 1), and why.
const NEGATIVE: &[(&str, &str)] = &[
    ("check --algorithm chang-roberts --members 4 --initiators all --fifo --crashes 1", "a flaw"),
    ("check --algorithm maekawa --mode original", "a flaw"),
    ("check --algorithm lock-service --mode some-claims", "a flaw"),
    ("check --algorithm sequencer --members 3 --requests 1,2 --crashes 1 --property", "a flaw"),
    ("replay counterexample.toml", "a run that violates a property"),
    ("fence /srv/orders/fence --token 6291456", "an old token"),
];

/// The page whose explorations find the flaw that they are about, but for those of hardened mode.
const FLAWS: &str = "flaws.md";

/// A command that a reader may type, and where it is.
struct Line {
    place: String,
    text: String,
}

/// The commands of code blocks, and those of doyen that are mentioned in the text. A block without a fence is refused: its
/// lines would not be seen here.
fn documented() -> (Vec<Line>, Vec<Line>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("docs/").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        docs.filter(|path| path.extension() == Some("md".as_ref())).collect();
    files.sort();
    files.insert(0, root.join("README.md"));
    let (mut lines, mut mentions) = (Vec::new(), Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Text and code blocks take turns.
        for (number, part) in text.split("```").enumerate() {
            let place = |text: &str| Line { place: name.clone(), text: text.to_owned() };
            if number % 2 == 0 {
                let unfenced = part.lines().find(|line| is_unfenced(line));
                assert_eq!(unfenced, None, "{name}: put it into a code block with a fence");
                let spans = part.split('`').skip(1).step_by(2);
                let spans = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
                let commands = spans.flat_map(|span| commands(&span));
                let commands = commands.filter(|command| command.starts_with("doyen "));
                mentions.extend(commands.map(|command| place(&command)));
            } else {
                let commands = typed(part).into_iter().flat_map(|line| commands(&line));
                lines.extend(commands.map(|command| place(&command)));
            }
        }
    }
    (lines, mentions)
}

/// Whether this line of a text is one of a code block that is only indented.
fn is_unfenced(line: &str) -> bool {
    line.strip_prefix("    ").is_some_and(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("$ ").or(line.strip_prefix("# ")).unwrap_or(line);
        as_typed_there(line).starts_with("doyen ")
    })
}

/// The commands of a line, of which each is tried: a shell runs one after the other, whether the one before it has to succeed
/// or not, and perhaps with what that has printed. Quotes and substitutions stay whole.
fn commands(line: &str) -> Vec<String> {
    let (mut commands, mut quote, mut depth) = (vec![String::new()], None, 0_usize);
    let mut rest = line.chars().peekable();
    while let Some(it) = rest.next() {
        match (it, quote) {
            ('"' | '\'', None) => quote = Some(it),
            (_, Some(end)) if it == end => quote = None,
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            (';' | '|', None) if depth == 0 => {
                rest.next_if_eq(&'|');
                commands.push(String::new());
                continue;
            }
            ('&', None) if depth == 0 && rest.next_if_eq(&'&').is_some() => {
                commands.push(String::new());
                continue;
            }
            _ => {}
        }
        commands.last_mut().expect("one at least").push(it);
    }
    let commands = commands.iter().map(|command| {
        let command = command.trim();
        as_typed_there(command.strip_prefix("do ").unwrap_or(command)).to_owned()
    });
    commands.filter(|command| !command.is_empty()).collect()
}

#[test]
fn every_command_of_a_line_is_found() {
    let split = |line: &str| commands(line).join("\n");
    let each = "cp a b\ndoyen rejoin --config x\ndoyen node";
    assert_eq!(split("cp a b && sudo -u doyen doyen rejoin --config x; doyen node"), each);
    assert_eq!(
        split("doyen run -- sh -c \"a && b; c\" || echo no"),
        "doyen run -- sh -c \"a && b; c\"\necho no"
    );
    assert_eq!(
        split("curl -d '{\"a\": \"b;c\"}' x?a=1&b=2 | jq ."),
        "curl -d '{\"a\": \"b;c\"}' x?a=1&b=2\njq ."
    );
    assert_eq!(
        split("for n in 1 2; do doyen node $n & done"),
        "for n in 1 2\ndoyen node $n & done"
    );
    assert_eq!(split("secret=$(cat it | head -n 1)"), "secret=$(cat it | head -n 1)");
}

/// A line without what has another user, or another machine, run it.
fn as_typed_there(line: &str) -> &str {
    let rest = ["sudo -u ", "ssh "].iter().find_map(|before| line.strip_prefix(before));
    rest.and_then(|rest| rest.split_once(' ')).map_or(line, |(_, command)| command)
}

/// What a reader types of a code block: what follows a prompt, or, where there is none, the lines that call doyen.
fn typed(block: &str) -> Vec<String> {
    let (language, code) = block.split_once('\n').unwrap_or_default();
    if !["", "console", "sh"].contains(&language) {
        return Vec::new();
    }
    let code = code.replace("\\\n", " ");
    let has_prompts = code.lines().any(|line| line.trim_start().starts_with("$ "));
    let lines = code.lines().filter_map(|line| {
        let line = line.trim();
        let prompted = line.strip_prefix("$ ").or(line.strip_prefix("# "));
        prompted.or(Some(line).filter(|line| !has_prompts && line.starts_with("doyen ")))
    });
    let without_comment = |line: &str| line.split("  # ").next().unwrap_or_default().to_owned();
    lines.map(without_comment).collect()
}

/// The words of a command, up to what a shell does with its result. No line needs more of a shell than double quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('"').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    let end = words.iter().position(|word| [">", "&"].contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    words.retain(|word| word != "…" && word != "...");
    words
}

fn reason<'a>(list: &[(&str, &'a str)], line: &str) -> Option<&'a str> {
    let is_it = |(words, _): &&(&str, &str)| {
        line.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    list.iter().find(is_it).map(|(_, reason)| *reason)
}

/// A folder in which documented lines can be run.
struct Desk {
    trial: Trial,
}

impl Desk {
    fn set_up() -> Self {
        let plan = Plan { cluster: Some("orders"), patient: true, ..Plan::default() };
        let trial = Trial::start(&plan);
        trial.follow(3, &[1, 2, 3]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in ["scenarios", "plans", "examples"] {
            symlink(root.join(name), trial.folder.join(name)).expect("a link");
        }
        symlink("cluster", trial.folder.join("orders")).expect("a link");
        for member in ["n1", "n2", "n3"] {
            symlink(format!("orders/{member}"), trial.folder.join(format!("orders-{member}")))
                .expect("a link");
        }
        // The plan that docs/plans.md has its reader save.
        let plans = fs::read_to_string(root.join("docs/plans.md")).expect("a text");
        let plan = plans.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        fs::write(trial.folder.join("lossy.toml"), plan.expect("a plan")).expect("it is written");
        let job = trial.folder.join("write");
        fs::write(&job, "#!/bin/sh\n").expect("a job");
        fs::set_permissions(&job, fs::Permissions::from_mode(0o755)).expect("it can be executed");
        Self { trial }
    }

    /// Runs a documented line beside a cluster that has a leader and a successor, as its reader does, whatever the line
    /// before it or a busy machine did to it. The cluster may lose its leader during the line; a line that is wrong fails
    /// every time.
    fn run(&self, line: &str, expected: i32) -> Output {
        const ATTEMPTS: usize = 3;
        let attempt = || {
            self.trial.agree(&[1, 2, 3]);
            self.trial.succession(|| self.run_once(line))
        };
        let mut output = attempt();
        for _ in 1..ATTEMPTS {
            if output.status.code() == Some(expected) {
                break;
            }
            output = attempt();
        }
        output
    }

    /// Nodes serve HTTP elsewhere than their configuration says.
    fn run_once(&self, line: &str) -> Output {
        let local = line.replace("/srv/orders", ".");
        let mut command = Command::new(program());
        let words = words(&local);
        command.args(&words[1..]).current_dir(&self.trial.folder).stdin(Stdio::null());
        let config = words.iter().find(|word| word.ends_with("doyen.toml"));
        let member = config.and_then(|path| (1..=3).find(|id| path.contains(&format!("n{id}/"))));
        if let (Some(member), false) = (member, line.starts_with("doyen node")) {
            command.env("DOYEN_HTTP", self.trial.url(member).trim_start_matches("http://"));
        }
        // Nothing that exists is overwritten.
        let elsewhere = line.starts_with("doyen init").then(new_folder);
        if let Some(folder) = &elsewhere {
            command.current_dir(folder);
        }
        let output = command.output().expect("doyen can be run");
        if let Some(folder) = elsewhere {
            fs::remove_dir_all(folder).expect("it is there");
        }
        output
    }

    /// Asks a node with a documented line of curl: it answers, whatever the answer is, with a path that there is. Ports are
    /// those of this cluster, and the secret is that of the node which is asked.
    fn ask(&self, line: &str) -> Result<(), String> {
        let mut local = line.to_owned();
        let mut asked = 3;
        for member in 1..=3 {
            let documented = format!("http://127.0.0.1:740{member}");
            if local.contains(&documented) {
                asked = member;
                local = local.replace(&documented, self.trial.url(member));
            }
        }
        let secret = self.trial.folder_of(asked).join("state/admin-secret");
        let shown = "curl --max-time 2 -w '\\n%{http_code}\\n'";
        let output = Command::new("sh")
            .args(["-c", &local.replacen("curl", shown, 1)])
            .env("secret", fs::read_to_string(secret).unwrap_or_default().trim())
            .current_dir(&self.trial.folder)
            .output()
            .map_err(|error| format!("sh: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // A stream ends when curl's time is over.
        let is_stream = local.contains("/v1/watch") && said.contains("event:");
        let code = said.trim().lines().last().unwrap_or_default();
        match is_stream || ["200", "202", "403", "409", "412", "503"].contains(&code) {
            true => Ok(()),
            false => Err(format!("{code}: {said}{}", complaint(&output))),
        }
    }
}

/// Whether the program knows the command and its flags. Values may be placeholders.
fn flaw_of_flags(line: &Line) -> Option<String> {
    let mut words = words(&line.text);
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if words.get(1).is_some_and(|command| command != "help") {
        words.insert(end, "--help".to_owned());
    }
    let output = Command::new(program()).args(&words[1..]).output().expect("doyen can be run");
    let said = complaint(&output);
    let unknown = ["unexpected argument", "unrecognized subcommand", "command of its own"];
    let is_unknown = unknown.iter().any(|it| said.contains(it));
    is_unknown.then(|| format!("{}: `{}`: {said}", line.place, line.text))
}

/// Why a line of a code block fails, if it does.
fn flaw(desk: &Desk, line: &Line) -> Option<String> {
    let said = |why: String| Some(format!("{}: `{}`: {why}", line.place, line.text));
    if line.text.starts_with("curl ") {
        return desk.ask(&line.text).err().and_then(said);
    }
    let Some(command) = line.text.strip_prefix("doyen ") else {
        return match reason(OTHERS, &line.text) {
            Some(_) => None,
            None => said("say why it is not run".to_owned()),
        };
    };
    let starts_node = command.starts_with("node ") && !command.contains("--check");
    if starts_node || reason(PARSED, command).is_some() {
        return flaw_of_flags(line);
    }
    let finds_flaw = line.place == FLAWS && !command.contains("--mode hardened");
    let expected = i32::from(finds_flaw || reason(NEGATIVE, command).is_some());
    let output = desk.run(&line.text, expected);
    let code = output.status.code();
    if code == Some(expected) {
        return None;
    }
    said(format!("{code:?}: {}{}", String::from_utf8_lossy(&output.stdout), complaint(&output)))
}

#[test]
fn every_documented_command_line_can_be_typed() {
    let desk = Desk::set_up();
    let (lines, mentions) = documented();
    assert!(lines.len() > 40 && mentions.len() > 50, "{} and {}", lines.len(), mentions.len());
    let flaws = lines.iter().filter_map(|line| flaw(&desk, line));
    let flaws: Vec<String> = flaws.chain(mentions.iter().filter_map(flaw_of_flags)).collect();
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

/// The table of flaws in docs/exclusion.md: each is shown by a scenario and found by the checker, or by a test that is there.
#[test]
fn every_flaw_of_mutual_exclusion_is_where_its_table_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/exclusion.md")).expect("a text");
    let folder = new_folder();
    let mut flaws = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| M") && !line.starts_with("| ME")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let quoted = |cell: usize| cells[cell].split('`').skip(1).step_by(2);
        flaws.insert(cells[1][1..].parse::<u32>().expect("a number"));
        if !cells[4].starts_with("none") {
            let scenario = quoted(4).next().expect("a scenario");
            let output = Command::new(program()).args(["sim", scenario]).output().expect("doyen");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("As expected."), "{row}: {said}{}", complaint(&output));
        }
        let found_by: Vec<&str> = quoted(5).collect();
        if let [file, test] = found_by[..] {
            let code = fs::read_to_string(root.join(file)).expect(file);
            assert!(code.contains(&format!("fn {test}()")), "{row}");
            continue;
        }
        let mut check = Command::new(program());
        check.args(["check", "--algorithm"]).args(found_by[0].split(' ')).current_dir(&folder);
        let output = check.output().expect("doyen can be run");
        assert_eq!(output.status.code(), Some(1), "{row}: {}", complaint(&output));
    }
    assert!(flaws.into_iter().eq(1..=25), "every flaw has a row");
    fs::remove_dir_all(folder).expect("it is there");
}

/// What the name of an event follows, perhaps after another argument.
const BEFORE_EVENTS: [&str; 6] =
    ["event = ", "LogLine::info(", "LogLine::warning(", "LogLine::error(", "log_about(", "warn("];

/// The events that a source file logs under a name that is written out.
fn logged_events(source: &str) -> impl Iterator<Item = &str> {
    let calls = BEFORE_EVENTS.iter().flat_map(|before| source.split(before).skip(1));
    calls.filter_map(|rest| {
        let (arguments, rest) = rest.split_once('"')?;
        let is_name = !arguments.contains(['(', ')', '{', '}', ';', '|']);
        is_name.then_some(rest.split_once('"')?.0)
    })
}

#[test]
fn every_event_of_the_log_is_in_its_table() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(package.join("../../docs/http.md")).unwrap();
    let (_, table) = page.split_once("| `event` | meaning |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|row| row.strip_prefix("| ")?.split_once(" | "));
    let listed = rows.flat_map(|(names, _)| names.split(", ")).map(|it| it.trim_matches('`'));
    let mut folders = vec![package.join("src")];
    let mut events = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(source) = fs::read_to_string(&path) {
                events.extend(logged_events(&source).map(str::to_owned));
            }
        }
    }
    // Changes of leadership get their names in one place.
    let history = fs::read_to_string(package.join("src/node/history.rs")).unwrap();
    let (_, names) = history.split_once("let (event, leader, term, reason) = match").unwrap();
    let names = names.split_once("};").unwrap().0.split("(\"").skip(1);
    events.extend(names.map(|rest| rest.split_once('"').unwrap().0.to_owned()));
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), events);
}
