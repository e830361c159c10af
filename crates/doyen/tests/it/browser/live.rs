//! Live: real processes that are killed, stopped and cut off, and what the page says of it.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::browser;
use super::lab::{Lab, descendants, signal};
use super::page::{DESK, Page, Point};

fn shown(page: &Page) -> Value {
    page.evaluate("structuredClone(window.lab.shown)")
}

/// A lab with a leader, on a page.
fn with_leader(
    browser: &std::rc::Rc<std::cell::RefCell<super::chromium::Browser>>,
    lab: &Lab,
) -> Page {
    let page = Page::open(browser, &lab.address, DESK);
    page.wait("a leader", "lab.shown.leader && Object.values(lab.shown.members).every((role) => /leader|follower/.test(role))");
    page
}

/// The process of a member, as the page says.
fn pid(page: &Page, member: &str) -> u32 {
    let pid = page.evaluate(&format!("lab.shown.pids[{}]", json!(member)));
    u32::try_from(pid.as_u64().expect("a process id")).expect("a process id")
}

#[test]
fn a_leader_killed_from_a_terminal_is_replaced_and_the_downtime_is_shown() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&[]);
    let page = with_leader(&browser, &lab);
    let first = shown(&page)["leader"].as_str().expect("a leader").to_owned();
    let killed = Instant::now();
    signal(pid(&page, &first), Signal::KILL);
    page.wait(
        "the next leader",
        &format!(
            "lab.shown.leader && lab.shown.leader !== {} && lab.shown.failovers > 0",
            json!(first)
        ),
    );
    let seen = killed.elapsed();
    let shown = shown(&page);
    let downtime = Duration::from_micros(shown["downtime_us"].as_u64().expect("the downtime"));
    assert!(!downtime.is_zero() && downtime <= seen, "{downtime:?} of {seen:?}");
    assert_eq!(shown["overlap_us"], json!(0));
    assert_eq!(shown["members"][&first], json!("down"));
    page.wait(
        "the downtime on screen",
        "/[Dd]owntime \\d/.test(document.querySelector('main').innerText)",
    );
    page.assert_clean(&lab.origin);
}

#[test]
fn keys_alone_kill_restart_pause_and_heal() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&[]);
    let page = with_leader(&browser, &lab);
    let first = shown(&page)["leader"].as_str().expect("a leader").to_owned();
    page.press("k");
    page.wait(
        "it is down",
        &format!("lab.shown.members[{}] === 'down' && lab.shown.leader", json!(first)),
    );
    page.press("r");
    page.wait(
        "it is up again",
        &format!("/leader|follower/.test(lab.shown.members[{}])", json!(first)),
    );
    // It failed as leader, and the page says why it does not lead again at once.
    page.wait(
        "its penalty",
        "[...document.querySelectorAll('main svg .label')].some((label) => /^penalty/.test(label.textContent))",
    );
    // Every control can be reached by Tab.
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..60 {
        page.press("Tab");
        reached.insert(
            page.evaluate("document.activeElement?.textContent?.slice(0, 24) ?? ''").to_string(),
        );
    }
    assert!(reached.iter().any(|text| text.contains("Kill the leader")), "{reached:?}");
    page.assert_clean(&lab.origin);
}

#[test]
fn a_leader_parted_off_by_a_line_steps_down_before_the_next_one_leads() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&[]);
    let page = with_leader(&browser, &lab);
    let leader = shown(&page)["leader"].as_str().expect("a leader").to_owned();
    // A line across the ring between the leader and the middle.
    let [from, to] = line_beside(&page, &leader);
    page.drag(from, to);
    page.wait(
        "the other side elects",
        &format!(
            "lab.shown.leader && lab.shown.leader !== {} && lab.shown.failovers > 0",
            json!(leader)
        ),
    );
    page.wait(
        "the old one has stepped down",
        &format!("lab.shown.members[{}] !== 'leader'", json!(leader)),
    );
    assert_eq!(shown(&page)["overlap_us"], json!(0));
    page.press("h");
    page.wait(
        "all follow again",
        "Object.values(lab.shown.members).every((role) => /leader|follower/.test(role))",
    );
    page.assert_clean(&lab.origin);
}

/// Two points on empty ground whose line parts `member` from all others.
fn line_beside(page: &Page, member: &str) -> [Point; 2] {
    let places = page.evaluate(
        "[...document.querySelectorAll('main g.member')].map((g) => { const b = g.querySelector('.disc').getBoundingClientRect();
            return [g.textContent, b.x + b.width / 2, b.y + b.height / 2, b.width / 2]; })",
    );
    let places = places.as_array().expect("members");
    let at = |place: &Value| Point {
        x: place[1].as_f64().expect("x"),
        y: place[2].as_f64().expect("y"),
    };
    let own = places
        .iter()
        .find(|place| place[0].as_str().is_some_and(|text| text.contains(member)))
        .expect("the member");
    let count = places.len() as f64;
    let middle = Point {
        x: places.iter().map(|place| at(place).x).sum::<f64>() / count,
        y: places.iter().map(|place| at(place).y).sum::<f64>() / count,
    };
    let (dx, dy) = (at(own).x - middle.x, at(own).y - middle.y);
    // The other members of a ring of five lie below 0.31 of the radius towards this one.
    let foot = Point { x: middle.x + 0.62 * dx, y: middle.y + 0.62 * dy };
    [1.0, -1.0].map(|way| Point { x: foot.x - way * dy * 1.05, y: foot.y + way * dx * 1.05 })
}

#[test]
fn ctrl_c_leaves_no_process_and_the_page_says_that_the_lab_has_stopped() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "3"]);
    let page = with_leader(&browser, &lab);
    let nodes = descendants(lab.pid());
    assert!(nodes.len() >= 3, "{nodes:?}");
    lab.interrupt();
    page.wait("the end", "/stopped|lost/i.test(document.body.innerText)");
    page.evaluate("void (location.hash = '#/race')");
    page.wait(
        "a view that cannot be loaded any more",
        "/Start it again with doyen lab/.test(document.querySelector('main').innerText)",
    );
    let alive = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let deadline = Instant::now() + Duration::from_secs(10);
    while nodes.iter().any(alive) {
        assert!(
            Instant::now() < deadline,
            "{:?} still run",
            nodes.iter().filter(|pid| alive(pid)).collect::<Vec<_>>()
        );
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_nodes_own_page_shows_the_cluster_and_offers_no_fault() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "3"]);
    let page = with_leader(&browser, &lab);
    // The stream tells where each node has its own page.
    let address = page.evaluate(
        "(async () => {
            const stream = await fetch('/lab/stream', { headers: { authorization: `Bearer ${sessionStorage.getItem('doyen-key')}` } });
            const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
            for (let text = ''; ; text += (await reader.read()).value) {
                const found = /\"http\":\"([^\"]+)\"/.exec(text);
                if (found) return found[1];
            }
        })()",
    );
    let address = address.as_str().expect("an address").trim_end_matches('/').to_owned();
    let address = if address.contains("://") { address } else { format!("http://{address}") };
    let node = Page::open(&browser, &format!("{address}/"), DESK);
    // A better member may have started last, and takes over meanwhile.
    let agrees = |_: &usize| {
        thread::sleep(Duration::from_millis(100));
        let leader = shown(&page)["leader"].clone();
        leader.is_string() && node.evaluate("window.lab?.shown?.leader ?? null") == leader
    };
    (0..300).find(agrees).expect("the node's page shows the leader that the lab shows");
    let buttons = "[...document.querySelectorAll('main button')].map((one) => one.textContent)";
    let buttons = node.evaluate(buttons).to_string();
    for fault in ["Kill", "Pause", "Cut", "Partition", "Restart", "Drain", "Transfer"] {
        assert!(!buttons.contains(fault), "{fault}: {buttons}");
    }
    let tabs =
        node.evaluate("[...document.querySelectorAll('#tabs a')].map((tab) => tab.textContent)");
    assert_eq!(tabs, json!(["Live"]));
    node.assert_clean(&address);
}
