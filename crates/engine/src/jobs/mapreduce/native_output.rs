//! What a native job writes: a directory of parts, one file of all parts, or a stream of them.

use std::path::Path;

use super::wrong_option::wrong_option;
use crate::jobs::steps::no_parts_in_stream;
use crate::plan::mapreduce::OutputForm;
use gristmill_base::error::Result;
use gristmill_storage::io::stream::is_special;
use gristmill_storage::location::{DASH, Location};
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::check_outside;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jobs) enum NativeOutput<'a> {
    /// A directory of parts.
    Directory(&'a Location),
    /// A directory of files that the operator names, so many at most.
    NamedFiles(&'a Location, u64),
    /// One file.
    File(&'a Location),
    /// What is there already and is no file, or standard output.
    Stream(Option<&'a Path>),
    /// Parts of a stream: there are none.
    PartsOfStream,
}

impl<'a> NativeOutput<'a> {
    /// By the options of `sort`: a directory with `--parts`, else the file or the stream that is named, or standard output.
    pub(in crate::jobs) fn of_options(output: Option<&'a Location>, parts: Option<usize>) -> Self {
        let target = output.filter(|given| given.as_typed() != Path::new(DASH));
        let stream = target
            .and_then(Location::local)
            .filter(|path| is_special(path));
        match (target, stream, parts) {
            (Some(target), None, Some(_)) => NativeOutput::Directory(target),
            (Some(target), None, None) => NativeOutput::File(target),
            (_, _, Some(_)) => NativeOutput::PartsOfStream,
            (_, stream, None) => NativeOutput::Stream(stream),
        }
    }

    /// Refuses what cannot be: a directory of which a job would read what it wrote the last time, and parts of a stream.
    pub(super) fn check(self, store: &Stores, inputs: &[Location]) -> Result<()> {
        match self {
            NativeOutput::Directory(target) | NativeOutput::NamedFiles(target, _) => {
                check_outside(store, inputs, target)
            }
            NativeOutput::PartsOfStream => Err(no_parts_in_stream()),
            NativeOutput::File(_) | NativeOutput::Stream(_) => Ok(()),
        }
    }

    /// Whether it is a stream.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, NativeOutput::Stream(_) | NativeOutput::PartsOfStream)
    }

    /// As the plan has it: where it is, and what.
    pub(super) fn planned(self) -> (Location, OutputForm) {
        match self {
            NativeOutput::Directory(target) => (target.clone(), OutputForm::Directory),
            NativeOutput::NamedFiles(target, most) => {
                (target.clone(), OutputForm::NamedFiles(most))
            }
            NativeOutput::File(target) => (target.clone(), OutputForm::File),
            NativeOutput::Stream(path) => {
                let path = path.map(Path::to_owned);
                (Location::default(), OutputForm::Stream(path))
            }
            NativeOutput::PartsOfStream => (Location::default(), OutputForm::Stream(None)),
        }
    }
}

/// How many parts there are where the whole output may have to be in the order of its keys: one, then.
///
/// # Errors
/// Several are asked for.
pub(in crate::jobs) fn one_if_sorted(sorted: bool, parts: Option<usize>) -> Result<Option<usize>> {
    match (sorted, parts) {
        (false, parts) => Ok(parts),
        (true, None | Some(1)) => Ok(Some(1)),
        (true, Some(_)) => Err(
            wrong_option("parts", "what is sorted as a whole is one part")
                .advise("give one of sorted and parts"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_what_is_written() {
        let file = Location::from("/no/such");
        for (given, parts, wanted) in [
            ("-", None, NativeOutput::Stream(None)),
            (
                "/dev/null",
                None,
                NativeOutput::Stream(Some("/dev/null".as_ref())),
            ),
            ("/dev/null", Some(2), NativeOutput::PartsOfStream),
            ("/no/such", None, NativeOutput::File(&file)),
            ("/no/such", Some(1), NativeOutput::Directory(&file)),
        ] {
            let given = Location::from(given);
            assert_eq!(NativeOutput::of_options(Some(&given), parts), wanted);
        }
        assert_eq!(
            NativeOutput::of_options(None, None),
            NativeOutput::Stream(None)
        );
    }
}
