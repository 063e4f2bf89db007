//! Members of libraries that decode in steps: from a slice to a slice, as far as either goes.

use flate2::{Decompress, FlushDecompress};
use liblzma::stream::{Action, Stream};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use super::input::CountedInput;
use super::member::{Member, MemberError};
use super::{WINDOW_LOG, XZ_BYTES};

/// What one step did.
#[derive(Debug, Default)]
pub(super) struct StepResult {
    consumed: usize,
    produced: usize,
    ended: bool,
    trouble: Option<MemberError>,
}

/// A library's decoder: one step from `data`, which is empty at the end of the input, into `out`.
pub(super) trait Steps: Send {
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> StepResult;
}

/// A member that is decoded in steps.
pub(super) struct Stepped<S> {
    steps: S,
    ended: bool,
}

impl<S: Steps> Stepped<S> {
    pub(super) fn new(steps: S) -> Self {
        Stepped {
            steps,
            ended: false,
        }
    }
}

impl<S: Steps> Member for Stepped<S> {
    fn read(
        &mut self,
        input: &mut CountedInput,
        out: &mut [u8],
    ) -> Result<Option<usize>, MemberError> {
        while !self.ended {
            let data = input.fill()?;
            let step = self.steps.step(data, out);
            let (had, used) = (data.len(), step.consumed.min(data.len()));
            input.consume(used);
            if let Some(trouble) = step.trouble {
                return Err(trouble);
            }
            self.ended = step.ended;
            if step.produced > 0 {
                return Ok(Some(step.produced));
            }
            if !step.ended && used == 0 {
                return Err(match had {
                    0 => MemberError::Truncated,
                    _ => MemberError::Damaged("decoding does not advance".to_owned()),
                });
            }
        }
        Ok(None)
    }
}

/// zlib's inflate, which also reads gzip's header and compares its CRC-32 and length.
pub(super) struct Inflate(Decompress);

pub(super) fn gzip() -> Inflate {
    Inflate(Decompress::new_gzip(15))
}

pub(super) fn zlib() -> Inflate {
    Inflate(Decompress::new(true))
}

impl Steps for Inflate {
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> StepResult {
        let (in_before, out_before) = (self.0.total_in(), self.0.total_out());
        let status = self.0.decompress(data, out, FlushDecompress::None);
        let dictionary = || {
            let why = "it was compressed with a dictionary of its own, which is not in the file";
            MemberError::Refused(
                why.to_owned(),
                "compress the file anew, without a dictionary",
            )
        };
        StepResult {
            consumed: (self.0.total_in() - in_before) as usize,
            produced: (self.0.total_out() - out_before) as usize,
            ended: matches!(status, Ok(flate2::Status::StreamEnd)),
            trouble: status.err().map(|error| match error.needs_dictionary() {
                Some(_) => dictionary(),
                None => {
                    MemberError::Damaged(error.message().unwrap_or("no deflate data").to_owned())
                }
            }),
        }
    }
}

/// libbz2's decoder, which compares the CRC of each block and of the stream.
pub(super) struct Bzip2(bzip2::Decompress);

pub(super) fn bzip2() -> Bzip2 {
    Bzip2(bzip2::Decompress::new(false))
}

impl Steps for Bzip2 {
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> StepResult {
        let (in_before, out_before) = (self.0.total_in(), self.0.total_out());
        let status = self.0.decompress(data, out);
        StepResult {
            consumed: (self.0.total_in() - in_before) as usize,
            produced: (self.0.total_out() - out_before) as usize,
            ended: matches!(status, Ok(bzip2::Status::StreamEnd)),
            trouble: status
                .err()
                .map(|error| MemberError::Damaged(error.to_string())),
        }
    }
}

/// libzstd's decoder, which compares the frame's checksum where there is one, and passes over skippable frames.
pub(super) struct Zstd(zstd::stream::raw::Decoder<'static>);

pub(super) fn zstd() -> Result<Zstd, MemberError> {
    let mut decoder = zstd::stream::raw::Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
    Ok(Zstd(decoder))
}

impl Steps for Zstd {
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> StepResult {
        let mut from = InBuffer::around(data);
        let mut to = OutBuffer::around(out);
        let status = self.0.run(&mut from, &mut to);
        StepResult {
            consumed: from.pos(),
            produced: to.pos(),
            ended: matches!(status, Ok(0)),
            trouble: status.err().map(|error| {
                let why = error.to_string();
                if why.contains("too much memory") {
                    too_large("zstd")
                } else {
                    MemberError::Damaged(why)
                }
            }),
        }
    }
}

/// liblzma's decoder, which compares the checks of blocks, index and stream.
pub(super) struct Xz(Stream);

pub(super) fn xz() -> Result<Xz, MemberError> {
    let flags = liblzma::stream::TELL_UNSUPPORTED_CHECK;
    match Stream::new_stream_decoder(XZ_BYTES as u64, flags) {
        Ok(stream) => Ok(Xz(stream)),
        Err(error) => Err(MemberError::Damaged(error.to_string())),
    }
}

impl Steps for Xz {
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> StepResult {
        let (in_before, out_before) = (self.0.total_in(), self.0.total_out());
        let status = self.0.process(data, out, Action::Run);
        StepResult {
            consumed: (self.0.total_in() - in_before) as usize,
            produced: (self.0.total_out() - out_before) as usize,
            ended: matches!(status, Ok(liblzma::stream::Status::StreamEnd)),
            trouble: status.err().map(|error| match error {
                liblzma::stream::Error::MemLimit => too_large("xz"),
                error => MemberError::Damaged(error.to_string()),
            }),
        }
    }
}

fn too_large(codec: &str) -> MemberError {
    let why = format!(
        "its {codec} data need a window of more than {} MB",
        1 << (WINDOW_LOG - 20)
    );
    MemberError::Refused(
        why,
        "compress the file anew with a smaller window (zstd --long=27, xz -9, or less)",
    )
}
