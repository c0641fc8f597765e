#![no_main]
libfuzzer_sys::fuzz_target!(init: fuzz::sow(&fuzz::TIMING), |bytes: &[u8]| (fuzz::TIMING.body)(bytes));
