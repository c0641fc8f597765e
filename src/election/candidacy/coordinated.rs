//! What a candidate remembers if a coordinator chooses the holder.

use crate::election::preemption::Overtaken;

/// What a candidate knows that is chosen by a coordinator.
#[derive(Clone, Debug, Default)]
pub(super) struct Coordinated {
    /// The last holder that another one replaced, if this candidate has not seen it release the lease.
    ///
    /// The coordinator compares wall clocks: it may name the next holder while the former one still counts as live by
    /// the clock of this process (rule S6).
    pub(super) former: Option<Overtaken>,
    /// This candidate's term ends, because the coordinator prefers another one. The gate does not open again in it,
    /// even if the coordinator changes its mind.
    pub(super) gives_way: bool,
}
