//! A network namespace in which datagrams are lost.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A network namespace with a packet filter that has no rules yet.
pub(super) struct Namespace(String);

impl Namespace {
    /// Makes one; that needs root, `ip` and `nft`.
    pub(super) fn make() -> Option<Self> {
        let name = format!("dybench{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        made.ok().filter(|output| output.status.success())?;
        let space = Self(name);
        space.run("ip", &["link", "set", "lo", "up"])?;
        space.run("nft", &["add table inet loss"])?;
        let chain = "add chain inet loss arriving { type filter hook input priority 0; }";
        space.run("nft", &[chain])?;
        Some(space)
    }

    /// What a command in it begins with.
    pub(super) fn prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.0].map(str::to_owned).to_vec()
    }

    /// Loses so many of a hundred datagrams from now on.
    pub(super) fn lose(&self, percent: u32) {
        let rule = format!(
            "add rule inet loss arriving meta l4proto udp numgen random mod 100 < {percent} drop"
        );
        self.run("nft", &[&rule]).expect("a rule that drops datagrams");
    }

    /// The leader, as the node at `url` in it knows it. That node's own `program` asks, because versions differ in what
    /// they tell.
    pub(super) fn leader(&self, program: &Path, url: &str) -> Option<u64> {
        let program = program.to_str().expect("a plain path");
        let text = self.run(program, &["status", "--json", "--node", url])?;
        serde_json::from_slice::<Value>(&text).ok()?["leader"].as_u64()
    }

    /// Runs a command in it; what it printed, if it went well.
    fn run(&self, program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
        let [ip, words @ ..] = &self.prefix()[..] else { return None };
        let output = Command::new(ip).args(words).arg(program).args(arguments).output().ok()?;
        output.status.success().then_some(output.stdout)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A namespace that cannot be removed does no harm.
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}
