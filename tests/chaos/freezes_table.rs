//! The printed report of the freezes.

use crate::{
    elector::Layers,
    lateness::{End, Late},
    stall::Stall,
};
use std::{collections::BTreeMap, fmt::Write, time::Duration};

/// One freeze, and the writes of the frozen leader that ended after another candidate's acquisition.
pub struct Frozen {
    pub layers: Layers,
    pub stall: Stall,
    pub late: Vec<Late>,
    /// How many writes took effect from this freeze to the next one.
    pub writes: usize,
}

impl Frozen {
    /// Whether a write was late that these layers stop. The fence follows the lease, so it lets a write pass that
    /// arrives just after the takeover. It lets none pass that arrives after the new holder could write.
    pub fn is_broken(&self) -> bool {
        let Layers { fence, request_deadline } = self.layers;
        let stops = |late: &Late| match (self.stall, late.end) {
            (Stall::Server, _) => request_deadline,
            (_, End::Arrived) => fence && late.came_after_a_write,
            _ => false,
        };
        self.late.iter().any(|it| it.took_effect() && stops(it))
    }
}

/// A row for each stall and layers.
pub fn table(frozen: &[Frozen]) -> String {
    let mut rows = BTreeMap::<(String, String), Vec<&Frozen>>::new();
    for one in frozen {
        rows.entry((one.stall.to_string(), one.layers.to_string())).or_default().push(one);
    }
    let mut text = format!(
        "{:<17} {:<12} {:>7} {:>8} {:>9} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>7}\n",
        "stall",
        "layers",
        "freezes",
        "writes",
        "with late",
        "at most",
        "arrived",
        "finished",
        "after",
        "most by",
        "refused",
        "given up"
    );
    for ((stall, layers), frozen) in rows {
        let late: Vec<_> = frozen.iter().flat_map(|it| &it.late).collect();
        let count = |end: End| late.iter().filter(|it| it.end == end).count();
        let with = frozen.iter().filter(|it| it.late.iter().any(Late::took_effect)).count();
        let after = late.iter().filter(|it| it.took_effect() && it.after_a_write).count();
        let most = late.iter().filter(|it| it.took_effect()).map(|it| it.by).max().unwrap_or_default();
        let _ = writeln!(
            text,
            "{stall:<17} {layers:<12} {:>7} {:>8} {with:>9} {:>8} {:>8} {:>10} {after:>8} {:>8} {:>8} {:>7}",
            frozen.len(),
            frozen.iter().map(|it| it.writes).sum::<usize>(),
            bound(with, frozen.len()),
            count(End::Arrived),
            count(End::Finished),
            millis(most),
            count(End::Refused),
            count(End::GivenUp),
        );
    }
    text + "with late: freezes with a write that took effect after another candidate's acquisition; at most: the \
            share of such freezes,\nwith 95 % confidence (3 divided by the freezes if there was none); arrived, finished: \
            those writes, by whether they had\narrived after the acquisition; after: those that ended after a write of \
            the new holder; most by: the longest time from the\nacquisition to the end of such a write; refused, given \
            up: writes that ended after the acquisition without effect\n"
}

/// The upper end of a share, with 95 % confidence. Without any case it is the rule of three. Otherwise it is Wilson's.
fn bound(cases: usize, of: usize) -> String {
    let [cases, of] = [cases, of].map(|it| f64::from(u32::try_from(it).unwrap_or(u32::MAX)));
    let share = if cases == 0.0 {
        3.0 / of
    } else {
        // One-sided.
        let z = 1.645_f64;
        let (p, z2) = (cases / of, z * z);
        (p + z2 / (2.0 * of) + z * (p * (1.0 - p) / of + z2 / (4.0 * of * of)).sqrt()) / (1.0 + z2 / of)
    };
    format!("{:.2} %", 100.0 * share.min(1.0))
}

fn millis(time: Duration) -> String {
    if time.is_zero() { "-".to_owned() } else { format!("{:.1} ms", time.as_secs_f64() * 1e3) }
}
