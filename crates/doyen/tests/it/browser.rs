//! The lab in a real browser: every view, by mouse and by keys, against real processes.
//!
//! Tests read what the page shows from `window.lab` and not from pixels, and wait for conditions, never for times.

mod address;
mod chromium;
mod lab;
mod live;
mod monkey;
mod page;
mod security;
mod simulate;
mod static_lab;

use std::cell::RefCell;
use std::rc::Rc;

use chromium::Browser;

/// A browser for one test. Says so and returns none where there is no Chromium.
fn browser() -> Option<Rc<RefCell<Browser>>> {
    let browser = Browser::start();
    if browser.is_none() {
        crate::support::skip("there is no Chromium: `make tools` installs it where it may");
    }
    Some(Rc::new(RefCell::new(browser?)))
}
