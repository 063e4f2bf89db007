//! A worker of the pool: its process, and what the driver knows of it.

use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::time::Instant;

use super::DefinitionKey;
use super::command::WorkerCommand;
use super::failure::WorkerError;
use super::frame::{FrameDecoder, REMEMBERED};
use super::heartbeat::Heartbeat;
use super::process::WorkerProcess;
use gristmill_base::names::show_path;
use gristmill_storage::net::requests::RequestCounts;

/// A process of the pool, with what the driver knows of it.
#[derive(Debug)]
pub(super) struct PoolWorker {
    pub(super) process: WorkerProcess,
    pub(super) command: WorkerCommand,
    pub(super) pulse: Heartbeat,
    /// The requests of it that are known.
    counted: RequestCounts,
    pub(super) decoder: FrameDecoder,
    /// When it was started, until it says hello.
    pub(super) started: Option<Instant>,
    /// The definitions that it has, the one used last at the end.
    definitions: Vec<DefinitionKey>,
}

impl PoolWorker {
    pub(super) fn start(
        command: &WorkerCommand,
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let made = Heartbeat::create(&command.scratch);
        let (pulse, file) = made.map_err(|error| io::Error::other(error.to_string()))?;
        let process = WorkerProcess::spawn(command, Some(file.as_fd()), on_end)?;
        Ok(PoolWorker {
            process,
            command: command.clone(),
            pulse,
            counted: RequestCounts::default(),
            decoder: FrameDecoder::default(),
            started: Some(Instant::now()),
            definitions: Vec::new(),
        })
    }

    pub(super) fn remembers(&self, definition: &DefinitionKey) -> bool {
        self.definitions.contains(definition)
    }

    /// Notes that a definition is used now, as the worker does; false if it has to be sent.
    pub(super) fn remember(&mut self, definition: &DefinitionKey) -> bool {
        let known = self.remembers(definition);
        self.definitions.retain(|key| key != definition);
        self.definitions.push(*definition);
        let surplus = self.definitions.len().saturating_sub(REMEMBERED);
        self.definitions.drain(..surplus);
        known
    }

    /// The requests to stores that it has sent since this was asked last.
    pub(super) fn take_requests(&mut self) -> RequestCounts {
        let counts = self.pulse.requests();
        counts.since(mem::replace(&mut self.counted, counts))
    }

    pub(super) fn stderr(&self) -> String {
        self.process.tail().settle();
        self.process.tail().last_lines()
    }

    pub(super) fn stdout(&self) -> String {
        self.process.printed().settle();
        self.process.printed().last_lines()
    }

    pub(super) fn not_started(&self, reason: String) -> WorkerError {
        WorkerError::NotStarted {
            program: show_path(&self.command.program),
            reason,
            stderr: self.stderr(),
        }
    }
}
