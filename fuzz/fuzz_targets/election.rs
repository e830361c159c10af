//! Three members whose messages are altered and made up. The first byte says by which algorithm.

#![no_main]

use doyen_core::registry::Algorithm;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [first, rest @ ..] = bytes {
        let algorithm = Algorithm::ALL[usize::from(*first) % Algorithm::ALL.len()];
        doyen::fuzz::election(algorithm, rest);
    }
});
