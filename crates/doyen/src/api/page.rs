//! A status page for browsers: the leader, the members, the history. Plain HTML without scripts.

use std::fmt::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};

use crate::node::status::{Entry, MemberStatus, Status};

/// How many changes of leadership are shown.
const CHANGES: usize = 20;

/// The page reloads itself after this many seconds.
const REFRESH: u64 = 5;

/// The browser must not run or load anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; \
     form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .8rem .3rem 0;\
border-bottom:1px solid #8884}.number{text-align:right;font-variant-numeric:tabular-nums}\
.at{white-space:nowrap;width:1%}.leader{font-weight:600}.bad{color:#c33}.quiet{opacity:.7}";

/// Whether the client prefers HTML to JSON.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
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

pub(super) fn render(status: &Status, history: &[Entry]) -> Response {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, status, history);
    let headers =
        [(header::CONTENT_SECURITY_POLICY, POLICY), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, Html(page)).into_response()
}

fn write_page(page: &mut String, status: &Status, history: &[Entry]) -> fmt::Result {
    let (cluster, name) = (Text(&status.cluster), Text(&status.name));
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"refresh\" content=\"{REFRESH}\">\
         <title>{cluster}: {name}</title><style>{STYLE}</style></head><body>\n"
    )?;
    write_head(page, status)?;
    write_members(page, status)?;
    write_history(page, history)?;
    page.write_str("</body></html>\n")
}

fn write_head(page: &mut String, status: &Status) -> fmt::Result {
    let term = status.term;
    match status.leader.map(|leader| status.name_of(leader)) {
        Some(leader) => writeln!(page, "<h1>{} is the leader (term {term})</h1>", Text(&leader))?,
        None => writeln!(page, "<h1>No known leader (term {term})</h1>")?,
    }
    if let Some(why) = &status.why {
        writeln!(page, "<p>{}</p>", Text(why))?;
    }
    if let Some(lease) = status.lease {
        writeln!(page, "<p>The lease ends in {} ms unless it is renewed.</p>", lease.remaining_ms)?;
    }
    if let Some(next) = status.next.map(|next| status.name_of(next)) {
        writeln!(page, "<p>Next leader if the leader fails: {}.</p>", Text(&next))?;
    }
    if let Some(drain) = status.drain() {
        writeln!(page, "<p>This node {drain}.</p>")?;
    }
    for member in &status.members {
        if let Some(penalty) = member.penalty() {
            let name = Text(&member.name);
            writeln!(page, "<p>{name} {penalty}.</p>")?;
        }
    }
    writeln!(
        page,
        "<p class=\"quiet\">Cluster {}, {}, doyen {}. As seen by {} ({}).</p>",
        Text(&status.cluster),
        Text(&status.algorithm),
        Text(&status.version),
        Text(&status.name),
        status.role,
    )
}

fn write_members(page: &mut String, status: &Status) -> fmt::Result {
    page.write_str(
        "<h2>Members</h2>\n<table><thead><tr><th>id</th><th>name</th><th>address</th><th>role</th>\
         <th class=\"number\">priority</th><th>last seen</th><th class=\"number\">round trip</th>\
         <th>cannot reach</th></tr></thead><tbody>\n",
    )?;
    for member in &status.members {
        let class = if status.leader == Some(member.id) { " class=\"leader\"" } else { "" };
        let unreachable = member.unreachable.iter().flatten().map(|&id| status.name_of(id));
        let unreachable: Vec<String> = unreachable.collect();
        let rtt = member.rtt_us.map_or_else(String::new, |us| format!("{} ms", us as f64 / 1e3));
        writeln!(
            page,
            "<tr{class}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td>{}\
             <td class=\"number\">{rtt}</td><td>{}</td></tr>",
            member.id,
            Text(&member.name),
            Text(&member.address),
            role_of(status, member),
            member.priority,
            LastSeen(status, member),
            Text(&unreachable.join(", ")),
        )?;
    }
    page.write_str("</tbody></table>\n")
}

fn write_history(page: &mut String, history: &[Entry]) -> fmt::Result {
    page.write_str("<h2>History</h2>\n<table><tbody>\n")?;
    for entry in history.iter().rev().take(CHANGES) {
        let at = UNIX_EPOCH + Duration::from_millis(entry.at_unix_ms);
        let at = humantime::format_rfc3339_millis(at);
        writeln!(page, "<tr><td class=\"quiet at\">{at}</td><td>{}</td></tr>", Text(&entry.text))?;
    }
    page.write_str("</tbody></table>\n")
}

/// The role of a member, as far as this node knows it.
fn role_of(status: &Status, member: &MemberStatus) -> String {
    if member.id == status.id {
        return status.role.to_string();
    }
    let role = if status.leader == Some(member.id) {
        "leader"
    } else if member.witness {
        "witness"
    } else if member.eligible {
        ""
    } else {
        "not eligible"
    };
    role.to_owned()
}

/// The table cell that says when a member was last seen.
struct LastSeen<'a>(&'a Status, &'a MemberStatus);

impl fmt::Display for LastSeen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status, member) = self;
        match member.last_seen_ms {
            _ if member.id == status.id => f.write_str("<td>this node</td>"),
            _ if member.config_mismatch => {
                f.write_str("<td class=\"bad\">config mismatch, ignored</td>")
            }
            Some(millis) if member.reachable => write!(f, "<td>{millis} ms ago</td>"),
            Some(millis) => {
                write!(f, "<td class=\"bad\">unreachable, {} s ago</td>", millis / 1000)
            }
            None => f.write_str("<td class=\"bad\">never</td>"),
        }
    }
}

/// Escaped text: names and reasons must not become markup.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn wanted(accept: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        is_wanted(&headers)
    }

    #[test]
    fn browsers_get_a_page_and_programs_json() {
        assert!(wanted("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(wanted("TEXT/HTML"));
        assert!(wanted("application/json;q=0.5, text/*"));
        assert!(wanted("text/html, */*;q=0.5, application/json;q=0.1"));
        assert!(!is_wanted(&HeaderMap::new()));
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

    #[test]
    fn names_are_text_and_not_markup() {
        let text = Text("<b a=\"1\" b='2'>&").to_string();
        assert_eq!(text, "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;");
    }
}
