//! Runs a script on parts of its records, to find those that it fails at (`skip/`).

use std::ffi::OsString;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::definition::StreamingStep;
use super::skip::{RangeSet, ScriptProgress, Trial, search};
use super::{ScriptTask, map, reduce};
use crate::task::user::spec::UserTaskKind;
use gristmill_base::error::{Error, Kind, Result};

impl ScriptTask<'_> {
    /// The records without which the task's script passes; nothing where it is not time to look for them.
    pub(super) fn bad_records(&self) -> Result<Option<RangeSet>> {
        let definition = &self.work.definition;
        let Some(skipping) = &definition.skipping else {
            return Ok(None);
        };
        let (step, most) = match self.split {
            Some(_) => (&definition.map, skipping.most_records),
            None => (&definition.reduce, skipping.most_groups),
        };
        let StreamingStep::Script(argv) = step else {
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
        let (left_out, seen) = (RangeSet::all_but(range), ScriptProgress::default());
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
