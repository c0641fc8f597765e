//! What the kernel says about a process.

use crate::failure::Failure;
use std::fs;

/// The processor time of a process so far, in milliseconds.
pub(super) fn cpu(process: i32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    ticks(&stat)
        .map(|ticks| ticks * 1000.0 / ticks_per_second())
        .ok_or_else(|| format!("cannot read /proc/{process}/stat").into())
}

/// The resident memory of a process in kB.
pub(super) fn resident(process: i32) -> Result<f64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

#[expect(clippy::cast_precision_loss, reason = "it is 100")]
fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// The name of the program stands in parentheses, and may contain any character.
fn ticks(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let [user, system] = [11, 12].map(|place: usize| fields.get(place)?.parse::<f64>().ok());
    Some(user? + system?)
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_are_those_of_user_and_system() {
        let stat = "1234 (a (b) c) S 1 1 1 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 3 0 100 1000 10";
        assert_eq!(ticks(stat), Some(42.0));
        assert_eq!(ticks("1234 (a) S 1"), None);
    }
}
