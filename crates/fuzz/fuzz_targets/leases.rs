#![no_main]
libfuzzer_sys::fuzz_target!(init: fuzz::sow(&fuzz::LEASES), |bytes: &[u8]| (fuzz::LEASES.body)(bytes));
