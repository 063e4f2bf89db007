//! What a copy task is told of each file, and what it says of it.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use gristmill_base::error::Result;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::location::Location;
use gristmill_storage::objects::{StoreCopies, Upload};
use gristmill_storage::stores::Stores;
use gristmill_storage::{CutFile, Publisher, Stat};

/// A file that is written to a store by one request is no longer than this.
pub const PUT_FILE_BYTES: u64 = TRANSFER_BYTES as u64;

/// Something to copy, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyItem {
    /// Where it is.
    pub from: Location,
    /// Where it is to be.
    pub to: Location,
    /// What it is.
    pub what: CopySource,
}

impl CopyItem {
    /// Whether it comes from a place that answers late, or goes to one.
    pub fn is_far(&self) -> bool {
        self.from.is_remote() || self.to.is_remote()
    }

    /// The length of a file; of what else there is, nothing.
    pub fn bytes(&self) -> u64 {
        match &self.what {
            CopySource::File(found) => found.bytes,
            CopySource::Piece(piece) => piece.range.end - piece.range.start,
            CopySource::Directory | CopySource::Link(_) | CopySource::Joined(_) => 0,
        }
    }
}

/// What is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopySource {
    /// A file, as it was listed.
    File(Stat),
    /// A directory, without what is in it.
    Directory,
    /// A link, which leads to this.
    Link(#[serde(with = "gristmill_base::names")] PathBuf),
    /// A piece of a file that several tasks copy.
    Piece(CopyPiece),
    /// All pieces of such a file, which are written.
    Joined(JoinedPieces),
}

/// A piece of a file that several tasks copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPiece {
    /// The whole file, as it was when it was cut.
    pub stat: Stat,
    /// What is written.
    pub file: CutFile,
    /// Which of its bytes.
    pub range: Range<u64>,
    /// Its CRC-32 and its parts, if a job that was killed has reported them.
    pub known: Option<Upload>,
}

/// A file whose pieces are all written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedPieces {
    /// The file that was read, as it was when it was cut.
    pub stat: Stat,
    /// What makes it seen.
    pub upload: Upload,
    /// It takes the place of another one.
    pub replaces: bool,
}

/// A piece that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedPiece {
    /// The file that was read.
    pub from: Location,
    /// The same, as it was.
    pub stat: Stat,
    /// Which of its bytes.
    pub range: Range<u64>,
    /// What was written: the parts of the piece alone.
    pub upload: Upload,
    /// A job that was killed had written it.
    pub is_kept: bool,
}

/// A piece that could not be written, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedPiece {
    /// The file that it is a piece of.
    pub to: Location,
    /// What was wrong.
    pub error: String,
}

/// What is done about a file that is there already, and has other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExistingFile {
    /// The copy of this one fails.
    Refuse,
    /// It is replaced.
    Update,
    /// It is replaced, and nobody compares.
    Overwrite,
}

/// How files are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRules {
    /// What is done about files that are there.
    pub existing: ExistingFile,
    /// Nothing is written: the report says what would be done.
    pub dry_run: bool,
    /// What was written is read once more.
    pub verify: bool,
    /// Files get the permissions of those that they are copied from.
    pub mode: bool,
    /// And their times.
    pub times: bool,
    /// The device has a file before it is seen.
    pub syncs: bool,
    /// A file that cannot be copied keeps no other from being copied.
    pub ignore_failures: bool,
    /// The report names each file.
    pub names_files: bool,
    /// Bytes a second that the task may read.
    pub bytes_per_s: Option<u64>,
    /// Memory of the task: its buffers, and the part of an upload that it fills.
    pub worker_bytes: u64,
    /// Memory beside that, for files that it copies at the same time.
    pub streams_bytes: u64,
}

impl CopyRules {
    /// The place that can make a copy of a file of its own, of so many bytes, and how; nothing where the bytes come here: a short file
    /// is read and written by fewer requests, and what is read or slowed down has to pass.
    pub fn within<'s>(
        &self,
        stores: &'s Stores,
        (from, to): (&Location, &Location),
        bytes: u64,
    ) -> Option<(&'s dyn Publisher, StoreCopies)> {
        if self.verify || self.bytes_per_s.is_some() || bytes <= PUT_FILE_BYTES {
            return None;
        }
        stores.copier(from, to)
    }
}

/// What has the name of a file: of a store, where a file may have the name of a directory, another file.
///
/// # Errors
/// The place cannot be reached.
pub fn found_at(stores: &Stores, to: &Location) -> Result<Option<Stat>> {
    match stores.publisher(to).filter(|_| stores.pins_versions(to)) {
        Some(publisher) => {
            let object = publisher.head(to.as_typed())?;
            Ok(object.map(|object| object.stat()))
        }
        None => stores.stat(to),
    }
}

/// What was done about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyOutcome {
    /// It was copied.
    Copied,
    /// It was copied in the place of another one.
    Replaced,
    /// It was there.
    Same,
}

/// Where the bytes of a file went on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyWay {
    /// Through this machine, which has compared them.
    Here,
    /// Not out of their store, which says of both files that they have the same.
    InStore,
    /// The same, but it says so of the length alone.
    Unproved,
}

/// A file that was copied, or was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// Where it is now.
    pub path: Location,
    /// What was done.
    pub outcome: CopyOutcome,
    /// Its length.
    pub bytes: u64,
    /// The CRC-32 of its bytes; nothing where they were not read.
    pub crc: Option<u32>,
    /// How they were copied.
    pub way: CopyWay,
}
