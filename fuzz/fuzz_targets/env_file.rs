//! The fuzzer's way into [`relay_fuzz::env_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relay_fuzz::env_file(data));
