//! Priority: who asks whom for the lease, and who obeys.

use super::{
    note::Question,
    state::{Machine, Reason},
    stored::Stored,
};
use crate::election::priority::holder_key;

impl Machine {
    /// What this candidate writes to ask a holder to release.
    pub(super) fn own_question(&self) -> Option<Question> {
        let key = self.priority.as_ref()?.key().to_owned();
        Some(Question { who: self.me.clone(), key: Some(key) })
    }

    /// Whether this candidate precedes the live holder: it asks. A lease that makes no sense is left alone.
    pub(super) fn precedes(&self, stored: &Stored) -> bool {
        let other = stored.record.holder().is_some_and(|it| it != self.me.as_str());
        let key = holder_key(&stored.record);
        let precedes = key.is_some_and(|key| self.priority.as_ref().is_some_and(|own| own.precedes(key)));
        other && precedes && self.own_question().is_some_and(|it| stored.asked(&it).is_some())
    }

    /// Whether this candidate may put its question in the place of this one. What a person has asked for stays.
    pub(super) fn outranks(&self, other: &Question) -> bool {
        let key = other.key.as_deref();
        key.is_some_and(|key| self.priority.as_ref().is_some_and(|own| own.precedes(key)))
    }

    /// Why this candidate leaves the lease to another one, if it does: a person has asked, or a candidate that this one does
    /// not precede itself. A question that is refused stays in the lease until the next acquisition.
    pub(super) fn yields(&self, stored: &Stored) -> Option<Reason> {
        let question = stored.question().filter(|it| it.who != self.me)?;
        let Some(key) = &question.key else { return Some(Reason::Moved) };
        let objects = self.priority.as_ref().is_some_and(|own| own.key() == key || own.precedes(key));
        (!objects).then_some(Reason::Preceded)
    }
}
