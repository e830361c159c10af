//! The static lab: a folder behind a plain file server gives the same runs as the program.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::browser;
use super::lab::Lab;
use super::page::{DESK, Page};
use crate::support;

/// Python's file server, which knows nothing of the lab.
struct FileServer(Child, String);

impl FileServer {
    fn start(folder: &Path) -> Self {
        let mut process = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 can be run");
        let mut first = String::new();
        BufReader::new(process.stdout.take().expect("its output"))
            .read_line(&mut first)
            .expect("a line");
        let port = first.split("port ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let origin = format!("http://127.0.0.1:{}", port.expect("a port"));
        Self(process, origin)
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `make lab-static` has written.
fn folder() -> Option<PathBuf> {
    let target = Path::new(support::program()).ancestors().nth(2).expect("the target folder");
    let folder = target.join("lab-static");
    folder.join("web/engine.wasm").is_file().then_some(folder)
}

#[test]
fn the_static_lab_gives_the_same_runs_without_a_server() {
    let Some(browser) = browser() else { return };
    let Some(folder) = folder() else {
        return support::skip("there is no static lab: `make lab-static` builds it");
    };
    let lab = Lab::start(&["--members", "1"]);
    let files = FileServer::start(&folder);
    let program = Page::open(&browser, &lab.view("#/gallery"), DESK);
    let alone = Page::open(&browser, &format!("{}/#/gallery", files.1), DESK);
    let names = [&program, &alone].map(|page| {
        page.evaluate(
            "(async () => {
                const { Simulation, HttpTransport, WasmTransport } = await import('/web/engine/simulation.js');
                globalThis.engine = new Simulation(document.documentElement.dataset.host === 'static' ? new WasmTransport() : new HttpTransport());
                const { gallery } = await engine.catalogue();
                return gallery.flatMap(({ scenarios }) => scenarios).map(({ name }) => name).filter(Boolean);
            })()",
        )
    });
    assert_eq!(names[0], names[1]);
    let names = names[0].as_array().expect("a list");
    assert!(names.len() > 80, "{} scenarios", names.len());
    for name in names {
        let source = format!("{{ gallery: {name}, toml: null, flags: [] }}");
        let run =
            format!("engine.run({source}).then((run) => [run.length, JSON.stringify(run.data)])");
        let ours = program.evaluate(&run);
        // Of the largest runs nothing but the totals is recorded, and they take a browser long.
        if ours[0] != json!(0) {
            assert_eq!(ours, alone.evaluate(&run), "{name}");
        }
    }
    alone.evaluate("void (location.hash = '#/sim/kordafshari/figure-1')");
    alone.wait("a run", "lab.shown.of > 10");
    alone.press("End");
    alone.wait("its end", "lab.shown.s === lab.shown.of && lab.shown.messages === 16");
    let tabs =
        alone.evaluate("[...document.querySelectorAll('#tabs a')].map((tab) => tab.textContent)");
    assert_eq!(tabs, json!(["Simulate", "Race", "Check", "Gallery"]));
    alone.assert_clean(&files.1);
}
