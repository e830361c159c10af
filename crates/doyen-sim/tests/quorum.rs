//! The quorum in the simulator.

use doyen_sim::check::property::Property;
use doyen_sim::oracle::Oracle;
use doyen_sim::run;
use doyen_sim::scenario::Scenario;

#[test]
fn smoke() {
    for seed in 1..200 {
        let text = format!(
            r#"
            algorithm = "quorum"
            members = 5
            leader = 5
            seed = {seed}
            delay = "uniform:0.1ms..1ms"
            loss = 0.05
            [[fault]]
            at = "50ms"
            crash = 5
            [[fault]]
            at = "200ms"
            restart = 5
            [chaos]
            until = "2s"
            crash_every = "100ms"
            down_for = "50ms"
            pause_every = "100ms"
            pause_for = "20ms"
            cut_every = "50ms"
            cut_for = "100ms"
            "#
        );
        let case = Scenario::from_toml("smoke", &text).unwrap();
        let mut properties = Property::QUORUM.to_vec();
        properties.extend([Property::Agreement, Property::Validity, Property::Termination]);
        let mut oracle = Oracle::of(&case, &properties);
        let outcome = run::judge(&case, None, &mut oracle);
        assert_eq!(oracle.breach(), None, "{seed} {outcome:?}");
        if seed == 1 {
            println!("{outcome:?}");
        }
    }
}
