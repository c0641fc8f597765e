//! Tests of the fencing token of a term that begins.

use super::{
    Machine,
    examples::{at, held, machine, written},
};
use crate::lease::LeaseRecord;

/// The version of each claim lies above all versions of the claim before it, over a deletion too.
#[test]
fn each_term_has_a_larger_fencing_token() {
    let mut machine = machine();
    machine.observe(held(7, "", 0), at(0));
    let claim = machine.acquisition(at(0), "first".into());
    machine.observe(written(8, &claim), at(0));
    assert_eq!(machine.fencing_token(), Ok(8));
    machine.observe_absence(Some(&written(11, &claim)), at(1));
    let claim = machine.acquisition(at(2), "second".into());
    let mut anew = written(12, &claim).into_json();
    anew["metadata"]["uid"] = "another".into();
    machine.observe(LeaseRecord::from_json(anew).unwrap(), at(2));
    assert_eq!(machine.fencing_token(), Ok(12));
}

/// A restored backup, or a server that counts anew: another candidate may have had a larger token.
#[test]
fn lower_version_than_seen_gives_no_fencing_token() {
    let seen: [fn(&mut Machine); 3] = [
        |it| it.observe(held(30, "other", 0), at(0)),
        |it| it.observe_absence(Some(&held(30, "other", 0)), at(0)),
        |it| it.observe_read(held(30, "other", 0), None, at(0)),
    ];
    for see in seen {
        let mut machine = machine();
        see(&mut machine);
        let before = machine.version().map(str::to_owned);
        machine.observe_read(held(5, "", 0), before.as_deref(), at(1));
        for (version, token) in [(6, None), (29, None), (30, Some(30)), (31, Some(31))] {
            let claim = machine.acquisition(at(2), version.to_string());
            let before = machine.version().map(str::to_owned);
            machine.observe_read(written(version, &claim), before.as_deref(), at(2));
            assert!(machine.is_current());
            assert_eq!(machine.fencing_token().ok(), token, "{version}");
        }
    }
}

#[test]
fn version_that_is_no_plain_number_gives_no_token() {
    for version in ["a7", "+7", "07", " 7", "7.0", "-7", "18446744073709551616"] {
        let mut machine = machine();
        machine.observe(held(1, "", 0), at(0));
        let claim = machine.acquisition(at(0), "now".into());
        let mut object = written(2, &claim).into_json();
        object["metadata"]["resourceVersion"] = version.into();
        machine.observe(LeaseRecord::from_json(object).unwrap(), at(0));
        assert!(machine.is_current(), "{version}");
        machine.fencing_token().expect_err(version);
    }
}
