//! The fuzzer's way into [`relay_fuzz::retry_after`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relay_fuzz::retry_after(data));
