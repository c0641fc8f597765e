//! The text form of times and switches in options.

use std::time::Duration;

/// `20ms` or `1s`, as Go writes it.
pub fn duration(written: &str) -> Result<Duration, String> {
    let (number, unit) = match written.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (written.strip_suffix('s').ok_or("expected a duration such as 20ms or 1s")?, 1000),
    };
    let number: u32 = number.parse().map_err(|error| format!("{written}: {error}"))?;
    Ok(Duration::from_millis(u64::from(number) * unit))
}

/// `on` or `off`.
pub fn on_or_off(written: &str) -> Result<bool, String> {
    match written {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}
