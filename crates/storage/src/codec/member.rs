//! What a codec implements: a member of a compressed stream, and why one cannot be decoded.

use std::io;

use super::input::CountedInput;

/// One member of a stream.
pub(super) trait Member: Send {
    /// Decodes into `out`, which is not empty: `Some` bytes, which may be none yet, or `None` behind the end.
    fn read(
        &mut self,
        input: &mut CountedInput,
        out: &mut [u8],
    ) -> Result<Option<usize>, MemberError>;
}

/// Why a member cannot be decoded.
#[derive(Debug)]
pub(super) enum MemberError {
    /// Its bytes could not be read.
    Input(io::Error),
    /// They end before it does.
    Truncated,
    /// They are not what the codec wrote: why.
    Damaged(String),
    /// They may be good, and are not decoded here: why, and what to do.
    Refused(String, &'static str),
}

impl From<io::Error> for MemberError {
    fn from(error: io::Error) -> Self {
        MemberError::Input(error)
    }
}
