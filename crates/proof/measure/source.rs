//! Reads a file, and finds its functions.

use std::{fs, ops::Range, path::Path};
use syn::visit::Visit;

/// A file with the places of its functions.
pub struct Source {
    pub text: String,
    /// Where each line begins.
    lines: Vec<usize>,
    /// What stands between the braces of each function that stands in no other one. A constant function cannot have a
    /// switch, so it is not here.
    bodies: Vec<Range<usize>>,
}

impl Source {
    pub fn read(tree: &Path, file: &str) -> Self {
        let text = fs::read_to_string(tree.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut source = Self { text, lines, bodies: Vec::new() };
        let mut bodies = Bodies { source: &source, found: Vec::new() };
        bodies.visit_file(&parsed);
        source.bodies = bodies.found;
        source
    }

    /// The byte at this line and column, which count from 1.
    pub fn at(&self, line: usize, column: usize) -> usize {
        let begins = self.lines[line - 1];
        let rest = &self.text[begins..];
        begins + rest.char_indices().nth(column - 1).map_or(rest.len(), |it| it.0)
    }

    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        let (start, end) = (span.start(), span.end());
        self.at(start.line, start.column + 1)..self.at(end.line, end.column + 1)
    }

    /// The body of the function that contains this range.
    pub fn body_around(&self, range: &Range<usize>) -> Option<&Range<usize>> {
        self.bodies.iter().find(|it| it.start <= range.start && range.end <= it.end)
    }
}

struct Bodies<'a> {
    source: &'a Source,
    found: Vec<Range<usize>>,
}

impl Bodies<'_> {
    fn found(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_none() {
            let braces = block.brace_token.span;
            self.found.push(self.source.range(braces.open()).end..self.source.range(braces.close()).start);
        }
    }
}

// Nothing here visits the inside of a function, so only the outermost functions are found.
impl Visit<'_> for Bodies<'_> {
    fn visit_item_fn(&mut self, it: &syn::ItemFn) {
        self.found(&it.sig, &it.block);
    }

    fn visit_impl_item_fn(&mut self, it: &syn::ImplItemFn) {
        self.found(&it.sig, &it.block);
    }

    fn visit_trait_item_fn(&mut self, it: &syn::TraitItemFn) {
        if let Some(block) = &it.default {
            self.found(&it.sig, block);
        }
    }
}
