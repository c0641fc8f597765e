//! The two programs and their arguments.

use super::{assets::Assets, guard::Guarded, users};
use crate::port;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair};
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

/// The audit policy: for leases the written bodies, for other requests the user and the time.
const AUDIT_POLICY: &str = r"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    resources: [{ group: coordination.k8s.io, resources: [leases] }]
  - level: Metadata
";

/// With it, the authority signs certificates of users.
const CA_KEY: &str = "ca.key";

/// The files and ports of one server, which can be started on them more than once.
#[derive(Debug)]
pub(super) struct Setup {
    folder: PathBuf,
    pub(super) ca_der: Vec<u8>,
    pub(super) port: u16,
    etcd_port: u16,
    etcd_peer_port: u16,
    /// Tells apart the logs of several API servers on one etcd.
    number: usize,
}

impl Setup {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let [port, etcd_port, etcd_peer_port] = port::free()?;
        let ca_der = write_certificates(folder).map_err(io::Error::other)?;
        fs::write(folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        users::write_tokens(folder)?;
        Ok(Self { folder: folder.to_owned(), ca_der, port, etcd_port, etcd_peer_port, number: 1 })
    }

    /// Another API server on the same etcd, with the same users and keys.
    pub(super) fn beside(&self) -> io::Result<Self> {
        let [port] = port::free()?;
        let (folder, ca_der) = (self.folder.clone(), self.ca_der.clone());
        Ok(Self { folder, ca_der, port, number: self.number + 1, ..*self })
    }

    pub(super) fn ca(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.join(format!("audit-{}.log", self.number))
    }

    pub(super) fn etcd(&self, assets: &Assets) -> io::Result<Guarded> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer_port);
        let mut command = Command::new(assets.binary("etcd"));
        command
            .arg(format!("--data-dir={}", self.folder.join("etcd").display()))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=default={peer}"))
            .args(["--unsafe-no-fsync", "--log-level=error"]);
        self.spawn(command, "etcd.log")
    }

    pub(super) fn apiserver(&self, assets: &Assets) -> io::Result<Guarded> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let mut command = Command::new(assets.binary("kube-apiserver"));
        command
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port))
            .arg(format!("--secure-port={}", self.port))
            // Only loopback, and no endpoint for the `kubernetes` service.
            .args([
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--endpoint-reconciler-type=none",
            ])
            .arg(format!("--cert-dir={}", self.folder.display()))
            .arg(format!("--tls-cert-file={}", file("server.crt")))
            .arg(format!("--tls-private-key-file={}", file("server.key")))
            .arg(format!("--service-account-key-file={}", file("accounts.pub")))
            .arg(format!("--service-account-signing-key-file={}", file("accounts.key")))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--token-auth-file={}", file("tokens.csv")))
            .arg(format!("--client-ca-file={}", file("ca.crt")))
            .arg("--authorization-mode=RBAC")
            .arg("--service-cluster-ip-range=10.96.0.0/16")
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg("--allow-privileged=true")
            .arg("--kubelet-preferred-address-types=InternalIP")
            .arg(format!("--audit-policy-file={}", file("audit-policy.yaml")))
            .arg(format!("--audit-log-path={}", self.audit_log().display()))
            // In megabytes, so that the log stays one file.
            .arg("--audit-log-maxsize=1000000");
        self.spawn(command, &self.apiserver_log())
    }

    fn apiserver_log(&self) -> String {
        format!("kube-apiserver-{}.log", self.number)
    }

    /// The last lines of both logs, for a failure.
    pub(super) fn last_words(&self) -> String {
        ["etcd.log".to_owned(), self.apiserver_log()]
            .map(|name| {
                let text = fs::read_to_string(self.folder.join(&name)).unwrap_or_default();
                let lines: Vec<_> = text.lines().rev().take(15).collect();
                format!("{name}:\n{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
            })
            .join("\n")
    }

    fn spawn(&self, mut command: Command, log: &str) -> io::Result<Guarded> {
        // Both are Go programs. Otherwise they spend almost a third of their start on collecting garbage.
        command.env("GOGC", "400");
        let log = fs::File::options().create(true).append(true).open(self.folder.join(log))?;
        Guarded::spawn_with(&command, Stdio::null(), log.into())
    }
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// A client's certificate and its key, as PEM, for this time from now on.
pub(super) fn certificate(
    folder: &Path,
    user: &str,
    group: &str,
    lasts: Duration,
) -> Result<[String; 2], Box<dyn std::error::Error + Send + Sync>> {
    let issuer = Issuer::new(authority(), KeyPair::from_pem(&fs::read_to_string(folder.join(CA_KEY))?)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.not_after = (SystemTime::now() + lasts).into();
    Ok([params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()])
}

/// An authority, the server's certificate, and the key that signs service account tokens.
fn write_certificates(folder: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let ca = CertifiedIssuer::self_signed(authority(), KeyPair::generate()?)?;
    let server_key = KeyPair::generate()?;
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server = CertificateParams::new(names)?.signed_by(&server_key, &ca)?;
    fs::write(folder.join("ca.crt"), ca.pem())?;
    fs::write(folder.join(CA_KEY), ca.key().serialize_pem())?;
    fs::write(folder.join("server.crt"), server.pem())?;
    fs::write(folder.join("server.key"), server_key.serialize_pem())?;
    let accounts_key = KeyPair::generate()?;
    fs::write(folder.join("accounts.key"), accounts_key.serialize_pem())?;
    fs::write(folder.join("accounts.pub"), accounts_key.public_key_pem())?;
    Ok(ca.der().to_vec())
}
