//! The worker's end of its two pipes, for workers whose code is ours.
//!
//! The pipes move to descriptors of their own, which children do not inherit: whatever prints to stdout or reads stdin
//! in this process does not break the protocol.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use super::DefinitionKey;
use super::frame::{FrameKind, HEADER_BYTES, header, received};
use gristmill_base::sys::descriptors;

/// The end of the pipe that frames come from.
#[derive(Debug)]
pub struct FramePipe(PipeReader);

/// The end of the pipe that replies go to.
#[derive(Debug)]
pub struct Replies(PipeWriter);

/// A frame from the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// What tasks have in common.
    Definition {
        /// Its name.
        key: DefinitionKey,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A task.
    Task {
        /// The name of its definition.
        key: DefinitionKey,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// Takes the pipes over: what reads stdin from now on finds its end, and what writes to stdout writes to stderr.
///
/// # Errors
/// The process has no stdin or stdout, or no free descriptors.
pub fn take_over() -> io::Result<(FramePipe, Replies)> {
    let (from, to) = descriptors::take_over()?;
    Ok((FramePipe(from.into()), Replies(to.into())))
}

impl FramePipe {
    /// The next frame; nothing once the driver has closed the pipe, or is gone.
    ///
    /// # Errors
    /// What comes is not a frame.
    pub fn receive(&mut self) -> io::Result<Option<Received>> {
        let mut header = [0; HEADER_BYTES];
        match self.0.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let [kind, length @ ..] = header;
        let mut key: DefinitionKey = [0; 32];
        let length = u32::from_le_bytes(length) as usize;
        let rest = length.checked_sub(key.len());
        let (Some(kind), Some(rest)) = (received(kind), rest) else {
            return Err(io::Error::other("the driver sent what is not a frame"));
        };
        self.0.read_exact(&mut key)?;
        let mut bytes = vec![0; rest];
        self.0.read_exact(&mut bytes)?;
        Ok(Some(match kind {
            FrameKind::Definition => Received::Definition { key, bytes },
            _ => Received::Task { key, bytes },
        }))
    }
}

impl Replies {
    /// Says that the worker is there.
    ///
    /// # Errors
    /// The driver is gone.
    pub fn hello(&mut self, version: &str) -> io::Result<()> {
        self.send(FrameKind::Hello, version.as_bytes())
    }

    /// Sends the report of a task.
    ///
    /// # Errors
    /// The driver is gone.
    pub fn report(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(FrameKind::Report, bytes)
    }

    fn send(&mut self, kind: FrameKind, bytes: &[u8]) -> io::Result<()> {
        let header = header(kind, bytes.len()).map_err(io::Error::other)?;
        self.0.write_all(&header)?;
        self.0.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_replies_are_those_of_the_driver() {
        let (from, mut driver) = io::pipe().unwrap();
        let mut frames = FramePipe(from);
        for (kind, rest) in [(FrameKind::Definition, &b"abc"[..]), (FrameKind::Task, b"")] {
            driver
                .write_all(&header(kind, 32 + rest.len()).unwrap())
                .unwrap();
            driver.write_all(&[7; 32]).unwrap();
            driver.write_all(rest).unwrap();
        }
        let (key, bytes) = ([7; 32], b"abc".to_vec());
        let first = frames.receive().unwrap();
        assert_eq!(first, Some(Received::Definition { key, bytes }));
        let bytes = Vec::new();
        assert_eq!(
            frames.receive().unwrap(),
            Some(Received::Task { key, bytes })
        );
        driver.write_all(b"R\x20\0\0\0").unwrap();
        assert!(frames.receive().is_err());
        drop(driver);
        assert_eq!(frames.receive().unwrap(), None);

        let (mut driver, to) = io::pipe().unwrap();
        Replies(to).report(b"done").unwrap();
        let mut sent = Vec::new();
        driver.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, b"R\x04\0\0\0done");
    }
}
