//! Finds an error in what wraps it.

use std::{error::Error, io, sync::Arc};

/// A chain of sources that leads back into itself ends the search here.
const DEEPEST: usize = 64;

/// Finds an error of type `T` in `error` or in its sources.
///
/// A walk of [`Error::source`] misses what three wrappers hold themselves, since each of them names the *source* of the
/// error inside as its own: an [`io::Error`], a [`Box`] and an [`Arc`]. This looks into them.
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

/// `error` as a `T`, also from a [`Box`] or an [`Arc`] of one.
fn held<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    error
        .downcast_ref::<T>()
        .or_else(|| error.downcast_ref::<Box<T>>().map(|inside| &**inside))
        .or_else(|| error.downcast_ref::<Arc<T>>().map(|inside| &**inside))
}
