//! Checks that the `quorate` commands in documents exist, with their flags.
//! What a command prints or does is for the tests; here only its help is asked.
//! Called by the gate, after everything is built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, bail};

use crate::tidy::tree;
use crate::workspace::{Workspace, output, run};

/// Words of a command, and the flags a document gives with it.
type Commands = BTreeMap<Vec<String>, BTreeSet<String>>;

/// Asks the built binary for the help of every command that a document names.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    run(workspace.cargo().args(["build", "--locked", "--quiet", "--package", "cli"]))?;
    let binary = workspace.target.join("debug/quorate");
    let mut commands = Commands::new();
    for file in tree::read(&workspace.root)?.iter().filter(|file| file.has_extension("md")) {
        collect(&file.text, &mut commands);
    }
    let mut wrong = Vec::new();
    for (words, flags) in &commands {
        wrong.extend(ask(workspace, &binary, words, flags));
    }
    if !wrong.is_empty() {
        bail!("documents name what does not exist:\n{}", wrong.join("\n"));
    }
    println!("{} commands in documents exist", commands.len());
    Ok(())
}

fn ask(
    workspace: &Workspace,
    binary: &Path,
    words: &[String],
    flags: &BTreeSet<String>,
) -> Vec<String> {
    let line = format!("quorate {}", words.join(" "));
    let mut command = workspace.command(binary);
    let help = match output(command.args(words).arg("--help")).context(line.clone()) {
        Ok(help) => help,
        Err(error) => return vec![format!("{error:#}")],
    };
    flags
        .iter()
        .filter(|flag| !help.contains(flag.as_str()))
        .map(|flag| format!("{line}: no flag {flag}"))
        .collect()
}

/// Adds every command of the text: in backticks, or on a line of a console.
fn collect(text: &str, commands: &mut Commands) {
    for line in text.lines() {
        let console = line.trim().strip_prefix("$ ").into_iter();
        let spans = line.split('`').skip(1).step_by(2);
        for written in console.chain(spans) {
            let Some((words, flags)) = parse(written) else { continue };
            commands.entry(words).or_default().extend(flags);
        }
    }
}

/// The words and flags of `quorate NOUN VERB --flag`, if this is such a line.
fn parse(written: &str) -> Option<(Vec<String>, Vec<String>)> {
    let through_cargo = written.strip_prefix("cargo run --release --");
    let rest = match through_cargo {
        Some(rest) => rest,
        None => {
            written.strip_prefix("target/release/").unwrap_or(written).strip_prefix("quorate")?
        }
    };
    if !rest.starts_with(' ') {
        return None;
    }
    let mut words = Vec::new();
    let mut flags = Vec::new();
    for word in rest.split_whitespace() {
        let is_name = word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        if word.starts_with('-') {
            flags.push(word.split('=').next().unwrap_or(word).to_owned());
        } else if is_name && flags.is_empty() {
            words.push(word.to_owned());
        }
    }
    (!words.is_empty()).then_some((words, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(written: &str) -> Option<(String, String)> {
        parse(written).map(|(words, flags)| (words.join(" "), flags.join(" ")))
    }

    #[test]
    fn commands_are_told_from_other_words() {
        let both = |words: &str, flags: &str| Some((words.to_owned(), flags.to_owned()));
        assert_eq!(parsed("quorate log inspect DIRECTORY"), both("log inspect", ""));
        assert_eq!(parsed("quorate explain channel NAME"), both("explain channel", ""));
        assert_eq!(parsed("target/release/quorate events --follow"), both("events", "--follow"));
        let drill = "cargo run --release -- dev --drill all -o json";
        assert_eq!(parsed(drill), both("dev", "--drill -o"));
        for other in ["quorate", "quorate.v1", "cargo xtask ci", "quorate-dev/x"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn both_kinds_of_writing_are_found() {
        let mut commands = Commands::new();
        collect("Say `quorate status`, or\n\n    $ quorate node list -o json\n", &mut commands);
        assert_eq!(commands.len(), 2);
    }
}
