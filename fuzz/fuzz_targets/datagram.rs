//! Bytes off the network, and bytes that somebody with the key has sealed.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doyen::fuzz::datagram(bytes));
