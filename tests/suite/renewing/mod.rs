//! What keeps a term alive and what does not: failed renewals, silent watches, clocks that stand still or jump.

mod failures;
mod silent_watches;
mod standing_wall_clock;
mod suspend;
