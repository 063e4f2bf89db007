//! Members of libraries that read for themselves: lz4's frames and snappy's framing.
//!
//! A library has the input on loan while it reads, and asks for exactly the bytes it uses.

use std::io::{self, Read};

use super::decode::{Member, Trouble};
use super::input::Input;

/// One lz4 frame. Checksums of header, blocks and content are the library's to compare.
pub(super) struct Lz4Frame {
    decoder: lz4_flex::frame::FrameDecoder<Input>,
}

impl Lz4Frame {
    pub(super) fn new() -> Self {
        Lz4Frame {
            decoder: lz4_flex::frame::FrameDecoder::new(Input::nothing()),
        }
    }
}

impl Member for Lz4Frame {
    fn read(&mut self, input: &mut Input, out: &mut [u8]) -> Result<Option<usize>, Trouble> {
        std::mem::swap(self.decoder.get_mut(), input);
        let read = self.decoder.read(out);
        std::mem::swap(self.decoder.get_mut(), input);
        match read.map_err(|error| explained(error, input))? {
            // The library takes the end of the file for the end of the frame.
            0 if input.starved => Err(Trouble::Truncated),
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
    fn read(&mut self, input: &mut Input, _out: &mut [u8]) -> Result<Option<usize>, Trouble> {
        let left = match self.left {
            Some(0) => return Ok(None),
            Some(left) => left,
            None => {
                let &[_, _, _, _, a, b, c, d, ..] = input.peek(8)? else {
                    return Err(Trouble::Truncated);
                };
                input.consume(8);
                self.left = Some(u32::from_le_bytes([a, b, c, d]));
                return Ok(Some(0));
            }
        };
        let there = input.fill()?.len().min(left as usize);
        if there == 0 {
            return Err(Trouble::Truncated);
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
            input: Input::nothing(),
            left: 0,
            unknown: None,
        };
        SnappyFraming {
            decoder: snap::read::FrameDecoder::new(chunks),
        }
    }
}

impl Member for SnappyFraming {
    fn read(&mut self, input: &mut Input, out: &mut [u8]) -> Result<Option<usize>, Trouble> {
        std::mem::swap(&mut self.decoder.get_mut().input, input);
        let read = self.decoder.read(out);
        let chunks = self.decoder.get_mut();
        std::mem::swap(&mut chunks.input, input);
        if let Some(kind) = chunks.unknown {
            let why = format!("a chunk is of the unknown kind {kind:02x}");
            return Err(Trouble::Damaged(why));
        }
        match read.map_err(|error| explained(error, input))? {
            0 => Ok(None),
            count => Ok(Some(count)),
        }
    }
}

/// Snappy's chunks, of known kinds only.
///
/// The format lets decoders pass over chunks of the kinds 80 to fd, none of which is defined. One flipped bit makes
/// such a chunk of a chunk of data, and the data would be gone without a word: here they are errors.
struct Chunks {
    input: Input,
    /// What is left of the chunk that was begun.
    left: usize,
    unknown: Option<u8>,
}

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            match *self.input.peek(4)? {
                [kind @ 2..0xfe, ..] => {
                    self.unknown = Some(kind);
                    return Err(io::ErrorKind::InvalidData.into());
                }
                [_, a, b, c, ..] => self.left = 4 + u32::from_le_bytes([a, b, c, 0]) as usize,
                [] => return Ok(0),
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let most = out.len().min(self.left);
        let count = self.input.read(&mut out[..most])?;
        self.left -= count;
        Ok(count)
    }
}

/// A library's error: that of the input if it had one, else its own.
fn explained(error: io::Error, input: &mut Input) -> Trouble {
    if let Some(cause) = input.failed.take() {
        return Trouble::Input(cause);
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Trouble::Truncated,
        _ => Trouble::Damaged(error.to_string()),
    }
}
