//! Who the API server takes a client for.

use super::{definition::Fence, error::ErrFence, server::send, writers::POD_NAME};
use http::Method;
use kube_client::Client;
use serde_json::{Value, json};

/// Who sends the requests of a client, as the API server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asker {
    /// A replica that the fence judges. It may write while the Lease names this identity.
    Replica(String),
    /// A user that the fence does not judge, for example an administrator.
    Other(String),
}

impl Fence {
    /// Asks the API server who `client` is, with a `SelfSubjectReview`. Every user may do so. Call it with the
    /// credentials of a replica, to learn whether the fence can tell which replica that is. Cancel-safe.
    ///
    /// # Errors
    /// - [`ErrFence::NoPodInToken`] if the token belongs to the service account and names no pod: a token that was
    ///   made by hand, or that a Secret holds.
    /// - [`ErrFence::Request`] if the request failed.
    pub async fn identify(&self, client: &Client) -> Result<Asker, ErrFence> {
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let answer = send(client, Method::POST, path, Some(&review)).await.map_err(|source| {
            ErrFence::Request { what: "find out whose token this is".to_owned(), source }
        })?;
        let user = &answer["status"]["userInfo"];
        let username = user["username"].as_str().unwrap_or_default();
        let groups = user["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let groups: Vec<_> = groups.map(str::to_owned).collect();
        if !self.writers.contain(username, &groups) {
            return Ok(Asker::Other(username.to_owned()));
        }
        let identity = if self.writers.are_pods() {
            user["extra"][POD_NAME][0].as_str()
        } else {
            self.writers.identity_of(username)
        };
        match identity {
            Some(identity) => Ok(Asker::Replica(identity.to_owned())),
            None if self.writers.are_pods() => Err(ErrFence::NoPodInToken { username: username.to_owned() }),
            None => Ok(Asker::Other(username.to_owned())),
        }
    }
}
