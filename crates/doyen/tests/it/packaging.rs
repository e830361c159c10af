//! What is shipped beside the program agrees with it: man pages, completions, the Debian package, the container file and the
//! manifests for Kubernetes. The systemd units are in `systemd.rs`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{complaint, doyen, free_address, new_folder, program, skip};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The output of a program; none if there is no such program.
fn output(command: &mut Command) -> Option<Output> {
    command.stdin(Stdio::null()).output().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every command that `doyen help` lists.
fn commands() -> Vec<String> {
    let help = text(&doyen(&["help"]).stdout);
    let listed = help.lines().take_while(|line| *line != "Options:");
    let entries = listed.filter_map(|line| line.strip_prefix("  "));
    entries.filter_map(|entry| entry.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn there_is_a_man_page_and_a_completion_for_every_command() {
    let folder = new_folder();
    let made = doyen(&["manual", folder.to_str().unwrap()]);
    assert!(made.status.success(), "{}", complaint(&made));
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let names = ["doyen.bash", "_doyen", "doyen.fish"];
    let completions = names.map(|name| read(&format!("completions/{name}")));
    let overview = read("man1/doyen.1");
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for command in &commands {
        let page = read(&format!("man1/doyen-{command}.1"));
        assert!(page.contains(".SH NAME") && page.contains(".SH OPTIONS"), "doyen-{command}.1");
        assert!(
            overview.contains(&format!("doyen\\-{}(1)", command.replace('-', "\\-"))),
            "{command}"
        );
        for (name, completion) in names.iter().zip(&completions) {
            assert!(completion.contains(command), "{name} lacks {command}");
        }
    }
    // The setting of a flag comes from the schema, an example from the help of the command.
    let node = read("man1/doyen-node.1");
    assert!(node.contains("state\\-dir") && node.contains("Examples:"), "{node}");
    // Hidden commands and flags are nobody's business.
    let pages = fs::read_dir(folder.join("man1")).unwrap().count();
    // The overview, and `doyen keys rotate`.
    assert_eq!(pages, commands.len() + 2);
    assert!(!node.contains("stdin"), "{node}");
    if let Some(checked) =
        output(Command::new("bash").arg("-n").arg(folder.join("completions/doyen.bash")))
    {
        assert!(checked.status.success(), "{}", complaint(&checked));
    }
    let _ = fs::remove_dir_all(folder);
}

/// In a copy of this machine's root in memory, so that nothing of it stays.
const INSTALL: &str = r#"
    set -eu
    package=$1 room=$2
    mount -t tmpfs room "$room"
    mkdir "$room/upper" "$room/work" "$room/root"
    mount -t overlay room -o "lowerdir=/,upperdir=$room/upper,workdir=$room/work" "$room/root" || exit 77
    cp "$package" "$room/root/doyen.deb"
    mount -t proc proc "$room/root/proc"
    mount -t tmpfs run "$room/root/run"
    exec chroot "$room/root" sh -eu -c "$3"
"#;

/// What an administrator does, with the command of the unit: n1 is on a new machine, as in docs/operations.md, and n2 is the
/// other one. The addresses are those of the namespace of the test.
const USE: &str = r#"
    dpkg -i /doyen.deb
    stat -c '%n %a %U:%G' /etc/doyen /var/lib/doyen /usr/bin/doyen
    getent passwd doyen | cut -d : -f 6,7
    ! pgrep -x doyen
    cd /var/lib/doyen
    doyen init --cluster orders --member n1=127.0.0.1:7400 --member n2=127.0.0.1:7401 --out /tmp/orders > /dev/null
    ip link set lo up
    doyen node --config /tmp/orders/n2/doyen.toml 2> /tmp/other-log & other=$!
    rm -r /tmp/orders/n1/state
    cp -a /tmp/orders/n1 orders
    as="env HOME=/var/lib/doyen setpriv --reuid doyen --regid doyen --clear-groups"
    ! $as doyen rejoin --config /var/lib/doyen/orders/doyen.toml
    chown -R doyen: /var/lib/doyen/orders
    $as doyen rejoin --config /var/lib/doyen/orders/doyen.toml
    start=$(sed -n 's/%i/orders/; s/^ExecStart=//p' /usr/lib/systemd/system/doyen@.service)
    $as $start --check
    $as $start 2> /tmp/log & node=$!
    for try in $(seq 100); do
        if doyen status --node http://127.0.0.1:7400 > /tmp/status 2>&1 && grep -q ' leads orders' /tmp/status; then break; fi
        sleep 0.1
    done
    head -n 1 /tmp/status
    kill $node $other
    wait $node $other
    dpkg --purge doyen
    test ! -e /usr/bin/doyen
    ls /var/lib/doyen/orders
    getent passwd doyen > /dev/null && echo "the user stays"
"#;

#[test]
fn the_debian_package_installs_runs_and_leaves_states_alone() {
    let folder = new_folder();
    let builds = ["dpkg-deb", "strip"]
        .iter()
        .all(|tool| output(Command::new(tool).arg("--version")).is_some());
    if !builds {
        return skip("there is no dpkg-deb or no strip here: the Debian package is not built");
    }
    let build = root().join("packaging/debian/build");
    let mut build = Command::new(build);
    // A program with its assertions is large, and this package is not kept.
    build.arg(program()).arg(&folder).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let built = output(&mut build).expect("the script");
    assert!(built.status.success(), "{}", complaint(&built));
    let package = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let room = folder.join("room");
    fs::create_dir(&room).unwrap();
    let mut install = Command::new("unshare");
    install.args([
        "--mount",
        "--pid",
        "--net",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        INSTALL,
        "install",
    ]);
    let installed = output(install.arg(&package).arg(&room).arg(USE));
    let Some(installed) = installed.filter(|it| it.status.code() != Some(77)) else {
        return skip(
            "no unshare or no overlay here: the Debian package is built and not installed",
        );
    };
    let said = complaint(&installed);
    if said.contains("Operation not permitted") && !rustix::process::getuid().is_root() {
        return skip("not root: the Debian package is built and not installed");
    }
    let shown = text(&installed.stdout);
    assert!(installed.status.success(), "{shown}\n{said}");
    assert!(
        said.contains("/var/lib/doyen/orders/doyen.toml: cannot be read: Permission"),
        "{said}"
    );
    for line in [
        "/etc/doyen 750 root:doyen",
        "/var/lib/doyen 750 root:doyen",
        "/usr/bin/doyen 755 root:root",
        "/var/lib/doyen:/usr/sbin/nologin",
        "n1 has rejoined orders: stored by n2",
        " leads orders in term ",
        "doyen.toml",
        "the user stays",
    ] {
        assert!(shown.contains(line), "{line} is missing:\n{shown}\n{said}");
    }
    let _ = fs::remove_dir_all(folder);
}

/// The instructions of a container file, with continued lines joined.
fn instructions(file: &str) -> Vec<(String, String)> {
    let joined = file.replace("\\\n", " ");
    let lines =
        joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |line: &str| {
        line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()))
    };
    lines.filter_map(split).collect()
}

/// Its structure only: nothing here can build it.
#[test]
fn the_container_file_copies_what_is_there_and_runs_as_nobody() {
    let file = fs::read_to_string(root().join("packaging/Containerfile")).unwrap();
    let all = instructions(&file);
    let stages: Vec<usize> = (0..all.len()).filter(|&at| all[at].0 == "FROM").collect();
    let [build, last] = stages[..] else { panic!("there are {} stages", stages.len()) };
    assert!(build == 0 && all[0].1.ends_with(" AS build"));
    for (name, rest) in &all {
        if name == "COPY" && !rest.starts_with("--from=build") {
            let words: Vec<&str> = rest.split_whitespace().collect();
            for source in &words[..words.len() - 1] {
                assert!(root().join(source).exists(), "{source} is not there");
            }
        }
    }
    let value = |wanted: &str| {
        let found = all[last..].iter().find(|(name, _)| name == wanted);
        found.unwrap_or_else(|| panic!("{wanted} is missing")).1.clone()
    };
    let user = value("USER");
    let ids = user.split(':').map(|id| id.parse::<u32>().expect("a number: Kubernetes checks it"));
    assert!(ids.clone().count() == 2 && ids.into_iter().all(|id| id != 0), "{user}");
    // No shell between doyen and the signals.
    let entry: Vec<String> = serde_json::from_str(&value("ENTRYPOINT")).expect("words");
    assert_eq!(entry, ["/usr/bin/doyen"]);
    let command: Vec<String> = serde_json::from_str(&value("CMD")).expect("words");
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let tried = complaint(&doyen(&words));
    assert!(tried.contains("/var/lib/doyen/doyen.toml"), "only the file is missing: {tried}");
    assert!(value("HEALTHCHECK").contains("/livez"), "a node without a leader is healthy");
}

/// The documents of a YAML file, through Python: no maintained crate reads YAML into plain values.
fn documents(path: &Path) -> Option<Vec<Value>> {
    let script = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)";
    let Some(read) = output(Command::new("python3").args(["-c", script]).arg(path)) else {
        skip("there is no python3 here: the manifests for Kubernetes are not read");
        return None;
    };
    if complaint(&read).contains("No module named 'yaml'") {
        skip("python3 has no yaml here: the manifests for Kubernetes are not read");
        return None;
    }
    assert!(read.status.success(), "{}", complaint(&read));
    Some(serde_json::from_slice(&read.stdout).expect("JSON"))
}

struct Manifests(Vec<Value>);

impl Manifests {
    fn read() -> Option<Self> {
        documents(&root().join("packaging/kubernetes/doyen.yaml")).map(Self)
    }

    fn of_kind(&self, kind: &str) -> &Value {
        let mut found = self.0.iter().filter(|document| document["kind"] == kind);
        let first = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
        assert!(found.next().is_none(), "there are several: {kind}");
        first
    }

    fn file(&self, name: &str) -> &str {
        self.of_kind("ConfigMap")["data"][name].as_str().expect(name)
    }
}

#[test]
fn the_manifests_refer_to_each_other_and_probe_paths_that_are_served() {
    let Some(manifests) = Manifests::read() else { return };
    let set = &manifests.of_kind("StatefulSet")["spec"];
    let pod = &set["template"]["spec"];
    let service = manifests.of_kind("Service");
    assert_eq!(set["serviceName"], service["metadata"]["name"]);
    assert_eq!(set["template"]["metadata"]["labels"], service["spec"]["selector"]);
    assert_eq!(set["selector"]["matchLabels"], service["spec"]["selector"]);
    assert_eq!(
        (&service["spec"]["clusterIP"], &service["spec"]["publishNotReadyAddresses"]),
        (&Value::from("None"), &Value::from(true))
    );
    // A member for every replica, under the name of its pod.
    let config: toml::Table = manifests.file("doyen.toml").parse().unwrap();
    let members = config["member"].as_array().unwrap();
    assert_eq!(set["replicas"].as_u64(), Some(members.len() as u64));
    let name = manifests.of_kind("StatefulSet")["metadata"]["name"].as_str().unwrap();
    for (number, member) in members.iter().enumerate() {
        let pod = format!("{name}-{number}");
        assert_eq!(member["name"].as_str(), Some(&*pod));
        let address = format!("{pod}.{}:7400", set["serviceName"].as_str().unwrap());
        assert_eq!(member["address"].as_str(), Some(&*address));
    }
    // A secret with fsGroup is readable by a group.
    assert!(pod["securityContext"]["fsGroup"].is_u64());
    assert_eq!(config["key_group_readable"].as_bool(), Some(true));
    let sidecar = &pod["initContainers"][1];
    assert_eq!(sidecar["restartPolicy"], "Always");
    let probe = |name: &str| sidecar[name]["httpGet"]["path"].as_str().expect(name).to_owned();
    assert_eq!(
        ["startupProbe", "livenessProbe", "readinessProbe"].map(probe),
        ["/livez", "/livez", "/readyz"]
    );
    let volumes = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .chain(set["volumeClaimTemplates"].as_array().unwrap());
    let volumes: Vec<&Value> =
        volumes.map(|volume| volume.get("name").unwrap_or(&volume["metadata"]["name"])).collect();
    for mount in sidecar["volumeMounts"].as_array().unwrap() {
        assert!(volumes.contains(&&mount["name"]), "{mount}");
    }
}

/// A pod of the manifests as far as it is files and scripts.
struct Pod {
    folder: PathBuf,
}

impl Pod {
    fn new(manifests: &Manifests) -> Self {
        let folder = new_folder();
        fs::write(folder.join("prepare.sh"), manifests.file("prepare.sh")).unwrap();
        let [key, volume] = [folder.join("key"), folder.join("volume")];
        fs::create_dir(&volume).unwrap();
        symlink(program(), folder.join("doyen")).unwrap();
        let config =
            manifests.file("doyen.toml").replace("/etc/doyen-key/key", key.to_str().unwrap());
        let config = config.replace("/var/lib/doyen", volume.to_str().unwrap());
        fs::write(folder.join("doyen.toml"), config).unwrap();
        let made = doyen(&["keygen", "--out", key.to_str().unwrap()]);
        assert!(made.status.success(), "{}", complaint(&made));
        fs::set_permissions(&key, Permissions::from_mode(0o440)).unwrap();
        Self { folder }
    }

    /// Runs the script that prepares the volume.
    fn prepare(&self, missing_state: &str) -> Output {
        let listen = free_address();
        let config = self.folder.join("doyen.toml");
        let mut command = Command::new("sh");
        command.arg(self.folder.join("prepare.sh")).arg("--config").arg(config);
        // The other pods are not there.
        command.args(["--timeout", "1s", "--listen", &listen]).env("MISSING_STATE", missing_state);
        self.output(&mut command)
    }

    fn check(&self) -> Output {
        let mut command = Command::new(program());
        self.output(command.args(["node", "--config", "doyen.toml", "--check"]))
    }

    fn output(&self, command: &mut Command) -> Output {
        let path = format!("{}:{}", self.folder.display(), std::env::var("PATH").unwrap());
        command.current_dir(&self.folder).env("PATH", path).env("DOYEN_ID", "orders-1");
        output(command.env("DOYEN_VOLUME", self.folder.join("volume"))).expect("it can be run")
    }
}

#[test]
fn a_pod_is_founded_once_and_comes_back_without_its_volume_only_on_request() {
    let Some(manifests) = Manifests::read() else { return };
    let pod = Pod::new(&manifests);
    let state = pod.folder.join("volume/state/state");
    let refused = pod.prepare("refuse");
    assert!(!refused.status.success() && complaint(&refused).contains("rejoin"), "{refused:?}");
    let founded = pod.prepare("found");
    assert!(founded.status.success(), "{}", complaint(&founded));
    let first = fs::read(&state).unwrap();
    let checked = pod.check();
    assert!(checked.status.success(), "{}", complaint(&checked));
    let said = text(&checked.stdout);
    assert!(
        said.contains("orders-1 of cluster orders: 3 members")
            && said.contains("keys and state are valid"),
        "{said}"
    );
    // Every later start of the pod.
    for missing_state in ["found", "refuse", "rejoin"] {
        assert!(pod.prepare(missing_state).status.success());
    }
    assert_eq!(fs::read(&state).unwrap(), first);
    fs::remove_dir_all(pod.folder.join("volume/state")).unwrap();
    let alone = pod.prepare("rejoin");
    assert_eq!(alone.status.code(), Some(4), "{}", complaint(&alone));
    let said = complaint(&alone);
    assert!(said.contains("rejoins; no answer yet from orders-0, orders-2"), "{said}");
    // Without the setting the key of the secret is refused.
    let config = fs::read_to_string(pod.folder.join("doyen.toml")).unwrap();
    let config = config.replace("key_group_readable = true", "");
    fs::write(pod.folder.join("doyen.toml"), config).unwrap();
    let refused = complaint(&pod.check());
    assert!(refused.contains("key_group_readable = true"), "{refused}");
    let _ = fs::remove_dir_all(&pod.folder);
}

/// `make static` checks the program that it has built; here the last one is checked, if there is one.
#[test]
fn the_static_program_needs_no_library() {
    // …/debug/doyen
    let target = Path::new(program()).ancestors().nth(2).expect("the folder of all builds");
    let musl = target.join(format!("{}-unknown-linux-musl", std::env::consts::ARCH));
    let built = ["dist", "release", "debug"].map(|profile| musl.join(profile).join("doyen"));
    let Some(program) = built.iter().find(|program| program.exists()) else {
        return skip("there is no static program; `make static` builds it");
    };
    let Some(linked) = output(Command::new("ldd").arg(program)) else {
        return skip("there is no ldd here: the static program is not checked");
    };
    assert!(!text(&linked.stdout).contains("=>"), "{}", text(&linked.stdout));
    let version = output(Command::new(program).arg("--version")).expect("it runs");
    assert_eq!(version.stdout, doyen(&["--version"]).stdout);
}
