//! Waits for a cache of kube 4, as `kube_leader_gate::runtime::caught_up` waits for one of kube 5.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Error, ResourceExt,
    api::ListParams,
    core::{ObjectList, PartialObjectMeta},
    runtime::reflector::Store,
};
use kube_leader_gate::Election;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::time::sleep;

/// Keeps the gate shut until the cache shows what the former leader has written.
pub fn open_when_caught_up(
    election: Election,
    maps: Api<ConfigMap>,
    selected: ListParams,
    store: Store<ConfigMap>,
) -> Election {
    election.open_when(move |_| caught_up(maps.clone(), selected.clone(), store.clone()))
}

/// Completes once `store` has what the API server had stored at this call. `selected` has the selectors of the watch that
/// fills `store`.
///
/// # Errors
/// Those of the list.
pub async fn caught_up(
    maps: Api<ConfigMap>,
    selected: ListParams,
    store: Store<ConfigMap>,
) -> Result<(), Error> {
    loop {
        let listed = maps.list_metadata(&selected).await?;
        // After half a second it lists again, because a listed object that is gone meanwhile never comes.
        for _ in 0..50 {
            if shows(&store.state(), &listed) {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The events of a watch come in order. So a cache with one version has seen all objects up to this version.
fn shows(cached: &[Arc<ConfigMap>], listed: &ObjectList<PartialObjectMeta<ConfigMap>>) -> bool {
    let number = |version: Option<String>| version.and_then(|it| it.parse::<u64>().ok());
    let newest = cached.iter().filter_map(|it| number(it.resource_version())).max().unwrap_or(0);
    let has_all = listed.items.iter().all(|it| number(it.resource_version()).is_some_and(|it| it <= newest));
    let names: HashSet<_> = listed.items.iter().map(|it| (it.namespace(), it.name_any())).collect();
    let of_list = number(listed.metadata.resource_version.clone()).unwrap_or(u64::MAX);
    let is_there = |it: &ConfigMap| {
        names.contains(&(it.namespace(), it.name_any())) || number(it.resource_version()) > Some(of_list)
    };
    has_all && cached.iter().all(|it| is_there(it))
}
