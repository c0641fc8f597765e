//! The operator's own demonstration, without a cluster.

use super::process::run;

pub async fn gated() {
    show_misses_no_object("gated").await;
}

pub async fn leading_only() {
    show_misses_no_object("leading-only").await;
}

async fn show_misses_no_object(mode: &str) {
    let (status, said) = run(&["--mode", mode]).await;
    assert!(status.success(), "{said}");
    for line in ["replica-3 is replaced by replica-6", "none was missed", "by a replica that did not lead: 0"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
}
