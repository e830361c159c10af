//! Which properties a check judges, and which it does not: each with the reason, for whoever asked for it.

use anyhow::{Result, anyhow, bail};
use doyen_check::Timers;
use doyen_check::property::Property;
use doyen_core::registry::Algorithm;
use serde_json::{Value, json};

/// What was asked for, by name or because it is usual.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Asked {
    /// What is judged.
    pub(super) judged: Vec<Property>,
    /// What is not.
    pub(super) left_out: Vec<LeftOut>,
}

/// A property that is not judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeftOut {
    property: Property,
    /// Why not.
    why: &'static str,
    /// What to do about it.
    remedy: &'static str,
}

/// Why an exploration does not look at how runs end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unseen {
    /// Goes on after "A3 is".
    pub(super) why: &'static str,
    pub(super) remedy: &'static str,
}

impl Asked {
    /// What an exploration judges of what `names` ask for, or of what is usual for `algorithm`.
    pub(super) fn of_exploration(
        names: &[String],
        algorithm: Algorithm,
        timers: Timers,
        ends: Option<Unseen>,
    ) -> Result<Self> {
        let wanted = named(names)?.unwrap_or_else(|| Property::usual_of(algorithm));
        let left_out = |property: Property| {
            let timeless = match Property::LASTING.contains(&property) {
                true => ("about faults that last", "use --random --lasting"),
                false => ("about time, which free timers do not keep", "use --timers clocked"),
            };
            let ends = ends.filter(|_| !property.is_safety()).map(|ends| (ends.why, ends.remedy));
            let reason = (!property.is_explorable(timers)).then_some(timeless).or(ends);
            reason.map(|(why, remedy)| LeftOut { property, why, remedy })
        };
        Self::sorted(names, wanted, left_out)
    }

    /// What an exploration of a part of the quorum judges of what `names` ask for, or of what the part has.
    pub(super) fn of_part(names: &[String], of_part: &[Property]) -> Result<Self> {
        let wanted = named(names)?.unwrap_or_else(|| of_part.to_vec());
        let left_out = |property| {
            let (why, remedy) = ("not about this part of the quorum", "leave it out");
            (!of_part.contains(&property)).then_some(LeftOut { property, why, remedy })
        };
        Self::sorted(names, wanted, left_out)
    }

    /// What random runs judge of what `names` ask for; of what the algorithm of each run promises, if they ask for
    /// nothing.
    pub(super) fn of_random_runs(names: &[String], lasting: bool) -> Result<Option<Self>> {
        let Some(wanted) = named(names)? else { return Ok(None) };
        Self::sorted(names, wanted, |property| unjudged_at_random(property, lasting)).map(Some)
    }

    /// What random runs judge whose faults last, if nothing is asked for.
    pub(super) fn usual_while_faults_last() -> Self {
        let usual = Property::usual_while_faults_last();
        let judged = Property::ALL.into_iter().filter(|property| usual.contains(property));
        Self { judged: judged.collect(), left_out: Vec::new() }
    }

    /// What random runs of these algorithms judge if nothing is asked for.
    pub(super) fn usual_at_random(algorithms: &[Algorithm]) -> Self {
        let usual: Vec<Property> =
            algorithms.iter().flat_map(|&algorithm| Property::usual_of(algorithm)).collect();
        let usual = Property::ALL.into_iter().filter(|property| usual.contains(property));
        let (left_out, judged) =
            usual.partition(|&property| unjudged_at_random(property, false).is_some());
        let left_out: Vec<Property> = left_out;
        let unjudged = |property| unjudged_at_random(property, false);
        Self { judged, left_out: left_out.into_iter().filter_map(unjudged).collect() }
    }

    /// Sorts what is wanted; refuses what was named and cannot be judged.
    fn sorted(
        names: &[String],
        wanted: Vec<Property>,
        left_out: impl Fn(Property) -> Option<LeftOut>,
    ) -> Result<Self> {
        let is_named = !names.is_empty() && !asks_for_all(names);
        let mut asked = Self::default();
        for property in wanted {
            match left_out(property) {
                None => asked.judged.push(property),
                Some(LeftOut { why, remedy, .. }) if is_named => {
                    bail!("--property: {property} is {why}; {remedy}")
                }
                Some(left_out) => asked.left_out.push(left_out),
            }
        }
        Ok(asked)
    }

    /// What is not judged, a line for each reason; nothing if all is.
    pub(super) fn left_out_in_words(&self) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for &LeftOut { property, why, .. } in &self.left_out {
            match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, names)) => names.push(property.name()),
                None => reasons.push((why, vec![property.name()])),
            }
        }
        let line = |(why, names): (&str, Vec<&str>)| {
            format!("Not judged: {} ({why}).\n", names.join(", "))
        };
        reasons.into_iter().map(line).collect()
    }

    /// The same for programs.
    pub(super) fn left_out_as_json(&self) -> Vec<Value> {
        let each = |left_out: &LeftOut| json!({ "property": left_out.property.name(), "why": left_out.why });
        self.left_out.iter().map(each).collect()
    }
}

fn unjudged_at_random(property: Property, lasting: bool) -> Option<LeftOut> {
    let is_about_lasting = Property::LASTING.contains(&property);
    let (why, remedy) = match (is_about_lasting, lasting) {
        (true, true) => return None,
        (true, false) => ("about faults that last", "add --lasting"),
        (false, true) if !property.is_safety() => {
            ("about trouble that ends", "leave out --lasting")
        }
        (false, _) if property.is_judged_at_random() => return None,
        (false, _) => ("explored only", "leave out --random"),
    };
    Some(LeftOut { property, why, remedy })
}

fn asks_for_all(names: &[String]) -> bool {
    matches!(names, [all] if all.eq_ignore_ascii_case("all"))
}

/// The properties of these names; every one, if that is what they say.
fn named(names: &[String]) -> Result<Option<Vec<Property>>> {
    if names.is_empty() {
        return Ok(None);
    }
    if asks_for_all(names) {
        return Ok(Some(Property::ALL.to_vec()));
    }
    let mut properties = Vec::new();
    for name in names {
        let property = name.parse().map_err(|problem| anyhow!("--property: {problem}"))?;
        if !properties.contains(&property) {
            properties.push(property);
        }
    }
    Ok(Some(properties))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSEEN: Unseen = Unseen { why: "about how runs end, unseen", remedy: "look" };

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn of_exploration(text: &str, ends: Option<Unseen>) -> Result<Asked> {
        let timers = Timers::Free { expiries: 1 };
        Asked::of_exploration(&names(text), Algorithm::Quorum, timers, ends)
    }

    #[test]
    fn everything_asked_for_is_either_judged_or_said_not_to_be() {
        for (text, wanted) in
            [("all", Property::ALL.to_vec()), ("", Property::usual_of(Algorithm::Quorum))]
        {
            for ends in [None, Some(UNSEEN)] {
                let asked = of_exploration(text, ends).unwrap();
                assert_eq!(asked.judged.len() + asked.left_out.len(), wanted.len());
                let words = asked.left_out_in_words();
                for left_out in asked.left_out_as_json() {
                    assert!(words.contains(left_out["property"].as_str().unwrap()), "{words}");
                }
            }
        }
        let asked = of_exploration("all", Some(UNSEEN)).unwrap();
        let words = asked.left_out_in_words();
        assert!(
            words.contains("Not judged: vote-leases-kept, leases-covered (about time"),
            "{words}"
        );
    }

    #[test]
    fn what_is_named_and_cannot_be_judged_is_refused_whatever_its_case() {
        let refused = |text: &str, ends| of_exploration(text, ends).unwrap_err().to_string();
        assert_eq!(
            refused("A4 a3", Some(UNSEEN)),
            "--property: A3 is about how runs end, unseen; look"
        );
        assert_eq!(
            refused("Promises-Kept", None),
            "--property: vote-leases-kept is about time, which free timers do not keep; use --timers clocked"
        );
        assert_eq!(of_exploration("a1 A1", None).unwrap().judged, [Property::Agreement]);
        let random = Asked::of_random_runs(&names("bounded-terms"), false).unwrap_err().to_string();
        assert_eq!(random, "--property: bounded-terms is explored only; leave out --random");
    }

    #[test]
    fn random_runs_say_what_they_do_not_judge_of_what_is_usual() {
        let usual = Asked::usual_at_random(&[Algorithm::Bully]);
        assert_eq!(usual.judged, Property::usual_at_random(Algorithm::Bully));
        assert_eq!(usual.left_out_in_words(), "Not judged: bounded-terms (explored only).\n");
        let both = Asked::usual_at_random(&[Algorithm::Bully, Algorithm::Quorum]);
        assert!(both.judged.contains(&Property::LeasesRise));
    }
}
