//! One consistent list of the names and versions of all objects.

use super::error::Why;
use kube_client::{Api, Client, Error, Resource, core};
use kube_runtime::watcher;
use serde::Deserialize;
use std::{borrow::Cow, collections::HashMap};

/// Asks for the metadata of all objects that a watch selects.
pub(super) struct MetadataList {
    client: Client,
    url: String,
    params: core::params::ListParams,
}

/// What the API server had stored.
pub(super) struct Listed {
    /// The version of the list: each change up to this one is in it.
    pub(super) version: u64,
    pub(super) versions: Versions,
}

/// The version of each object, by namespace and name.
pub(super) type Versions = HashMap<String, u64>;

/// A page of a list. Of an object it reads the name and the version alone, which costs a tenth of the whole metadata.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    items: Option<Vec<Item<'a>>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

/// The metadata of an object, which has a name, or of a page.
#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "resourceVersion")]
    version: Cow<'a, str>,
    #[serde(rename = "continue")]
    rest: Option<String>,
}

// === impl MetadataList ===

impl MetadataList {
    pub(super) fn new<A: Resource + Clone>(api: &Api<A>, config: &watcher::Config) -> Self {
        let params = core::params::ListParams {
            label_selector: config.label_selector.clone(),
            field_selector: config.field_selector.clone(),
            limit: config.page_size,
            ..core::params::ListParams::default()
        };
        Self { client: api.clone().into_client(), url: api.resource_url().to_owned(), params }
    }

    /// Lists all objects. Returns None, and asks for no further page, if `has_seen` says that the cache has seen all up to the
    /// version of the list.
    pub(super) async fn all(&self, has_seen: impl Fn(u64) -> bool) -> Result<Option<Listed>, Why> {
        let mut params = self.params.clone();
        let mut versions = Versions::new();
        loop {
            let text = self.page(&params).await.map_err(|error| Why::List(error.into()))?;
            let page = serde_json::from_str(&text).map_err(Error::SerdeError);
            let page: Page<'_> = page.map_err(|error| Why::List(error.into()))?;
            let version = number(&page.metadata.version)?;
            for Item { metadata } in page.items.into_iter().flatten() {
                versions.insert(key(metadata.namespace, metadata.name), number(&metadata.version)?);
            }
            match page.metadata.rest.filter(|rest| !rest.is_empty()) {
                None => return Ok(Some(Listed { version, versions })),
                Some(_) if has_seen(version) => return Ok(None),
                rest => {
                    params.continue_token = rest;
                    // Each page costs a request and a look at the whole cache, so a large kind would need too many pages of one
                    // size.
                    params.limit = params.limit.map(|limit| limit.saturating_mul(2));
                }
            }
        }
    }

    async fn page(&self, params: &core::params::ListParams) -> Result<String, Error> {
        let request = core::Request::new(&self.url).list_metadata(params).map_err(Error::BuildRequest)?;
        self.client.request_text(request).await
    }
}

/// The namespace and the name of an object. Neither contains a slash.
pub(super) fn key(namespace: Option<Cow<'_, str>>, name: Option<Cow<'_, str>>) -> String {
    format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
}

/// A version as a number.
pub(super) fn number(version: &str) -> Result<u64, Why> {
    version.parse().map_err(|_| Why::Version(version.to_owned()))
}
