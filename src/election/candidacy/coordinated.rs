//! What a candidate remembers if a coordinator chooses the holder.

/// What a candidate knows that is chosen by a coordinator.
#[derive(Clone, Debug, Default)]
pub(super) struct Coordinated {
    /// This candidate's term ends, because the coordinator prefers another one. The gate does not open again in it,
    /// even if the coordinator changes its mind.
    pub(super) gives_way: bool,
}
