//! What stands in the annotations is read as it was written, and nonsense is nothing.

use crate::{
    election::machine::note::{self, Claim, Question, WaitsFor},
    lease::{Identity, LONGEST_SANE},
};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_claim_is_read_as_written() {
    for (uid, pod) in [("", ""), ("4d0a", "77-b")] {
        let claim = Claim {
            process: 0xfeed,
            time: "2026-01-02T03:04:05.000006Z".parse().unwrap(),
            uid: uid.into(),
            lasts: Duration::from_secs(15),
            pod: pod.into(),
            name: "a name".into(),
        };
        assert_eq!(Claim::read(&claim.to_string()), Some(claim));
    }
    for odd in [
        "",
        "1 2",
        "g 2026-01-02T03:04:05Z u 15s p a",
        "1 now u 15s p a",
        "1 2026-01-02T03:04:05Z u 15 p a",
        "1 2026-01-02T03:04:05Z u 15s p",
    ] {
        assert_eq!(Claim::read(odd), None, "{odd}");
    }
}

#[test]
fn a_question_is_a_name_and_perhaps_a_key() {
    let who = Identity::new("pod-b").unwrap();
    for key in [None, Some("stable".to_owned())] {
        let question = Question { who: who.clone(), key };
        assert_eq!(Question::read(&question.to_string()), Some(question));
    }
    assert_eq!(Question::read(""), None);
    assert_eq!(Question::read(&"x".repeat(300)), None);
    for odd in ["pod-b\n a", "pod-b\na\tb", "pod-b\na\nb", &format!("pod-b\n{}", "x".repeat(1_000))] {
        assert_eq!(Question::read(odd), None, "{odd}");
    }
}

#[test]
fn rests_are_rounded_up_and_cut() {
    let rests = WaitsFor::from([("a".to_owned(), Duration::from_micros(1_500))]);
    assert_eq!(note::write_waits_for(&rests), r#"{"a":2}"#);
    assert_eq!(note::write_waits_for(&WaitsFor::new()), "{}");
    let read = |value| note::read_waits_for(Some(&value));
    assert_eq!(read(json!(r#"{"a":99999999999999}"#)).unwrap()["a"], LONGEST_SANE);
    assert_eq!(note::read_waits_for(None), None);
    for odd in
        [json!(""), json!(7), json!("{}}"), json!(r#"{"a":-1}"#), json!("[]"), json!("x".repeat(100_000))]
    {
        assert_eq!(read(odd.clone()), None, "{odd}");
    }
}
