#![no_main]
libfuzzer_sys::fuzz_target!(init: fuzz::sow(&fuzz::MARKS), |bytes: &[u8]| (fuzz::MARKS.body)(bytes));
