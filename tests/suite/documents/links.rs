//! The links of the documents resolve on GitHub and in rustdoc.

use super::pages::{documents, events, files, guides, read, root};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::Uri;
use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};
use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
};

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

/// rustdoc shows the page of a library without the repository around it, so `src/links.md` comes before the page there.
#[test]
fn pages_of_libraries_link_to_addresses_in_rustdoc() {
    let mut count = 0;
    for library in files(&root().join("crates"), "rs") {
        let (Some(page), true) =
            (library.ancestors().nth(2).map(|it| it.join("README.md")), library.ends_with("src/lib.rs"))
        else {
            continue;
        };
        if !read(&library).contains("include_str!(\"../README.md\")") {
            continue;
        }
        let mut definitions = read(&library.with_file_name("links.md"));
        if read(&library).contains("include_str!(\"pictures.md\")") {
            definitions += &read(&library.with_file_name("pictures.md"));
        }
        assert!(
            read(&library).starts_with("#![doc = include_str!(\"links.md\")]\n"),
            "{}",
            library.display()
        );
        for link in links(&format!("{definitions}\n{}", read(&page))) {
            count += 1;
            let is_address = ["https://", "#", PICTURE].iter().any(|start| link.starts_with(start));
            assert!(is_address, "{}: {link}", page.display());
        }
    }
    assert!(count > 20, "only {count} links");
}

/// How the address of a picture begins in rustdoc, which has no files beside its pages.
const PICTURE: &str = "data:image/svg+xml;base64,";

/// The addresses of the pictures stand in files beside the other addresses. With `RENEW=1`, this test writes them anew.
#[test]
fn pictures_of_rustdoc_are_those_of_the_files() {
    let pictures = files(&root().join("docs/pictures"), "svg");
    let guides: String = guides().iter().map(|guide| read(guide)).collect();
    let fence = read(&root().join("crates/fence/README.md"));
    for (addresses, pages) in [("src/guide/pictures.md", guides), ("crates/fence/src/pictures.md", fence)] {
        let address = |file: &PathBuf| {
            let label = format!("[picture-{}]", file.file_stem()?.to_str()?);
            pages
                .contains(&label)
                .then(|| format!("{label}: {PICTURE}{}\n", BASE64_STANDARD.encode(read(file))))
        };
        let (place, right) =
            (root().join(addresses), pictures.iter().filter_map(address).collect::<String>());
        if env::var_os("RENEW").is_some() {
            fs::write(&place, &right).unwrap();
        }
        assert!(!right.is_empty() && read(&place) == right, "{addresses} is old: run this test with RENEW=1");
    }
}

/// Checks a link of a guide that leads to `here` on GitHub and to `there` in rustdoc.
fn fault_in_rustdoc(here: &str, there: &str) -> Option<String> {
    let (file, anchor) = here.split_once('#').map_or((here, None), |(file, anchor)| (file, Some(anchor)));
    // rustdoc has a page for each item, and `make docs` fails where the item does not exist.
    let is_item = there.starts_with("crate::") && !there.starts_with("crate::guide::");
    let right = if here.contains("://") || file.is_empty() {
        there == here
    } else if file.starts_with("../src/") {
        return Some(format!("{here}: a reader of GitHub looks for a page, and not for code"));
    } else if file.starts_with("pictures/") {
        there.starts_with(PICTURE)
    } else if here == "../README.md" {
        there == "https://docs.rs/crate/kube-leader-gate/latest" // which shows it
    } else if let Some(package) = file.strip_prefix("../crates/").and_then(|it| it.strip_suffix("/README.md"))
    {
        let documentation = read(&root().join(format!("crates/{package}/src/lib.rs")));
        let is_shown = documentation.contains("#![doc = include_str!(\"../README.md\")]");
        // If the documentation does not show the page, the list of packages does.
        let (folder, version) = if is_shown { ("", "") } else { ("crate/", "/latest") };
        let anchor = anchor.map_or(String::new(), |anchor| format!("#{anchor}"));
        let address = |name| format!("https://docs.rs/{folder}{name}{version}{anchor}");
        [format!("kube-leader-gate-{package}"), package.to_owned()]
            .into_iter()
            .any(|name| there == address(name))
    } else if let Some(guide) = file.strip_suffix(".md").filter(|guide| !guide.contains('/')) {
        let page = format!("crate::guide::{}", guide.to_lowercase());
        is_item || there == anchor.map_or(page.clone(), |anchor| format!("{page}#{anchor}"))
    } else {
        there.starts_with("https://") && there.ends_with(file.trim_start_matches("../"))
    };
    (!right).then(|| format!("{here} leads to {there} in rustdoc: define its label in src/guide/links.md"))
}

/// In rustdoc, the definitions of `links.md` stand before a guide's own, and the first one of a label counts.
#[test]
fn every_link_of_a_guide_resolves_in_rustdoc() {
    let definitions =
        ["links", "pictures"].map(|it| read(&root().join(format!("src/guide/{it}.md")))).concat();
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
