//! How a candidate takes the lease: alone, in a crowd, after a crash, a deletion or an edit by hand.

mod contending;
mod edited_by_hand;
mod handover;
mod pinniped;
mod recreated;
mod taking;
