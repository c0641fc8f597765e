//! The operator's user: makes, changes and deletes greetings, and knows what must come of each.

use crate::operator::{Greeting, GreetingSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_leader_gate::CancellationToken;
use serde_json::json;
use std::{collections::BTreeMap, error::Error, time::Duration};
use tokio::time::Instant;

/// Any error, for a person to read.
pub type Failure = Box<dyn Error + Send + Sync>;

pub struct User {
    greetings: Api<Greeting>,
    texts: Api<ConfigMap>,
    /// By the greeting's name, the text that must exist in the end. `None` where no text may be left.
    wanted: BTreeMap<String, Option<String>>,
    /// How many objects it has made, and how many actions it has done.
    made: usize,
    done: usize,
}

impl User {
    pub fn new(client: Client) -> Self {
        let (greetings, texts) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client));
        Self { greetings, texts, wanted: BTreeMap::new(), made: 0, done: 0 }
    }

    pub fn objects(&self) -> usize {
        self.wanted.len()
    }

    pub async fn create(&mut self) -> Result<String, Failure> {
        self.made += 1;
        let (name, whom) = (format!("greeting-{}", self.made), format!("number {}", self.made));
        let greeting = Greeting::new(&name, GreetingSpec { name: whom.clone() });
        self.greetings.create(&PostParams::default(), &greeting).await?;
        self.wanted.insert(name.clone(), Some(text(&whom)));
        Ok(name)
    }

    pub async fn change(&mut self, name: &str, whom: &str) -> Result<(), Failure> {
        let change = Patch::Merge(json!({ "spec": { "name": whom } }));
        self.greetings.patch(name, &PatchParams::default(), &change).await?;
        self.wanted.insert(name.to_owned(), Some(text(whom)));
        Ok(())
    }

    pub async fn delete(&mut self, name: &str) -> Result<(), Failure> {
        self.greetings.delete(name, &DeleteParams::default()).await?;
        self.wanted.insert(name.to_owned(), None);
        Ok(())
    }

    /// Deletes every second one.
    pub async fn delete_half(&mut self) -> Result<(), Failure> {
        for name in self.live().into_iter().step_by(2) {
            self.delete(&name).await?;
        }
        Ok(())
    }

    /// Acts at this interval until it is told to stop: of four actions one makes an object, two change one, one
    /// deletes one. Stop it by the signal: when dropped, it would not know what its last request has done.
    pub async fn keep_busy(&mut self, every: Duration, stop: &CancellationToken) -> Result<(), Failure> {
        let mut interval = tokio::time::interval(every);
        while stop.run_until_cancelled(interval.tick()).await.is_some() {
            self.done += 1;
            let live = self.live();
            let any = &live[self.done % live.len()];
            match self.done % 4 {
                0 => drop(self.create().await?),
                3 if live.len() > 1 => self.delete(any).await?,
                _ => self.change(any, &format!("change {}", self.done)).await?,
            }
        }
        Ok(())
    }

    /// Waits until everything is right, and returns how long that took. The error says what is still wrong after
    /// `patience`.
    pub async fn satisfied(&self, patience: Duration) -> Result<Duration, Failure> {
        let began = Instant::now();
        loop {
            let wrong = self.wrong().await?;
            if wrong.is_empty() {
                return Ok(began.elapsed());
            }
            if began.elapsed() > patience {
                return Err(format!("not right after {patience:?}: {}", wrong.join(", ")).into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// No garbage collector runs here, so a map whose owner is gone counts as none.
    async fn wrong(&self) -> Result<Vec<String>, Failure> {
        let greetings = self.greetings.list(&ListParams::default()).await?;
        let mut maps = BTreeMap::new();
        for map in self.texts.list(&ListParams::default()).await? {
            let owner = map.owner_references().first().map(|owner| owner.uid.clone());
            maps.insert(owner, map.data.and_then(|mut data| data.remove("text")));
        }
        let mut there = BTreeMap::new();
        for greeting in greetings {
            let map = maps.remove(&greeting.uid()).flatten();
            there.insert(greeting.name_any(), (greeting.status.map(|status| status.text), map));
        }
        let is_wrong = |(name, wanted): (&String, &Option<String>)| {
            let found = there.get(name);
            let right = found == wanted.clone().map(|text| (Some(text.clone()), Some(text))).as_ref();
            (!right).then(|| format!("{name} should be {wanted:?}, but status and map are {found:?}"))
        };
        Ok(self.wanted.iter().filter_map(is_wrong).collect())
    }

    /// The names of those that have not been deleted.
    fn live(&self) -> Vec<String> {
        self.wanted.iter().filter(|(_, text)| text.is_some()).map(|(name, _)| name.clone()).collect()
    }
}

fn text(whom: &str) -> String {
    format!("Hello, {whom}!")
}
