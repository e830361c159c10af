//! Who may see and change the cluster: whoever has the key, from the lab's own page.

use serde_json::json;

use super::browser;
use super::lab::Lab;
use super::page::{DESK, Page};

#[test]
fn without_the_key_the_cluster_is_neither_seen_nor_changed() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "3"]);
    let page = Page::open(&browser, &lab.view("#/live"), DESK);
    page.wait("the page says so", "/without its key/.test(document.body.innerText)");
    let statuses = page.evaluate(
        "Promise.all([fetch('/lab/stream'), fetch('/lab/fault', { method: 'POST', body: '{\"kill\":\"n1\"}', headers: { 'content-type': 'application/json' } }),
            fetch('/lab/admin', { method: 'POST', body: '{}' }), fetch('/lab/stream', { headers: { authorization: 'Bearer 00' } })])
            .then((all) => all.map(({ status }) => status))",
    );
    assert_eq!(statuses, json!([401, 401, 401, 401]));
    // The rest of the lab works: a copied link needs no key.
    page.evaluate("void (location.hash = '#/sim/kordafshari/figure-1')");
    page.wait("a run", "lab.shown.of > 10");
}

#[test]
fn the_key_is_in_no_link_and_not_in_the_address() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "3"]);
    let key = lab.address.split("k=").nth(1).expect("a key").to_owned();
    assert!(key.len() >= 32, "128 bits: {key}");
    let page = Page::open(&browser, &lab.address, DESK);
    page.wait("a leader", "lab.shown.leader");
    assert!(!page.evaluate("location.href").to_string().contains(&key));
    assert!(
        !page.requests().iter().skip(1).any(|address| address.contains(&key)),
        "the key leaves in an address"
    );
}

#[test]
fn a_page_of_another_origin_gets_nothing() {
    let Some(browser) = browser() else { return };
    let lab = Lab::start(&["--members", "1"]);
    let origin = json!(lab.origin);
    let page = Page::open(&browser, &lab.view("#/gallery"), DESK);
    page.go_blank();
    let answer = page.evaluate(&format!(
        "Promise.all([fetch({origin} + '/lab/engine/catalogue', {{ method: 'POST', body: '{{}}' }}), fetch({origin} + '/'),
            fetch({origin} + '/lab/fault', {{ method: 'POST', mode: 'no-cors', body: '{{\"kill\":\"n1\"}}' }})]
            .map((one) => one.then(() => 'answered', () => 'refused')))"
    ));
    assert_eq!(answer, json!(["refused", "refused", "refused"]));
    let page = Page::open(&browser, &lab.address, DESK);
    page.wait("the node that was to be killed leads", "lab.shown.leader === 'n1'");
}
