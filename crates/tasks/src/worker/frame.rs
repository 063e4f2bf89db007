//! Frames: what goes through a worker's pipes.
//!
//! ```text
//!   kind: u8 | payload bytes: u32 LE | payload
//!
//!   driver ─▶ worker   'D'  definition: its key (32 bytes), its bytes
//!                      'T'  task: the key of its definition (32 bytes), then JSON, or a task of ours as bytes
//!   worker ─▶ driver   'H'  hello: the version of the worker, as text
//!                      'R'  report of the task: JSON, or a report of ours as bytes
//!                      'F'  failure of the task: JSON (`Failure`)
//! ```
//!
//! A worker remembers the definitions that it used last, [`REMEMBERED`] of them; so does the driver for each worker,
//! by the same rule, and sends a definition again when the worker has dropped it.

/// Bytes before the payload.
pub(super) const HEADER_BYTES: usize = 5;

/// Definitions that a worker remembers; `gristmill/worker.py` has the same number.
pub(super) const REMEMBERED: usize = 4;

/// The longest payload that a worker may send: far above any report, far below what would hurt.
pub(super) const REPLY_BYTES_MAX: usize = 64 << 20;

/// The longest that is sent: what the length field can say, and 1 GiB at most, since the worker holds it whole.
pub(super) const SENT_BYTES_MAX: usize = 1 << 30;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Definition,
    Task,
    Hello,
    Report,
    Failure,
}

impl FrameKind {
    fn byte(self) -> u8 {
        match self {
            FrameKind::Definition => b'D',
            FrameKind::Task => b'T',
            FrameKind::Hello => b'H',
            FrameKind::Report => b'R',
            FrameKind::Failure => b'F',
        }
    }

    /// The kinds that a worker sends.
    fn of_reply(byte: u8) -> Option<Self> {
        [FrameKind::Hello, FrameKind::Report, FrameKind::Failure]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

/// The kind of a frame that a driver sends.
pub(super) fn received(byte: u8) -> Option<FrameKind> {
    [FrameKind::Definition, FrameKind::Task]
        .into_iter()
        .find(|kind| kind.byte() == byte)
}

/// A frame from a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) payload: Vec<u8>,
}

/// The header of a frame to be sent, or why it cannot be.
pub(super) fn header(kind: FrameKind, bytes: usize) -> Result<[u8; HEADER_BYTES], String> {
    let length = match u32::try_from(bytes) {
        Ok(length) if bytes <= SENT_BYTES_MAX => length.to_le_bytes(),
        _ => {
            return Err(format!(
                "a frame of {bytes} bytes is more than the {SENT_BYTES_MAX} that can be sent: \
                 do not let functions capture large data"
            ));
        }
    };
    let [a, b, c, d] = length;
    Ok([kind.byte(), a, b, c, d])
}

/// Puts frames together from what a pipe gives.
#[derive(Debug, Default)]
pub(super) struct FrameDecoder {
    bytes: Vec<u8>,
}

impl FrameDecoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether a frame has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next frame, if all of it is here; an error says what is wrong with the bytes.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, String> {
        let Some(&[kind, a, b, c, d]) = self.bytes.first_chunk::<HEADER_BYTES>() else {
            return match self.bytes.first() {
                Some(&kind) => FrameKind::of_reply(kind)
                    .map(|_| None)
                    .ok_or_else(|| self.garbage()),
                None => Ok(None),
            };
        };
        let kind = FrameKind::of_reply(kind).ok_or_else(|| self.garbage())?;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > REPLY_BYTES_MAX {
            return Err(format!(
                "it announced a frame of {length} bytes, more than {REPLY_BYTES_MAX}"
            ));
        }
        let end = HEADER_BYTES + length;
        let Some(payload) = self.bytes.get(HEADER_BYTES..end) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.bytes.drain(..end);
        Ok(Some(Frame { kind, payload }))
    }

    fn garbage(&self) -> String {
        let shown: Vec<u8> = self.bytes.iter().take(40).copied().collect();
        format!("it wrote \"{}\" where a frame begins", shown.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(byte: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![byte];
        bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    proptest! {
        #[test]
        fn frames_come_back_however_the_pipe_cuts_them(
            frames in proptest::collection::vec(
                (proptest::sample::select(vec![b'H', b'R', b'F']), proptest::collection::vec(any::<u8>(), 0..50)), 0..8),
            piece in 1_usize..40,
        ) {
            let sent: Vec<u8> = frames.iter().flat_map(|(kind, payload)| encode(*kind, payload)).collect();
            let (mut decoder, mut found) = (FrameDecoder::default(), Vec::new());
            for bytes in sent.chunks(piece) {
                decoder.push(bytes);
                while let Some(frame) = decoder.next().unwrap() {
                    found.push((frame.kind.byte(), frame.payload));
                }
            }
            prop_assert!(decoder.is_empty());
            prop_assert_eq!(found, frames);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = FrameDecoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next() {}
        }
    }

    #[test]
    fn what_is_no_frame_is_shown() {
        let mut decoder = FrameDecoder::default();
        decoder.push(b"oh\n");
        assert_eq!(
            decoder.next().unwrap_err(),
            "it wrote \"oh\\n\" where a frame begins"
        );
        let mut decoder = FrameDecoder::default();
        decoder.push(&[b'R', 0xFF, 0xFF, 0xFF, 0xFF]);
        assert!(decoder.next().unwrap_err().contains("4294967295"));
        assert!(header(FrameKind::Definition, SENT_BYTES_MAX + 1).is_err());
        assert_eq!(header(FrameKind::Task, 258), Ok([b'T', 2, 1, 0, 0]));
    }
}
