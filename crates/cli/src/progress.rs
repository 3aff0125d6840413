//! What tells people that something takes longer than a second: a line on standard error, only when
//! that is a terminal and the answer is for people. Used by slow commands.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// Shown while it lives.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Something of unknown length.
    pub(crate) fn spinner(output: &Output, what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        Self::start(output, bar, what, "{spinner} {msg} ({pos}) {elapsed}")
    }

    /// Something that ends at `total`.
    pub(crate) fn bar(output: &Output, what: &str, total: u64) -> Self {
        let bar = ProgressBar::new(total);
        Self::start(output, bar, what, "{msg} [{bar:30}] {pos}/{len} {elapsed}")
    }

    pub(crate) fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    pub(crate) fn length(&self, total: u64) {
        self.bar.set_length(total);
    }

    fn start(output: &Output, bar: ProgressBar, what: &str, template: &str) -> Self {
        let hidden = output.json() || !std::io::stderr().is_terminal();
        if hidden {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
