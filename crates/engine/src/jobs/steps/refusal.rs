//! Why a job cannot be resumed.

use gristmill_base::error::{Error, Kind};

/// What resuming is called in errors.
pub(in crate::jobs) const OPERATION: &str = "resume the job";

/// Why a job cannot be resumed whose code was not kept.
pub(in crate::jobs) const NOT_BEGUN: &str = "it was killed before it began, and left nothing";

/// Why a job cannot be resumed that read a stream.
pub(in crate::jobs) const FROM_STREAM: &str = "what it read from a pipe is gone";

/// Why one cannot that wrote to one.
pub(in crate::jobs) const TO_STREAM: &str = "what it wrote to a stream cannot be taken back";

/// The error of a job that can only be run again.
pub(in crate::jobs) fn refusal(why: &str, advice: &str) -> Error {
    let and = if advice.is_empty() { "" } else { "; " };
    Error::new(Kind::BadInput, OPERATION, why).advise(format!("run it again{and}{advice}"))
}
