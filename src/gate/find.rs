//! Finds an error inside its wrappers.

use std::{error::Error, io, sync::Arc};

/// The search stops after this many errors, in case a chain of sources loops.
const DEEPEST: usize = 64;

/// Finds an error of type `T` in `error` or in its sources.
///
/// A walk of [`Error::source`] skips the error inside an [`io::Error`], a [`Box`] or an [`Arc`], because each returns
/// the *source* of its inner error. This function looks into them.
pub(super) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    for _ in 0..DEEPEST {
        let error = next?;
        if let Some(found) = held(error) {
            return Some(found);
        }
        let inside = held::<io::Error>(error).and_then(io::Error::get_ref);
        next = match (inside, error.downcast_ref::<Arc<dyn Error + Send + Sync>>()) {
            (Some(inside), _) => Some(inside),
            (None, Some(inside)) => Some(&**inside),
            (None, None) => error.source(),
        };
    }
    None
}

/// Casts `error` to `T`, also if it is a [`Box`] or an [`Arc`] of `T`.
fn held<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    error
        .downcast_ref::<T>()
        .or_else(|| error.downcast_ref::<Box<T>>().map(|inside| &**inside))
        .or_else(|| error.downcast_ref::<Arc<T>>().map(|inside| &**inside))
}
