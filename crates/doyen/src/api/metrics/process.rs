//! The process as the client libraries of Prometheus describe one: `process_cpu_seconds_total` and so on, by the same names.

use std::fmt;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::Writer;
use crate::clock::Moment;

/// What the operating system reports about this process; missing values are left out.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Process {
    cpu_seconds: f64,
    resident_bytes: Option<u64>,
    virtual_bytes: Option<u64>,
    threads: Option<u64>,
    open_files: Option<u64>,
    most_files: Option<u64>,
}

impl Process {
    fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next()?.parse().ok()
        };
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        // One of the entries is the folder itself, while it is read.
        let open_files = fs::read_dir("/proc/self/fd").map(|files| files.count() as u64 - 1);
        Self {
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            resident_bytes: field("VmRSS:").map(|kibibytes| kibibytes * 1024),
            virtual_bytes: field("VmSize:").map(|kibibytes| kibibytes * 1024),
            threads: field("Threads:"),
            open_files: open_files.ok(),
            most_files: getrlimit(Resource::Nofile).current,
        }
    }
}

/// When this process started, in seconds since 1970.
fn started() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name, which may contain anything, is in parentheses; the start is the 20th field after it, in ticks of the
    // boot-time clock.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let age = Duration::from_nanos(Moment::now().as_nanos()).as_secs_f64() - seconds;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(now.as_secs_f64() - age)
}

/// Reads the values.
#[derive(Debug)]
pub(super) struct ProcessSource {
    /// In seconds since 1970. Read once: a second reading would differ a little, and look like another start.
    started: Option<f64>,
}

impl ProcessSource {
    pub(super) fn new() -> Self {
        Self { started: started() }
    }
}

impl Collector for ProcessSource {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let process = Process::read();
        let mut writer = Writer(encoder);
        let (seconds, bytes) = (Some(&Unit::Seconds), Some(&Unit::Bytes));
        writer.counter(
            "process_cpu",
            "Processor time that the process used",
            seconds,
            &process.cpu_seconds,
        )?;
        let gauges = [
            ("process_resident_memory", "Resident memory", bytes, process.resident_bytes),
            ("process_virtual_memory", "Virtual memory", bytes, process.virtual_bytes),
            ("process_threads", "Threads", None, process.threads),
            ("process_open_fds", "Open file descriptors", None, process.open_files),
            ("process_max_fds", "Most file descriptors", None, process.most_files),
        ];
        for (name, help, unit, value) in gauges {
            if let Some(value) = value {
                writer.gauge(name, help, unit, &value)?;
            }
        }
        if let Some(started) = self.started {
            let help = "When the process started, in seconds since 1970";
            writer.gauge("process_start_time", help, seconds, &started)?;
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_described_as_it_is() {
        let before = Process::read();
        let file = fs::File::open("/dev/null").unwrap();
        let mut sum = 0u64;
        while Process::read().cpu_seconds < before.cpu_seconds + 0.001 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let process = Process::read();
        drop(file);
        // Other tests of this program run meanwhile, and open and close files.
        assert!(process.open_files.is_some_and(|open| open >= 3), "{process:?}");
        assert!(process.most_files >= process.open_files, "{process:?}");
        assert!(process.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{process:?}");
        assert!(process.virtual_bytes >= process.resident_bytes, "{process:?}");
        assert!(process.threads >= Some(1), "{process:?}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - started().unwrap();
        // The tests of this program take no day.
        assert!((0.0..86_400.0).contains(&age), "{age} s");
    }
}
