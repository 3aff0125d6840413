//! The gate: the steps that must pass before a change lands, in the order of their price.
//! What a step checks lives elsewhere; here is only which, in what order, and how long it took.
//! Called by `cargo xtask ci`, and so by `.ci/run`.

use std::time::Instant;

use anyhow::bail;

use crate::workspace::{Workspace, run as run_command};
use crate::{codegen, documented, python, tidy, walls};

type Check = fn(&Workspace) -> anyhow::Result<()>;

/// Cheap ones first: most mistakes are found within seconds.
const STEPS: [(&str, Check); 10] = [
    ("format", |workspace| cargo(workspace, &["fmt", "--all", "--check"])),
    ("tidy", tidy::check),
    ("walls", walls::check),
    ("codegen is fresh", codegen::check),
    ("state compiles alone", |workspace| cargo(workspace, &["build", "--locked", "-p", "state"])),
    ("state compiles without planner", walls::without_planner),
    ("python environment", |workspace| python::prepare(workspace).map(drop)),
    ("lints", |workspace| {
        let clippy = ["clippy", "--locked", "--workspace", "--all-targets"];
        cargo(workspace, &[clippy.as_slice(), &["--", "-D", "warnings"]].concat())
    }),
    ("tests", |workspace| cargo(workspace, &["test", "--locked", "--workspace"])),
    ("documented commands exist", documented::check),
];

/// Runs every step; stops at the first that fails, and names it in the last line.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut times = Vec::new();
    for (name, check) in STEPS {
        println!("=== {name}");
        let start = Instant::now();
        let result = check(workspace);
        let seconds = start.elapsed().as_secs_f64();
        if let Err(error) = result {
            println!("{error:#}");
            bail!("gate: FAILED at `{name}` after {seconds:.1} s");
        }
        println!("--- {name}: ok, {seconds:.1} s");
        times.push((name, seconds));
    }
    println!("\ngate: passed in {:.0} s", begin.elapsed().as_secs_f64());
    for (name, seconds) in times {
        println!("  {seconds:7.1} s  {name}");
    }
    Ok(())
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> anyhow::Result<()> {
    run_command(workspace.cargo().args(arguments))
}
