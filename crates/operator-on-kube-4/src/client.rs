//! Two ways to a kube 4 client behind the gate.

use http::Request;
use kube::client::{Body, Client, ClientBuilder};
use kube_leader_gate::Election;
use tower::{BoxError, service_fn};

/// Makes a client that sends through kube-client 5, with everything that [`Election::client`] has. It needs one
/// configuration only, the election's. Add layers of your own to the `service`.
///
/// # Errors
/// Those of [`Election::client`].
pub fn through_kube_client_5(
    election: &Election,
    config: &kube_client::Config,
) -> Result<Client, kube_client::Error> {
    let transport = election.client(config)?;
    let valid_until = *transport.valid_until();
    let service = service_fn(move |request: Request<Body>| {
        let transport = transport.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            Ok::<_, BoxError>(transport.send(Request::from_parts(head, body.into())).await?)
        }
    });
    Ok(Client::new(service, &config.default_namespace).with_valid_until(valid_until))
}

/// Puts the gate around kube 4's own stack, with its own connections. If the process freezes just after the gate has
/// admitted a write, these connections may send it after the loss.
///
/// # Errors
/// Those of kube's [`ClientBuilder`].
pub fn through_own_kube(election: &Election, config: kube::Config) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&election.layer()).build())
}
