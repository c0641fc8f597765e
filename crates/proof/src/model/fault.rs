//! What may go wrong.

/// Each of these costs one of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// It does not run for so many seconds. With 0, all others go first.
    Freeze(u8),
    /// Its call is carried out, and answered after so many seconds, if it waits so long.
    SlowCall(u8),
    /// Its call reaches the API server after so many seconds, and is answered then, if it waits so long.
    LateCall(u8),
    /// Its call is carried out, and the answer is lost.
    LostAnswer,
    /// Its call is lost, or comes late.
    LostCall,
    /// Its next three calls hang until it gives them up.
    HungCalls,
    /// Its call reaches the API server twice, and the second answer comes back: a conflict.
    DoubleCall,
    /// Its watch loses all news, and shows the lease anew.
    Relist,
    /// Its watch is open and tells nothing, longer than a lease lasts. Then it shows the lease anew.
    Deaf,
    /// Its watch tells all news, but not for so many seconds.
    Lag(u8),
    /// Its write under way ends without an answer.
    LostWrite,
    Stop,
    /// A stop whose time for draining is up before the write is answered.
    StopCut,
    /// Something in its process asks it to end its term for another candidate.
    GiveWay,
    Restart,
    /// Another program writes its own name into the lease.
    Theft,
    /// A user empties the holder, and nothing else.
    Freed,
    /// A user writes a shorter time into the lease.
    Shortened,
    /// An elector that knows nothing of former writers takes a lease whose holder waits, for so many seconds, and ends.
    Third(u8),
    /// Its watch merges its news into the last one.
    Merge,
    /// Another program deletes the lease.
    Deletion,
    /// Another program deletes the lease and makes it anew, without a holder.
    Anew,
    /// Another program deletes the lease and makes it anew with the same content, as a restored backup does.
    Copy,
}

/// So many calls of a leader may hang one after the other (rule S9).
pub(super) const HUNG: u8 = 3;

/// A watch tells nothing for so many seconds.
pub(super) const DEAF: u8 = 16;

/// How long a watch lags: behind a call that is answered at once, and past a deadline.
pub(super) const LAGS: [Fault; 2] = [Fault::Lag(1), Fault::Lag(11)];

/// A stopped candidate contends again after so many seconds.
pub(super) const BACK_AFTER: u8 = 20;

/// The first two concern client-go too.
pub(super) const OF_A_CALL: [Fault; 7] = [
    Fault::LostAnswer,
    Fault::LostCall,
    Fault::SlowCall(0),
    Fault::SlowCall(1),
    Fault::SlowCall(3),
    Fault::LateCall(3),
    Fault::DoubleCall,
];

/// Just behind the others, past a deadline, past the lease's end.
pub(super) const FREEZES: [Fault; 4] =
    [Fault::Freeze(0), Fault::Freeze(7), Fault::Freeze(11), Fault::Freeze(16)];
