//! Members of libraries that read for themselves: lz4's frames and snappy's framing.
//!
//! A library has the input on loan while it reads, and asks for exactly the bytes it uses.

use std::io::{self, Read};

use super::input::CountedInput;
use super::member::{Member, MemberError};

/// One lz4 frame. Checksums of header, blocks and content are the library's to compare.
pub(super) struct Lz4Frame {
    decoder: lz4_flex::frame::FrameDecoder<CountedInput>,
}

impl Lz4Frame {
    pub(super) fn new() -> Self {
        Lz4Frame {
            decoder: lz4_flex::frame::FrameDecoder::new(CountedInput::nothing()),
        }
    }
}

impl Member for Lz4Frame {
    fn read(
        &mut self,
        input: &mut CountedInput,
        out: &mut [u8],
    ) -> Result<Option<usize>, MemberError> {
        std::mem::swap(self.decoder.get_mut(), input);
        let read = self.decoder.read(out);
        std::mem::swap(self.decoder.get_mut(), input);
        match read.map_err(|error| explained(&error, input))? {
            // The library takes the end of the file for the end of the frame.
            0 if input.starved => Err(MemberError::Truncated),
            0 => Ok(None),
            count => Ok(Some(count)),
        }
    }
}

/// A frame that is not for decoders (magic numbers 0x184D2A50 to 0x184D2A5F): a length and as many bytes.
pub(super) struct Skipped {
    left: Option<u32>,
}

impl Skipped {
    pub(super) fn new() -> Self {
        Skipped { left: None }
    }
}

impl Member for Skipped {
    fn read(
        &mut self,
        input: &mut CountedInput,
        _out: &mut [u8],
    ) -> Result<Option<usize>, MemberError> {
        let left = match self.left {
            Some(0) => return Ok(None),
            Some(left) => left,
            None => {
                let &[_, _, _, _, a, b, c, d, ..] = input.peek(8)? else {
                    return Err(MemberError::Truncated);
                };
                input.consume(8);
                self.left = Some(u32::from_le_bytes([a, b, c, d]));
                return Ok(Some(0));
            }
        };
        let there = input.fill()?.len().min(left as usize);
        if there == 0 {
            return Err(MemberError::Truncated);
        }
        input.consume(there);
        self.left = Some(left - there as u32);
        Ok(Some(0))
    }
}

/// All of a stream in snappy's framing, which has no end mark.
pub(super) struct SnappyFraming {
    decoder: snap::read::FrameDecoder<Chunks>,
}

impl SnappyFraming {
    pub(super) fn new() -> Self {
        let chunks = Chunks {
            input: CountedInput::nothing(),
            left: 0,
            padding: false,
            broken: None,
        };
        SnappyFraming {
            decoder: snap::read::FrameDecoder::new(chunks),
        }
    }
}

impl Member for SnappyFraming {
    fn read(
        &mut self,
        input: &mut CountedInput,
        out: &mut [u8],
    ) -> Result<Option<usize>, MemberError> {
        std::mem::swap(&mut self.decoder.get_mut().input, input);
        let read = self.decoder.read(out);
        let chunks = self.decoder.get_mut();
        std::mem::swap(&mut chunks.input, input);
        if let Some(why) = chunks.broken.take() {
            return Err(MemberError::Damaged(why));
        }
        match read.map_err(|error| explained(&error, input))? {
            0 => Ok(None),
            count => Ok(Some(count)),
        }
    }
}

/// Snappy's chunks, none of which is lost.
///
/// The format lets decoders pass over chunks of the kinds 80 to fd, none of which is defined, and over padding, which is
/// written as zeros. One flipped byte makes such a chunk of a chunk of data, and the data would be gone
/// without a word: here unknown kinds are errors, and so is padding that is not zero.
struct Chunks {
    input: CountedInput,
    /// What is left of the chunk that was begun.
    left: usize,
    /// That chunk is padding, and its header was read.
    padding: bool,
    /// What is wrong with it.
    broken: Option<String>,
}

impl Chunks {
    fn broken(&mut self, why: String) -> io::Error {
        self.broken = Some(why);
        io::ErrorKind::InvalidData.into()
    }
}

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let begins = self.left == 0;
        if begins {
            match *self.input.peek_or_keep(4)? {
                [kind @ 2..0xfe, ..] => {
                    return Err(self.broken(format!("a chunk is of the unknown kind {kind:02x}")));
                }
                [kind, a, b, c, ..] => {
                    self.padding = kind == 0xfe;
                    self.left = 4 + u32::from_le_bytes([a, b, c, 0]) as usize;
                }
                [] => return Ok(0),
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        // A header is never read together with what follows it.
        let most = out.len().min(if begins { 4 } else { self.left });
        let count = self.input.read(&mut out[..most])?;
        self.left -= count;
        if self.padding && !begins && out[..count].iter().any(|&byte| byte != 0) {
            return Err(self.broken("a chunk of padding holds other bytes than zeros".to_owned()));
        }
        Ok(count)
    }
}

/// A library's error: that of the input if it had one, else its own.
fn explained(error: &io::Error, input: &mut CountedInput) -> MemberError {
    if let Some(cause) = input.failed.take() {
        return MemberError::Input(cause);
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => MemberError::Truncated,
        _ => MemberError::Damaged(error.to_string()),
    }
}
