//! The seven acts.

use crate::{
    Failure,
    cast::Cast,
    journal::Journal,
    replica::{Replica, State},
    stage::{OUTSIDER, Stage},
};
use kube_leader_gate::leadership::Term;
use std::time::Duration;
use tokio::time::sleep;

/// For those who watch: how long things stay as they are.
const SCENE: Duration = Duration::from_secs(2);

pub struct Act {
    pub title: &'static str,
    pub story: &'static str,
}

pub const ACTS: [Act; 7] = [
    Act {
        title: "election",
        story: "Three replicas start. One gets the Lease; the others' gates stay closed.",
    },
    Act {
        title: "graceful handover",
        story: "The leader is told to stop: it ends its work, closes its gate, then lets go.",
    },
    Act { title: "crash", story: "The leader vanishes without a word. Its Lease has to run out first." },
    Act {
        title: "frozen leader",
        story: "The leader's thread stands still past its Lease, then wakes and tries to write.",
    },
    Act {
        title: "theft",
        story: "An outsider writes itself into the Lease. The leader's gate closes at once.",
    },
    Act {
        title: "deleted Lease",
        story: "The Lease is deleted. The gate closes at once; a new Lease, a new term.",
    },
    Act {
        title: "API outage",
        story: "The API is gone for longer than the deadline: the gate closes by itself.",
    },
];

pub struct Play<'a> {
    pub stage: &'a Stage,
    pub cast: &'a Cast,
    pub journal: &'a Journal,
}

impl Play<'_> {
    /// Plays all acts. The error says which one did not come to its end.
    pub async fn play(&self) -> Result<(), Failure> {
        for (number, act) in ACTS.iter().enumerate() {
            self.journal.act_begins();
            let played = match number {
                0 => self.election().await,
                1 => self.graceful_handover().await,
                2 => self.crash().await,
                3 => self.freeze().await,
                4 => self.theft().await,
                5 => self.deletion().await,
                _ => self.outage().await,
            };
            played.map_err(|error| format!("act {} ({}): {error}", number + 1, act.title))?;
        }
        Ok(())
    }

    async fn election(&self) -> Result<(), Failure> {
        for replica in &self.cast.replicas {
            replica.start().await?;
        }
        self.leads(None).await?;
        Ok(())
    }

    async fn graceful_handover(&self) -> Result<(), Failure> {
        let (old, term) = self.leader().await?;
        self.note(format!("{} is told to stop", old.name()));
        if !old.stop().await {
            return Err(format!("{} has not stopped", old.name()).into());
        }
        let new = self.leads(Some(&term)).await?;
        self.restart(old, new).await
    }

    async fn crash(&self) -> Result<(), Failure> {
        let (old, term) = self.leader().await?;
        self.note(format!("{} crashes", old.name()));
        old.crash().await;
        let new = self.leads(Some(&term)).await?;
        self.restart(old, new).await
    }

    async fn freeze(&self) -> Result<(), Failure> {
        let (old, term) = self.leader().await?;
        old.freeze();
        self.note(format!("{} freezes", old.name()));
        let closed = || (old.state() == State::Frozen { gate_open: false }).then_some(());
        self.cast.until("the gate of the frozen leader closes", closed).await?;
        self.note(format!("{} is frozen still; its gate has closed by the deadline", old.name()));
        let new = self.leads(Some(&term)).await?;
        old.thaw();
        self.note(format!("{} wakes and goes on trying to write", old.name()));
        self.cast.more(old, "is rejected", |it| it.rejected).await?;
        self.cast.knows(old, new).await?;
        self.scene().await;
        Ok(())
    }

    async fn theft(&self) -> Result<(), Failure> {
        let (old, term) = self.leader().await?;
        self.stage.steal().await?;
        self.note(format!("{OUTSIDER} writes itself into the Lease of {}", old.name()));
        self.closed(old).await?;
        self.leads(Some(&term)).await?;
        Ok(())
    }

    async fn deletion(&self) -> Result<(), Failure> {
        let (_, term) = self.leader().await?;
        self.stage.delete_lease().await?;
        self.note("the Lease is deleted");
        self.leads(Some(&term)).await?;
        self.stage.label_lease().await
    }

    async fn outage(&self) -> Result<(), Failure> {
        let (old, term) = self.leader().await?;
        if !self.stage.cut_off(true).await {
            self.note("no outage here: a proxy stands before the API server already");
            return Ok(());
        }
        self.journal.api_is_gone();
        self.note("the API is gone");
        let closed = self.closed(old).await;
        self.scene().await;
        self.stage.cut_off(false).await;
        self.journal.api_is_back();
        self.note("the API is back");
        closed?;
        self.leads(Some(&term)).await?;
        Ok(())
    }

    /// The leader and its term; there is one whenever an act begins.
    async fn leader(&self) -> Result<(&Replica, Term), Failure> {
        let leader = self.cast.next_leader(None).await?;
        let term = leader.term().ok_or_else(|| format!("{} has lost the Lease", leader.name()))?;
        Ok((leader, term))
    }

    /// Waits for the next leader, and for its writes to flow.
    async fn leads(&self, old: Option<&Term>) -> Result<&Replica, Failure> {
        let leader = self.cast.next_leader(old).await?;
        self.note(format!("{} leads", leader.name()));
        self.cast.more(leader, "writes", |it| it.written).await?;
        self.scene().await;
        Ok(leader)
    }

    async fn closed(&self, leader: &Replica) -> Result<(), Failure> {
        let what = format!("the gate of {} closes", leader.name());
        self.cast.until(&what, || (leader.state() == State::Follows).then_some(())).await?;
        self.note(format!("the gate of {} is closed", leader.name()));
        Ok(())
    }

    async fn restart(&self, replica: &Replica, leader: &Replica) -> Result<(), Failure> {
        replica.start().await?;
        self.cast.knows(replica, leader).await?;
        self.note(format!("{} starts again and follows", replica.name()));
        self.scene().await;
        Ok(())
    }

    async fn scene(&self) {
        sleep(SCENE).await;
    }

    fn note(&self, text: impl Into<String>) {
        self.journal.note(text);
    }
}
