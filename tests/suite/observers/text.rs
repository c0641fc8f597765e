//! A value that is written as text is parsed as the same value. The error for any other text names it and what is
//! allowed.
use kube_leader_gate::{Identity, LeaseTiming, lease::LeaseName, policy::Preset};
use proptest::{
    prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest},
    sample::select,
};
use std::{fmt, str::FromStr, time::Duration};

/// A random valid timing, sometimes with its own call timeout.
fn timing() -> impl Strategy<Value = LeaseTiming> {
    let parts = (2..500_000_u64, 0.1..0.999_f64, 0.01..0.7_f64, proptest::option::of(0.0..1.0_f64));
    parts.prop_filter_map("no valid timing", |(lease, renew, retry, call)| {
        let lease = Duration::from_secs(lease);
        let renew = lease.mul_f64(renew);
        let timing = LeaseTiming::new(lease, renew, renew.mul_f64(retry)).ok()?;
        let Some(call) = call else { return Some(timing) };
        timing.with_call_timeout(timing.call_timeout().mul_f64(call)).ok()
    })
}

fn label() -> &'static str {
    "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"
}

fn read<T: FromStr>(value: &impl fmt::Display) -> Option<T> {
    value.to_string().parse().ok()
}

proptest! {
    #[test]
    fn timing_text_round_trips(timing in timing()) {
        prop_assert_eq!(read(&timing), Some(timing), "{}", timing);
    }

    #[test]
    fn lease_name_text_round_trips(namespace in label(), name in label(), more in label()) {
        let lease = LeaseName::new(namespace, format!("{name}.{more}")).unwrap();
        prop_assert_eq!(read(&lease), Some(lease));
    }

    #[test]
    fn identity_text_round_trips(text in "\\PC{1,80}") {
        if let Ok(identity) = Identity::new(text.as_str()) {
            prop_assert_eq!(read(&identity), Some(identity));
        } else {
            prop_assert!(text.parse::<Identity>().is_err());
        }
    }

    #[test]
    fn preset_text_round_trips(preset in select(Preset::ALL)) {
        prop_assert_eq!(read(&preset), Some(preset));
    }

    #[test]
    fn parsed_text_round_trips_or_is_refused(text in any::<String>(), numbers in "[0-9./]{0,24}") {
        for text in [text, numbers] {
            if let Ok(timing) = text.parse::<LeaseTiming>() {
                prop_assert_eq!(read(&timing), Some(timing), "{}", text);
            }
            if let Ok(lease) = text.parse::<LeaseName>() {
                prop_assert_eq!(lease.to_string(), text.as_str());
            }
            let _ = text.parse::<Preset>();
        }
    }
}

#[test]
fn preset_names_are_kebab_case() {
    for preset in Preset::ALL {
        let camel: String =
            preset.as_str().split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        assert_eq!(camel, format!("{preset:?}"));
    }
}

#[test]
fn timing_parses_names_and_fourth_number() {
    let parsed = |text: &str| text.parse::<LeaseTiming>().unwrap();
    assert_eq!((parsed("default"), parsed("fast")), (LeaseTiming::default(), LeaseTiming::fast()));
    assert_eq!(parsed("137/107/26"), LeaseTiming::default());
    assert_eq!(parsed("15/10/2/1.25").call_timeout(), Duration::from_millis(1250));
    assert_eq!(parsed("15/10/2/1.250").to_string(), "15/10/2/1.25");
    assert_eq!(parsed("15/10.5/2.000000001").to_string(), "15/10.5/2.000000001");
}

#[test]
fn parse_error_names_input_and_allowed_values() {
    let timing = |text: &str| text.parse::<LeaseTiming>().unwrap_err().to_string();
    for text in [
        "",
        "15/10",
        "15/10/2/1/1",
        "15,10,2",
        "Fast",
        "15/10/",
        "15/1e1/2",
        "15/+10/2",
        "15/10./2",
        "15/.5/2",
    ] {
        let error = timing(text);
        assert!(
            error.contains(", allowed: default, fast, a lease duration in seconds, or three numbers"),
            "{error}"
        );
        let given = error.split('"').nth(1).unwrap();
        assert!(text.contains(given), "{error}");
    }
    assert_eq!(
        timing("10/10/2"),
        "invalid lease timing: the renew deadline is 10s, allowed: less than the lease duration, 10s"
    );

    let error = "operator".parse::<LeaseName>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"invalid lease: "operator", allowed: a namespace and a name, as default/my-app"#
    );
    let error = "default/a/b".parse::<LeaseName>().unwrap_err().to_string();
    assert!(error.starts_with(r#"invalid lease name: "a/b", allowed: 1 to 253 of a-z"#), "{error}");

    let error = "".parse::<Identity>().unwrap_err().to_string();
    assert_eq!(
        error,
        r#"invalid identity: "" (0 bytes), allowed: 1 to 253 bytes without control characters or a space at either end"#
    );

    let error = "dryRun".parse::<Preset>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"invalid preset: "dryRun", allowed: access-reviews, token-reviews, token-requests, events, dry-run, exec"#
    );
}
