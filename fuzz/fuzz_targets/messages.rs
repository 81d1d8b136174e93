//! The fuzzer's way into [`relay_fuzz::messages`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relay_fuzz::messages(data));
