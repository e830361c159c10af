//! A trace may have been edited by hand: whatever it says, no view fails on it, and every picture is well formed.

use doyen_core::members::{Members, NodeId, Term};
use doyen_core::protocol::{Class, Role, Section, View};
use doyen_core::registry::Purpose;
use doyen_core::time::Span;
use doyen_sim::render::columns::{self, Columns};
use doyen_sim::render::{RunInfo, mermaid, svg};
use doyen_sim::time::Time;
use doyen_sim::trace::{EventKind, Observer, TraceEvent};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Members are 1 to 4; 5 is a stranger.
fn member() -> impl Strategy<Value = NodeId> {
    (1..=5_u32).prop_map(NodeId)
}

/// Ordinary times, and the ends of the scale.
fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        8 => (0..20_000_000_u64).prop_map(Time),
        1 => any::<u64>().prop_map(Time),
        1 => Just(Time(u64::MAX)),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![Just("OK".to_owned()), Just("ELECTION".to_owned()), any::<String>()]
}

fn rules() -> impl Strategy<Value = Vec<String>> {
    vec(word(), 0..3)
}

fn message() -> impl Strategy<Value = EventKind> {
    let class = prop_oneof![Just(Class::Algorithm), Just(Class::Link), Just(Class::Detector)];
    let fate = (option::of(time()), option::of(time()));
    prop_oneof![
        (0..9_u32, member(), member(), word(), class, fate).prop_map(
            |(id, from, to, kind, class, (arrives, again))| {
                EventKind::Sent {
                    id,
                    from,
                    to,
                    text: format!("{kind} x"),
                    kind,
                    class,
                    arrives,
                    again,
                    changed: None,
                }
            }
        ),
        (0..9_u32, member(), member(), word(), rules()).prop_map(|(id, from, to, kind, rules)| {
            EventKind::Received { id, from, to, kind, rules }
        }),
        (0..9_u32, member(), member(), word()).prop_map(|(id, from, to, kind)| EventKind::Missed {
            id,
            from,
            to,
            kind
        }),
    ]
}

fn event() -> impl Strategy<Value = EventKind> {
    let role = prop_oneof![Just(Role::Follower), Just(Role::Candidate), Just(Role::Leader)];
    let section =
        prop_oneof![Just(Section::Outside), Just(Section::Waiting), Just(Section::INSIDE)];
    let pair = || (member(), member());
    prop_oneof![
        (member(), word(), any::<bool>(), rules()).prop_map(
            |(member, timer, background, rules)| {
                EventKind::Fired { member, timer, background, rules }
            }
        ),
        (member(), rules()).prop_map(|(member, rules)| EventKind::Campaign { member, rules }),
        (member(), rules()).prop_map(|(member, rules)| EventKind::Request { member, rules }),
        (member(), rules()).prop_map(|(member, rules)| EventKind::Exit { member, rules }),
        (member(), section)
            .prop_map(|(member, section)| EventKind::of_view(member, View::of_section(section))),
        (member(), option::of(member()), (0..3_u64).prop_map(Term), role).prop_map(
            |(member, leader, term, role)| EventKind::of_view(
                member,
                View::new(leader, term, role)
            )
        ),
        pair().prop_map(|(member, peer)| EventKind::Suspected { member, peer }),
        pair().prop_map(|(member, peer)| EventKind::Trusted { member, peer }),
        (member(), any::<bool>())
            .prop_map(|(member, forwards)| EventKind::Crashed { member, forwards }),
        (member(), any::<bool>(), rules()).prop_map(|(member, disk, rules)| EventKind::Restarted {
            member,
            disk,
            rules
        }),
        (member(), time()).prop_map(|(member, until)| EventKind::Paused { member, until }),
        (member(), any::<u32>(), any::<u64>())
            .prop_map(|(member, rate_ppm, jump)| EventKind::Clock { member, rate_ppm, jump }),
        pair().prop_map(|(from, to)| EventKind::Cut { from, to }),
        pair().prop_map(|(from, to)| EventKind::Mended { from, to }),
        vec(vec(member(), 0..3), 0..3).prop_map(|groups| EventKind::Partitioned { groups }),
        Just(EventKind::Network { text: "all messages take 5ms".to_owned() }),
        (member(), option::of(time())).prop_map(|(member, until)| EventKind::Leased {
            member,
            until,
            old: false
        }),
        Just(EventKind::Healed),
    ]
}

fn records() -> impl Strategy<Value = Vec<TraceEvent>> {
    vec((time(), prop_oneof![message(), event()]), 0..60).prop_map(|mut told| {
        told.sort_by_key(|(at, _)| *at);
        told.into_iter().map(|(at, kind)| TraceEvent { at, kind }).collect()
    })
}

fn info() -> impl Strategy<Value = RunInfo> {
    let leader = option::of(member());
    let purpose = prop_oneof![Just(Purpose::Elects), Just(Purpose::Excludes)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (word(), leader, purpose, flags).prop_map(
        |(title, leader, purpose, (clockwise, leases, timed))| {
            let members = Members::range(1, 4).unwrap();
            let members = members.with_ring([2, 4, 1, 3].map(NodeId)).unwrap();
            let transmission = if timed { Span::from_millis(1) } else { Span::ZERO };
            RunInfo {
                title,
                subtitle: None,
                members,
                clockwise,
                purpose,
                leader,
                leases,
                transmission,
            }
        },
    )
}

/// Fails unless tags are balanced and `&` and `"` stand only where XML has them.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("unclosed: {piece}"));
        assert!(!tag.contains('&') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        for entity in text.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            assert!(known.iter().any(|known| entity.starts_with(known)), "{text}");
        }
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(!svg.contains("\"NaN") && !svg.contains(" NaN") && !svg.contains("inf\""), "{svg}");
}

/// Fails unless every line is a statement, and none is about the stranger.
fn assert_is_mermaid(text: &str) {
    let heads = [
        "    title ",
        "    participant p",
        "    p",
        "    Note over p",
        "    %% ",
        "    activate p",
        "    deactivate p",
        "    rect rgba",
        "    end",
    ];
    let is_statement = |line: &str| heads.iter().any(|head| line.starts_with(head));
    assert!(text.starts_with("sequenceDiagram\n"));
    assert!(text.lines().skip(1).all(is_statement), "{text}");
    let strange = ["    p5", "over p5", ">>p5", "-xp5", ",p5:"];
    assert!(!strange.iter().any(|strange| text.contains(strange)), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_trace_says_every_picture_is_well_formed(
        info in info(),
        records in records(),
        background in any::<bool>(),
        emphasis in option::of(btree_set(0..60_usize, 0..9)),
    ) {
        let options = svg::Options { background, emphasis, ..svg::Options::default() };
        assert_well_formed(&svg::space_time(&info, &records, &options).unwrap());
        assert_is_mermaid(&mermaid::sequence(&info, &records, None).unwrap());

        let mut out = Vec::new();
        let options = columns::Options { background, ..columns::Options::default() };
        let mut columns = Columns::new(info, options, &mut out);
        for record in &records {
            columns.observe(record);
        }
        columns.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{}", text);
    }
}
