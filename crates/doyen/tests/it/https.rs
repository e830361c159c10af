//! `https://` in the client: a real node behind a real nginx that terminates TLS, with certificates made here.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::servers::{Process, free_address, is_installed, replace, shipped, start_nginx};
use crate::support::{Plan, Trial, complaint, program, skip};

/// An authority, and the certificates that it has signed.
struct Authority {
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path) -> Self {
        fs::create_dir(folder).expect("a folder");
        let authority = Self { folder: folder.to_owned() };
        authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=trial",
        );
        authority
    }

    fn openssl(&self, arguments: &str) {
        let mut openssl = Command::new("openssl");
        openssl.args(arguments.split(' ')).current_dir(&self.folder);
        let made = openssl.stdin(Stdio::null()).output().expect("openssl runs");
        assert!(made.status.success(), "openssl {arguments}: {}", complaint(&made));
    }

    fn file(&self) -> String {
        self.folder.join("ca.crt").display().to_string()
    }

    /// A certificate of a server that is valid for so many days.
    fn sign(&self, name: &str, subject: &str, days: u32) -> (PathBuf, PathBuf) {
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
        ));
        let extensions = format!("subjectAltName={subject}\nbasicConstraints=CA:FALSE\n");
        fs::write(self.folder.join(format!("{name}.ext")), extensions).expect("it is written");
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days {days} -extfile {name}.ext -out {name}.crt"
        ));
        let file = |kind: &str| self.folder.join(format!("{name}.{kind}"));
        (file("crt"), file("key"))
    }
}

/// nginx, as it is shipped, in front of a node.
fn terminate(
    trial: &Trial,
    name: &str,
    node: &str,
    (certificate, key): &(PathBuf, PathBuf),
) -> (SocketAddr, Process) {
    let front = free_address();
    let text = replace(&shipped("nginx-tls.conf"), "listen 7443", &format!("listen {front}"));
    let text = replace(&text, "/etc/nginx/doyen.crt", &certificate.display().to_string());
    let text = replace(&text, "/etc/nginx/doyen.key", &key.display().to_string());
    let text = replace(&text, "http://127.0.0.1:7400", node);
    let process = start_nginx(&trial.folder, name, &text);
    trial.wait("nginx to listen", || std::net::TcpStream::connect(front).ok());
    (front, process)
}

fn doyen(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null());
    for variable in ["DOYEN_NODE", "DOYEN_CA_FILE", "DOYEN_SECRET_FILE"] {
        command.env_remove(variable);
    }
    command.output().expect("doyen can be run")
}

fn are_installed() -> bool {
    if Command::new("openssl").arg("version").output().is_err() {
        skip("TLS: openssl is not installed");
        return false;
    }
    is_installed("nginx")
}

/// Everything that uses HTTP works: what is read, what streams, and what is commanded.
#[test]
fn a_node_behind_tls_is_asked_and_commanded_and_a_lock_is_held() {
    if !are_installed() {
        return;
    }
    let mut trial = Trial::found(&Plan { preemption: "never", ..Plan::default() });
    for member in trial.everybody() {
        let config = trial.folder_of(member).join("doyen.toml");
        let text = fs::read_to_string(&config).expect("a configuration");
        fs::write(&config, format!("http_admin = true\n{text}")).expect("it is written");
        trial.run(member);
    }
    let leader = trial.agree(&[1, 2, 3]);
    let authority = Authority::new(&trial.folder.join("authority"));
    let certificate = authority.sign("good", "IP:127.0.0.1,DNS:localhost", 30);
    let (front, _nginx) = terminate(&trial, "nginx", trial.url(leader), &certificate);
    let (node, ca) = (format!("https://{front}"), authority.file());
    let by_name = format!("https://localhost:{}", front.port());
    for node in [&node, &by_name] {
        let status = doyen(&["status", "--node", node, "--ca-file", &ca]);
        assert!(status.status.success(), "{}", complaint(&status));
    }

    // The variable does the same.
    let mut status = Command::new(program());
    let status = status.args(["status", "--node", &node]).env("DOYEN_CA_FILE", &ca).output();
    let status = status.expect("doyen can be run");
    assert!(status.status.success(), "{}", complaint(&status));

    // Without --secret-file the secret of the node that is configured here is shown to no other address.
    let config = trial.folder_of(leader).join("doyen.toml").display().to_string();
    let refused =
        doyen(&["drain", "--for", "1s", "--config", &config, "--node", &node, "--ca-file", &ca]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(complaint(&refused).contains("is not shown its admin secret"), "{refused:?}");
    let secret = trial.folder_of(leader).join("state/admin-secret").display().to_string();
    let given = doyen(&[
        "drain",
        "--for",
        "1s",
        "--node",
        &node,
        "--secret-file",
        &secret,
        "--ca-file",
        &ca,
    ]);
    assert!(given.status.success(), "{}", complaint(&given));

    let leader = trial.agree(&[1, 2, 3]);
    let (front, _second) = terminate(&trial, "nginx-2", trial.url(leader), &certificate);
    let node = format!("https://{front}");
    let mark = trial.folder.join("mark").display().to_string();
    let lock = ["lock", "tls", "--wait", "60s", "--node", &node, "--ca-file", &ca];
    let held = doyen(&[&lock[..], &["--", "touch", &mark]].concat());
    assert!(held.status.success(), "{}", complaint(&held));
    assert!(Path::new(&mark).exists());
}

/// Each mistake has its own words, which say what to do; and nothing but the check of the certificate decides.
#[test]
fn a_wrong_certificate_is_refused_with_the_remedy() {
    if !are_installed() {
        return;
    }
    let mut trial = Trial::found(&Plan::default());
    trial.run(1);
    trial.wait("n1 to answer", || trial.status(1));
    let authority = Authority::new(&trial.folder.join("authority"));
    let stranger = Authority::new(&trial.folder.join("stranger"));
    let here = "IP:127.0.0.1";
    let (good, _nginx) = terminate(&trial, "good", trial.url(1), &authority.sign("good", here, 30));
    let refused = |address: &str, flags: &[&str], told: &[&str]| {
        let node = format!("https://{address}");
        let mut all = vec!["status", "--node", &node];
        all.extend(flags);
        let output = doyen(&all);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        for told in told {
            assert!(complaint(&output).contains(told), "{told} in {}", complaint(&output));
        }
    };
    let ca = authority.file();
    let with_ca = ["--ca-file", ca.as_str()];
    let other = stranger.file();
    let mut system = Command::new(program());
    system.args(["status", "--node", &format!("https://{good}")]).env_remove("DOYEN_CA_FILE");
    // What the machine trusts, whichever machine it is.
    let output = system.env("SSL_CERT_FILE", &other).output().expect("doyen can be run");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    for told in ["that this machine trusts", "--ca-file FILE"] {
        assert!(complaint(&output).contains(told), "{told} in {}", complaint(&output));
    }
    let told = format!("is not signed by an authority in {other}");
    refused(&good.to_string(), &["--ca-file", &other], &[&told]);
    refused(
        &format!("localhost:{}", good.port()),
        &with_ca,
        &["its certificate is for 127.0.0.1, not for localhost", "subjectAltName"],
    );

    let (old, _nginx) = terminate(&trial, "old", trial.url(1), &authority.sign("old", here, 0));
    // It is valid for no second but this one.
    trial.wait("the certificate to expire", || {
        let output = doyen(&["status", "--node", &format!("https://{old}"), "--ca-file", &ca]);
        (output.status.code() == Some(3)).then_some(())
    });
    refused(&old.to_string(), &with_ca, &["its certificate expired at 20", "renew it"]);

    // What `openssl req -x509` makes: its own authority.
    let own = (authority.folder.join("ca.crt"), authority.folder.join("ca.key"));
    let (own, _nginx) = terminate(&trial, "own", trial.url(1), &own);
    refused(&own.to_string(), &with_ca, &["one of an authority, not of a server"]);

    let plain = trial.url(1).trim_start_matches("http://").to_owned();
    refused(&plain, &with_ca, &["it does not speak TLS", "write http://"]);

    for (file, told) in [("absent", "No such file"), ("doyen.toml", "has no certificate")] {
        let file = trial.folder_of(1).join(file).display().to_string();
        let node = format!("https://{good}");
        let output = doyen(&["status", "--node", &node, "--ca-file", &file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(complaint(&output).contains(told), "{told} in {}", complaint(&output));
        assert!(complaint(&output).contains(&file), "{}", complaint(&output));
    }
}
