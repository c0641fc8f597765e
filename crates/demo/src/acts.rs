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

/// How long things stay as they are, so that a viewer can follow.
const SCENE: Duration = Duration::from_millis(900);

pub struct Act {
    pub title: &'static str,
    pub story: &'static str,
}

pub const ACTS: [Act; 7] = [
    Act {
        title: "election",
        story: "Three replicas start. One acquires the Lease; the others' gates stay closed.",
    },
    Act {
        title: "graceful handover",
        story: "The leader stops: it ends its work, closes its gate, then releases the Lease.",
    },
    Act { title: "crash", story: "The leader crashes. The others must wait until its Lease has expired." },
    Act {
        title: "frozen leader",
        story: "The leader's thread freezes until its Lease has expired, then tries to write.",
    },
    Act { title: "theft", story: "An outsider takes the Lease. The leader's gate closes at once." },
    Act {
        title: "deleted Lease",
        story: "The Lease is deleted. The gate closes at once. A new Lease starts a new term.",
    },
    Act {
        title: "API outage",
        story: "The API does not answer past the deadline, so the gate closes by itself.",
    },
];

pub struct Play<'a> {
    pub stage: &'a Stage,
    pub cast: &'a Cast,
    pub journal: &'a Journal,
}

impl Play<'_> {
    /// Plays all acts. The error names the act that failed.
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
        self.note(format!("{} is still frozen; its gate closed at the deadline", old.name()));
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
        self.note(format!("{OUTSIDER} takes the Lease from {}", old.name()));
        self.closed(old).await?;
        self.leads(Some(&term)).await?;
        Ok(())
    }

    async fn deletion(&self) -> Result<(), Failure> {
        let (_, term) = self.leader().await?;
        self.stage.delete_lease().await?;
        self.note("the Lease is deleted");
        self.leads(Some(&term)).await?;
        Ok(())
    }

    async fn outage(&self) -> Result<(), Failure> {
        let (old, term) = self.leader().await?;
        self.stage.cut_off().await;
        self.journal.api_is_gone();
        self.note("the API does not answer");
        let closed = self.closed(old).await;
        self.scene().await;
        self.stage.reconnect().await;
        self.journal.api_is_back();
        self.note("the API answers again");
        closed?;
        self.leads(Some(&term)).await?;
        Ok(())
    }

    /// The leader and its term. A replica leads whenever an act begins.
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
