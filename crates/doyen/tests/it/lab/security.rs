//! Who may ask the lab, and what its answers say to a browser.

use serde_json::json;

use super::harness::Lab;

#[test]
fn only_its_own_page_with_its_key_reads_or_changes_the_cluster() {
    let lab = Lab::start(&["--members", "1"]);
    lab.leader();
    let port = lab.port;
    let host = format!("host: 127.0.0.1:{port}\r\n");
    let key = format!("authorization: Bearer {}\r\n", lab.key);
    let kill = json!({ "kill": "n1" }).to_string();
    for wrong in ["", "authorization: Bearer 00\r\n", "authorization: Basic x\r\n"] {
        for (method, path) in
            [("GET", "/lab/stream"), ("POST", "/lab/fault"), ("POST", "/lab/admin")]
        {
            let response = lab.raw(method, path, &format!("{host}{wrong}"), &kill);
            assert_eq!(response.status, 401, "{path} with `{wrong}`: {response:?}");
            assert!(response.body.contains("doyen lab"), "it says what to do: {response:?}");
        }
    }
    let short = format!("authorization: Bearer {}\r\n", &lab.key[..31]);
    assert_eq!(lab.raw("POST", "/lab/fault", &format!("{host}{short}"), &kill).status, 401);
    for (headers, status) in [
        (format!("host: localhost:{port}\r\n"), 200),
        ("host: localhost\r\n".to_owned(), 421),
        (format!("host: evil.example:{port}\r\n"), 421),
        (format!("host: 127.0.0.2:{port}\r\n"), 421),
        (format!("{host}host: localhost:{port}\r\n"), 400),
        (format!("{host}origin: http://127.0.0.1:{port}\r\n"), 200),
        (format!("{host}origin: http://localhost:{port}\r\n"), 403),
        (format!("{host}origin: http://127.0.0.1:1\r\n"), 403),
        (format!("{host}origin: null\r\n"), 403),
        (format!("{host}sec-fetch-site: same-origin\r\n"), 200),
        (format!("{host}sec-fetch-site: none\r\n"), 200),
        (format!("{host}sec-fetch-site: cross-site\r\n"), 403),
    ] {
        let response = lab.raw("GET", "/", &headers, "");
        let allowed = if status == 400 { vec![400, 421] } else { vec![status] };
        assert!(allowed.contains(&response.status), "{headers}: {response:?}");
        if response.status != 200 {
            let response = lab.raw("POST", "/lab/fault", &format!("{headers}{key}"), &kill);
            assert_eq!(response.status / 100, 4, "even with the key: {headers}");
        }
    }
    assert_eq!(lab.member("n1")["state"], "up", "nothing of this has killed it");
}

/// Everything else about these requests is right: the key, the host, the body.
#[test]
fn a_wrong_origin_alone_is_enough_to_be_refused() {
    let lab = Lab::start(&["--members", "1"]);
    lab.leader();
    let pause = json!({ "pause": "n1" }).to_string();
    let send = |path: &str, headers: &str, body: &str| {
        let headers = format!("content-type: application/json\r\n{headers}");
        lab.send("POST", path, &headers, body)
    };
    let own = format!("origin: http://127.0.0.1:{}\r\n", lab.port);
    for wrong in [
        "origin: http://evil.example\r\n".to_owned(),
        "origin: null\r\n".to_owned(),
        own.replace("http:", "https:"),
        format!("{own}origin: http://evil.example\r\n"),
        "sec-fetch-site: cross-site\r\n".to_owned(),
    ] {
        for (path, body) in [("/lab/fault", &*pause), ("/lab/engine/catalogue", "{}")] {
            let response = send(path, &wrong, body);
            assert_eq!(response.status, 403, "{path} with {wrong}: {response:?}");
            assert_eq!(response.json()["type"], "urn:doyen:wrong-origin", "{response:?}");
        }
    }
    assert_eq!(lab.member("n1")["state"], "up", "nothing of this has paused it");
    assert_eq!(send("/lab/engine/catalogue", &own, "{}").status, 200);
    assert_eq!(send("/lab/fault", &own, &pause).status, 202, "the origin made the difference");
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let lab = Lab::start(&["--members", "1"]);
    let page = lab.send("GET", "/", "", "");
    assert!(page.body.contains("data-host=\"lab\""), "{page:?}");
    let key = &lab.key;
    assert!(!page.body.contains(key) && !page.head.contains(key), "the page does not contain it");
    let tag = page.header("etag").expect("a tag").to_owned();
    let again = lab.send("GET", "/", &format!("if-none-match: {tag}\r\n"), "");
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let engine = "/lab/engine/run";
    for response in [
        page,
        again,
        lab.send("GET", "/web/main.js", "", ""),
        lab.send("GET", "/web/../Cargo.toml", "", ""),
        lab.send("GET", "/nothing", "", ""),
        lab.raw("GET", "/lab/stream", &format!("host: 127.0.0.1:{}\r\n", lab.port), ""),
        lab.raw("GET", "/", "host: evil\r\n", ""),
        lab.send("POST", engine, "", "no json"),
        lab.send("POST", "/lab/fault", "", "no json"),
    ] {
        let policy = response.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{response:?}");
        assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(response.header(name), Some(value), "{name} in {response:?}");
        }
        assert!(!response.head.to_lowercase().contains("access-control"), "{response:?}");
    }
}

#[test]
fn the_engine_needs_no_key_and_takes_no_book() {
    let lab = Lab::start(&["--members", "1"]);
    let host = format!("host: 127.0.0.1:{}\r\n", lab.port);
    let ask = |path: &str, body: &str| lab.raw("POST", path, &host, body);
    let source = json!({ "source": { "gallery": "kordafshari/figure-1" } }).to_string();
    let run = ask("/lab/engine/run", &source);
    assert_eq!((run.status, run.header("content-type")), (200, Some("application/json")));
    assert!(run.body.contains("\"messages\""), "a recorded run");
    let unknown = ask("/lab/engine/nothing", "{}");
    assert_eq!(unknown.status, 422, "{unknown:?}");
    assert!(unknown.json()["detail"].is_string(), "{unknown:?}");
    assert_eq!(ask("/lab/engine/run", &" ".repeat(257 * 1024)).status, 413);
    assert_eq!(lab.raw("GET", "/lab/engine/run", &host, "").status, 405);
    assert_eq!(lab.send("POST", "/lab/fault", "", &" ".repeat(17 * 1024)).status, 413);
    let fault = lab.post("/lab/fault", &json!({ "kill": "n9" }));
    assert_eq!(fault.status, 409);
    assert_eq!(fault.json()["detail"], "there is no member `n9`; there are n1");
    assert_eq!(lab.post("/lab/fault", &json!({ "pid": 1 })).status, 400);
}
