//! Why an election makes no progress: the handle and a rejected write both report it.

use crate::support::{
    FIRST, SOON, build, builder, candidate, free, gated, is_not_leader, leading, pass, until, within, write,
};
use futures_util::StreamExt;
use http::Request;
use kube_client::{
    Client,
    client::{AuthError, Body},
};
use kube_leader_gate::{
    Candidate,
    lease::LeasePool,
    testing::{ApiServer, Fault},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tower::{BoxError, ServiceExt, service_fn};

async fn rejection(client: &Client) -> String {
    let result = write(client).await;
    assert!(is_not_leader(&result), "{result:?}");
    result.unwrap_err().to_string()
}

async fn in_trouble(leader: &Candidate, bound: Duration) -> Arc<str> {
    until(bound, "the election is in trouble", || leader.trouble().is_some()).await;
    leader.trouble().expect("trouble")
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_named_until_granted() {
    let server = ApiServer::new();
    let refused = server.inject(Fault::forbidden().resource("leases"));
    let election = candidate(&server, "a");
    let client = gated(&server, &election, "a");
    assert!(!rejection(&client).await.contains("trouble"), "the election has not begun");
    let running = election.start();
    let trouble = in_trouble(running.candidate(), SOON).await;
    assert!(trouble.starts_with("lease calls fail: read: forbidden: 403: "), "{trouble}");
    assert!(
        trouble
            .ends_with("grant it get, create, update and watch on leases in coordination.k8s.io, by a Role")
    );
    let message = rejection(&client).await;
    let said = format!("no holder of the lease is known; the election is in trouble: {trouble}; once");
    assert!(message.contains(&said), "{message}");
    drop(refused);
    within(Duration::from_secs(3), "the candidate leads", running.candidate().elected()).await;
    assert_eq!(running.candidate().trouble(), None);
    write(&client).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn trouble_of_a_leader_goes_on_while_it_stops() {
    let server = ApiServer::new();
    let (running, _client) = leading(&server, "a").await;
    let leader = running.candidate().clone();
    let refused = server.inject(Fault::forbidden().resource("leases"));
    let trouble = in_trouble(&leader, Duration::from_secs(3)).await;
    let _silent = server.inject(Fault::hang_before().resource("leases"));
    drop(refused);
    let stopping = tokio::spawn(running.stop());
    until(SOON, "the gate closes", || !leader.can_write()).await;
    pass(Duration::from_millis(1)).await;
    assert_eq!(leader.trouble(), Some(trouble), "no call has worked");
    stopping.abort();
}

/// An API server before Kubernetes 1.14 has no `coordination.k8s.io/v1`. It answers as for any path that it does not
/// serve, so the candidate finds no lease, and cannot create one.
#[tokio::test(start_paused = true)]
async fn server_without_leases_is_named() {
    let server = ApiServer::new();
    let unserved = |mut request: Request<Body>| {
        *request.uri_mut() = request.uri().to_string().replace("/apis/", "/unserved/").parse().unwrap();
        request
    };
    let service = server.service().user("a").map_request(unserved);
    let connect = move || Ok(Client::new(service.clone(), "default"));
    let running = builder("a").build_in(&LeasePool::over(connect).expect("a client")).unwrap().start();
    let trouble = in_trouble(running.candidate(), FIRST).await;
    let said = "lease calls fail: acquire: not found: 404: 404 page not found. To do: check the URL and its path; if they \
                are right, this version of the API server lacks the kind, or has it switched off";
    assert_eq!(*trouble, *said);
    assert!(!running.candidate().can_write());
}

/// Each kind of trouble is reported once, however often it occurs. Observers of leadership receive no change.
#[tokio::test(start_paused = true)]
async fn trouble_is_reported_once_per_kind() {
    let server = ApiServer::new();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let refused = server.inject(Fault::forbidden().verb("get").resource("leases"));
    let builder = builder("a").attend(|leader, _| async move {
        leader
            .changes()
            .for_each(|_| async {
                let _ = count.fetch_add(1, Ordering::SeqCst);
            })
            .await;
    });
    let running = build(&server, "a", builder).unwrap().start();
    let first = in_trouble(running.candidate(), SOON).await;
    pass(Duration::from_secs(60)).await;
    assert!(refused.hits() > 20, "{}", refused.hits());
    assert!(Arc::ptr_eq(&running.candidate().trouble().unwrap(), &first), "nothing is said anew");
    assert_eq!(heard.load(Ordering::SeqCst), 1, "what there was");
    drop(refused);
    let _hang = server.inject(Fault::hang_before().verb("get").resource("leases"));
    until(Duration::from_secs(5), "another sort", || running.candidate().trouble() != Some(first.clone()))
        .await;
    let second = running.candidate().trouble().unwrap();
    assert!(second.contains("timeout: no answer within 1.625s. To do: check the API server"), "{second}");
}

/// The advice about a cause that has gone helps nobody: the plugin works again, and the API server does not know its token.
#[tokio::test(start_paused = true)]
async fn trouble_names_the_cause_that_there_is_now() {
    let server = ApiServer::new();
    let plugin_fails = Arc::new(AtomicBool::new(true));
    let (service, fails) = (server.service().user("a"), plugin_fails.clone());
    let service = service_fn(move |request: Request<Body>| {
        let (service, fails) = (service.clone(), fails.load(Ordering::SeqCst));
        async move {
            if fails {
                return Err(BoxError::from(AuthError::AuthExec("the plugin is away".into())));
            }
            service.oneshot(request).await
        }
    });
    let connect = move || Ok(Client::new(service.clone(), "default"));
    let running = builder("a").build_in(&LeasePool::over(connect).expect("a client")).unwrap().start();
    let first = in_trouble(running.candidate(), SOON).await;
    assert!(first.contains("run the credential plugin of the kubeconfig by hand"), "{first}");
    plugin_fails.store(false, Ordering::SeqCst);
    let unknown = server.inject(Fault::status(401));
    pass(Duration::from_secs(3600)).await;
    assert!(unknown.hits() > 1_000, "{}", unknown.hits());
    let trouble = running.candidate().trouble().expect("trouble");
    assert!(trouble.contains("401") && !trouble.contains("plugin"), "{trouble}");
}

/// The gate of a leader that cannot renew rejects its writes. The last holder that it saw is itself.
#[tokio::test(start_paused = true)]
async fn rejected_write_names_the_failed_renewals() {
    let server = ApiServer::new();
    let (a, client) = leading(&server, "a").await;
    let outage = server.inject(Fault::status(503).verb("update").resource("leases"));
    until(Duration::from_secs(12), "the gate closes", || !a.candidate().can_write()).await;
    let message = rejection(&client).await;
    assert!(message.contains(
        "last known holder of the lease is \"a\"; the election is in trouble: lease calls fail: renew: "
    ));
    drop(outage);
    within(Duration::from_secs(3), "the candidate leads again", a.candidate().elected()).await;
    assert_eq!(a.candidate().trouble(), None);
}

/// To lose a race is normal. To lose each one, while no other candidate holds the lease, is not.
#[tokio::test(start_paused = true)]
async fn endless_conflicts_are_named() {
    let server = ApiServer::new();
    free(&server);
    let conflicts = server.inject(Fault::status(409).resource("leases").writes());
    let running = candidate(&server, "a").start();
    until(Duration::from_secs(5), "some races are lost", || conflicts.hits() > 3).await;
    assert_eq!(running.candidate().trouble(), None, "{}", conflicts.hits());
    let trouble = in_trouble(running.candidate(), Duration::from_secs(60)).await;
    assert!(trouble.starts_with("lease calls fail: acquire: conflict: 409"), "{trouble}");
    assert!(
        trouble.ends_with(
            ". To do: find the program that changes this object again and again, in the audit log"
        )
    );
    drop(conflicts);
    within(Duration::from_secs(5), "the candidate leads", running.candidate().elected()).await;
    assert_eq!(running.candidate().trouble(), None);
}
