//! All objects that the server stores.

use http::Request;
use kube_client::Client;
use serde_json::Value;
use std::collections::BTreeMap;

/// An object's place. An Event has one place in both groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub group: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

/// The state of an object. `None` where there is none.
#[derive(Debug)]
pub struct Change<'a> {
    pub place: &'a Place,
    pub before: Option<&'a Value>,
    pub after: Option<&'a Value>,
}

pub struct Objects(BTreeMap<Place, Value>);

impl Place {
    pub fn new(group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        let group = if group == "events.k8s.io" { "" } else { group };
        // By the server's account, a namespace is inside itself.
        let namespace = if (group, resource) == ("", "namespaces") { "" } else { namespace };
        let [group, resource, namespace, name] = [group, resource, namespace, name].map(str::to_owned);
        Self { group, resource, namespace, name }
    }
}

impl Objects {
    /// Every object of every kind that the server documents and lists.
    pub async fn all(client: &Client) -> Self {
        let mut all = BTreeMap::new();
        let mut versions = vec![(String::new(), "v1".to_owned())];
        for group in client.list_api_groups().await.expect("the groups").groups {
            versions.extend(group.versions.into_iter().map(|it| (group.name.clone(), it.group_version)));
        }
        for (group, version) in versions {
            let resources = if group.is_empty() {
                client.list_core_api_resources(&version).await
            } else {
                client.list_api_group_resources(&version).await
            };
            let root = if group.is_empty() { "api" } else { "apis" };
            for resource in resources.expect("its resources").resources {
                if resource.name.contains('/') || !resource.verbs.iter().any(|verb| verb == "list") {
                    continue;
                }
                let request = Request::get(format!("/{root}/{version}/{}", resource.name)).body(Vec::new());
                let mut list: Value = client.request(request.expect("a request")).await.expect("a list");
                for object in list["items"].as_array_mut().into_iter().flatten().map(Value::take) {
                    let text =
                        |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
                    let place = Place::new(&group, &resource.name, &text("namespace"), &text("name"));
                    // Some objects are listed in several versions. Any version will do.
                    all.entry(place).or_insert(object);
                }
            }
        }
        Self(all)
    }

    pub fn changes<'a>(&'a self, after: &'a Self) -> Vec<Change<'a>> {
        let gone = self.0.iter().map(|(place, before)| Change {
            place,
            before: Some(before),
            after: after.0.get(place),
        });
        let new = after.0.iter().filter(|(place, _)| !self.0.contains_key(place));
        let new = new.map(|(place, after)| Change { place, before: None, after: Some(after) });
        gone.chain(new).filter(|change| change.before != change.after).collect()
    }
}
