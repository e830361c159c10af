//! Bytes off the network, and bytes that an attacker with the key has sealed.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doyen::fuzz::datagram(bytes));
