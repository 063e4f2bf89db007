//! Decoders: member after member of a compressed stream, until its last byte.
//!
//! ```text
//!   | member | member | padding |      member = gzip member, bzip2 or xz stream, zstd or lz4 frame,
//!   ▲        ▲        ▲                         or all of a framing that has no members
//!   border   border   border: ends here, or the next member begins, or an error
//! ```

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::frames::{Lz4Frame, Skipped, SnappyFraming};
use super::hadoop::{self, HadoopBlocks};
use super::input::CountedInput;
use super::member::{Member, MemberError};
use super::steps::{self, Stepped};
use super::{Codec, LZ4, SNAPPY, SNIFF_BYTES, foreign, shown};
use gristmill_base::error::{Error, Kind, Result};

/// The decoded bytes of a compressed stream, as a reader.
///
/// An error of [`Read`] holds an [`Error`] with both offsets, and stays: reading on gives it again.
pub struct Decoder {
    codec: Codec,
    path: Option<PathBuf>,
    input: CountedInput,
    member: Option<Box<dyn Member>>,
    members: u64,
    produced: u64,
    done: bool,
    failed: Option<Error>,
}

/// Decodes what `reader` gives: every member, frame or stream, one after the other.
///
/// ```
/// use std::io::{Read, Write};
/// use gristmill_storage::codec::{Codec, decoder, encoder};
/// let mut compressed = Vec::new();
/// for words in ["two members, ", "one text"] {
///     let mut encoder = encoder(Codec::Gzip, Vec::new(), None)?;
///     encoder.write_all(words.as_bytes())?;
///     compressed.extend(encoder.finish()?);
/// }
/// let mut text = String::new();
/// decoder(Codec::Gzip, std::io::Cursor::new(compressed)).read_to_string(&mut text)?;
/// assert_eq!(text, "two members, one text");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decoder(codec: Codec, reader: impl Read + Send + 'static) -> Decoder {
    Decoder {
        codec,
        path: None,
        input: CountedInput::new(Box::new(reader)),
        member: None,
        members: 0,
        produced: 0,
        done: false,
        failed: None,
    }
}

impl Decoder {
    /// The same, with the file's name for its errors.
    #[must_use]
    pub fn named(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Compressed bytes used so far; all of the input's once [`Read::read`] has given 0.
    pub fn consumed(&self) -> u64 {
        self.input.offset()
    }

    /// Decoded bytes given so far.
    pub fn produced(&self) -> u64 {
        self.produced
    }

    /// Decodes into `out`; 0 at the end (or where `out` is empty).
    ///
    /// # Errors
    /// Of kind `BadInput` where the data are cut short, damaged, followed by something else, or need more
    /// memory than [`super::window_bytes`]; and whatever the reader failed with.
    pub fn decode(&mut self, out: &mut [u8]) -> Result<usize> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let read = self.next(out);
        match read {
            Ok(count) => {
                self.produced += count as u64;
                Ok(count)
            }
            Err(trouble) => {
                let error = self.explained(trouble);
                self.failed = Some(error.clone());
                self.member = None;
                Err(error)
            }
        }
    }

    fn next(&mut self, out: &mut [u8]) -> Result<usize, DecodeFailure> {
        while !out.is_empty() && !self.done {
            let Some(member) = &mut self.member else {
                self.border()?;
                continue;
            };
            match member.read(&mut self.input, out)? {
                Some(0) => {}
                Some(count) => return Ok(count),
                None => self.member = None,
            }
        }
        Ok(0)
    }

    /// Between two members: the end, the next one, or padding where the format has it.
    fn border(&mut self) -> Result<(), DecodeFailure> {
        let first = self.input.peek(SNIFF_BYTES).map_err(MemberError::Input)?;
        let hadoop = self.members == 0
            && matches!(self.codec, Codec::Lz4 | Codec::Snappy)
            && !self.codec.begins(first)
            && hadoop::begins(first);
        if first.is_empty() {
            self.done = true;
        } else if self.codec.begins(first) || hadoop {
            self.members += 1;
            self.member = Some(member(self.codec, first)?);
        } else if self.members == 0 {
            return Err(DecodeFailure::Whole(foreign(self.codec, first)));
        } else {
            self.padding()?;
        }
        Ok(())
    }

    /// Behind a member: zeros to the end (gzip), or zeros in fours (xz); nothing else.
    fn padding(&mut self) -> Result<(), DecodeFailure> {
        let (codec, from) = (self.codec, self.input.offset());
        let mut zeros = 0;
        let found = loop {
            let there = self.input.fill().map_err(MemberError::Input)?;
            let count = there.iter().take_while(|&&byte| byte == 0).count();
            let stop = there.get(count).copied();
            if there.is_empty() || (count == 0 && stop.is_some()) {
                break stop;
            }
            self.input.consume(count);
            zeros += count as u64;
        };
        let fits = match codec {
            Codec::Gzip => found.is_none(),
            Codec::Xz => zeros > 0 && zeros.is_multiple_of(4),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let first = self.input.peek(10).map_err(MemberError::Input)?;
        let (begin, count) = match first {
            [] => ("zeros".to_owned(), 0),
            first => (shown(&first[..first.len().min(10)]), zeros),
        };
        let behind = if count > 0 {
            format!("{count} zeros and ")
        } else {
            String::new()
        };
        let message = format!("other bytes follow the end of the {codec} data: {behind}{begin}");
        let error = Error::new(Kind::BadInput, "decode the input", message).advise(format!(
            "if the file should end there, cut it to its first {from} bytes; if not, copy it again from its source"
        ));
        Err(DecodeFailure::Whole(error))
    }

    fn explained(&self, failure: DecodeFailure) -> Error {
        let codec = self.codec;
        let bad = |message: String, advice: &str| {
            Error::new(Kind::BadInput, "decode the input", message).advise(advice)
        };
        let error = match failure {
            DecodeFailure::Whole(error) => error,
            DecodeFailure::Trouble(MemberError::Input(error)) => {
                let path = self.path.as_deref().unwrap_or("(a stream)".as_ref());
                return error_of(error, path);
            }
            DecodeFailure::Trouble(MemberError::Truncated) => bad(
                format!("its {codec} data are cut short"),
                "copy the whole file again from its source",
            ),
            DecodeFailure::Trouble(MemberError::Damaged(why)) => bad(
                format!("its {codec} data are damaged: {why}"),
                "copy the file again from its source, or compress it again",
            ),
            DecodeFailure::Trouble(MemberError::Refused(why, advice)) => bad(why, advice),
        };
        let error = error
            .with("compressed offset", self.consumed())
            .with("decoded offset", self.produced);
        match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}

impl Read for Decoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.decode(out).map_err(wrapped)
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("codec", &self.codec)
            .field("path", &self.path)
            .field("consumed", &self.consumed())
            .field("produced", &self.produced)
            .finish_non_exhaustive()
    }
}

/// Trouble that still has to be explained, or an error that says it all.
#[derive(Debug)]
enum DecodeFailure {
    Trouble(MemberError),
    Whole(Error),
}

impl From<MemberError> for DecodeFailure {
    fn from(trouble: MemberError) -> Self {
        DecodeFailure::Trouble(trouble)
    }
}

/// A decoder of the member that begins with `first`.
fn member(codec: Codec, first: &[u8]) -> Result<Box<dyn Member>, MemberError> {
    Ok(match codec {
        Codec::Gzip => Box::new(Stepped::new(steps::gzip())),
        Codec::Deflate => Box::new(Stepped::new(steps::zlib())),
        Codec::Bzip2 => Box::new(Stepped::new(steps::bzip2())),
        Codec::Zstd => Box::new(Stepped::new(steps::zstd()?)),
        Codec::Xz => Box::new(Stepped::new(steps::xz()?)),
        Codec::Lz4 if LZ4.starts_with(&first[..first.len().min(4)]) => Box::new(Lz4Frame::new()),
        Codec::Lz4 if codec.begins(first) => Box::new(Skipped::new()),
        Codec::Lz4 => Box::new(HadoopBlocks::new(hadoop::lz4)),
        Codec::Snappy if SNAPPY.starts_with(&first[..first.len().min(SNAPPY.len())]) => {
            Box::new(SnappyFraming::new())
        }
        Codec::Snappy => Box::new(HadoopBlocks::new(hadoop::snappy)),
    })
}

/// An error as one of [`io`], for [`Read`].
pub(super) fn wrapped(error: Error) -> io::Error {
    let kind = match error.kind() {
        Kind::BadInput => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// The engine's error inside an error of a reader such as [`Decoder`], or one made of it.
///
/// ```
/// use std::io::Read;
/// use gristmill_base::Kind;
/// use gristmill_storage::codec::{Codec, decoder, error_of};
/// let mut out = Vec::new();
/// let error = decoder(Codec::Gzip, &b"words"[..]).read_to_end(&mut out).unwrap_err();
/// assert_eq!(error_of(error, "in.gz".as_ref()).kind(), Kind::BadInput);
/// ```
pub fn error_of(error: io::Error, path: &Path) -> Error {
    error
        .downcast::<Error>()
        .unwrap_or_else(|error| Error::from_io("read the input", path, &error))
}
