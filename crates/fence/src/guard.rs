//! Who asks the fence, and what it tells of the answers.

use crate::probe::{Probe, ProbeFailure};
use kube_leader_gate::{Candidate, extension::Trouble, leadership::Term, lease::LeaseRecord};
use tokio::time::timeout;

/// What the lock of an election and its looks at the fence share.
pub(crate) struct Guard {
    pub(crate) probe: Probe,
    pub(crate) candidate: Candidate,
    /// While this candidate leads, and the fence does not let it pass.
    pub(crate) gone: Trouble,
    /// Whether the term ends then.
    pub(crate) gives_way: bool,
}

impl Guard {
    pub(crate) fn is_named_in(&self, record: &LeaseRecord) -> bool {
        record.holder() == Some(self.candidate.identity().as_str())
    }

    /// Looks whether the fence still lets this candidate pass in `term`. No answer is no news: the renewals fail then too.
    pub(crate) async fn look(&self, term: &Term) {
        let asked = timeout(self.candidate.timing().call_timeout(), self.probe.ask(term));
        let Ok(answer) = asked.await else { return };
        let leads =
            |own: Term| own.lease_uid() == term.lease_uid() && own.transitions() == term.transitions();
        match answer {
            Ok(()) => self.gone.settle(),
            Err(ProbeFailure { kind, message, is_answered: true })
                if self.candidate.term().is_some_and(leads) =>
            {
                self.gone.raise(kind, &message);
                if self.gives_way {
                    self.candidate.give_way_in(term);
                }
            }
            Err(_) => {}
        }
    }

    /// Takes in the lease. Trouble of a term ends with it, and a gate that stays shut is none while another candidate leads.
    pub(crate) fn hears(&self, shut: &Trouble, record: Option<&LeaseRecord>) {
        if record.is_some_and(|record| self.is_named_in(record)) {
            return;
        }
        self.gone.settle();
        if record.and_then(LeaseRecord::holder).is_some() {
            shut.settle();
        }
    }
}
