//! Times as they are written in options.

use kube_leader_gate::LeaseTiming;
use std::{fmt, str::FromStr, time::Duration};

/// `6/4/1`: lease duration, renew deadline and retry period in seconds.
#[derive(Clone, Debug)]
pub struct Timing {
    written: String,
    pub lease: LeaseTiming,
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let parts: Result<Vec<Duration>, String> = written.split('/').map(seconds).collect();
        let Ok([lease, renew, retry]) = <[Duration; 3]>::try_from(parts?) else {
            return Err("expected LEASE/RENEW/RETRY in seconds, such as 6/4/1".to_owned());
        };
        let lease = LeaseTiming::new(lease, renew, retry).map_err(|error| error.to_string())?;
        Ok(Self { written: written.to_owned(), lease })
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

fn seconds(written: &str) -> Result<Duration, String> {
    let seconds: f64 = written.parse().map_err(|error| format!("{written}: {error}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{written}: {error}"))
}

/// `20ms` or `1s`, as Go writes it.
pub fn duration(written: &str) -> Result<Duration, String> {
    let (number, unit) = match written.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (written.strip_suffix('s').ok_or("expected a duration such as 20ms or 1s")?, 1000),
    };
    let number: u32 = number.parse().map_err(|error| format!("{written}: {error}"))?;
    Ok(Duration::from_millis(u64::from(number) * unit))
}
