//! Where the results go.

use crate::{
    failure::Failure,
    record::{COST, Conditions, Cost, Records},
};

/// Where results go.
#[derive(Debug)]
pub(super) struct Results {
    records: Records<Cost>,
}

impl Results {
    pub(super) fn create(conditions: &Conditions) -> Result<Self, Failure> {
        Ok(Self { records: Records::create(COST, conditions)? })
    }

    /// Keeps a result, and says it. Returns how many failures it is.
    pub(super) fn keep(&self, cost: &Cost) -> Result<u32, Failure> {
        let words: Vec<_> = cost.values.iter().map(|(name, value)| format!("{name} {value:.1}")).collect();
        println!(
            "{} {:?} {}: {}",
            jiff::Zoned::now().strftime("%H:%M:%S"),
            cost.table,
            cost.what,
            cost.failure.as_ref().map_or(words.join(", "), |it| format!("FAILED: {it}")),
        );
        self.records.add(cost)?;
        Ok(u32::from(cost.failure.is_some()))
    }
}
