#![no_main]
libfuzzer_sys::fuzz_target!(init: fuzz::sow(&fuzz::REQUESTS), |bytes: &[u8]| (fuzz::REQUESTS.body)(bytes));
