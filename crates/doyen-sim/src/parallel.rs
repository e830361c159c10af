//! Independent work on several threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

/// The number of processors that this process may use.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` with every item, on at most `threads` threads, and returns the results in the order of the items.
///
/// Runs differ in length by a factor of a million, so the items are handed out one by one. If the system refuses to start a
/// thread, as a browser does, those that run do all the work.
pub fn map<I: Sync, T: Send>(threads: usize, items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let do_some = || -> Vec<(usize, T)> {
        let take = || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            items.get(number).map(|item| (number, work(item)))
        };
        iter::from_fn(take).collect()
    };
    let mut results = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, do_some).ok();
        let helpers: Vec<_> = (1..threads.min(items.len())).map_while(start).collect();
        let mut results = do_some();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let squares: Vec<u64> = items.iter().map(|it| it * it).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(map(threads, &items, |it| it * it), squares);
        }
        assert!(map(3, &[0_u64; 0], |it| *it).is_empty());
    }

    #[test]
    fn work_is_shared() {
        let (begun, started) = (AtomicUsize::new(0), Instant::now());
        let sees_other = |(): &()| {
            begun.fetch_add(1, Ordering::Relaxed);
            while begun.load(Ordering::Relaxed) < 2 && started.elapsed() < Duration::from_secs(30) {
                thread::yield_now();
            }
            begun.load(Ordering::Relaxed) == 2
        };
        assert_eq!(map(2, &[(), ()], sees_other), [true, true]);
    }
}
