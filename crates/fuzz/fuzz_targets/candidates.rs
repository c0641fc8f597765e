#![no_main]
libfuzzer_sys::fuzz_target!(init: fuzz::sow(&fuzz::CANDIDATES), |bytes: &[u8]| (fuzz::CANDIDATES.body)(bytes));
