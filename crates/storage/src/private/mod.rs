//! What belongs to one user alone, in directories that others may write to: files, folders, locks, the mark of the user.

pub(crate) mod chance;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod lock;
pub mod mark;
pub(crate) mod removal;
