//! `catalogue`: the algorithms, the gallery, the properties and the glossary.

use doyen_check::property::Property;
use doyen_core::config::Mode;
use doyen_core::layers;
use doyen_core::registry::{Algorithm, Guarantee};
use doyen_sim::scenario::{Expect, Scenario};
use serde_json::{Value, json};

use crate::recorded::MessageKind;
use crate::{gallery, words};

const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

fn groups() -> impl Iterator<Item = &'static gallery::Group> {
    gallery::GROUPS.iter().filter(|group| group.in_lab)
}

/// The algorithms that the lab shows: those that elect or exclude.
fn algorithms() -> impl Iterator<Item = Algorithm> {
    Algorithm::ELECTIONS.into_iter().chain(Algorithm::EXCLUSIONS)
}

/// Everything that there is to choose from.
pub(crate) fn catalogue() -> Value {
    let property = |property: Property| json!({ "id": property.name(), "text": property.words() });
    json!({
        "doyen": env!("CARGO_PKG_VERSION"),
        "algorithms": algorithms().map(algorithm).collect::<Vec<_>>(),
        "gallery": std::iter::once(tour()).chain(groups().map(group)).collect::<Vec<_>>(),
        "properties": Property::ALL.map(property),
        "glossary": glossary(),
    })
}

fn algorithm(algorithm: Algorithm) -> Value {
    json!({
        "name": algorithm.name(),
        "title": algorithm.title(),
        "summary": algorithm.summary(),
        "source": algorithm.source(),
        "purpose": algorithm.purpose().name(),
        "one_crash": algorithm.one_crash(),
        "ring": algorithm.is_ring(),
        "modes": modes(algorithm).into_iter().map(mode).collect::<Vec<_>>(),
        "leases": algorithm.has_leases(),
        "guarantees": algorithm.guarantees().iter().map(guarantee).collect::<Vec<_>>(),
        "rules": algorithm.rules().collect::<Vec<_>>(),
        "kinds": layers::kinds(algorithm).iter().map(MessageKind::new).collect::<Vec<_>>(),
    })
}

/// The modes of an algorithm, the usual one first.
pub(crate) fn modes(algorithm: Algorithm) -> Vec<Mode> {
    let variants = algorithm.variants().iter().map(|&variant| Mode::Literal(variant));
    let all = [Mode::Textbook, Mode::Hardened].into_iter().chain(variants);
    all.filter(|&mode| algorithm.reads(mode)).collect()
}

fn mode(mode: Mode) -> Value {
    let (title, hint) = words::mode(mode);
    json!({ "name": mode.to_string(), "title": title, "hint": hint })
}

fn guarantee(guarantee: &Guarantee) -> Value {
    json!({
        "mode": if guarantee.hardened { "hardened" } else { "textbook" },
        "safety": guarantee.safety,
        "liveness": guarantee.liveness,
        "partition": guarantee.partition,
        "messages": guarantee.cost,
    })
}

fn tour() -> Value {
    let stops: Vec<Value> = gallery::FIVE_MINUTES.iter().map(stop).collect();
    json!({ "group": "five-minutes", "title": "Five minutes", "scenarios": stops })
}

/// A stop of the tour: an entry of the gallery with a question, a step and what to see.
fn stop(stop: &gallery::Stop) -> Value {
    let mut entry = match stop.scenario.and_then(gallery::entry) {
        Some(of) => entry(of),
        None => json!({ "name": null, "view": "live", "tags": [] }),
    };
    entry["title"] = stop.title.into();
    entry["about"] = stop.about.into();
    entry["question"] = json!({ "text": stop.question });
    entry["flags"] = json!(stop.flags);
    entry["step"] = stop.step.into();
    entry
}

fn group(group: &gallery::Group) -> Value {
    json!({
        "group": group.name,
        "title": group.title,
        "scenarios": group.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(entry: &gallery::Entry) -> Value {
    let scenario = entry.scenario();
    let case = scenario.resolve().expect("what is built in has been tested");
    json!({
        "name": entry.name,
        "title": scenario.title,
        "about": case.about,
        "algorithm": case.algorithm.name(),
        "mode": case.mode().to_string(),
        "members": case.members().len(),
        "question": null,
        "tags": tags(&scenario),
    })
}

/// The result of a run, in a word or two.
fn tags(scenario: &Scenario) -> Vec<&'static str> {
    let Some(expect) = &scenario.expect else { return Vec::new() };
    let Expect { agreed, two_leaders, quiet, two_inside, in_order, waiting, .. } = expect;
    let elects = scenario.algorithm.is_none_or(Algorithm::elects);
    let has_leases = scenario.algorithm.is_some_and(Algorithm::has_leases);
    let tags = [
        (*agreed == Some(false), "breaks A1"),
        // The members of a quorum may campaign for as long as a fault lasts: that is no flaw.
        (*quiet == Some(false) && !has_leases && elects, "breaks A3"),
        (*two_leaders == Some(true), "two leaders"),
        (*two_inside == Some(true), "two inside"),
        (*in_order == Some(false), "out of order"),
        (waiting.as_ref().is_some_and(|ids| !ids.is_empty()), "blocks"),
    ];
    tags.into_iter().filter(|(is, _)| *is).map(|(_, tag)| tag).collect()
}

/// The terms of the glossary, from its tables.
fn glossary() -> Vec<Value> {
    let rows = GLOSSARY.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?, cells.next()?))
    });
    rows.filter(|&row| row != ("term", "meaning"))
        .map(|(word, text)| json!({ "word": word, "text": text.replace(['*', '`'], "") }))
        .collect()
}
