//! The fuzzer's way into [`relay_fuzz::preamble`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relay_fuzz::preamble(data));
