//! Bytes on their way out: lines for people with the colours of GNU grep, numbers and lengths for programs.

use std::io::{self, Write};

/// What GNU grep's colours are by default, as codes of a terminal.
pub mod colour {
    pub const MATCH: &[u8] = b"01;31";
    pub const NAME: &[u8] = b"35";
    pub const NUMBER: &[u8] = b"32";
    pub const MARK: &[u8] = b"36";
}

/// Bytes on their way out.
pub struct OutputBuffer<W> {
    sink: W,
    pub buffer: Vec<u8>,
    /// The byte that ends lines.
    pub end: u8,
    /// Whether names and matches are coloured.
    pub colour: bool,
}

const END_COLOUR: &[u8] = b"\x1b[m\x1b[K";

/// Bytes that go out at once, and that are not worth a copy.
const OUT_BYTES: usize = 64 << 10;

impl<W> OutputBuffer<W> {
    pub fn new(sink: W, end: u8, colour: bool) -> Self {
        OutputBuffer {
            sink,
            buffer: Vec::new(),
            end,
            colour,
        }
    }
}

impl<W: Write> OutputBuffer<W> {
    /// Writes lines, the last with its end.
    pub fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.bytes(line)?;
        if !line.ends_with(&[self.end]) {
            self.buffer.push(self.end);
        }
        Ok(())
    }

    /// Writes part of a line.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > OUT_BYTES {
            self.flush()?;
        }
        if bytes.len() > OUT_BYTES {
            self.sink.write_all(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Writes part of a line in a colour.
    pub fn coloured_bytes(&mut self, code: &[u8], bytes: &[u8]) -> io::Result<()> {
        if self.colour {
            self.begin_colour(code);
        }
        self.bytes(bytes)?;
        if self.colour {
            self.buffer.extend_from_slice(END_COLOUR);
        }
        Ok(())
    }

    /// Writes a line that is not from a file: it ends at a line feed.
    pub fn sentence(&mut self, line: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.flush_full()
    }

    /// Writes the line between groups of lines.
    pub fn separator(&mut self, line: &[u8]) -> io::Result<()> {
        self.coloured(colour::MARK, line);
        self.sentence(b"")
    }

    /// Hands on what was written, if it is much.
    pub fn flush_full(&mut self) -> io::Result<()> {
        if self.buffer.len() > OUT_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        self.buffer.shrink_to(2 * OUT_BYTES); // of a long line for a program
        self.sink.flush()
    }
}

impl<W> OutputBuffer<W> {
    /// Writes bytes in a colour, where there are colours; each clears the line behind it, as those of GNU grep do.
    pub fn coloured(&mut self, code: &[u8], bytes: &[u8]) {
        if self.colour {
            self.begin_colour(code);
            self.buffer.extend_from_slice(bytes);
            self.buffer.extend_from_slice(END_COLOUR);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn begin_colour(&mut self, code: &[u8]) {
        for part in [b"\x1b[".as_slice(), code, b"m\x1b[K"] {
            self.buffer.extend_from_slice(part);
        }
    }

    /// Writes a number before a line.
    pub fn coloured_number(&mut self, number: u64) {
        if self.colour {
            self.coloured(colour::NUMBER, number.to_string().as_bytes());
        } else {
            let _ = write!(self.buffer, "{number}"); // memory takes all
        }
    }

    /// Writes a number for a program.
    pub fn number(&mut self, number: u64) {
        self.buffer.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes bytes for a program.
    pub fn framed(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.buffer.extend_from_slice(bytes);
    }
}
