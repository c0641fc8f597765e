//! A small operator as users of kube write them. Only the leader writes. This is the file to copy.
//!
//! Each `Greeting` gets a status, and a `ConfigMap` with its text. All of them are in one namespace, that of the
//! operator and its lease. What a replica writes must be right in two cases:
//! - An earlier leader has written it already. A new leader reconciles every object again. So the operator uses
//!   server-side apply, and its cleanup treats "not found" as success.
//! - The cache is some milliseconds behind the last leader's writes. So each `ConfigMap` has an owner reference
//!   beside the finalizer: if a replica writes the text of a deleted greeting once more, the garbage collector deletes
//!   it. The finalizer does what the garbage collector does not promise: it deletes the text before its greeting.

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
use kube_leader_gate::{CancellationToken, Candidate, Election, election::ErrElectionEnded, runtime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{num::NonZeroU8, sync::Arc, time::Duration};

/// The field manager of what it applies, and the name of its lease.
pub const NAME: &str = "greeting-operator";
/// How many reconciliations run at a time. Without a bound, a new leader would begin all of them at once.
const AT_A_TIME: NonZeroU8 = NonZeroU8::new(8).unwrap();
const FINALIZER: &str = "example.com/greeting-operator";

/// The name to greet.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub struct GreetingSpec {
    pub name: String,
}

/// The text of the greeting.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct GreetingStatus {
    pub text: String,
}

/// How replicas share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Every replica runs the whole controller with warm caches; only the leader's writes pass
    Gated,
    /// As gated, and the gate of a new leader waits until its cache has what the last one wrote
    Knowing,
    /// The leader alone runs the controller, which is built anew for each term
    LeadingOnly,
}

/// Runs one replica until `shutdown`. When this returns, its reconciliations have ended and it holds no lease. In
/// each mode `client` is behind the election's gate, which cuts off a leader's open writes when its term ends.
pub async fn run(
    mut election: Election,
    client: Client,
    mode: Mode,
    shutdown: CancellationToken,
) -> Result<(), ErrElectionEnded> {
    match mode {
        Mode::Gated | Mode::Knowing => {
            let controller = controller(&client, shutdown.clone());
            if mode == Mode::Knowing {
                let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
                let (watched, store) = (watcher::Config::default(), controller.store());
                election = election.open_when(move |_| {
                    let caught_up = runtime::caught_up(&greetings, &watched, &store, &());
                    async move {
                        match caught_up.await {
                            // In a new cluster, the leader applies the kind.
                            Err(error) if error.is_unknown_kind() => Ok(()),
                            outcome => outcome,
                        }
                    }
                });
            }
            let work = gated(client, controller, election.candidate(), shutdown.clone());
            election.run_until(shutdown.cancelled(), work).await.map(drop)
        }
        Mode::LeadingOnly => {
            let work = |over, _term| leading_only(client.clone(), over);
            election.run_while_leading(shutdown.cancelled(), work).await.map(drop)
        }
    }
}

/// Runs on every replica. At a gain of leadership, all objects are reconciled again: also those whose writes the gate rejected
/// while this replica followed.
async fn gated(
    client: Client,
    controller: Controller<Greeting>,
    candidate: Candidate,
    shutdown: CancellationToken,
) {
    // The watch needs the kind. This replica applies it once it leads, unless another replica has.
    let mut gains = candidate.gains();
    let applied = tokio::select! {
        _ = gains.next() => install(&client).await,
        () = installed(&client) => false,
        () = shutdown.cancelled() => return,
    };
    let work = controller
        .reconcile_all_on(candidate.gains())
        .run(runtime::gated(reconcile), retry, Arc::new(client.clone()))
        .for_each(complain);
    // A new version of this program brings its own kind, beside the work: no object waits for it.
    let kind = async {
        let mut applied = applied;
        while !applied && let Some(Some(())) = shutdown.run_until_cancelled(gains.next()).await {
            applied = apply_kind(&client).await;
        }
    };
    tokio::select! {
        _ = async { tokio::join!(work, kind) } => {}
        // For the first writes of a term.
        never = runtime::keep_open(client.clone(), AT_A_TIME) => match never {},
    }
}

/// Runs on the leader, anew in each term. It begins with a list of all objects, so it misses none.
async fn leading_only(client: Client, over: CancellationToken) {
    if over.run_until_cancelled(Box::pin(install(&client))).await.is_some() {
        controller(&client, over).run(reconcile, retry, Arc::new(client)).for_each(complain).await;
    }
}

/// The same controller in each mode. Before it ends, it finishes the reconciliations that have begun.
fn controller(client: &Client, shutdown: CancellationToken) -> Controller<Greeting> {
    let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
    let texts: Api<ConfigMap> = Api::default_namespaced(client.clone());
    Controller::new(greetings, watcher::Config::default())
        .with_config(controller::Config::default().concurrency(AT_A_TIME.get().into()))
        .owns(texts, watcher::Config::default())
        .graceful_shutdown_on(shutdown.cancelled_owned())
}

/// Applies the kind, and waits until it is served.
async fn install(client: &Client) -> bool {
    let applied = apply_kind(client).await;
    installed(client).await;
    applied
}

/// Whether this program has applied its kind. Without the permission, an administrator has to apply it.
async fn apply_kind(client: &Client) -> bool {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let kind = Patch::Apply(Greeting::crd());
    let outcome = kinds.patch(Greeting::crd_name(), &PatchParams::apply(NAME).force(), &kind).await;
    if let Err(error) = &outcome {
        tracing::warn!(%error, "could not apply the kind Greeting");
    }
    outcome.is_ok()
}

/// Waits until the API server serves the kind. If that check fails, the controller's own watch will report the
/// problem.
async fn installed(client: &Client) {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = conditions::is_crd_established();
    if let Err(error) = await_condition(kinds, Greeting::crd_name(), established).await {
        tracing::warn!(%error, "could not check whether the kind Greeting is served");
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

/// The name of its `ConfigMap`. The suffix makes it unique to this operator, so that it overwrites and deletes no
/// foreign object.
fn text_of(greeting: &Greeting) -> String {
    format!("{}-greeting", greeting.name_any())
}

fn retry(_: Arc<Greeting>, _: &finalizer::Error<kube::Error>, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(30))
}

type Outcome =
    Result<(ObjectRef<Greeting>, Action), controller::Error<finalizer::Error<kube::Error>, watcher::Error>>;

async fn complain(outcome: Outcome) {
    match outcome {
        // The greeting is gone: deleting its text queued it once more.
        Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
        Err(error) => tracing::warn!(%error, "reconciliation failed, will be retried"),
    }
}
