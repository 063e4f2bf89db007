//! Where a sort writes: a file, a stream, or a directory of parts; and the tasks that write it.
//!
//! ```text
//!   buckets      | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
//!   one file     |  range    |  range        |        tasks write at offsets that the runs tell
//!   two parts    | part-r-00000  |  part-r-00001 |    as even as buckets are
//!   compressed   | a member for each file: a task writes it from its beginning to its end
//! ```
//!
//! What agents make for a stream is collected here first, and written when all is proved: nothing is taken back from a stream.
//!
//! Decision: docs/decisions/cluster-streams.md.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::input::SortInput;
use super::plan::{output_share, ranges};
use super::{SortOutcome, SortSpec};
use crate::jobs::runs::{RunOutcome, Targets};
use crate::jobs::steps::{
    self, OutputLocations, PartReader, RunningJob, WrittenPart, check_apart, check_length,
    no_parts_in_stream, open_stream, stream_writer,
};
use crate::jobs::success::{PartProof, Success, success_bytes};
use crate::plan::sort::part_name;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::checksum::Hex;
use gristmill_base::record::shape::ShapeKind;
use gristmill_storage::codec::Codec;
use gristmill_storage::io::stream::{File, StreamWriter};
use gristmill_storage::location::{Location, parent_of};
use gristmill_storage::objects::Upload;
use gristmill_storage::sorted_run::RunCompression;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caps, WriteFile as _};
use gristmill_tasks::commit::{Committer, OutputManifest};
use gristmill_tasks::task::{MergeTarget, WholeFile};

/// Most parts of an output.
const PARTS_MAX: usize = 10_000;

/// The longest key that the proof of a part names.
const SHOWN_KEY_BYTES: usize = 256;

/// Where the records go.
pub(super) struct SortOutput<'a> {
    place: SortTarget<'a>,
    codec: Option<Codec>,
}

enum SortTarget<'a> {
    File(Box<dyn Committer + 'a>),
    /// With the names of the parts.
    Parts(Box<dyn Committer + 'a>, Vec<PathBuf>),
    /// With what it is called.
    Stream(File, PathBuf),
    /// A file that is never published, and the stream that it goes to: standard output, if it has no path.
    Collected(Box<dyn Committer + 'a>, Option<PathBuf>),
}

impl<'a> SortOutput<'a> {
    /// Begins the output of a job.
    pub(super) fn begin(job: &RunningJob<'a>, spec: &SortSpec, input: &SortInput) -> Result<Self> {
        let codec = spec.compress.codec();
        if let Some(target) = collected(job, spec) {
            let committer = job.committer(steps::JobOutput::File(target), (&[], 0))?;
            let place = SortTarget::Collected(committer, spec.stream().map(Path::to_owned));
            return Ok(SortOutput { place, codec });
        }
        let place = match (spec.target(), spec.stream(), spec.parts) {
            (Some(target), None, Some(parts)) => {
                check_apart(&spec.inputs, target)?;
                let suffix = codec.and_then(|codec| codec.suffixes().first());
                let name = |part| format!("{}{}", part_name('r', part), suffix.unwrap_or(&""));
                let names: Vec<PathBuf> = (0..parts).map(|part| name(part).into()).collect();
                let output = steps::JobOutput::Directory(target);
                let committer = job.committer(output, (&names, input.bytes()))?;
                SortTarget::Parts(committer, names)
            }
            (_, Some(path), _) => {
                let (opened, name) = open_stream(job, Some(path))?;
                SortTarget::Stream(opened, name)
            }
            (Some(target), None, None) => {
                if codec.is_none() {
                    check_length(job.store(), target, ("input", input.bytes()))?;
                }
                SortTarget::File(job.committer(steps::JobOutput::File(target), (&[], 0))?)
            }
            (None, None, _) => {
                let (stdout, name) = open_stream(job, None)?;
                SortTarget::Stream(stdout, name)
            }
        };
        Ok(SortOutput { place, codec })
    }

    /// The tasks that write it.
    pub(super) fn targets(&self, stores: &Stores, unique: bool, input_bytes: u64) -> Targets {
        let codec = self.codec;
        let (committer, names) = match &self.place {
            SortTarget::Stream(..) => {
                return Box::new(move |_| Ok(vec![MergeTarget::Stream(codec)]));
            }
            SortTarget::File(committer) | SortTarget::Collected(committer, _) => {
                (committer, vec![PathBuf::new()])
            }
            SortTarget::Parts(committer, names) => (committer, names.clone()),
        };
        let paths: Vec<_> = names.iter().map(|name| committer.path_of(name)).collect();
        let share = match paths.first().map(|path| stores.caps(path)) {
            Some(Caps::Ranges) => output_share(input_bytes),
            Some(Caps::Whole) | None => u64::MAX,
        };
        let whole = unique || codec.is_some();
        Box::new(move |sizes| {
            let mut targets = Vec::new();
            for (path, buckets) in paths.iter().zip(cut(sizes, paths.len())) {
                if whole {
                    let in_it = sizes.get(buckets.clone()).unwrap_or_default();
                    targets.push(MergeTarget::File(WholeFile {
                        path: path.clone(),
                        buckets,
                        bytes_max: in_it.iter().map(|size| size.0).sum(),
                        codec,
                    }));
                } else {
                    targets.extend(ranges(path, sizes, buckets, share));
                }
            }
            Ok(targets)
        })
    }

    /// Where runs go that do not fit in memory, where the user has not said.
    pub(super) fn spill_place(&self) -> Result<PathBuf> {
        match self.committer() {
            Some(committer) => committer.folder().spill_place(),
            None => Ok(PathBuf::from(".")),
        }
    }

    /// The folder of a job that writes files.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.committer().map(|committer| committer.folder().path())
    }

    fn committer(&self) -> Option<&(dyn Committer + 'a)> {
        match &self.place {
            SortTarget::File(committer)
            | SortTarget::Parts(committer, _)
            | SortTarget::Collected(committer, _) => Some(&**committer),
            SortTarget::Stream(..) => None,
        }
    }

    /// Where what is made can be found again.
    pub(super) fn places(
        &self,
        runs: Vec<PathBuf>,
        (shape, unique): (ShapeKind, bool),
        compression: RunCompression,
    ) -> OutputLocations {
        let (output, names, uploads) = match &self.place {
            SortTarget::File(committer) | SortTarget::Collected(committer, _) => {
                let path = committer.folder().staged();
                let names = vec![path.file_name().unwrap_or_default().into()];
                let uploads = vec![committer.path_of("".as_ref())];
                (parent_of(&path).to_owned(), names, uploads)
            }
            SortTarget::Parts(committer, names) => {
                let uploads = names.iter().map(|name| committer.path_of(name)).collect();
                (committer.folder().staged(), names.clone(), uploads)
            }
            SortTarget::Stream(..) => Default::default(),
        };
        OutputLocations {
            runs,
            output,
            names,
            uploads,
            shape,
            unique,
            codes: None,
            compression,
            attempts: None,
        }
    }

    pub(super) fn sink(&self, job: &RunningJob<'_>) -> Result<Option<Arc<StreamWriter>>> {
        let SortTarget::Stream(file, name) = &self.place else {
            return Ok(None);
        };
        let again = file.try_clone();
        let file = again.map_err(|error| Error::from_io("use a stream", name, &error))?;
        let sink = StreamWriter::new(file, name.clone(), job.control.flag());
        Ok(Some(Arc::new(sink)))
    }

    /// Gives the output its name, where it is no stream.
    pub(super) fn publish(self, job: &mut RunningJob<'_>, sorted: &SortOutcome) -> Result<()> {
        let (committer, names, success) = match self.place {
            SortTarget::Stream(..) => return Ok(()),
            SortTarget::Collected(committer, stream) => {
                job.begin_commit()?;
                let written = write_stream(job, stream.as_deref(), &sorted.uploads);
                drop(committer); // with what was collected
                return written;
            }
            SortTarget::File(committer) => (committer, Vec::new(), Vec::new()),
            SortTarget::Parts(committer, names) => {
                let proof = success(job, &*committer, &names, sorted)?;
                job.report.parts = names.len();
                (committer, names, success_bytes(&proof)?)
            }
        };
        job.begin_commit()?;
        let made = OutputManifest {
            names: &names,
            uploads: &sorted.uploads,
            success: &success,
        };
        job.publish(committer, &made)
    }
}

/// Where what goes to a stream is collected, if agents make it.
fn collected<'a>(job: &RunningJob<'a>, spec: &SortSpec) -> Option<&'a Location> {
    let is_remote = job.cluster().is_some() && !spec.writes_file();
    let output = job.asked.output.filter(|_| is_remote);
    output.map(steps::JobOutput::path)
}

/// Writes files that were collected to a stream.
fn write_stream(job: &RunningJob<'_>, stream: Option<&Path>, files: &[Upload]) -> Result<()> {
    let (sink, mut written) = (stream_writer(job, stream)?, 0);
    let reader = PartReader {
        stores: job.store(),
        alive: &|| job.check_cancelled(),
    };
    for file in files {
        reader.read(&WrittenPart::staged(file)?, &mut |data| {
            sink.write_at(data, written)?;
            written += data.len() as u64;
            Ok(())
        })?;
    }
    Ok(())
}

impl SortSpec {
    /// Refuses parts that cannot be.
    pub(super) fn check_parts(&self) -> Result<()> {
        let wrong = |message: String, advice: &str| {
            Err(Error::new(Kind::BadOption, "read the options", message).advise(advice))
        };
        match self.parts {
            Some(parts) if parts > PARTS_MAX => wrong(
                format!("parts is {parts}, and at most {PARTS_MAX} are made"),
                "give a smaller number",
            ),
            Some(_) if !self.writes_file() => Err(no_parts_in_stream()),
            _ => Ok(()),
        }
    }
}

/// What `_SUCCESS` says of the parts.
fn success(
    job: &RunningJob<'_>,
    committer: &dyn Committer,
    names: &[PathBuf],
    sorted: &SortOutcome,
) -> Result<Success> {
    let shown = |key: &Vec<u8>| (key.len() <= SHOWN_KEY_BYTES).then(|| hex::encode(key));
    let mut parts = Vec::with_capacity(names.len());
    for name in names {
        let path = committer.path_of(name);
        let of_part = sorted.files.iter().filter(|file| file.path == path);
        let mut part = PartProof {
            name: gristmill_base::names::spell(name),
            bytes: 0,
            records: 0,
            checksum: String::new(),
            first_key: None,
            last_key: None,
        };
        let mut checksum = 0;
        for file in of_part {
            let proof = &file.proof;
            part.bytes += match (file.is_compressed, &proof.upload) {
                (false, _) => proof.bytes,
                (true, Some(upload)) => upload.bytes(),
                (true, None) => job.store().stat(&path)?.map_or(0, |stat| stat.bytes),
            };
            part.records += proof.records;
            checksum += proof.checksum;
            if let Some((first, last)) = proof.ends.as_ref().filter(|_| sorted.shows_keys) {
                part.first_key = part.first_key.or_else(|| shown(first));
                part.last_key = shown(last);
            }
        }
        part.checksum = Hex(checksum).to_string();
        parts.push(part);
    }
    if let Some(first) = parts.first_mut() {
        first.records = first.records.saturating_sub(sorted.headers);
    }
    Ok(Success {
        format: 1,
        gristmill: crate::VERSION.to_owned(),
        job_id: job.environment.job_id.clone(),
        command: "sort".to_owned(),
        records: parts.iter().map(|part| part.records).sum(),
        bytes: parts.iter().map(|part| part.bytes).sum(),
        checksum: Hex(sorted.checksum).to_string(),
        sorted: true,
        duplicate_keys: sorted.duplicates,
        parts,
    })
}

/// The buckets of each part, about as many bytes each; there are at least as many buckets as parts.
fn cut(sizes: &[(u64, u64)], parts: usize) -> Vec<Range<usize>> {
    let total: u64 = sizes.iter().map(|size| size.0).sum();
    let (mut cuts, mut start, mut sum) = (Vec::with_capacity(parts), 0, 0);
    for part in 0..parts {
        let goal = (u128::from(total) * (part as u128 + 1) / parts as u128) as u64;
        let most = sizes.len().saturating_sub(parts - part - 1).max(start);
        let mut end = start;
        while let Some(size) = sizes.get(end).filter(|_| end < most) {
            // A bucket belongs where most of it lies; each part has one.
            if end > start && part + 1 < parts && sum + size.0 / 2 > goal {
                break;
            }
            sum += size.0;
            end += 1;
        }
        cuts.push(start..end);
        start = end;
    }
    cuts
}

impl SortOutcome {
    /// The files that were written, with their proofs.
    pub(super) fn files_of(outcome: &RunOutcome) -> Vec<WrittenFile> {
        let written = |target: &MergeTarget| match target {
            MergeTarget::Ranges(ranges) => {
                let path =
                    |range: &gristmill_tasks::task::RangeSpec| (range.file.path.clone(), false);
                ranges.iter().map(path).collect()
            }
            MergeTarget::File(file) => vec![(file.path.clone(), file.codec.is_some())],
            MergeTarget::Stream(_) => Vec::new(),
        };
        let files = outcome.merged.iter().flat_map(|(target, proofs)| {
            let files = written(target).into_iter().zip(proofs);
            files.map(|((path, is_compressed), proof)| WrittenFile {
                path,
                is_compressed,
                proof: proof.clone(),
            })
        });
        files.collect()
    }
}

/// What was written of a file.
pub(super) struct WrittenFile {
    path: Location,
    is_compressed: bool,
    proof: gristmill_tasks::merge::output::MergeProof,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_tile_the_buckets(
            sizes in proptest::collection::vec(0_u64..1000, 1..60),
            parts in 1_usize..9,
        ) {
            let sizes: Vec<_> = sizes.into_iter().map(|bytes| (bytes, 1)).collect();
            let parts = parts.min(sizes.len());
            let cuts = cut(&sizes, parts);
            prop_assert_eq!(cuts.len(), parts);
            let mut next = 0;
            for part in &cuts {
                prop_assert_eq!(part.start, next);
                prop_assert!(part.end > part.start);
                next = part.end;
            }
            prop_assert_eq!(next, sizes.len());
        }
    }

    #[test]
    fn parts_of_even_buckets_are_even() {
        let sizes = [(10, 1); 8];
        assert_eq!(cut(&sizes, 4), [0..2, 2..4, 4..6, 6..8]);
    }
}
