//! One candidate of an election, as a machine without I/O: news, answers and orders go in; the next call, the next moment and
//! the state of the gate come out. It has no clock, no future, and no chance but a seed.
//!
//! Five ideas keep it small.
//! - **A claim names its process** (`note`). "Is the lease mine?" is one comparison. A copy, a late claim, an edited
//!   duration and a second process with this identity are known by it. A write counts only if the server stored what was
//!   sent.
//! - **A term begins and goes on only by an answered write** (`answer`). A claim whose answer was lost, and that turns out to
//!   stand, is claimed again.
//! - **Each holder of the lease is waited for, unless a word says that it has stopped** (`observe`, `formers`).
//! - **An earlier container of this pod counts as this candidate**, since the kubelet has ended it (`observe`). Its name alone
//!   proves nothing: the claim also has the uid of the pod. Its writes have ended without an answer.
//! - **A term that is given back has a reason, which says how its candidate rests** (`state`, `observe`). The order of the
//!   moment at which the release is seen says nothing: the process may stand down meanwhile.
//!
//! In each turn, the task tells the machine the news, makes the gate what [`Machine::gate`] says, looks at what the process wants
//! ([`Intent`](crate::leadership::Intent)) and still does (`Busy`), and calls [`Machine::poll`].
//!
//! Times count from the sending of a claim that is answered: the deadline of this process comes after the renew deadline
//! (rule S1), and the lease's end for others after the lease duration. In the safety margin between the two, a write that was
//! cut off may still land. A term lasts from the answered claim on. Its gate may still wait for former writers.
//!
//! Priority asks before it takes (`ask`): a preferred candidate writes its name into the lease, and a holder of this crate
//! stops in the usual order and releases. So no live holder of this crate is ever overtaken. Another elector cannot be asked:
//! once the question stands, its lease is taken, and the gate waits as long as that lease lasts, from the claim on.
//!
//! A rule that lets a candidate act earlier than the strictest reading of the lease allows is marked **Earlier**, with the
//! everyday situation that pays for it. The guide's page on guarantees has the rules S1 to S15.

mod answer;
mod ask;
mod formers;
mod note;
mod observe;
mod order;
mod state;
mod stored;
mod trouble;
mod update;
mod want;

#[cfg(test)]
mod tests;

#[cfg(feature = "internal")]
pub use self::note::{ASKED, CLAIM, WAITS_FOR};
pub use self::{
    state::{Busy, Call, Gate, Machine, Next},
    stored::holder_pod_uid,
};
