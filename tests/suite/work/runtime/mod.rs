//! kube-runtime controllers and watchers around an election, over the in-process API server, in paused time.

mod caught_up;
mod chance;
mod debounce;
mod gains;
mod gated;
mod histories;
mod knows;
pub mod logs;
mod per_term;
mod races;
mod replay;
mod things;
mod threads;
mod viewer;
