//! Skip mode: after so many failed attempts a task looks for the records that its script fails at, and is done without
//! them.
//!
//! ```text
//!   attempts 0, 1 ... fail   ─▶   attempt n: runs on parts of the records, whose output goes nowhere   (search)
//!                                 a run on all but the bad ones: what counts; those go to a file       (records)
//! ```
//!
//! All runs are of one attempt, so that nothing is to be handed from one to the next; Hadoop took an attempt for each.
//! What is left out is counted as Hadoop counts it, and kept in `_logs/skip/ATTEMPT` of the output, or in the job's own
//! directory for it, as a sequence file in blocks.
//!
//! Decision: docs/decisions/skip-mode.md.

mod records;
mod search;

use std::ffi::OsString;
use std::ops::Range;
use std::sync::atomic::Ordering;

pub(super) use self::records::{Fewer, Seen, Skipper};
pub(super) use self::search::Ranges;
use self::search::{Trial, search};
use super::definition::Step;
use super::environment::attempt_name;
use super::output::Output;
use super::{ScriptAttempt, ScriptTask, map, reduce};
use crate::error::{Error, Kind, Result};
use crate::hadoop::value::Class;
use crate::task::user::spec::{UserTaskKind, UserTaskReport};

impl ScriptTask<'_> {
    /// The records without which the task's script passes; nothing where it is not time to look for them.
    pub(super) fn bad_records(&self) -> Result<Option<Ranges>> {
        let definition = &self.work.definition;
        let Some(skipping) = &definition.skipping else {
            return Ok(None);
        };
        let (step, most) = match self.split {
            Some(_) => (&definition.map, skipping.most_records),
            None => (&definition.reduce, skipping.most_groups),
        };
        let Step::Script(argv) = step else {
            return Ok(None);
        };
        if most == 0 || self.spec.attempt < skipping.after {
            return Ok(None);
        }
        let found = search(most, skipping.runs, &mut |range| self.trial(argv, &range))?;
        Ok(Some(found))
    }

    /// Runs the script on a range of the records, for nothing but to see whether it passes.
    fn trial(&self, argv: &[OsString], range: &Range<u64>) -> Result<Trial> {
        let (left_out, seen) = (Ranges::all_but(range), Seen::default());
        let ended = self.within(Some(&left_out), Some(&seen), |attempted| {
            match (&self.spec.work, self.split) {
                (UserTaskKind::Map { .. }, Some(split)) => map::trial(attempted, argv, split),
                (
                    UserTaskKind::Reduce {
                        runs, source_bytes, ..
                    },
                    _,
                ) => reduce::trial(self.work, attempted, argv, runs, *source_bytes),
                _ => Err(Error::bug("run a script", "a map has no split")),
            }
        });
        self.attempt.take_back();
        self.work.store.disk().remove(&self.spec.output)?; // side files of a run that does not count
        match ended {
            Ok(()) => Ok(Trial::Passed),
            Err(error) if error.kind() == Kind::UserCode && error.retryable() => {
                Ok(Trial::Failed {
                    done: seen.done.load(Ordering::Relaxed),
                    fed: seen.fed.load(Ordering::Relaxed),
                    error,
                })
            }
            Err(error) => Err(error),
        }
    }
}

impl ScriptAttempt<'_> {
    /// Who leaves records of these classes out, if any are.
    pub(super) fn skipper(&self, classes: (Class, Class)) -> Result<Option<Skipper<'_>>> {
        let Some(left_out) = self.left_out else {
            return Ok(None);
        };
        let skipping = self.definition.skipping.as_ref();
        let folder = skipping.and_then(|skipping| skipping.folder.as_ref());
        let kept = match folder.filter(|_| self.seen.is_none()) {
            None => None,
            Some(folder) => {
                let place = self.spec.output.join(folder);
                if left_out.len() > 0 {
                    std::fs::create_dir_all(&place).map_err(|error| {
                        Error::from_io("make the directory for records left out", &place, &error)
                    })?;
                }
                Some(Output::kept(self, &place, attempt_name(self), classes))
            }
        };
        Ok(Some(Skipper::new(left_out, kept)))
    }

    /// Ends the file of what was left out, and counts it.
    pub(super) fn left_out(&self, skipper: Skipper<'_>, report: &mut UserTaskReport) -> Result<()> {
        report.skipped = skipper.skipped;
        report.skipped_records = skipper.pairs;
        let skipping = self.definition.skipping.as_ref();
        let folder = skipping.and_then(|skipping| skipping.folder.as_ref());
        let Some((kept, folder)) = skipper.into_kept().zip(folder) else {
            return Ok(());
        };
        let file = kept.finish()?;
        if let Some(mut file) = file
            && folder.is_relative()
        {
            file.name = folder.join(&file.name);
            report.files.push(file);
        }
        Ok(())
    }
}
