//! Prints the public items of a crate, one in a line, from what rustdoc writes as JSON.

use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args_os().nth(1).ok_or("usage: surface FILE.json")?;
    let surface = public_api::Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    print!("{surface}");
    Ok(())
}
