//! What the streams of a copy task share: its rules, its pace, and memory for parts on their way.

use std::sync::{Arc, OnceLock};

use super::errors::changed;
use super::item::CopyRules;
use super::pace::CopyPace;
use crate::task::{TaskAttempt, TaskContext};
use gristmill_base::error::Result;
use gristmill_storage::input::InputFile;
use gristmill_storage::location::Location;
use gristmill_storage::objects::part_uploader::PartUploader;
use gristmill_storage::stores::Stores;

/// A copy task that runs.
#[derive(Debug)]
pub(super) struct CopyTask<'a> {
    pub(super) rules: CopyRules,
    pub(super) context: &'a TaskContext,
    pub(super) attempt: &'a TaskAttempt<'a>,
    /// Where files are read from: the disk as it is.
    pub(super) sources: Arc<Stores>,
    pace: CopyPace,
    /// What sends parts beside each other, once there are some.
    sending: OnceLock<Option<Arc<PartUploader>>>,
}

impl<'a> CopyTask<'a> {
    pub(super) fn new(
        rules: CopyRules,
        context: &'a TaskContext,
        attempt: &'a TaskAttempt<'a>,
    ) -> Self {
        CopyTask {
            rules,
            context,
            attempt,
            sources: context.node.store.with_shared_outputs(None),
            pace: CopyPace::new(rules.bytes_per_s),
            sending: OnceLock::new(),
        }
    }

    /// Notes that bytes were read, and that so many count; waits until more may be.
    pub(super) fn passed(&self, read: usize, counted: u64) -> Result<()> {
        self.attempt.progress(counted)?;
        let stop = &self.sources.requests().stop;
        self.pace.wait(read, (self.attempt, stop))
    }

    /// Fails where a file is another one by now, or the attempt should stop. Of a store no other version is read.
    pub(super) fn check_unchanged(&self, input: &InputFile) -> Result<()> {
        if !self.sources.pins_versions(&input.path)
            && self.sources.stat(&input.path)? != Some(input.stat)
        {
            return Err(changed(&input.path));
        }
        self.attempt.progress(0)
    }

    /// How parts of files are sent. A file whose parts are longer is the only one of its task.
    pub(super) fn sending(&self, to: &Location, bytes: u64) -> Option<&Arc<PartUploader>> {
        let sending = self.sending.get_or_init(|| self.context.sending(to, bytes));
        sending.as_ref()
    }

    /// Requests that stores have turned away, as they had too many.
    pub(super) fn throttled(&self) -> u64 {
        self.sources.requests().counts().throttled
    }
}
