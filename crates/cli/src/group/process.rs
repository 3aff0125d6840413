//! One child process of a group on this machine: started, signalled, killed, started again. It ends
//! when this process ends, however that ends: the child watches its standard input.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::exit::Failure;

/// A child with what is needed to start it again.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    arguments: Vec<OsString>,
    log: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// Not started yet. Its output goes to `DIR/NAME.log`.
    pub(super) fn new(name: &str, directory: &Path, arguments: Vec<OsString>) -> Self {
        let log = directory.join(format!("{name}.log"));
        Self { name: name.to_owned(), arguments, log, child: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of the running process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Starts this binary with the arguments.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let failed =
            |error: std::io::Error| Failure::failed(format!("cannot start {}: {error}", self.name));
        let log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("QUORATE_") {
                command.env_remove(variable);
            }
        }
        command
            .args(&self.arguments)
            // Held open by us alone: it closes with us, and the child ends.
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            // Ctrl-C is for us: we stop the children in order.
            .process_group(0)
            .kill_on_drop(true);
        self.child = Some(command.spawn().map_err(failed)?);
        Ok(())
    }

    /// An error that tells why, if the process ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        let Some(child) = self.child.as_mut() else { return Ok(()) };
        let Ok(Some(status)) = child.try_wait() else { return Ok(()) };
        let last = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = last.lines().last().unwrap_or("it wrote nothing").to_owned();
        let log = self.log.display();
        let reason = format!("{} ended with {status}: {last} (all of it: {log})", self.name);
        Err(Failure::failed(reason))
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub(crate) async fn kill(&mut self) -> Result<(), Failure> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        child
            .kill()
            .await
            .map_err(|error| Failure::failed(format!("cannot kill {}: {error}", self.name)))
    }

    /// Sends SIGSTOP: the process is there, and does nothing.
    pub(crate) fn pause(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)
    }

    /// Takes a pause back.
    pub(crate) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// Asks it to end, kills it after `patience`, and waits until it is gone.
    pub(crate) async fn stop(&mut self, patience: Duration) -> Result<(), Failure> {
        // A paused process hears nothing else.
        let asked = self.resume().and_then(|()| self.signal(Signal::TERM));
        if let (Ok(()), Some(child)) = (asked, self.child.as_mut())
            && tokio::time::timeout(patience, child.wait()).await.is_ok()
        {
            self.child = None;
            return Ok(());
        }
        self.kill().await
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else {
            return Err(Failure::failed(format!("{} does not run", self.name)));
        };
        kill_process(pid, signal)
            .map_err(|error| Failure::failed(format!("cannot signal {}: {error}", self.name)))
    }
}
