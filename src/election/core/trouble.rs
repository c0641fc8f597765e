//! What is wrong, in words for a person.

use super::state::Machine;
use crate::leadership::Moment;

impl Machine {
    /// What is wrong with the lease, and what to do.
    pub fn trouble(&self, now: Moment) -> Option<String> {
        if let Some(differs) = self.altered {
            return Some(format!(
                "the API server stores another value for {differs} of the lease than this candidate writes, so it cannot \
                 lead; exempt this lease from the webhook that changes it"
            ));
        }
        let seen = self.seen()?;
        let record = &seen.stored.record;
        let holder = record.holder().unwrap_or_default();
        if holder == self.me.as_str() && !seen.own {
            return Some("another process uses this identity; give each process its own".into());
        }
        if let Some(oddity) = record.oddity() {
            return Some(oddity.into());
        }
        self.long_wait(now).or_else(|| self.unanswered_question())
    }

    /// Whom this candidate waits for behind its shut gate, and until when.
    pub fn waits_for(&self, now: Moment) -> Option<(&str, Moment)> {
        self.formers.last_to_end(now)
    }

    fn long_wait(&self, now: Moment) -> Option<String> {
        let (name, until) = self.waits_for(now)?;
        let rest = until.saturating_since(now);
        let name = if name.is_empty() { "a former holder".to_owned() } else { format!("{name:?}") };
        (rest > self.timing.lease_duration()).then(|| {
            format!(
                "{name} held this lease for a longer time than this candidate does, and may write for {} s; if its \
                 process has ended, delete the lease and restart the replicas",
                rest.as_secs()
            )
        })
    }

    fn unanswered_question(&self) -> Option<String> {
        let stored = &self.seen()?.stored;
        let who = stored.question().filter(|it| it.who != self.me)?.who.as_str();
        stored.record.holder().is_none().then(|| {
            format!(
                "the lease was released for {who:?}, which has asked for it; if there is no such candidate, another one \
                 takes the lease in {:?}",
                self.timing.retry_period().mul_f64(1.25)
            )
        })
    }
}
