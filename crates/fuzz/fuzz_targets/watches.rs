#![no_main]
libfuzzer_sys::fuzz_target!(init: fuzz::sow(&fuzz::WATCHES), |bytes: &[u8]| (fuzz::WATCHES.body)(bytes));
