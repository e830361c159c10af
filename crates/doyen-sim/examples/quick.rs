use doyen_sim::scenario::Scenario;
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let case = Scenario::from_toml("x", &text).unwrap_or_else(|e| {
        eprintln!("{e}");
        std::process::exit(2)
    });
    let t = std::time::Instant::now();
    let mut o = doyen_sim::run::run(&case, None);
    let e = t.elapsed();
    o.views.clear();
    o.by_member.clear();
    println!("{o:#?}\n{e:?}");
}
