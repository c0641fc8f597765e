//! x
fn main() {
    let _ = kube_leader_gate::testing::ApiServer::new();
}
