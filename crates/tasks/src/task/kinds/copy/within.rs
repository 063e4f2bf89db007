//! What a store does with files of its own, so that their bytes do not come here: it copies them, and says whether two are the same.
//!
//! A store that does not do it, or wants more rights for it, is read and written as any other place. The rule that must hold: a copy
//! counts as proved only where the store says that both files have the same bytes (`storage/objects/copies.rs`).

use super::file::Copying;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::input::InputFile;
use gristmill_storage::location::Location;
use gristmill_storage::objects::{Object, StoreCopy};

impl Copying<'_> {
    /// Has a store copy a file of its own, if it does that.
    pub(super) fn copied_within(
        &self,
        input: &InputFile,
        to: &Location,
    ) -> Result<Option<StoreCopy>> {
        let (from, bytes) = (&input.path, input.stat.bytes);
        let within = self.task.rules.within(self.targets(), (from, to), bytes);
        let Some((publisher, _)) = within else {
            return Ok(None);
        };
        let files = (from.as_typed(), &input.stat, to.as_typed());
        let sending = self.task.sending(to, bytes);
        let passed = &mut |bytes| self.task.attempt.progress(bytes);
        match publisher.copy(files, sending, passed) {
            // It does not do this, or wants more rights for it, and may take what is sent.
            Err(error) if is_refused(&error) => Ok(None),
            made => made,
        }
    }

    /// Whether a store says that a file of its own has the bytes of another one; nothing where it does not say.
    pub(super) fn compared_within(
        &self,
        input: &InputFile,
        to: &Location,
        there: Option<&Object>,
    ) -> Result<Option<bool>> {
        let (Some(there), Some((publisher, _))) = (there, self.targets().copier(&input.path, to))
        else {
            return Ok(None);
        };
        let source = publisher.head(input.path.as_typed())?;
        let source = source.filter(|source| source.stat().identity == input.stat.identity);
        Ok(source.and_then(|source| there.has_bytes_of(&source)))
    }
}

/// Whether a store says no, and will say no again.
fn is_refused(error: &Error) -> bool {
    matches!(error.kind(), Kind::Io | Kind::Permission) && !error.retryable()
}
