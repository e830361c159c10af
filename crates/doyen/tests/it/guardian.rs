//! The guardian with real processes: it ends a command's whole tree before the lease is over, whatever the command does
//! and whatever happens to the node.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::{LIMIT, new_folder, skip};
use doyen::clock::Moment;
use doyen::guardian::contain::Containment;
use doyen::guardian::control::{Killed, Report, Request};
use doyen::guardian::lease_file::{Lease, LeaseFile};
use doyen::guardian::{Guardian, Handover, Hooks, LogFormat, Plan};
use doyen_core::time::Span;

const MARGIN: Duration = Duration::from_millis(100);

/// A lease that is renewed all the time. A command that runs for 2.5 s does not get by with one of them, and a busy machine
/// does not keep a thread from renewing it.
const RENEWED: Duration = Duration::from_millis(1_500);

/// A tree that does what it can to survive: it ignores SIGTERM, forks twice, and changes its session. All of its
/// processes sleep for a time that names this test.
const STUBBORN: &str = r#"
    trap '' TERM INT HUP
    setsid sh -c "trap '' TERM; setsid sleep $1 & sleep $1" &
    (sleep $1 &) &
    echo $DOYEN_TOKEN >> "$2/tokens"
    touch "$2/ready"
    while :; do sleep $1; done
"#;

struct Scene {
    folder: PathBuf,
    lease_file: LeaseFile,
    handover: Handover,
    /// How long the processes of this scene sleep, which tells them from all others.
    name: String,
}

impl Scene {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = new_folder();
        let lease_file = LeaseFile::create(&folder.join("lease")).unwrap();
        let name = format!("{}.{number:02}", 10_000_000 + std::process::id());
        Self { folder, lease_file, handover: Handover::create().unwrap(), name }
    }

    fn lease(&mut self, lasting: Duration, term: u64) -> Moment {
        let deadline = Moment::now().after(Span::from_nanos(lasting.as_nanos() as u64));
        self.lease_file.publish(Some(Lease { deadline, term })).unwrap();
        deadline
    }

    fn guardian(&self, containment: &Containment, script: &str) -> Guardian {
        let words = ["sh", "-c", script, "job", &self.name];
        let mut command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        command.push(self.folder.clone().into());
        let plan = Plan {
            lease_file: self.lease_file.path(),
            handover: &self.handover,
            lock: None,
            margin: MARGIN,
            containment,
            hooks: &Hooks::default(),
            log_format: LogFormat::default(),
            command: &command,
        };
        let guardian = Guardian::start(Path::new(env!("CARGO_BIN_EXE_doyen")), &plan).unwrap();
        assert_eq!(guardian.report().unwrap(), Some(Report::Ready));
        guardian
    }

    /// How many processes of this scene are alive.
    fn alive(&self) -> usize {
        let out = Command::new("pgrep").args(["-fc", &format!("sleep {}", self.name)]).output();
        String::from_utf8_lossy(&out.expect("pgrep").stdout).trim().parse().unwrap()
    }

    fn wait_until_ready(&self) {
        let began = Instant::now();
        while !self.folder.join("ready").exists() || self.alive() < 4 {
            assert!(began.elapsed() < Duration::from_secs(20), "the command does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Every way to hold a tree together that this machine has.
fn containments() -> Vec<Containment> {
    let available = Containment::available().expect("a thread");
    let mut all = Vec::new();
    if available.namespace {
        all.push(Containment { namespace: true, cgroups: None });
    }
    if available.cgroups.is_some() {
        all.push(Containment { namespace: false, cgroups: available.cgroups.clone() });
    }
    if available.namespace && available.cgroups.is_some() {
        all.push(available);
    }
    if all.is_empty() {
        skip("the guardian: no PID namespaces and no cgroup v2 that may be written to");
    }
    all
}

#[test]
fn a_lease_that_is_not_renewed_ends_the_whole_tree_before_its_deadline() {
    for containment in containments() {
        let mut scene = Scene::new();
        scene.lease(Duration::from_secs(60), 4);
        let guardian = scene.guardian(&containment, STUBBORN);
        guardian.ask(&Request::Start { term: 4, token: 4 << 20 }).unwrap();
        assert!(matches!(guardian.report().unwrap(), Some(Report::Started { .. })));
        scene.wait_until_ready();
        // The next deadline is sooner than the one that the guardian knows: it is told by the first request that follows.
        scene.lease(Duration::from_millis(400), 4);
        guardian.ask(&Request::Ping).unwrap();
        assert_eq!(guardian.report().unwrap(), Some(Report::Pong));
        let ended = guardian.report().unwrap();
        let Some(Report::Ended { killed: Some(Killed::Lease { .. }), .. }) = ended else {
            panic!("{containment:?}: {ended:?}");
        };
        assert_eq!(scene.alive(), 0, "{containment:?}");
        guardian.finish().unwrap();
    }
}

#[test]
fn a_lease_that_is_renewed_lets_the_command_run() {
    for containment in containments() {
        let mut scene = Scene::new();
        let guardian = scene
            .guardian(&containment, "echo $DOYEN_TERM $DOYEN_TOKEN > $2/out; sleep 2.5; exit 7");
        let done = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scene.lease(RENEWED, 1);
            scope.spawn(|| {
                let began = Instant::now();
                while !done.load(Ordering::Relaxed) && began.elapsed() < LIMIT {
                    scene.lease(RENEWED, 1);
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            guardian.ask(&Request::Start { term: 1, token: 5 }).unwrap();
            let reports = [guardian.report().unwrap(), guardian.report().unwrap()];
            done.store(true, Ordering::Relaxed);
            reports
        });
        let [Some(Report::Started { .. }), Some(Report::Ended { code: 7, killed: None, .. })] =
            ended
        else {
            panic!("{containment:?}: {ended:?}")
        };
        assert_eq!(fs::read_to_string(scene.folder.join("out")).unwrap(), "1 5\n");
        guardian.finish().unwrap();
    }
}

#[test]
fn a_stop_is_polite_and_then_it_is_not() {
    for containment in containments() {
        let mut scene = Scene::new();
        scene.lease(Duration::from_secs(60), 1);
        let polite = scene.guardian(
            &containment,
            "trap 'exit 3' TERM; touch $2/ready; while :; do sleep 0.05; done",
        );
        polite.ask(&Request::Start { term: 1, token: 1 }).unwrap();
        polite.report().unwrap();
        let began = Instant::now();
        while !scene.folder.join("ready").exists() {
            assert!(began.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        polite.ask(&Request::Stop { grace: 20_000_000_000 }).unwrap();
        let ended = polite.report().unwrap();
        assert!(matches!(ended, Some(Report::Ended { code: 3, killed: None, .. })), "{ended:?}");
        polite.finish().unwrap();
        fs::remove_file(scene.folder.join("ready")).unwrap();
        let stubborn = scene.guardian(&containment, STUBBORN);
        stubborn.ask(&Request::Start { term: 1, token: 2 }).unwrap();
        stubborn.report().unwrap();
        scene.wait_until_ready();
        stubborn.ask(&Request::Stop { grace: 100_000_000 }).unwrap();
        let ended = stubborn.report().unwrap();
        assert!(
            matches!(ended, Some(Report::Ended { killed: Some(Killed::Grace), .. })),
            "{ended:?}"
        );
        assert_eq!(scene.alive(), 0);
        stubborn.finish().unwrap();
    }
}

#[test]
fn nothing_is_started_without_a_lease_that_lasts() {
    let Some(containment) = containments().pop() else { return };
    let mut scene = Scene::new();
    let guardian = scene.guardian(&containment, "touch $2/ran");
    let refused = |guardian: &Guardian, term| {
        guardian.ask(&Request::Start { term, token: 1 }).unwrap();
        matches!(guardian.report().unwrap(), Some(Report::NotStarted { .. }))
    };
    assert!(refused(&guardian, 1), "no lease");
    scene.lease(MARGIN / 2, 1);
    assert!(refused(&guardian, 1), "less than the margin is left");
    scene.lease(Duration::from_secs(60), 2);
    assert!(refused(&guardian, 1), "the lease of another term");
    guardian.finish().unwrap();
    assert!(!scene.folder.join("ran").exists());
}

/// The kernel ends the tree, though nobody is left to ask for it.
#[test]
fn a_guardian_that_is_killed_takes_its_tree_along() {
    for containment in containments().into_iter().filter(|it| it.namespace) {
        let mut scene = Scene::new();
        scene.lease(Duration::from_secs(60), 1);
        let guardian = scene.guardian(&containment, STUBBORN);
        guardian.ask(&Request::Start { term: 1, token: 1 }).unwrap();
        guardian.report().unwrap();
        scene.wait_until_ready();
        let pid = guardian.pid().to_string();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        let began = Instant::now();
        while scene.alive() > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "{containment:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(guardian.report(), Ok(None) | Err(_)));
    }
}

/// A tree that nothing contains but that stays in its process group.
#[test]
fn without_containment_the_process_group_is_ended() {
    const GROUP: &str = r#"
        trap '' TERM
        sleep $1 & sleep $1 & sleep $1 &
        touch "$2/ready"
        while :; do sleep $1; done
    "#;
    let mut scene = Scene::new();
    scene.lease(Duration::from_secs(60), 1);
    let guardian = scene.guardian(&Containment::default(), GROUP);
    guardian.ask(&Request::Start { term: 1, token: 1 }).unwrap();
    guardian.report().unwrap();
    scene.wait_until_ready();
    scene.lease(Duration::from_millis(300), 1);
    guardian.ask(&Request::Ping).unwrap();
    assert_eq!(guardian.report().unwrap(), Some(Report::Pong));
    let ended = guardian.report().unwrap();
    assert!(
        matches!(ended, Some(Report::Ended { killed: Some(Killed::Lease { .. }), .. })),
        "{ended:?}"
    );
    let gone = |scene: &Scene| {
        let began = Instant::now();
        while scene.alive() > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "the process group survives");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    gone(&scene);
    fs::remove_file(scene.folder.join("ready")).unwrap();
    scene.lease(Duration::from_secs(60), 1);
    guardian.ask(&Request::Start { term: 1, token: 2 }).unwrap();
    guardian.report().unwrap();
    scene.wait_until_ready();
    guardian.kill().unwrap();
    guardian.end_what_is_left().unwrap();
    gone(&scene);
}
