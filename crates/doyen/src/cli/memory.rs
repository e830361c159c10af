//! How much memory there is, and how much this process takes.

/// The memory that is free, where the system says so; else what any machine has.
pub(crate) fn available() -> u64 {
    let parse = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let kilobytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(parse);
    kilobytes.map_or(4_000_000_000, |kilobytes| kilobytes * 1024)
}

/// What this process takes, where the system says so; else nothing.
pub(crate) fn resident() -> u64 {
    let parse = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let kilobytes = std::fs::read_to_string("/proc/self/status").ok().and_then(parse);
    kilobytes.map_or(0, |kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_some_memory_and_less_than_there_is() {
        let taken = resident();
        assert!(taken > 100_000 && taken < 1_000_000_000_000, "{taken}");
        assert!(available() > 0);
    }
}
