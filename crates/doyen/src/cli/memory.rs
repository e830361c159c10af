//! How much memory there is.

/// The memory that is free, where the system says so; else what any machine has.
pub(crate) fn available() -> u64 {
    let parse = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let kilobytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(parse);
    kilobytes.map_or(4_000_000_000, |kilobytes| kilobytes * 1024)
}
