//! Skip mode: after so many failed attempts a task looks for the records that its script fails at, and is done without
//! them.
//!
//! ```text
//!   attempts 0, 1 ... fail   ─▶   attempt n: runs on parts of the records, whose output goes nowhere   (search; bad_records.rs runs it)
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

pub(super) use self::records::{Fewer, ScriptProgress, Skipper};
pub(super) use self::search::{RangeSet, Trial, search};
use super::ScriptAttempt;
use super::environment::attempt_name;
use super::output::PartWriter;
use crate::hadoop::value::WritableClass;
use crate::task::user::spec::UserTaskReport;
use gristmill_base::error::{Error, Result};

impl ScriptAttempt<'_> {
    /// Who leaves records of these classes out, if any are.
    pub(super) fn skipper(
        &self,
        classes: (WritableClass, WritableClass),
    ) -> Result<Option<Skipper<'_>>> {
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
                Some(PartWriter::kept(self, &place, attempt_name(self), classes))
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
