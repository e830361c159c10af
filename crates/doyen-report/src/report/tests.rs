//! Goal: a page that stands alone, says what the rows say and nothing else. Method: small plans, the page as text.

use super::*;
use crate::plan::{Limits, Plan};
use crate::sweep;

const PLAN: &str = r#"
    title = "Bullies & <others>"
    about = "First.\n\nSecond < third."
    [[sweep]]
    name = "size"
    algorithms = ["bully", "modified-bully"]
    members = [3, 5, 9]
    delay = "exp:1ms"
    seeds = 4
    [[report]]
    title = "Messages \"by\" size"
    x = "members"
    y = "messages"
    series = ["algorithm", "mode"]
    scale = "log"
    formula = true
    [[report]]
    title = "Turnaround"
    x = "members"
    y = "turnaround"
    series = "algorithm"
    [[report]]
    title = "Agreement"
    x = "members"
    y = "agreed"
    [[report]]
    title = "Nobody"
    only = { members = 1000 }
    x = "members"
    y = "messages"
    [[report]]
    title = "Nothing lost"
    x = "members"
    y = "lost"
    scale = "log-y"
"#;

fn page(sections: &[Section]) -> String {
    let plan = Plan::from_toml("test", PLAN, &Limits::default()).unwrap();
    let rows = sweep::run(&plan, &Limits::default(), |_| {}).unwrap();
    let page = Page::new(&plan, &rows).with_tables(sections.to_vec());
    page.with_command("doyen compare --html <page>").html()
}

/// The section of a page that begins with this heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(&format!("<h2>{heading}</h2>")).unwrap_or_else(|| panic!("no {heading}"));
    let rest = &page[start..];
    &rest[..rest.find("</section>").unwrap()]
}

#[test]
fn the_page_needs_no_script_and_nothing_from_elsewhere() {
    let page = page(&[]);
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for forbidden in
        ["<script", "http:", "https:", "src=", "url(", "@import", "<link", "javascript"]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn every_element_is_closed_and_every_text_is_escaped() {
    let cells = vec!["<b>".to_owned(), "\"&'".to_owned()];
    let evidence =
        Section { title: "<i>".to_owned(), headers: vec!["<u>".to_owned()], ..Section::default() };
    let line = Line { mark: Mark::Bad, cells, evidence: Some(evidence) };
    let table = Section {
        title: "<table>".to_owned(),
        headers: vec!["<th>".to_owned(); 2],
        lines: vec![line],
        ..Section::default()
    };
    let page = page(&[table]);
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(2).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split([' ', '\n']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') || name == "meta" || name.starts_with('!') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for written in ["<b>", "<i>", "<u>", "<others>", "<page>", "Messages \"by\""] {
        assert!(!page.contains(written), "{written}");
    }
    assert!(page.contains("<p>First.</p>\n<p>Second &lt; third.</p>"));
}

#[test]
fn the_same_rows_give_the_same_page() {
    assert_eq!(page(&[]), page(&[]));
}

#[test]
fn each_chart_is_drawn_and_says_what_it_shows() {
    let page = page(&[]);
    for (heading, caption) in [
        (
            "Messages &quot;by&quot; size",
            "Dots: 24 runs, simulated message by message. Thin lines join what the closed forms give for the same runs.",
        ),
        ("Turnaround", "Medians of 24 runs; the bands reach"),
        ("Agreement", "Shares of 24 runs."),
    ] {
        let section = section(&page, heading);
        assert!(section.contains("<svg xmlns"), "{heading}");
        assert!(section.contains(caption), "{heading}: {section}");
    }
    assert!(section(&page, "Nobody").contains("No run has the values"));
}

#[test]
fn what_a_logarithmic_axis_cannot_show_is_counted() {
    let page = page(&[]);
    let section = section(&page, "Nothing lost");
    assert!(
        section.contains("None of the 24 runs has a number that these axes can show."),
        "{section}"
    );
}

#[test]
fn a_chart_of_too_many_series_stays_readable_and_says_so() {
    let text = r#"
        [[sweep]]
        algorithms = "bully"
        members = "1..70"
        [[report]]
        title = "Series"
        x = "messages"
        y = "turnaround"
        series = "members"
    "#;
    let plan = Plan::from_toml("test", text, &Limits::default()).unwrap();
    let rows = sweep::run(&plan, &Limits::default(), |_| {}).unwrap();
    let page = Page::new(&plan, &rows).html();
    assert!(section(&page, "Series").contains("50 more belong to further series"));
}

#[test]
fn series_are_named_beside_their_lines_and_their_numbers_listed_below() {
    let page = page(&[]);
    let section = section(&page, "Messages &quot;by&quot; size");
    for name in ["bully, textbook", "modified-bully, textbook"] {
        assert!(section.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(section.contains(
        "<td>bully, textbook</td><td class=\"number\">9</td><td class=\"number\">4</td>"
    ));
}

#[test]
fn verdicts_have_a_sign_and_evidence_opens() {
    let line = |mark, text: &str| Line {
        mark,
        cells: vec![text.to_owned(), "1,000".to_owned()],
        evidence: None,
    };
    let mut wrong = line(Mark::Bad, "b");
    wrong.evidence = Some(Section { title: "3 cases".to_owned(), ..Section::default() });
    let table = Section {
        title: "Claims".to_owned(),
        about: "Tried.".to_owned(),
        headers: vec!["claim".to_owned(), "n".to_owned()],
        lines: vec![line(Mark::Good, "a"), wrong, line(Mark::Partly, "c")],
    };
    let page = page(&[table]);
    let section = section(&page, "Claims");
    assert!(section.contains("✓ 1</span> right · "), "{section}");
    for sign in [
        "✓",
        "✗",
        "◐",
        "<details><summary>3 cases</summary>",
        "<td class=\"number\">1,000</td>",
        "<p>Tried.</p>",
    ] {
        assert!(section.contains(sign), "{sign}: {section}");
    }
}
