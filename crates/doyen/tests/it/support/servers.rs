//! Programs that tests run beside the nodes: balancers and proxies, with the configurations that are shipped.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{free_port, skip};

/// A configuration that is shipped.
pub fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(path).expect("a configuration")
}

/// Replaces every occurrence, of which there must be one.
pub fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} in {text}");
    text.replace(from, to)
}

/// An address on loopback that nobody uses.
pub fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port("127.0.0.1")))
}

/// A process that ends with the test.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts it; its complaints go to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let log = fs::File::create(log).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM, which both programs pass on to their workers.
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        let _ = rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Whether a program is there; says what is skipped if it is not.
pub fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("-v").output().is_ok();
    if !found {
        skip(&format!("the configuration of {program}: {program} is not installed (`make tools`)"));
    }
    found
}

/// A configuration for nginx of its own, around what is shipped.
pub fn start_nginx(folder: &Path, name: &str, shipped: &str) -> Process {
    let folder = folder.join(name);
    fs::create_dir(&folder).unwrap();
    let place = |file: &str| folder.join(file).display().to_string();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {};\n", place(kind)))
        .concat();
    let (pid, file) = (place("pid"), place("nginx.conf"));
    let text = format!(
        "daemon off;\nworker_processes 1;\npid {pid};\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{shipped}}}\n"
    );
    fs::write(&file, text).unwrap();
    let flags = ["-c", &file, "-e", &place("error.log")];
    let checked = Command::new("nginx").arg("-t").args(flags).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    Process::start(Command::new("nginx").args(flags), &PathBuf::from(place("stderr")))
}
