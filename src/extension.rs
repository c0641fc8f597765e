//! For packages that extend an election; a controller does not need it: layers of the lock, the way to the API server that
//! the election has found, and the words of errors.
//!
//! The packages `kube-leader-gate-fence`, `kube-leader-gate-early-takeover` and `kube-leader-gate-sidecar` are built on it. To
//! write a layer of your own, begin at [`LockLayer`].

#[cfg(feature = "election")]
pub use crate::{
    api::without_secrets,
    election::{
        layer::{LockContext, LockLayer, Trouble},
        machine::holder_pod_uid,
    },
    growing_pause::GrowingPause,
    lease::pool::Access,
};
pub use crate::{
    object_names::{is_label, is_subdomain},
    one_line::one_line,
    request::answer::leaves_open,
};
