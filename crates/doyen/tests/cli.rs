//! What a user types and sees. `make golden` writes the files anew; then read the diff.

#[test]
fn every_command_shows_what_the_files_say() {
    trycmd::TestCases::new()
        .case("tests/cli/*.trycmd")
        .env("NO_COLOR", "1")
        // Nobody's own configuration.
        .env("HOME", "")
        .env("XDG_CONFIG_HOME", "")
        .insert_var("[EXE]", std::env::consts::EXE_SUFFIX)
        .expect("the variable has a name");
}
