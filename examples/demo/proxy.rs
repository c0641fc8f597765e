//! A proxy to the API server that the demo can cut. It plays an outage in a cluster for the replicas alone.

use kube_client::Config;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Proxy {
    addr: SocketAddr,
    cut: watch::Sender<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy on a loopback port to the API server of `config`. `None` where another proxy is already configured.
    pub async fn before(config: &Config) -> io::Result<Option<Self>> {
        let url = &config.cluster_url;
        let (Some(host), None) = (url.host(), &config.proxy_url) else { return Ok(None) };
        let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
        let target = (host.trim_matches(['[', ']']).to_owned(), port);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (cut, is_cut) = watch::channel(false);
        let task = AbortOnDropHandle::new(tokio::spawn(accept(listener, target, is_cut)));
        Ok(Some(Self { addr, cut, _task: task }))
    }

    /// The configuration by way of the proxy. The server's certificate is still checked against its own name.
    pub fn config(&self, direct: &Config) -> Config {
        let mut config = direct.clone();
        let mut parts = direct.cluster_url.clone().into_parts();
        parts.authority = self.addr.to_string().parse().ok();
        if let Ok(url) = http::Uri::from_parts(parts) {
            let host = direct.cluster_url.host().map(|host| host.trim_matches(['[', ']']).to_owned());
            config.tls_server_name = config.tls_server_name.or(host);
            config.cluster_url = url;
        }
        config
    }

    pub fn cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

/// Serves until it is dropped, its connections with it.
async fn accept(listener: TcpListener, target: (String, u16), is_cut: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        if !*is_cut.borrow() {
            connections.spawn(connection(near, target.clone(), is_cut.clone()));
        }
    }
}

async fn connection(mut near: TcpStream, target: (String, u16), mut is_cut: watch::Receiver<bool>) {
    let carry = async {
        let mut far = TcpStream::connect((target.0.as_str(), target.1)).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        copy_bidirectional(&mut near, &mut far).await
    };
    tokio::select! {
        // An error closes the connection, as it would without the proxy.
        _ = carry => {}
        _ = is_cut.wait_for(|cut| *cut) => {}
    }
}
