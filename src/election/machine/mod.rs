//! One candidate of an election, as a machine without I/O: news, answers and orders go in; the next call, the next moment and
//! the state of the gate come out. It has no clock and no future, and all that it does by chance comes from a seed.
//!
//! # The order of calls
//! The task tells the machine all that happens: [`Machine::handle_watch`] takes in what the watch shows,
//! [`Machine::handle_answer`] the answer to the call under way, and [`Machine::handle_order`] what the process wants
//! ([`Intent`](crate::leadership::Intent)). Then the task makes the gate what [`Machine::gate`] says, looks at what the process
//! still does (`Busy`), and calls [`Machine::poll`], which says what to do next. Then it makes the gate what it has to be again,
//! and carries the call out, or waits.
//!
//! # What it knows
//! - `known`: the lease as it was seen last, and who may still write.
//! - `terms`: the term that goes on, or how the last one has ended; and the term that is given back.
//! - `calls`: the call under way, and the last write.
//! - `pace`: when this candidate may do what it wants. It says nothing of who may write.
//!
//! # The ideas
//! 1. **A claim names its process** (`note`). "Is the lease mine?" is one comparison. The machine knows a copy, a late claim, an
//!    edited duration and a second process with this identity by it.
//! 2. **A term begins and goes on only by an answered write** (`answer`), and if the API server has stored what was sent. If the
//!    answer to a claim was lost, and the claim turns out to stand, the candidate claims the lease again.
//! 3. **Each holder of the lease is waited for, unless a word says that it has stopped** (`observe`). Usually a candidate waits
//!    before its claim, until the lease has expired on its clock. If a holder lost the lease earlier, it is a possible writer for
//!    its whole duration from then on. The candidate that takes the lease keeps its gate shut for the possible writers, and lists
//!    them in its claim, so the next holder waits for them, too.
//! 4. **An earlier container of this pod counts as this candidate**, since the kubelet has ended it (`observe`). Its name alone
//!    proves nothing: the claim also has the uid of the pod. Its writes are writes that ended without an answer.
//! 5. **A term that is given back has a reason** (`terms`), which says how its candidate rests afterwards.
//! 6. **Priority asks before it takes** (`order`). A preferred candidate writes its name into the lease, and a holder of this crate
//!    stops in the usual order and releases. So no live holder of this crate is ever overtaken. Another elector cannot be asked:
//!    as soon as the question stands in its lease, the preferred candidate takes the lease, and keeps its own gate shut for the
//!    whole duration of that elector's lease, from this claim on.
//! 7. **What may be old is read again at once** (`want`), for example after a watch has begun. If a renewal or a release is due
//!    anyway, no read comes before it: it is a swap, and fails if the lease is not what the machine knows.
//!
//! # Times
//! A claim counts only if it was answered. Its times then count from the moment at which this process sent it. The gate closes a
//! renew deadline after that moment (rule S1). Other candidates take the lease a lease duration after they first saw the claim.
//! The safety margin is the lease duration less the renew deadline. If a write ends without an answer, it may land until a safety
//! margin after this end of the write, and the lease is not released before (rule S4). The same is true for the writes of an
//! earlier container, which count as ended when its claim was first seen.
//!
//! # What the machine sees, and what it does
//! | it sees | its gate | what it does |
//! | --- | --- | --- |
//! | another holder in the lease of its term | is shut at once | waits for that holder, as for any other |
//! | its own lease, emptied or deleted by a person | is shut at once | takes the lease back at once, in a new term |
//! | another holder's lease, emptied by a person | stays shut | takes it after its duration, from this sight on |
//! | another holder's lease, deleted | stays shut | makes it anew after its duration, from this sight on |
//! | an edit of another holder's duration or times | stays shut | waits anew, for the longest duration that was seen |
//! | its own claim, of which the answer was lost | stays shut | claims the lease again |
//! | its own claim, stored otherwise than it was sent | does not open, or closes at its old deadline | claims the lease again, after pauses that grow |
//! | a question of a candidate to which it yields | is closing | releases, and rests (`terms`) |
//!
//! A rule that lets a candidate act earlier than the strictest reading of the lease allows is marked **Earlier**, with the
//! everyday situation that pays for it. The guide's page on guarantees has the rules S1 to S15; S16 is the task's.

mod answer;
mod calls;
mod known;
mod note;
mod observe;
mod order;
mod state;
mod stored;
mod terms;
mod trouble;
mod update;
mod want;

#[cfg(test)]
mod tests;

#[cfg(feature = "internal")]
pub use self::note::{ASKED, CLAIM, WAITS_FOR};
pub(crate) use self::want::MOST_FAILURES;
pub use self::{
    calls::Call,
    state::{Busy, Gate, Machine, Next, Restraint},
    stored::holder_pod_uid,
};
