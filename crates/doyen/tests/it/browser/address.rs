//! The address belongs to the person: nothing that arrives late leads away from where they have gone.

use std::time::Duration;

use super::browser;
use super::lab::Lab;
use super::page::{DESK, Page};

const GALLERY: &str =
    "lab.query.view === 'gallery' && lab.shown.scenarios && location.hash === '#/gallery'";

/// A run on screen.
fn with_run(
    browser: &std::rc::Rc<std::cell::RefCell<super::chromium::Browser>>,
    lab: &Lab,
    place: &str,
) -> Page {
    let page = Page::open(browser, &lab.view(place), DESK);
    page.wait("the run", "lab.shown.of > 10");
    page
}

#[test]
fn a_run_that_plays_writes_no_address_once_it_is_left() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = with_run(&browser, &lab, "#/sim/kordafshari/figure-1");
    // A thousand times slower than it is: it plays for as long as this test takes.
    (0..4).for_each(|_| page.press_with("ArrowDown", 8));
    page.press(" ");
    page.wait("the address follows", "lab.shown.playing && lab.query.own.t");
    // The gallery takes its time to load, and the address is written four times a second.
    page.slow_down(Duration::from_millis(700));
    page.evaluate("void (location.hash = '#/gallery')");
    page.wait("the gallery", GALLERY);
    page.assert_clean(&lab.origin);
}

#[test]
fn an_undo_that_comes_late_undoes_and_does_not_lead_back() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = with_run(&browser, &lab, "#/sim/kordafshari/figure-1");
    page.press("ArrowDown");
    page.wait("a selection", "lab.shown.selection");
    // The browser goes back some time after it was told to; the person is in the gallery by then.
    page.evaluate(
        "(() => { globalThis.moves = []; addEventListener('popstate', () => moves.push(location.hash));
            dispatchEvent(new KeyboardEvent('keydown', { key: 'u' })); location.hash = '#/gallery'; })()",
    );
    page.wait("the browser has gone back", "moves.length === 2");
    page.wait("the gallery", GALLERY);
    page.evaluate("void setTimeout(() => history.back())");
    page.wait(
        "what was undone is undone",
        "lab.query.view === 'sim' && lab.shown.hash && !lab.shown.selection",
    );
    page.assert_clean(&lab.origin);
}

#[test]
fn a_size_that_was_chosen_and_left_is_forgotten() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let page = with_run(&browser, &lab, "#/sim/kordafshari/figure-1?view=scale");
    page.wait("the slider", "document.querySelector('.scale input[type=range]')");
    // Timers of a page fire in the order of their times: after this one, that of the slider has fired.
    page.evaluate(
        "new Promise((resolve) => { const slider = document.querySelector('.scale input[type=range]'); slider.value = 500;
            slider.dispatchEvent(new Event('input')); location.hash = '#/gallery'; setTimeout(resolve, 200); })",
    );
    page.wait("the gallery", GALLERY);
    page.assert_clean(&lab.origin);
}

#[test]
fn an_answer_that_comes_late_opens_nothing() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let place = "#/check?algorithm=bully&members=3&dead=3&contact-dead=true&initiators=2&property=A1&budget=restarts:1";
    let page = Page::open(&browser, &lab.view(place), DESK);
    page.wait("the view", "document.querySelector('.check-verdict')");
    page.press("Enter");
    page.wait("the verdict", "lab.shown.verdict === 'violated' && lab.shown.of > 0");
    // The counterexample is packed into an address, which takes a moment.
    page.evaluate(
        "(() => { [...document.querySelectorAll('main button')].find((one) => one.textContent === 'Open in Simulate').click();
            location.hash = '#/gallery'; })()",
    );
    page.wait("the gallery", GALLERY);
    // What is packed after it is packed later.
    page.evaluate("import('/web/part/share.js').then(({ pack }) => pack('another'))");
    page.wait("still the gallery", GALLERY);
    page.assert_clean(&lab.origin);
}

#[test]
fn a_view_that_is_left_is_forgotten() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "3"]);
    let page = Page::open(&browser, &lab.address, DESK);
    let visit = |times: usize| {
        for _ in 0..times {
            for (place, there) in [
                ("#/live", "lab.shown.leader"),
                ("#/sim/kordafshari/figure-1", "lab.shown.of > 10"),
                ("#/race", "lab.shown.lanes?.length === 4"),
                ("#/check", "document.querySelector('.check-empty')"),
            ] {
                page.evaluate(&format!("void (location.hash = '{place}')"));
                page.wait(place, there);
            }
        }
        page.evaluate("void (location.hash = '#/gallery')");
        page.wait("the gallery", GALLERY);
        page.nodes()
    };
    let (first, last) = (visit(2), visit(8));
    // A view has some hundred nodes: if one kind of them were kept, there would be thousands more.
    assert!(last < first + 1500, "{first} nodes, and {last} after every view was left eight times");
    page.assert_clean(&lab.origin);
}
