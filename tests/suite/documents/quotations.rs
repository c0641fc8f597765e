//! The tables, programs and quotations of the documents match the code. And their sentences name the actor.

use super::pages::{documents, events, files, read, root};
use pulldown_cmark::{Event, Tag, TagEnd};

/// The text between the two comments of a document.
fn between<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("<!-- {name} -->\n")).expect("the beginning is marked");
    rest.split_once("<!-- end -->").expect("the end is marked").0
}

#[test]
fn timing_table_matches_the_code() {
    use kube_leader_gate::LeaseTiming;
    use std::{fmt::Write, time::Duration};

    let mut table = String::from(
        "| lease/renew/retry | call timeout | after a crash, a successor within | the same without watch | a released lease \
         without watch | tolerated outage of the API server | safety margin | renewals a minute |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (lease, renew, retry) in [(137, 107, 26), (60, 40, 10), (30, 20, 5), (15, 10, 2)] {
        let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_secs);
        let (timing, poll) = (LeaseTiming::new(lease, renew, retry).unwrap(), retry.mul_f64(1.2));
        let which = match timing {
            it if it == LeaseTiming::default() => " (the default)",
            it if it == LeaseTiming::fast() => " (`fast()`)",
            _ => "",
        };
        writeln!(
            table,
            "| {}/{}/{}{which} | {:?} | {:?} | {:?} | {:?} | {:?} | {:?} | {:.1} |",
            lease.as_secs(),
            renew.as_secs(),
            retry.as_secs(),
            timing.call_timeout(),
            lease,
            lease + poll,
            poll,
            timing.tolerated_outage(),
            timing.safety_margin(),
            60.0 / retry.as_secs_f64(),
        )
        .unwrap();
    }
    let document = read(&root().join("docs/TIMING.md"));
    assert!(
        between(&document, "timing_table") == table,
        "docs/TIMING.md, between the comments, should have:\n{table}"
    );
}

#[test]
fn getting_started_quotes_the_refusals_of_times() {
    let page = read(&root().join("docs/GETTING_STARTED.md"));
    let (_, table) = page.split_once("| given | message").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut refused = 0;
    for row in rows {
        let code: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let error = code[0].parse::<kube_leader_gate::LeaseTiming>().unwrap_err().to_string();
        let message = error.strip_prefix("invalid lease timing: ").expect("how each begins");
        // Two rows have the list of another row.
        let shown = code.get(1).filter(|it| message.starts_with(**it));
        assert!(
            shown.is_some_and(|it| *it == message || it.ends_with("allowed:")) || row.contains("the same"),
            "{row}: {error}"
        );
        refused += 1;
    }
    assert!(refused >= 7, "only {refused} rows");
}

#[test]
fn readme_shows_the_smallest_program_word_for_word() {
    let shown = read(&root().join("README.md"));
    let program = read(&root().join("examples/minimal.rs"));
    assert_eq!(between(&shown, "minimal"), format!("```rust,no_run\n{program}```\n"));
}

/// The targets that a Makefile explains. `make help` prints the same.
fn targets(makefile: &str) -> Vec<String> {
    let explained = makefile.lines().filter(|line| line.contains(": ") && line.contains("## "));
    let names = explained.filter_map(|line| line.split_once(':')).map(|(name, _)| name);
    names.filter(|it| !it.contains(['\t', '#', ' ', '@'])).map(str::to_owned).collect()
}

#[test]
fn makefile_has_at_most_fifteen_explained_targets() {
    let makefile = read(&root().join("Makefile"));
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY: ")).expect("targets");
    let (explained, all): (Vec<_>, Vec<_>) = (targets(&makefile), phony.split(' ').collect());
    assert_eq!(explained, all, "each target has a line for `make help`, in the order of .PHONY");
    assert!(all.len() <= 15, "{} targets", all.len());
}

/// The messages that the document explains: in its headings, and at the start of list items.
fn quotations(text: &str) -> Vec<String> {
    let (mut quotations, mut here, mut begins) = (Vec::new(), false, false);
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => here = true,
            Event::End(TagEnd::Heading(_)) => here = false,
            Event::Start(Tag::Item) => begins = true,
            Event::Code(code) if here || begins => {
                quotations.push(code.into_string());
                begins = false;
            }
            Event::Text(_) => begins = false,
            _ => {}
        }
    }
    quotations
}

#[test]
fn troubleshooting_quotes_messages_of_the_code() {
    let mut source = String::new();
    for file in files(&root().join("src"), "rs") {
        // A literal that goes on in the next line.
        for line in read(&file).lines().map(str::trim) {
            match line.strip_suffix('\\') {
                Some(begun) => source.push_str(begun),
                None => source.extend([line, "\n"]),
            }
        }
    }
    let quotations = quotations(&read(&root().join("docs/TROUBLESHOOTING.md")));
    assert!(quotations.len() > 20, "{quotations:?}");
    for quotation in &quotations {
        for part in quotation.split('…').map(|it| it.trim_matches([' ', ':', '"'])) {
            assert!(source.contains(part), "no message of the code has {part:?}, of {quotation:?}");
        }
    }
}

/// What is bold on the page of the results is what the README tells of it.
#[test]
fn readme_shows_the_bold_numbers_of_the_results() {
    let (readme, results) = (read(&root().join("README.md")), read(&root().join("docs/RESULTS.md")));
    let bold = results.split("**").skip(1).step_by(2);
    let numbers: Vec<_> = bold.filter(|it| it.contains(char::is_numeric)).collect();
    assert_eq!(numbers.len(), 6, "{numbers:?}");
    for number in numbers {
        // In words it is "none of".
        let number = number.strip_prefix('0').unwrap_or(number);
        assert!(readme.contains(number), "README.md does not have {number:?} of docs/RESULTS.md");
    }
}

/// A non-native reader looks for the actor of a sentence. Quoted messages are in code, which is not checked.
#[test]
fn no_sentence_hides_its_actor() {
    let hidden = ["nobody", "whoever", "somebody", "anybody"];
    let mut faults = Vec::new();
    for document in documents() {
        let mut in_code = false;
        for event in events(&read(&document)) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Text(text) if !in_code => {
                    let mut words = text.split(|it: char| !it.is_alphanumeric());
                    if words.any(|word| hidden.contains(&word.to_lowercase().as_str())) {
                        faults.push(format!("{}: {text}", document.display()));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
