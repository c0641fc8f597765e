//! Guards any other future as the gate guards a request.

#[cfg(feature = "election")]
use super::error::ErrNotLeader;
use super::{
    attempt::{Attempt, Refused},
    future::ResponseFuture,
    settings::Settings,
};
#[cfg(feature = "election")]
use crate::leadership::Admission;
use crate::leadership::Leadership;
use std::{error::Error, future::Future};

impl Settings {
    /// Admits a write that is no request.
    #[cfg(feature = "election")]
    pub(crate) fn admit_labelled(&self, label: &'static str) -> Result<Admission, Box<ErrNotLeader>> {
        let refuse = || self.refuse(Refused::Labelled(label), false);
        self.admit(&Attempt::Labelled(label)).ok_or_else(|| Box::new(refuse()))
    }

    /// Admits a write that is no request, and then begins it.
    pub(crate) fn guard<F>(
        &self,
        label: &'static str,
        begin: impl FnOnce() -> F,
    ) -> ResponseFuture<F, &'static str> {
        match self.admit(&Attempt::Labelled(label)) {
            Some(admission) => ResponseFuture::admitted(begin(), admission, label, self.observer.clone()),
            None => ResponseFuture::rejected(self.refuse(Refused::Labelled(label), false)),
        }
    }
}

impl Leadership {
    /// Runs `future` only while this process leads, as [`Candidate::guard`](crate::Candidate::guard) does. It reports
    /// to no observer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use kube_leader_gate::{ErrNotLeader, leadership::Grantor};
    ///
    /// let grantor = Grantor::new(); // no term
    /// let outcome = grantor.leadership().guard("charge the card", async { Ok::<_, std::io::Error>("charged") }).await;
    /// let error = *outcome.unwrap_err().downcast::<ErrNotLeader>().unwrap();
    /// assert_eq!(error.attempt().label(), Some("charge the card"));
    /// # }
    /// ```
    pub fn guard<F, T, E>(&self, label: &'static str, future: F) -> ResponseFuture<F, &'static str>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Settings::new(self.clone(), None).guard(label, || future)
    }
}
