//! Each fact stands once: no sentence of a document stands in another one too.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Shorter sentences may be the same by chance.
const WORDS: usize = 8;

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = |folder: &str| {
        fs::read_dir(root.join(folder)).expect("a folder").map(|it| it.expect("an entry").path())
    };
    let pages = entries("docs").filter(|it| it.extension().is_some_and(|it| it == "md"));
    let packages = entries("crates").map(|it| it.join("README.md"));
    let others =
        ["README.md", "CONTRIBUTING.md", "tests/README.md", "tests/sim/README.md", "benches/README.md"];
    pages.chain(packages).chain(others.map(|it| root.join(it))).filter(|it| it.is_file()).collect()
}

/// The sentences of a document, without its code, in lower case.
fn sentences(text: &str) -> Vec<String> {
    let (mut sentences, mut block, mut code) = (Vec::new(), String::new(), false);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Text(text) | Event::Code(text) if !code => block.push_str(&text),
            Event::SoftBreak | Event::HardBreak => block.push(' '),
            Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::Heading(_)) => {
                let whole = std::mem::take(&mut block).to_lowercase();
                sentences.extend(whole.split(['.', '?', '!', ':']).map(|it| it.trim().to_owned()));
            }
            _ => {}
        }
    }
    sentences.retain(|it| it.split_whitespace().count() >= WORDS);
    sentences
}

#[test]
fn no_sentence_stands_in_two_documents() {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let documents = documents();
    assert!(documents.len() > 20, "{documents:?}");
    for document in documents {
        let text = fs::read_to_string(&document).expect("a document");
        for sentence in sentences(&text) {
            let places = places.entry(sentence).or_default();
            if places.last() != Some(&document) {
                places.push(document.clone());
            }
        }
    }
    assert!(places.len() > 500, "only {} sentences", places.len());
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "say it once, and link it: {places:#?}");
}

#[test]
fn sentences_are_found_in_each_kind_of_block() {
    let text = "# One two three four five six seven eight\n\nA **b** `c` d e f g h. Too short.\n\n| i j k l m n o p | q |\n\
                | --- | --- |\n\n- r s t u\n  v w x y\n\n```\na b c d e f g h i\n```\n";
    let expected =
        ["one two three four five six seven eight", "a b c d e f g h", "i j k l m n o p", "r s t u v w x y"];
    assert_eq!(sentences(text), expected);
}
