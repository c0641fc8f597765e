//! The documents: their links resolve on GitHub and in rustdoc, and their tables and quotations match the code. No
//! test is lost either.

use http::Uri;
use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};
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

/// The files in `folder` and below it whose names end like this.
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

/// Checks a link in `document`. The error says what is wrong with it.
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

/// The targets of the links in `text`, in order. A label without a definition counts as a file of that name, which
/// does not exist.
fn links(text: &str) -> Vec<String> {
    let undefined = |link: BrokenLink<'_>| {
        // The first heading of a changelog, by its format.
        let is_a_link = &*link.reference != "Unreleased";
        is_a_link.then(|| (CowStr::from(format!("[{}]", link.reference)), CowStr::from("")))
    };
    let events = Parser::new_with_broken_link_callback(text, Options::ENABLE_TABLES, Some(undefined));
    let links = events.filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(dest_url.into_string())
        }
        _ => None,
    });
    links.collect()
}

/// The guides, which rustdoc shows too.
fn guides() -> Vec<PathBuf> {
    let mut guides = files(&root().join("docs"), "md");
    guides.retain(|it| !it.ends_with("ARCHITECTURE.md"));
    guides
}

fn documents() -> Vec<PathBuf> {
    let others = ["docs/ARCHITECTURE.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"];
    others.iter().map(|it| root().join(it)).chain(guides()).collect()
}

#[test]
fn every_link_resolves() {
    let (mut count, mut faults) = (0, Vec::new());
    for document in documents() {
        for link in links(&read(&document)) {
            count += 1;
            let fault = fault(&document, &link);
            faults.extend(fault.map(|fault| format!("{}: {link}: {fault}", document.display())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 20, "only {count} links");
}

/// Checks a link of a guide that leads to `here` on GitHub and to `there` in rustdoc.
fn fault_in_rustdoc(here: &str, there: &str) -> Option<String> {
    let (file, anchor) = here.split_once('#').map_or((here, None), |(file, anchor)| (file, Some(anchor)));
    let right = if here.contains("://") || file.is_empty() {
        there == here
    } else if let Some(guide) = file.strip_suffix(".md") {
        let page = format!("crate::guide::{}", guide.to_lowercase());
        there == anchor.map_or(page.clone(), |anchor| format!("{page}#{anchor}"))
    } else if file.starts_with("../src/") {
        // `make docs` fails where this item does not exist.
        there.starts_with("crate::")
    } else {
        there.starts_with("https://") && there.ends_with(file.trim_start_matches("../"))
    };
    (!right).then(|| format!("{here} leads to {there} in rustdoc: define its label in src/guide/links.md"))
}

/// In rustdoc, the definitions of `links.md` stand before a guide's own, and the first one of a label counts.
#[test]
fn every_link_of_a_guide_resolves_in_rustdoc() {
    let definitions = read(&root().join("src/guide/links.md"));
    let pages = read(&root().join("src/guide/mod.rs"));
    let (mut count, mut faults) = (0, Vec::new());
    for guide in guides() {
        let name = guide.file_name().unwrap().to_str().unwrap();
        let module = name.trim_end_matches(".md").to_lowercase();
        if !pages.contains(&format!(" {module}: \"{name}\"")) {
            faults.push(format!("src/guide/mod.rs has no page {module} for {name}"));
        }
        let text = read(&guide);
        let (here, there) = (links(&text), links(&format!("{definitions}\n{text}")));
        assert_eq!(here.len(), there.len(), "{name}");
        count += here.len();
        let found = here.iter().zip(&there).filter_map(|(here, there)| fault_in_rustdoc(here, there));
        faults.extend(found.map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 20, "only {count} links");
}

/// rustdoc looks for the page, but not for the anchor.
#[test]
fn every_anchor_into_a_guide_exists() {
    let (mut count, mut faults) = (0, Vec::new());
    for file in files(&root().join("src"), "rs") {
        for link in read(&file).split("guide::").skip(1) {
            let link = link.split(|it: char| !(it.is_alphanumeric() || "_#-".contains(it))).next().unwrap();
            let Some((page, anchor)) = link.split_once('#') else { continue };
            count += 1;
            let guide = read(&root().join(format!("docs/{}.md", page.to_uppercase())));
            if !anchors(&guide).iter().any(|it| it == anchor) {
                faults.push(format!("{}: no heading {anchor} in {page}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 15, "only {count} anchors: each rule has one");
}

#[test]
fn every_named_file_of_the_code_exists() {
    let known: Vec<_> =
        ["src", "tests", "examples"].iter().flat_map(|it| files(&root().join(it), "rs")).collect();
    let (mut count, mut faults) = (0, Vec::new());
    for document in [root().join("docs/ARCHITECTURE.md"), root().join("CONTRIBUTING.md")] {
        for event in events(&read(&document)) {
            let Event::Code(code) = event else { continue };
            if code.ends_with(".rs") && !code.contains('*') {
                count += 1;
                // `ends_with` compares whole parts of a path.
                let exists = known.iter().any(|it| it.ends_with(&*code));
                faults.extend((!exists).then(|| format!("{}: no file {code}", document.display())));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 20, "only {count} files");
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

/// In a target with a harness of its own, the compiler drops a function with `#[test]`.
#[test]
fn targets_without_harness_have_no_test_attributes() {
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
