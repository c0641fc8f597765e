//! The frozen leader's late statement, with and without its token, in each database.
#![expect(unreachable_pub, reason = "no other crate uses the modules of a test")]
#![expect(clippy::doc_markdown, reason = "PostgreSQL is a name")]

mod postgres;

use std::{
    process::{Command, ExitCode, Output},
    str,
};
use test_support::harness;

fn main() -> ExitCode {
    harness::run(test_support::tests! {
        needs [] {
            plain sqlite_refuses_late_statement_by_its_token;
            plain sqlite_takes_late_statement_without_token;
        }
        needs [postgres::is_there] {
            plain postgres_refuses_late_statement_by_its_token;
            plain postgres_takes_late_statement_without_token;
        }
    })
}

fn sqlite_refuses_late_statement_by_its_token() {
    let said = said(true, &fencing(&[]));
    // The statement was made in the poll in which the process froze: only the database could refuse it.
    assert!(said.contains("a wakes, and its statement goes out: refused by the database\n"), "{said}");
}

fn sqlite_takes_late_statement_without_token() {
    let said = said(false, &fencing(&["--without-token"]));
    assert!(said.contains("a wakes, and its statement goes out: wrote\n"), "{said}");
}

fn postgres_refuses_late_statement_by_its_token() {
    let server = postgres::Server::start();
    let said = said(true, &fencing(&["--store", &server.url()]));
    // The connection's task has the statement already. The guard drops its future, unless the answer is there first.
    let ends = ["cut off, outcome unknown", "refused by the database"];
    let ends = ends.map(|end| format!("a wakes, and its statement goes out: {end}\n"));
    assert!(ends.iter().any(|end| said.contains(end)), "{said}");
}

/// So it arrives in the test above too.
fn postgres_takes_late_statement_without_token() {
    let server = postgres::Server::start();
    said(false, &fencing(&["--store", &server.url(), "--without-token"]));
}

/// What the example said. It ends as `kept` says: whether the successor's value was kept.
fn said(kept: bool, output: &Output) -> String {
    let [said, log] = [&output.stdout, &output.stderr].map(|it| str::from_utf8(it).expect("text").to_owned());
    harness::say(&said);
    let last = if kept {
        "the database has \"3 by b\": a's late statement changed nothing\n"
    } else {
        "the database has \"2 by a, too late\": a's late statement changed it\n"
    };
    assert!(said.ends_with(last), "{said}\n{log}");
    assert_eq!(output.status.code(), Some(i32::from(!kept)), "{said}\n{log}");
    said
}

fn fencing(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fencing")).args(options).output().expect("the example runs")
}
