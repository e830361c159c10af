//! What a client prefers: a page, or JSON.

use axum::http::{HeaderMap, header};

/// Whether the client prefers HTML to JSON.
pub(super) fn prefers_html(headers: &HeaderMap) -> bool {
    let accepts: Vec<&str> =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let accepts = accepts.join(",");
    quality(&accepts, "text", "html") > quality(&accepts, "application", "json")
}

/// The quality of a media type, in thousandths. The most specific range that matches decides (RFC 9110, 12.5.1).
fn quality(accepts: &str, kind: &str, subkind: &str) -> u32 {
    let mut best = (0, 0);
    for range in accepts.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let Some((range_kind, range_subkind)) = parts.next().and_then(|it| it.split_once('/'))
        else {
            continue;
        };
        let fit = match (range_kind.eq_ignore_ascii_case(kind), range_subkind) {
            (true, it) if it.eq_ignore_ascii_case(subkind) => 3,
            (true, "*") => 2,
            (false, "*") if range_kind == "*" => 1,
            _ => continue,
        };
        let share = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        let share = (share.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32;
        best = best.max((fit, share));
    }
    best.1
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn wanted(accept: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        prefers_html(&headers)
    }

    #[test]
    fn browsers_get_a_page_and_programs_json() {
        assert!(wanted("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(wanted("TEXT/HTML"));
        assert!(wanted("application/json;q=0.5, text/*"));
        assert!(wanted("text/html, */*;q=0.5, application/json;q=0.1"));
        assert!(!prefers_html(&HeaderMap::new()));
        for json in [
            "*/*",
            "application/json",
            "",
            "text/html;q=0.5, application/json",
            "text/html;q=0, */*",
            "nonsense, text/html;q=0",
        ] {
            assert!(!wanted(json), "{json}");
        }
    }
}
