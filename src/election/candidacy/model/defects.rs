//! The model finds defects that are put back, one at a time.

use crate::defect;
use std::{env, process::Command};

/// Runs the checks of the model in a process of its own, with this defect.
fn found(defect: &str) -> (bool, String) {
    let output = Command::new(env::current_exe().expect("this program"))
        .args(["candidacy::model::tests::rules_hold_in_each_order", "--nocapture"])
        .env("LEADER_GATE_DEFECT", defect)
        .output()
        .expect("this program runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let found = !output.status.success() && text.contains("the model breaks a rule");
    (found, text.lines().filter(|line| line.contains("breaks")).collect())
}

#[test]
fn each_defect_that_is_put_back_is_found() {
    for name in defect::OF_THE_ELECTION {
        let (found, how) = found(name);
        println!("{name}: {how}");
        assert!(found, "the model does not find {name}");
    }
}
