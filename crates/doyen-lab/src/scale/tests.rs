use serde_json::{Value, json};

fn scaled(source: &Value, members: u64) -> Value {
    let request = json!({ "source": source, "members": members });
    let answer = crate::call("scale", &request.to_string(), &mut |_| true);
    serde_json::from_str(&answer.unwrap_or_else(|problem| panic!("{problem}"))).unwrap()
}

#[test]
fn counts_are_those_of_the_formula_at_every_size() {
    let figure_1 = json!({ "gallery": "kordafshari/figure-1" });
    for members in [3, 8, 100, 1_000] {
        let answer = scaled(&figure_1, members);
        assert_eq!(answer["messages"], answer["formula"]["value"], "{answer}");
        let curves = answer["curves"].as_array().unwrap();
        let last = |curve: &Value| curve["points"].as_array().unwrap().last().unwrap()[1].as_u64();
        let total: u64 = curves.iter().filter_map(last).sum();
        assert_eq!(answer["messages"], total);
        let cells = answer["heat"]["cells"].as_array().unwrap();
        assert_eq!(answer["messages"], cells.iter().filter_map(Value::as_u64).sum::<u64>());
    }
}

#[test]
fn a_run_that_is_too_large_is_answered_by_the_formula() {
    let figure_1 = json!({ "gallery": "kordafshari/figure-1" });
    let answer = scaled(&figure_1, 1_000_000);
    assert_eq!(answer["messages"], answer["formula"]["value"]);
    assert!(answer["note"].as_str().unwrap().contains("the formula"), "{answer}");
    // A curve from the smallest size to this one, which the formula gives at every point.
    let points = answer["growth"]["points"].as_array().unwrap();
    assert_eq!(points.first().unwrap()[0], 3);
    assert_eq!(points.last().unwrap(), &json!([1_000_000, answer["messages"]]));
    let small = points.iter().filter(|point| point[0].as_u64() <= Some(1_000));
    for point in small {
        let simulated = scaled(&figure_1, point[0].as_u64().unwrap());
        assert_eq!(point[1], simulated["messages"], "{point}");
    }
}

#[test]
fn a_large_ring_is_simulated() {
    let answer = scaled(&json!({ "gallery": "cs425/ring-worst-case" }), 20_000);
    assert_eq!(answer["messages"], answer["formula"]["value"], "{answer}");
    assert!(answer["heat"].is_null());
    assert!(answer["curves"][0]["points"].as_array().unwrap().len() <= super::POINTS);
}

#[test]
fn every_scenario_can_be_scaled() {
    for entry in crate::gallery::in_lab() {
        for members in [3, 12] {
            let answer = scaled(&json!({ "gallery": entry.name }), members);
            assert_eq!(answer["members"], members, "{}", entry.name);
        }
    }
}
