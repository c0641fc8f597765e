//! What is played, one round at a time.

mod crash;
mod handover;
mod rollout;
mod round;
mod steady;

pub(crate) use self::{crash::crash, handover::handover, rollout::rollout, round::Values, steady::steady};
