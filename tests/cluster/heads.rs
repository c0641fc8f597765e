//! What a `HEAD` leaves behind on the sidecar's connection to a real kube-apiserver.

use crate::kubectl::sidecar;
use serde_json::json;
use test_support::{
    apiserver::{create, define_widgets, shared},
    sidecar::{
        callers::{Answer, Caller, request},
        wait::{SOON, within},
    },
};

/// The server answers the `HEAD` of a watch, and then goes on with the watch. It reads nothing more on that connection
/// until the watch ends. It does so for custom resources; the `HEAD` of a built-in one gets 405.
pub async fn head_of_a_watch_delays_no_other_request() {
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let cluster = shared().await;
    let admin = cluster.client("admin");
    define_widgets(&admin).await;
    let widget =
        json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "served" } });
    create(&admin, WIDGETS, &widget).await;
    let sidecar = sidecar(cluster, "candidate-0", &[]).await;
    for watch in [format!("{WIDGETS}?watch=1"), WIDGETS.replace("v1", "v1/watch")] {
        for (method, path) in [("HEAD", &*watch), ("GET", WIDGETS)] {
            let mut caller = Caller::connect(sidecar.addr).await;
            let answer = async { Answer::read(caller.send(request(method, path, "")).await.unwrap()).await };
            assert_eq!(within(SOON, path, answer).await.code, 200, "{method} {path}");
        }
    }
}
