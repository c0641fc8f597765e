//! `docs/observability/causes.tsv`: what the crate and the sidecar say when something goes wrong. Each cause is brought
//! about. `WRITE_CAUSES=1` writes the table anew.

mod in_process;
mod server;
mod sidecar;

use std::{env, fs, path::Path};

/// What is said of one cause.
pub(crate) struct Said {
    cause: &'static str,
    /// Where it is said.
    place: &'static str,
    sentence: String,
}

impl Said {
    pub(crate) fn new(cause: &'static str, place: &'static str, sentence: &str) -> Self {
        Self { cause, place, sentence: without_ports(sentence.trim_end()) }
    }
}

/// The ports of a run are replaced, as is the version of the operating system's messages.
fn without_ports(sentence: &str) -> String {
    let mut parts = sentence.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        format!("{text}127.0.0.1:PORT{}", part.trim_start_matches(|it: char| it.is_ascii_digit()))
    })
}

#[tokio::test]
async fn table_of_causes_matches_what_is_said() {
    let mut said = sidecar::all().await;
    said.extend(in_process::all().await);
    assert!(said.len() >= 30, "{} causes", said.len());
    for Said { cause, sentence, .. } in &said {
        assert!(!sentence.chars().any(char::is_control), "{cause}: {sentence:?}");
    }
    let rows = said.iter().map(|Said { cause, place, sentence }| format!("{cause}\t{place}\t{sentence}\n"));
    let table = "cause\twhere\twhat it says\n".to_owned() + &rows.collect::<String>();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/observability/causes.tsv");
    if env::var_os("WRITE_CAUSES").is_some() {
        fs::write(&file, &table).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    let unlike: Vec<_> = table.lines().filter(|row| !written.lines().any(|it| it == *row)).collect();
    assert!(
        unlike.is_empty(),
        "not in {}, run it with WRITE_CAUSES=1:\n{}",
        file.display(),
        unlike.join("\n")
    );
    assert_eq!(written, table, "in another order, or with more");
}
