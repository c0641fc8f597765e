//! The guides' code compiles, and runs where it can.

#[cfg(feature = "runtime")]
#[doc = include_str!("../docs/GETTING_STARTED.md")]
struct GettingStarted;

#[doc = include_str!("../docs/GUARANTEES.md")]
struct Guarantees;

#[doc = include_str!("../docs/STACKING.md")]
struct Stacking;

#[doc = include_str!("../docs/TIMING.md")]
struct Timing;

#[doc = include_str!("../docs/MIGRATING.md")]
struct Migrating;

#[doc = include_str!("../docs/MANY.md")]
struct Many;

#[doc = include_str!("../docs/PRIORITY.md")]
struct Prioritised;

#[cfg(feature = "metrics")]
#[doc = include_str!("../docs/METRICS.md")]
struct Metrics;
