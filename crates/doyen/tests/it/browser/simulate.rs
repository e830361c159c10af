//! The simulator's half of the lab: every run on screen is the run that the command line makes.

use serde_json::{Value, json};

use super::browser;
use super::lab::Lab;
use super::page::{DESK, PHONE, Page};
use crate::support;

/// What `doyen sim NAME FLAGS --json` says.
fn simulated(name: &str, flags: &[&str]) -> Value {
    let output = support::doyen(&[&["sim", name, "--json"], flags].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{name}: {error}: {}", support::complaint(&output)))
}

/// The names of all scenarios of the gallery.
fn gallery(page: &Page) -> Vec<String> {
    let names = page.evaluate(
        "fetch('/lab/engine/catalogue', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
            .then((response) => response.json())
            .then(({ gallery }) => gallery.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)).filter(Boolean))",
    );
    let names = names.as_array().expect("a list").iter();
    let mut names: Vec<String> =
        names.map(|name| name.as_str().expect("a name").to_owned()).collect();
    names.sort();
    names.dedup();
    assert!(names.len() > 80, "{} scenarios", names.len());
    names
}

/// Goes to another address of the page that is open.
fn go(page: &Page, place: &str) {
    page.evaluate(&format!("void (location.hash = {})", json!(place)));
}

fn shown(page: &Page) -> Value {
    page.evaluate("structuredClone(window.lab.shown)")
}

#[test]
fn the_pure_modules_keep_their_promises() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/gallery"), DESK);
    let found = page.evaluate(include_str!("model.js"));
    assert_eq!(found["wrong"], json!([]));
    assert!(found["scenarios"].as_u64().is_some_and(|count| count > 80), "{found}");
    let mut changes: Vec<&str> = doyen_lab::changes().collect();
    changes.sort_unstable();
    assert_eq!(found["changes"], json!(changes), "those with words and those of the engine");
}

#[test]
fn every_scenario_of_the_gallery_counts_what_the_simulator_counts() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/gallery"), DESK);
    for name in gallery(&page) {
        go(&page, &format!("#/sim/{name}"));
        page.wait(&name, &format!("lab.shown.scenario === {}", json!(name)));
        page.press("End");
        page.wait(&name, "lab.shown.s === lab.shown.of");
        let (shown, told) = (shown(&page), simulated(&name, &[]));
        // Of mutual exclusion, messages and formula are objects.
        let (messages, formula) = match told["kind"] == "exclusion" {
            true => (
                &told["messages"]["total"],
                [&told["formula"]["matches"], &told["formula"]["value"]],
            ),
            false => (&told["messages"], [&told["formula_matches"], &told["formula_value"]]),
        };
        assert_eq!(shown["total"], *messages, "{name}: {shown}");
        // Of a large run only the beginning is recorded, or nothing but its totals.
        let is_whole = shown["of"].as_u64().is_some_and(|steps| 0 < steps && steps < 5000);
        if is_whole && *formula[0] == json!(true) {
            assert_eq!(shown["messages"], *formula[1], "{name}: {shown}");
        }
    }
    page.assert_clean(&lab.origin);
}

#[test]
fn the_gallery_finds_a_scenario_by_its_words_and_opens_it() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/gallery"), DESK);
    page.wait("the gallery", "lab.shown.scenarios");
    page.click("main input[type=search]");
    page.type_text("coordinator 7 is down and 4 notices");
    page.wait("what was typed is in the address", "lab.query.own.find");
    let visible = "[...document.querySelectorAll('main a[href^=\"#/sim/\"]')].filter((card) => card.checkVisibility())";
    page.wait("few cards", &format!("{visible}.length > 0 && {visible}.length < 6"));
    page.evaluate(&format!(
        "{visible}.find((card) => card.href.includes('figure-1')).setAttribute('id', 'wanted')"
    ));
    page.click("#wanted");
    page.wait("the run", "lab.query.view === 'sim' && lab.shown.of > 10");
    page.assert_clean(&lab.origin);
}

/// What the page says in a place, in one line.
fn text_of(page: &Page, place: &str) -> String {
    let text = page.evaluate(&format!("document.querySelector({}).innerText", json!(place)));
    text.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn mutual_exclusion_shows_who_is_inside_and_nothing_about_leaders() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/cs677/two-tokens-let-two-in"), DESK);
    page.wait("the run", "lab.shown.of > 10");
    page.prefer(&[("prefers-reduced-motion", "reduce")]);
    page.press("End");
    page.wait("its end", "lab.shown.s === lab.shown.of");
    let bars = |kind: &str| {
        let count =
            page.evaluate(&format!("document.querySelectorAll('main .band.{kind}').length"));
        count.as_u64().unwrap_or_default()
    };
    assert_eq!((bars("waits"), bars("inside"), bars("together")), (2, 2, 2));
    let text = text_of(&page, "main");
    assert!(text.contains("two members inside"), "{text}");
    for word in ["leader", "leads", "campaign", "starts an election"] {
        assert!(!text.contains(word), "`{word}` in: {text}");
    }
    go(&page, "#/sim/cs677/ricart-agrawala-costs-2-n-minus-1");
    page.wait("another run", "lab.shown.scenario === 'cs677/ricart-agrawala-costs-2-n-minus-1'");
    page.press("End");
    page.wait("its end", "lab.shown.s === lab.shown.of");
    let counter = text_of(&page, "main .counter");
    assert!(counter.contains("equal to the formula"), "{counter}");
    assert!(counter.contains("8 for each of 2 entries"), "{counter}");
    page.assert_clean(&lab.origin);
}

#[test]
fn algorithms_of_mutual_exclusion_race_among_themselves() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let address = "#/race?algorithms=ricart-agrawala,token-ring,bully";
    let page = Page::open(&browser, &lab.view(address), DESK);
    page.wait("two lanes, as bully elects", "lab.shown.lanes?.length === 2");
    let lanes =
        page.evaluate("lab.shown.lanes.map(({ metrics }) => metrics.exclusion.order.length)");
    assert_eq!(lanes, json!([3, 3]), "1, 3 and 5 enter in both");
    // Headings are in capitals on the page.
    let text = text_of(&page, "main").to_lowercase();
    assert!(text.contains("waiting") && !text.contains("downtime"), "{text}");
    page.assert_clean(&lab.origin);
}

#[test]
fn a_step_back_leads_to_the_same_state() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1"), DESK);
    page.wait("the run", "lab.shown.of > 10");
    // Without motion a step is there at once.
    page.prefer(&[("prefers-reduced-motion", "reduce")]);
    // What is counted, the messages under way with their places, and the members with their roles. Places count from the
    // first member: the whole picture moves a little if the text beside it needs another line.
    let state = "(() => {
        const place = (one) => one.getAttribute('transform').match(/-?[\\d.]+/g).map(Number);
        const members = [...document.querySelectorAll('main g.member')];
        const [x, y] = place(members[0]);
        const from_first = (one) => place(one).slice(0, 2).map((at, axis) => Math.round((at - [x, y][axis]) * 10));
        return JSON.stringify([lab.shown.s, lab.shown.messages, lab.shown.by_kind, lab.shown.leader,
            [...document.querySelectorAll('main [data-flight]')].map((one) => one.dataset.flight + ' ' + from_first(one)).sort(),
            members.map((one) => one.textContent + one.getAttribute('class'))]);
    })()";
    let mut there = vec![page.evaluate(state)];
    let steps = shown(&page)["of"].as_u64().expect("a number");
    for step in 1..=steps {
        page.press("ArrowRight");
        page.wait("a step", &format!("lab.shown.s === {step} && !lab.shown.playing"));
        there.push(page.evaluate(state));
    }
    for step in (0..steps).rev() {
        page.press("ArrowLeft");
        page.wait("a step back", &format!("lab.shown.s === {step}"));
        assert_eq!(page.evaluate(state), there[step as usize], "step {step}");
    }
    page.assert_clean(&lab.origin);
}

#[test]
fn a_change_of_history_branches_and_back_undoes_it() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    // When 6 has won and its announcements are under way.
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1?s=11&sel=6"), DESK);
    page.wait("the run", "lab.shown.s === 11 && lab.shown.selection === '6'");
    let before = shown(&page);
    page.press("x");
    page.wait("both futures", "lab.shown.base && lab.shown.hash !== lab.shown.base");
    let branch = shown(&page);
    assert_eq!(branch["base"], before["hash"]);
    assert!(branch["divergence"].as_u64().is_some_and(|step| step >= 9), "{branch}");
    let flag = page.evaluate("lab.query.flags.find(([name]) => name === 'crash')[1]");
    let told = simulated("kordafshari/figure-1", &["--crash", flag.as_str().expect("a flag")]);
    assert_eq!(branch["total"], told["messages"]);
    page.press("u");
    page.wait("the first run again", "lab.shown.base === null");
    assert_eq!(shown(&page)["hash"], before["hash"]);
    page.assert_clean(&lab.origin);
}

#[test]
fn a_message_is_dropped_delayed_and_duplicated_by_keys() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1?s=11"), DESK);
    for (key, flag, given) in
        [("Delete", "drop", "--drop"), (",", "late", "--late"), (".", "twice", "--twice")]
    {
        go(&page, "#/sim/kordafshari/figure-1?s=11&t=3400000&sel=m10");
        page.wait(
            "a message in flight",
            "lab.shown.base === null && lab.shown.selection === 'm10' && lab.shown.t === 3400000",
        );
        page.press(key);
        page.wait(
            flag,
            &format!("lab.shown.base && lab.query.flags.some(([name]) => name === '{flag}')"),
        );
        let value =
            page.evaluate(&format!("lab.query.flags.find(([name]) => name === '{flag}')[1]"));
        let told = simulated("kordafshari/figure-1", &[given, value.as_str().expect("a name")]);
        assert_eq!(shown(&page)["total"], told["messages"], "{flag}={value}");
    }
    page.assert_clean(&lab.origin);
}

#[test]
fn a_link_opens_the_same_run_at_the_same_step_elsewhere() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/gallery"), DESK);
    let places = [
        (7, "#/sim/kordafshari/figure-1?s=7&sel=5"),
        (2, "#/sim/flaws/f01-slow-leader?s=2"),
        (9, "#/sim?algorithm=chang-roberts&members=6&initiators=all&s=9"),
        (12, "#/sim/kordafshari/figure-1?crash=6@2.5ms&vs=base&s=12"),
    ];
    for (step, place) in places {
        go(&page, place);
        page.wait(place, &format!("lab.shown.hash && lab.shown.s === {step}"));
        page.press("ArrowRight");
        page.wait(
            "the step is in the address",
            "lab.query.own.h && Number(lab.query.own.s) === lab.shown.s",
        );
        let (link, here) = (page.evaluate("location.href"), shown(&page));
        // A fresh context has no key, no storage and no history.
        let other = Page::open(&browser, link.as_str().expect("an address"), DESK);
        other.wait("the same run", "lab.shown.hash && lab.shown.s > 0");
        let there = shown(&other);
        for field in ["hash", "base", "s", "messages", "total", "selection", "leader", "divergence"]
        {
            assert_eq!(there[field], here[field], "{field} of {link}");
        }
    }
}

#[test]
fn a_link_of_another_run_says_so() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1?s=7&h=00000000"), DESK);
    page.wait("the notice", "/differs|another/.test(document.querySelector('main').innerText)");
    assert_eq!(shown(&page)["s"], json!(0), "never a wrong step silently");
}

#[test]
fn a_race_adds_up_to_its_single_runs() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/race"), DESK);
    page.wait("four lanes", "lab.shown.lanes?.length === 4");
    for lane in shown(&page)["lanes"].as_array().expect("lanes") {
        let flags: Vec<String> = (lane["flags"].as_array().expect("flags").iter())
            .flat_map(|pair| {
                [format!("--{}", pair[0].as_str().unwrap()), pair[1].as_str().unwrap().to_owned()]
            })
            .collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let output = support::doyen(&[&["sim", "--json"], &flags[..]].concat());
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(lane["metrics"]["messages"], told["messages"], "{lane}");
        assert_eq!(lane["metrics"]["downtime_ns"], told["downtime"], "{lane}");
        assert_eq!(lane["metrics"]["leader"], told["leader"], "{lane}");
    }
    page.assert_clean(&lab.origin);
}

#[test]
fn the_checker_finds_a_flaw_from_the_page_and_shows_it() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let place = "#/check?algorithm=bully&members=3&dead=3&contact-dead=true&initiators=2&property=A1&budget=restarts:1";
    let page = Page::open(&browser, &lab.view(place), DESK);
    // Also before the question is on screen.
    page.wait("the view", "document.querySelector('.check-verdict')");
    page.press("Enter");
    page.wait("the verdict", "lab.shown.verdict === 'violated' && lab.shown.of > 0");
    page.wait(
        "the verdict in words",
        "/After \\d+ steps/.test(document.querySelector('.check-verdict').innerText)",
    );
    page.press("End");
    page.wait("the end of the counterexample", "lab.shown.s === lab.shown.of");
    page.assert_clean(&lab.origin);
}

#[test]
fn a_question_hides_the_future_and_scores_the_answer() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1"), DESK);
    page.wait("the run", "lab.shown.of > 10");
    page.press("g");
    page.wait("the question", "lab.shown.hidden === true");
    let drawn = page.evaluate("document.querySelectorAll('main [data-message]').length");
    assert_eq!(drawn, json!(0), "no message of the future is in the page");
    page.assert_clean(&lab.origin);
}

#[test]
fn everything_fits_on_a_phone_in_the_dark() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "3"]);
    let page = Page::open(&browser, &lab.address, PHONE);
    page.prefer(&[("prefers-color-scheme", "dark"), ("prefers-reduced-motion", "reduce")]);
    for place in ["#/live", "#/sim/kordafshari/figure-1?s=11", "#/race", "#/check", "#/gallery"] {
        go(&page, place);
        page.wait(place, "document.querySelector('main').children.length > 0");
        page.wait(place, "document.documentElement.scrollWidth <= innerWidth && document.querySelector('main').scrollWidth <= innerWidth");
    }
    page.assert_clean(&lab.origin);
}

#[test]
fn space_plays_unless_a_text_is_typed_or_tab_has_led_to_a_button() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1"), DESK);
    page.wait("the run", "lab.shown.of > 10");
    let playing = |what: &str, is: bool| {
        page.wait(
            what,
            &format!("lab.shown.playing === {is} && !document.querySelector('.popover')"),
        );
    };
    // A word of the sentence is changed by the mouse: the focus returns to it.
    page.click("[data-flag=delay]");
    page.wait("the editor", "document.activeElement?.matches('.popover input')");
    page.type_text("2ms");
    page.press("Enter");
    page.wait(
        "the changed run",
        "lab.query.flags.some(([flag]) => flag === 'delay') && document.activeElement?.matches('[data-flag=delay]') \
         && document.activeElement.textContent === '2 ms'",
    );
    page.press(" ");
    playing("after an edit Space plays", true);
    page.press(" ");
    playing("and pauses", false);
    // By Tab to the same word: there Space presses the button that one has chosen.
    page.evaluate("document.querySelector('[data-flag=delay]').previousElementSibling.focus()");
    page.press("Tab");
    page.press(" ");
    page.wait("the editor again", "document.querySelector('.popover input')");
    page.press("Escape");
    // After a click on a button Space plays.
    page.click("[aria-label='One step forward']");
    page.wait("a step", "lab.shown.s > 0");
    page.press(" ");
    playing("after a click Space plays", true);
    page.assert_clean(&lab.origin);
}

#[test]
fn a_run_is_exported_as_the_command_line_writes_it() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = Page::open(&browser, &lab.view("#/sim/kordafshari/figure-1"), DESK);
    page.wait("the run", "lab.shown.of > 10");
    page.press("e");
    page.wait("the figure", "document.querySelector('dialog.export img')?.naturalWidth > 100");
    page.wait(
        "the command",
        "document.querySelector('dialog.export .command').textContent === 'doyen sim kordafshari/figure-1'",
    );
    let rows = page.evaluate(
        "[...document.querySelectorAll('dialog.export th')].map((row) => row.textContent)",
    );
    assert_eq!(rows, json!(["SVG", "PNG", "Mermaid", "Scenario", "Trace", "Command"]));
    page.press("Escape");
    page.wait("the dialog has gone", "!document.querySelector('dialog')");
    page.assert_clean(&lab.origin);
}
