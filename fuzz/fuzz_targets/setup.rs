//! The fuzzer's way into [`relay_fuzz::setup`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relay_fuzz::setup(data));
