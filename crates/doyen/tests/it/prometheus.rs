//! The real Prometheus: it reads the metrics of real nodes, and its tool the metrics and the alerts. `make tools` unpacks
//! both programs from their package, without installing the service.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::rounds::{Tally, few_rounds};
use crate::support::{Plan, Trial, free_address, program, skip};

/// A program of the package: that of the system, or the one that `make tools` has unpacked.
fn found(name: &str) -> Option<PathBuf> {
    // …/debug/doyen
    let target = Path::new(program()).ancestors().nth(2).expect("the folder of all builds");
    let candidates = [PathBuf::from(name), target.join("tools").join(name)];
    let runs = |path: &PathBuf| Command::new(path).arg("--version").output().is_ok();
    let found = candidates.into_iter().find(runs);
    if found.is_none() {
        skip(&format!("there is no {name} here (`make tools`)"));
    }
    found
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat()
}

/// Three nodes that have something to tell: a transfer, a crash, admin calls.
fn eventful() -> Trial {
    // With the policy immediate n3 would take over again at once.
    let mut trial = Trial::start(&Plan { preemption: "never", patient: true, ..Plan::default() });
    trial.lead(3);
    trial.transfer(3, 2);
    trial.follow(2, &[1, 2, 3]);
    trial.kill(2);
    trial.agree(&[1, 3]);
    trial.run(2);
    trial.agree(&[1, 2, 3]);
    trial
}

#[test]
fn promtool_finds_no_fault_with_the_metrics() {
    let Some(promtool) = found("promtool") else { return };
    let trial = eventful();
    let downtimes = trial
        .everybody()
        .into_iter()
        .filter_map(|member| trial.metric(member, "doyen_downtime_seconds_count", ""));
    assert!(downtimes.sum::<u64>() >= 1, "the crash has been measured");
    for member in trial.everybody() {
        let metrics = trial.get(member, "/metrics").expect("metrics");
        let mut check = Command::new(&promtool)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut stdin = check.stdin.take().expect("a pipe");
        stdin.write_all(metrics.as_bytes()).expect("it reads");
        drop(stdin);
        let checked = check.wait_with_output().expect("it ends");
        assert!(checked.status.success(), "{}\n{metrics}", said(&checked));
        assert_eq!(said(&checked), "", "no advice either:\n{metrics}");
    }
}

#[test]
fn promtool_finds_no_fault_with_the_alerts_and_they_fire_when_they_should() {
    let Some(promtool) = found("promtool") else { return };
    let alerts = in_repository("packaging/prometheus-alerts.yml");
    let checked = Command::new(&promtool).args(["check", "rules"]).arg(alerts).output().unwrap();
    assert!(checked.status.success(), "{}", said(&checked));
    let cases = in_repository("crates/doyen/tests/prometheus/alerts.yml");
    let tested = Command::new(&promtool).args(["test", "rules"]).arg(cases).output().unwrap();
    assert!(tested.status.success(), "{}", said(&tested));
}

/// A server that ends with the test.
struct Prometheus {
    child: Child,
    url: String,
}

impl Prometheus {
    /// Scrapes all members of `trial` every second, and evaluates the shipped alerts.
    fn start(program: &Path, trial: &Trial) -> Self {
        let folder = trial.folder.join("prometheus");
        fs::create_dir(&folder).unwrap();
        let targets: Vec<String> = trial
            .everybody()
            .into_iter()
            .map(|member| format!("{:?}", trial.url(member).trim_start_matches("http://")))
            .collect();
        let alerts = in_repository("packaging/prometheus-alerts.yml");
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: [{:?}]\n\
             scrape_configs:\n  - job_name: doyen\n    static_configs: [{{ targets: [{}] }}]\n",
            alerts.display().to_string(),
            targets.join(", ")
        );
        fs::write(folder.join("prometheus.yml"), config).unwrap();
        let address = free_address();
        let child = Command::new(program)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("log")).unwrap())
            .spawn()
            .expect("it starts");
        Self { child, url: format!("http://{address}") }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let text = ureq::get(format!("{}{path}", self.url)).call().ok()?;
        serde_json::from_str(&text.into_body().read_to_string().ok()?).ok()
    }

    /// The value of an expression that has one.
    fn value(&self, expression: &str) -> Option<f64> {
        let answer = self.get(&format!("/api/v1/query?query={expression}"))?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// It asks for `OpenMetrics`, which it reads strictly: one wrong line, and a target counts as down.
#[test]
fn prometheus_scrapes_nodes_and_notices_when_none_answers() {
    let Some(prometheus) = found("prometheus") else { return };
    let mut trial = eventful();
    let prometheus = Prometheus::start(&prometheus, &trial);
    trial.wait("Prometheus has scraped all nodes", || {
        prometheus.value("sum(up)").filter(|&up| up == 3.0)
    });
    trial.wait("one leader", || prometheus.value("sum(doyen_is_leader)").filter(|&it| it == 1.0));
    // What was measured is read as histograms, and the process by the names that all programs have.
    for expression in
        ["histogram_quantile(0.5,doyen_round_trip_seconds_bucket)", "process_resident_memory_bytes"]
    {
        let value = trial.wait(expression, || prometheus.value(expression));
        assert!(value > 0.0, "{expression} is {value}");
    }
    let targets = prometheus.get("/api/v1/targets").expect("its targets");
    let errors: Vec<&Value> = targets["data"]["activeTargets"]
        .as_array()
        .expect("targets")
        .iter()
        .map(|target| &target["lastError"])
        .collect();
    assert_eq!(errors, ["", "", ""]);
    let mut tally = Tally::new("no node answers Prometheus, then all do again");
    for _ in 0..few_rounds() {
        tally.round(|| {
            trial.everybody().into_iter().for_each(|member| trial.kill(member));
            let firing =
                |alert| prometheus.value(&format!("count(ALERTS%7Balertname=%22{alert}%22%7D)"));
            for alert in ["DoyenNoAnswer", "DoyenNodeDown"] {
                trial.wait(alert, || firing(alert).filter(|&count| count >= 1.0));
            }
            trial.everybody().into_iter().for_each(|member| trial.run(member));
            trial.wait("Prometheus has scraped all nodes again, and no alert is left", || {
                let is_up = prometheus.value("sum(up)") == Some(3.0);
                (is_up && firing("DoyenNodeDown").is_none()).then_some(())
            });
        });
    }
}
