//! What a program that embeds a node links: neither HTTP nor the simulator, unless it asks for them.

use std::process::Command;

/// The crates that the library depends on with these features.
fn dependencies(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", "doyen", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--no-default-features"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn a_node_alone_needs_neither_http_nor_the_simulator() {
    let alone = dependencies(&[]);
    assert!(alone.iter().any(|name| name == "doyen-core"), "{alone:?}");
    let http = ["axum", "hyper", "utoipa", "prometheus-client"];
    let program = ["doyen-sim", "doyen-check", "doyen-report", "clap", "ureq"];
    for name in http.iter().chain(&program) {
        assert!(!alone.iter().any(|it| it == name), "{name} is linked without any feature");
    }
    let served = dependencies(&["--features", "http"]);
    assert!(http.iter().all(|name| served.iter().any(|it| it == name)), "{served:?}");
    for name in program {
        assert!(!served.iter().any(|it| it == name), "{name} is linked with `http` alone");
    }
}

/// TLS is for programs that ask for it, with the one library of ciphers that was chosen.
#[test]
fn only_https_links_tls() {
    let has = |features: &[&str], name| dependencies(features).iter().any(|it| it == name);
    assert!(has(&["--features", "lock"], "ureq") && !has(&["--features", "lock"], "rustls"));
    assert!(has(&["--features", "https"], "ring"));
    for name in ["aws-lc-rs", "openssl", "webpki-roots"] {
        assert!(!has(&["--features", "cli"], name), "{name} is linked");
    }
}
