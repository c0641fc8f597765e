//! A small operator as kube's users write them, of which only the leader writes: the file to copy.
//!
//! Each `Greeting` gets a `ConfigMap`, which holds its text, and a status. All is in one namespace, that of
//! the operator and its lease. What a replica writes must be right when
//! - it has been written before: a new leader looks at everything again. Hence server-side apply, and a cleanup that takes
//!   "not found" for success;
//! - the cache is behind what the last leader wrote, by some milliseconds. Hence the owner reference beside the finalizer:
//!   should the text of a greeting that is gone be written once more, the garbage collector takes it away. The finalizer is
//!   for what that one does not promise, that the text goes before its greeting does.

use futures_util::StreamExt;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams},
    runtime::{
        Controller, conditions,
        controller::{self, Action},
        finalizer::{self, Event, finalizer},
        reflector::ObjectRef,
        wait::await_condition,
        watcher,
    },
};
use kube_leader_gate::{CancellationToken, Candidate, Election, election::ElectionEnded, runtime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// The owner of what it applies, also the name of its lease.
pub const NAME: &str = "greeting-operator";
const FINALIZER: &str = "example.com/greeting-operator";

/// Who is to be greeted.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub struct GreetingSpec {
    pub name: String,
}

/// What the text is.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct GreetingStatus {
    pub text: String,
}

/// How replicas share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Every replica runs the whole controller with warm caches; only the leader's writes pass
    Gated,
    /// The leader alone runs the controller, which is built anew for each term
    LeadingOnly,
}

/// One replica, until `shutdown`. When this returns, its reconciliations have ended and it holds no lease any more.
/// `client` is behind the election's gate, in both modes: what a leader has sent is cut off when it leads no more.
pub async fn run(
    election: Election,
    client: Client,
    mode: Mode,
    shutdown: CancellationToken,
) -> Result<(), ElectionEnded> {
    match mode {
        Mode::Gated => {
            let candidate = election.candidate();
            let work = gated(client, candidate, shutdown.clone());
            election.run_until(shutdown.cancelled(), work).await.map(drop)
        }
        Mode::LeadingOnly => {
            let work = |over, _term| leading_only(client.clone(), over);
            election.run_while_leading(shutdown.cancelled(), work).await.map(drop)
        }
    }
}

/// Runs on every replica. On each gain of leadership everything is looked at again: what was rejected while this replica
/// followed, and what changed while nobody led.
async fn gated(client: Client, candidate: Candidate, shutdown: CancellationToken) {
    let installer = client.clone();
    let mut gains = Box::pin(candidate.gains().then(move |()| install(installer.clone())));
    // The watch needs the kind: this replica brings it when it leads, or else another one has.
    tokio::select! {
        _ = gains.next() => {}
        () = installed(&client) => {}
        () = shutdown.cancelled() => return,
    }
    controller(&client, shutdown)
        .reconcile_all_on(gains)
        .run(runtime::gated(reconcile), retry, Arc::new(client))
        .for_each(complain)
        .await;
}

/// Runs on the leader, anew in each term. It begins with a list of everything, so it misses nothing.
async fn leading_only(client: Client, over: CancellationToken) {
    if over.run_until_cancelled(Box::pin(install(client.clone()))).await.is_some() {
        controller(&client, over).run(reconcile, retry, Arc::new(client)).for_each(complain).await;
    }
}

/// The same controller in both modes. It lets the reconciliations that are under way finish before it ends.
fn controller(client: &Client, shutdown: CancellationToken) -> Controller<Greeting> {
    let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
    let texts: Api<ConfigMap> = Api::default_namespaced(client.clone());
    Controller::new(greetings, watcher::Config::default())
        .owns(texts, watcher::Config::default())
        .graceful_shutdown_on(shutdown.cancelled_owned())
}

/// Applies the kind, so that a new version of this program brings its own. Where it may not, somebody else has to.
async fn install(client: Client) {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let kind = Patch::Apply(Greeting::crd());
    match kinds.patch(Greeting::crd_name(), &PatchParams::apply(NAME).force(), &kind).await {
        Ok(_) => installed(&client).await,
        Err(error) => tracing::warn!(%error, "could not apply the kind Greeting"),
    }
}

/// Waits until the kind is served. When that cannot be seen, the controller's own watch will tell.
async fn installed(client: &Client) {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = conditions::is_crd_established();
    if let Err(error) = await_condition(kinds, Greeting::crd_name(), established).await {
        tracing::warn!(%error, "could not see whether there is the kind Greeting");
    }
}

async fn reconcile(
    greeting: Arc<Greeting>,
    client: Arc<Client>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let greetings: Api<Greeting> = Api::default_namespaced((*client).clone());
    finalizer(&greetings, FINALIZER, greeting, async |event| {
        let texts: Api<ConfigMap> = Api::default_namespaced((*client).clone());
        match event {
            Event::Apply(greeting) => apply(&greeting, &greetings, &texts).await,
            Event::Cleanup(greeting) => clean_up(&greeting, &texts).await,
        }
    })
    .await
}

async fn apply(
    greeting: &Greeting,
    greetings: &Api<Greeting>,
    texts: &Api<ConfigMap>,
) -> Result<Action, kube::Error> {
    let name = greeting.name_any();
    let text = format!("Hello, {}!", greeting.spec.name);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(text_of(greeting)),
            owner_references: Some(greeting.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some([("text".to_owned(), text.clone())].into()),
        ..ConfigMap::default()
    };
    texts.patch(&text_of(greeting), &PatchParams::apply(NAME).force(), &Patch::Apply(map)).await?;
    let status = Patch::Merge(json!({ "status": GreetingStatus { text } }));
    greetings.patch_status(&name, &PatchParams::default(), &status).await?;
    tracing::info!(greeting = name, "reconciled");
    Ok(Action::await_change())
}

async fn clean_up(greeting: &Greeting, texts: &Api<ConfigMap>) -> Result<Action, kube::Error> {
    let name = greeting.name_any();
    match texts.delete(&text_of(greeting), &DeleteParams::default()).await {
        Err(error) if !matches!(&error, kube::Error::Api(status) if status.is_not_found()) => {
            return Err(error);
        }
        _ => tracing::info!(greeting = name, "cleaned up"),
    }
    Ok(Action::await_change())
}

/// The name of its `ConfigMap`: no other's, so that nobody's own is overwritten or deleted.
fn text_of(greeting: &Greeting) -> String {
    format!("{}-greeting", greeting.name_any())
}

fn retry(_: Arc<Greeting>, _: &finalizer::Error<kube::Error>, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

type Outcome =
    Result<(ObjectRef<Greeting>, Action), controller::Error<finalizer::Error<kube::Error>, watcher::Error>>;

async fn complain(outcome: Outcome) {
    match outcome {
        // A greeting that is gone: its text went before it, and wanted it to be looked at again.
        Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
        Err(error) => tracing::warn!(%error, "not reconciled, will be tried again"),
    }
}
