//! The documents: their links resolve, their tables and quotations are the code's own. And no test is lost.

use http::Uri;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// The root of the crate.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in `folder` and below that end so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn events(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The anchors that GitHub makes of the headings.
fn anchors(text: &str) -> Vec<String> {
    let (mut anchors, mut heading) = (Vec::new(), None);
    let mut seen = HashMap::<String, usize>::new();
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = heading.take().unwrap().to_lowercase();
                let kept = heading.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
                let anchor = kept.collect::<String>().replace(' ', "-");
                let before = seen.entry(anchor.clone()).or_default();
                anchors.push(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
                *before += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// What is wrong with a link that stands in `document`.
fn fault(document: &Path, link: &str) -> Option<String> {
    if link.contains("://") {
        let well_formed =
            link.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
        return (!well_formed).then(|| "no https address".to_owned());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_owned() } else { document.parent().unwrap().join(path) };
    if !target.exists() {
        return Some("no such file".to_owned());
    }
    if anchor.is_empty() {
        return None;
    }
    let anchors = anchors(&read(&target));
    (!anchors.iter().any(|it| it == anchor)).then(|| format!("no such heading; there are {anchors:?}"))
}

#[test]
fn every_link_resolves() {
    let mut documents = files(&root().join("docs"), "md");
    documents.extend([root().join("README.md"), root().join("CHANGELOG.md")]);
    let (mut links, mut faults) = (0, Vec::new());
    for document in &documents {
        for event in events(&read(document)) {
            if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
                links += 1;
                let fault = fault(document, &dest_url);
                faults.extend(fault.map(|fault| format!("{}: {dest_url}: {fault}", document.display())));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(links > 20, "only {links} links in {documents:?}");
}

/// What stands between the two comments of a document.
fn between<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("<!-- {name} -->\n")).expect("the beginning is marked");
    rest.split_once("<!-- end -->").expect("the end is marked").0
}

#[test]
fn timing_table() {
    use kube_leader_gate::LeaseTiming;
    use std::{fmt::Write, time::Duration};

    let mut table = String::from(
        "| lease/renew/retry | call timeout | after a crash, a successor within | the same without watch | a released lease \
         without watch | tolerated outage of the API server | tolerated drift or delay | renewals a minute |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (lease, renew, retry) in [(137, 107, 26), (60, 40, 10), (30, 20, 5), (15, 10, 2)] {
        let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_secs);
        let timing = LeaseTiming::new(lease, renew, retry).unwrap();
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
            timing.crash_failover(),
            timing.polled_crash_failover(),
            timing.polled_handover(),
            timing.tolerated_outage(),
            timing.tolerated_skew(),
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

/// The messages that the document explains: in its headings, and where an item of a list begins.
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
fn troubleshooting_quotes_what_the_code_says() {
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

/// The compiler drops a function with `#[test]` from a target that has a harness of its own.
#[test]
fn targets_with_their_own_harness_have_no_test_attributes() {
    let manifest = read(&root().join("Cargo.toml"));
    let sections = manifest.split("\n[[test]]\n").skip(1).filter(|it| it.contains("harness = false"));
    let name = |section: &str| section.split('"').nth(1).expect("a name").to_owned();
    let targets: Vec<_> = sections.map(name).collect();
    assert!(targets.iter().any(|it| it == "cluster"), "{targets:?}");
    for file in targets.iter().flat_map(|target| files(&root().join("tests").join(target), "rs")) {
        let lost = read(&file).lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("#[test") || line.starts_with("#[tokio::test")
        });
        assert!(!lost, "{}: name its tests in main.rs instead", file.display());
    }
}
