//! One page of a browser: what a person does with it, and what they would see.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chromium::{Browser, LIMIT};

/// The width and the height of a page.
pub(crate) type Size = (u32, u32);

pub(crate) const DESK: Size = (1280, 800);
pub(crate) const PHONE: Size = (390, 844);

/// A page in a fresh context: it shares no storage with any other.
pub(crate) struct Page {
    browser: Rc<RefCell<Browser>>,
    session: String,
    target: String,
    context: String,
    /// What went wrong on the page: console errors, exceptions, violations of the policy.
    errors: RefCell<Vec<String>>,
    /// Every address that was asked for.
    requests: RefCell<Vec<String>>,
}

/// A place on the page, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.x, self.y)
    }
}

impl Page {
    /// Opens `address`.
    pub(crate) fn open(
        browser: &Rc<RefCell<Browser>>,
        address: &str,
        (width, height): Size,
    ) -> Self {
        let mut chromium = browser.borrow_mut();
        let context = text(
            &chromium.call(None, "Target.createBrowserContext", json!({})),
            "browserContextId",
        );
        let made = json!({ "url": "about:blank", "browserContextId": context, "width": width, "height": height });
        let target = text(&chromium.call(None, "Target.createTarget", made), "targetId");
        let attached = json!({ "targetId": target, "flatten": true });
        let session = text(&chromium.call(None, "Target.attachToTarget", attached), "sessionId");
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.call(Some(&session), &format!("{domain}.enable"), json!({}));
        }
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        chromium.call(Some(&session), "Emulation.setDeviceMetricsOverride", metrics);
        drop(chromium);
        let page = Self {
            browser: browser.clone(),
            session,
            target,
            context,
            errors: RefCell::default(),
            requests: RefCell::default(),
        };
        page.go(address);
        page
    }

    /// Goes to `address` and waits until the page has started.
    pub(crate) fn go(&self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait("the page starts", "document.readyState === 'complete' && 'lab' in window");
    }

    /// Goes to an empty page: another origin than the lab's, and no policy in force.
    pub(crate) fn go_blank(&self) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.wait("an empty page", "location.href === 'about:blank'");
    }

    fn call(&self, method: &str, params: Value) -> Value {
        let result = self.browser.borrow_mut().call(Some(&self.session), method, params);
        self.collect();
        result
    }

    /// Sorts the events that have arrived.
    fn collect(&self) {
        let mut chromium = self.browser.borrow_mut();
        chromium.gather();
        for event in chromium.take_events(&self.session) {
            let params = &event["params"];
            let error = match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" => {
                    Some(params["args"].to_string())
                }
                "Log.entryAdded" if params["entry"]["level"] == "error" => {
                    Some(format!("{} {}", params["entry"]["text"], params["entry"]["url"]))
                }
                "Network.requestWillBeSent" => {
                    let address = params["request"]["url"].as_str().unwrap_or_default();
                    self.requests.borrow_mut().push(address.to_owned());
                    None
                }
                _ => None,
            };
            self.errors.borrow_mut().extend(error);
        }
    }

    /// What `expression` gives; promises are waited for.
    pub(crate) fn evaluate(&self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].clone()
    }

    /// Waits until `condition` holds.
    pub(crate) fn wait(&self, what: &str, condition: &str) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let held = format!(
                "(() => {{ try {{ return Boolean({condition}); }} catch {{ return false; }} }})()"
            );
            if self.evaluate(&held) == json!(true) {
                return;
            }
            if Instant::now() > deadline {
                let shown = self.evaluate("JSON.stringify([location.href, window.lab?.shown, document.body.innerText.slice(0, 800)])");
                panic!("waited in vain: {what} ({condition})\n{shown}\n{:?}", self.errors.borrow());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key as `keydown` names it: `k`, `K`, `ArrowRight`, ` `, `Tab`.
    pub(crate) fn press(&self, key: &str) {
        let shift = key.len() == 1 && key.chars().all(|sign| sign.is_ascii_uppercase());
        self.press_with(key, if shift { 8 } else { 0 });
    }

    /// The same with modifiers: 1 Alt, 2 Control, 8 Shift.
    pub(crate) fn press_with(&self, key: &str, modifiers: u32) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            " " => 32,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Delete" => 46,
            _ => 0,
        };
        let mut down = json!({ "type": "keyDown", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code });
        if key.len() == 1 {
            down["text"] = json!(key);
        } else if key == "Enter" {
            down["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", down.clone());
        down["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", down);
    }

    /// Types text into what has the focus.
    pub(crate) fn type_text(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// The middle of the first element that `selector` finds.
    pub(crate) fn middle(&self, selector: &str) -> Point {
        self.wait(selector, &format!("document.querySelector({})", json!(selector)));
        let found = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'nearest' }}); \
             const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()",
            json!(selector)
        ));
        Point { x: found[0].as_f64().expect("a place"), y: found[1].as_f64().expect("a place") }
    }

    /// Clicks into the middle of the first element that `selector` finds.
    pub(crate) fn click(&self, selector: &str) {
        let at = self.middle(selector);
        self.click_at(at);
    }

    /// Clicks somewhere.
    pub(crate) fn click_at(&self, at: Point) {
        self.mouse("mouseMoved", at, 0);
        self.mouse("mousePressed", at, 1);
        self.mouse("mouseReleased", at, 0);
    }

    /// Drags from one place to another, over places between them.
    pub(crate) fn drag(&self, from: Point, to: Point) {
        self.mouse("mouseMoved", from, 0);
        self.mouse("mousePressed", from, 1);
        for part in 1..=8 {
            let share = f64::from(part) / 8.0;
            let x = from.x + (to.x - from.x) * share;
            let y = from.y + (to.y - from.y) * share;
            self.mouse("mouseMoved", Point { x, y }, 1);
        }
        self.mouse("mouseReleased", to, 0);
    }

    fn mouse(&self, kind: &str, at: Point, buttons: u32) {
        let clicks = u32::from(kind != "mouseMoved");
        let button = if kind == "mouseMoved" && buttons == 0 { "none" } else { "left" };
        let params = json!({ "type": kind, "x": at.x, "y": at.y, "button": button, "buttons": buttons, "clickCount": clicks });
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Emulates what a person prefers: `[("prefers-color-scheme", "dark")]`.
    pub(crate) fn prefer(&self, features: &[(&str, &str)]) {
        let features: Vec<Value> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// From now on every request takes so much longer.
    pub(crate) fn slow_down(&self, latency: Duration) {
        let params = json!({ "offline": false, "latency": latency.as_millis(), "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", params);
    }

    /// How much memory the page's objects take, after what is not needed has been thrown away.
    pub(crate) fn heap(&self) -> u64 {
        self.call("HeapProfiler.collectGarbage", json!({}));
        self.call("Runtime.getHeapUsage", json!({}))["usedSize"].as_f64().unwrap_or_default() as u64
    }

    /// How many nodes of documents the page keeps, after what is not needed has been thrown away.
    pub(crate) fn nodes(&self) -> u64 {
        self.call("HeapProfiler.collectGarbage", json!({}));
        self.call("Memory.getDOMCounters", json!({}))["nodes"].as_u64().unwrap_or_default()
    }

    /// What has gone wrong so far.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.collect();
        self.errors.borrow().clone()
    }

    /// Every address that was asked for so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.collect();
        self.requests.borrow().clone()
    }

    /// Nothing went wrong, and nothing was asked of another host than `origin`.
    pub(crate) fn assert_clean(&self, origin: &str) {
        assert_eq!(self.errors(), [] as [String; 0]);
        let foreign = |address: &String| {
            !address.starts_with(origin)
                && !address.starts_with("blob:")
                && !address.starts_with("data:")
        };
        let foreign: Vec<String> = self.requests().into_iter().filter(foreign).collect();
        assert_eq!(foreign, [] as [String; 0]);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if thread::panicking() {
            return; // the browser may be in the middle of an answer
        }
        let mut chromium = self.browser.borrow_mut();
        chromium.call(None, "Target.closeTarget", json!({ "targetId": self.target }));
        chromium.call(
            None,
            "Target.disposeBrowserContext",
            json!({ "browserContextId": self.context }),
        );
        chromium.take_events(&self.session);
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}
