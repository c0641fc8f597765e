//! Which mutations a follower may still send.
