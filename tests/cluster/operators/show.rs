//! The operator's own demonstration, without a cluster.

use super::process::run;

pub async fn gated() {
    it_misses_nothing("gated").await;
}

pub async fn leading_only() {
    it_misses_nothing("leading-only").await;
}

async fn it_misses_nothing(mode: &str) {
    let (status, said) = run(&["--mode", mode]).await;
    assert!(status.success(), "{said}");
    for line in ["replica-3 is replaced by replica-6", "none was missed", "by a replica that did not lead: 0"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
}
