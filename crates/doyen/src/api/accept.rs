//! What a client prefers: a page or JSON, one format of metrics or the other.

use axum::http::{HeaderMap, header};

/// Whether the client prefers HTML to JSON.
pub(super) fn prefers_html(headers: &HeaderMap) -> bool {
    let accepts = accepts(headers);
    quality(&accepts, "text", "html") > quality(&accepts, "application", "json")
}

/// Whether the client prefers `OpenMetrics` to the text format of Prometheus, which everything reads.
pub(super) fn prefers_openmetrics(headers: &HeaderMap) -> bool {
    let accepts = accepts(headers);
    quality(&accepts, "application", "openmetrics-text") > quality(&accepts, "text", "plain")
}

fn accepts(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
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

    fn accepting(accept: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))])
    }

    fn wanted(accept: &'static str) -> bool {
        prefers_html(&accepting(accept))
    }

    #[test]
    fn openmetrics_is_for_clients_that_ask_for_it() {
        for asks in [
            // Prometheus 2.42, and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            "application/openmetrics-text",
        ] {
            assert!(prefers_openmetrics(&accepting(asks)), "{asks}");
        }
        assert!(!prefers_openmetrics(&HeaderMap::new()));
        for text in [
            "*/*",
            "",
            "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/plain, application/openmetrics-text;q=0.9",
            "application/openmetrics-text;q=0, */*",
        ] {
            assert!(!prefers_openmetrics(&accepting(text)), "{text}");
        }
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
