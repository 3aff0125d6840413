//! Rules that need the syntax tree: how long a function may be.
//! Lints of the compiler are not repeated here.
//! Called by tidy for every Rust file.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::finding::Finding;
use super::tree::SourceFile;

const FUNCTION_LINES_MAX: usize = 70;

/// Adds every function that is too long; a file that does not parse is a finding itself.
pub(crate) fn examine(file: &SourceFile, findings: &mut Vec<Finding>) {
    match syn::parse_file(&file.text) {
        Ok(tree) => Functions { path: &file.path, findings }.visit_file(&tree),
        Err(error) => {
            let line = error.span().start().line;
            findings.push(Finding::new(&file.path, line, "syntax", error.to_string()));
        }
    }
}

struct Functions<'a> {
    path: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line - first + 1;
        if lines > FUNCTION_LINES_MAX {
            self.findings.push(Finding {
                subject: format!("{}::{}", self.path, signature.ident),
                line: first,
                rule: "function-length",
                measure: lines,
                text: format!("{lines} lines; at most {FUNCTION_LINES_MAX}"),
            });
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str) -> Vec<(&'static str, usize)> {
        let file = SourceFile { path: "a.rs".to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        examine(&file, &mut findings);
        findings.iter().map(|finding| (finding.rule, finding.measure)).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    call();\n".repeat(lines - 2))
    }

    #[test]
    fn functions_up_to_the_limit_pass() {
        assert_eq!(measured(&function(70)), []);
    }

    #[test]
    fn longer_functions_are_found_wherever_they_stand() {
        let long = function(71);
        assert_eq!(measured(&long), [("function-length", 71)]);
        assert_eq!(measured(&format!("impl T {{ {long} }}")), [("function-length", 71)]);
        assert_eq!(measured(&format!("trait T {{ {long} }}")), [("function-length", 71)]);
        assert_eq!(measured(&format!("mod m {{ {long} }}")), [("function-length", 71)]);
    }

    #[test]
    fn a_file_that_does_not_parse_is_found() {
        assert_eq!(measured("fn {"), [("syntax", 1)]);
    }
}
