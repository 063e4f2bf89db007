//! What `explain cp` says: files, bytes, and requests to the stores. All is listed for that, and nothing is read. Bytes are those that
//! pass this machine: what a store copies by itself is said apart.

use super::CpSpec;
use super::cut::Cutter;
use super::listing::{CopyRoot, Listed};
use super::memory::CopyMemory;
use super::pieces::PieceSizes;
use super::roots::roots;
use super::rounds::{ROUND_NAMES, targets_of};
use crate::jobs::steps::RunningJob;
use crate::plan::explain::{
    Explanation, PlannedCopies, PlannedDisk, PlannedMemory, PlannedStage, PlannedStore,
};
use gristmill_base::error::Result;
use gristmill_base::names::spell;
use gristmill_storage::io::read_ahead::RANGE_BYTES;
use gristmill_storage::location::{Location, existing_parent};
use gristmill_storage::objects::{StoreCopies, part_bytes};
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::{CopyItem, CopyRules, CopySource, PUT_FILE_BYTES};

/// Requests of a short file: it is looked for, and written.
const OF_SHORT: u64 = 2;

/// Requests of a copy that a store makes at once: it is looked for, made, and looked at.
const OF_COPY: u64 = 3;

/// Requests of an upload beside its parts: it is looked for, begun, completed, and looked at.
const OF_UPLOAD: u64 = 4;

/// What is copied, and how.
#[derive(Default)]
struct PlannedCopy {
    files: usize,
    bytes: u64,
    /// Tasks that copy a piece, and those that give the files their names.
    pieces: u64,
    cut_files: u64,
    /// Requests to the source, and to the target.
    reads: u64,
    sends: u64,
    /// What a store copies by itself.
    copies: PlannedCopies,
}

impl PlannedCopy {
    /// Adds a file, which a store may copy by itself.
    fn add(&mut self, within: Option<StoreCopies>, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        let (reads, sends) = match within {
            Some(how) => {
                self.copies.files += 1;
                self.copies.bytes += bytes;
                self.copies.proved = how.takes_sums;
                let sends = match how.parts(bytes) {
                    0 => OF_COPY,
                    parts => OF_UPLOAD + parts,
                };
                (1, sends) // the source is looked at
            }
            None if bytes <= PUT_FILE_BYTES => (1, OF_SHORT),
            None => (
                bytes.div_ceil(RANGE_BYTES as u64),
                OF_UPLOAD + bytes.div_ceil(part_bytes(bytes)),
            ),
        };
        self.reads += reads;
        self.sends += sends;
    }

    /// Bytes that come to this machine.
    fn passing(&self) -> u64 {
        self.bytes - self.copies.bytes
    }

    /// How files are copied, in words.
    fn reason(&self) -> String {
        let proved = match self.copies.files == 0 || self.copies.proved {
            true => "and proved",
            false => "and proved, but for what the store copies",
        };
        let cut = match self.cut_files {
            0 => String::new(),
            1 => format!(", 1 of them in {} pieces", self.pieces),
            files => format!(", {files} of them in {} pieces", self.pieces),
        };
        format!(
            "each file is copied by itself{cut}, {proved}; how many at once is found while they are copied"
        )
    }

    /// Tasks that copy, a piece or a whole file; and those that give files their names which were cut.
    fn stages(&self) -> Vec<PlannedStage> {
        let stage = |name, tasks, bytes| PlannedStage {
            name,
            tasks,
            reads: Some(bytes),
            writes: Some(bytes),
        };
        let whole = self.files as u64 - self.cut_files;
        let copies = stage("copy", whole + self.pieces, self.passing());
        let completed = (self.cut_files > 0).then(|| stage("complete", self.cut_files, 0));
        [copies].into_iter().chain(completed).collect()
    }

    /// The far places of the copy.
    fn stores(&self, spec: &CpSpec, roots: &[CopyRoot]) -> Vec<PlannedStore> {
        let place = |location: &Location, purpose, requests, copies| PlannedStore {
            place: spell(location.root().as_typed())
                .trim_end_matches('/')
                .to_owned(),
            purpose,
            bytes: Some(self.passing()),
            requests: Some(requests),
            tried: None,
            copies,
        };
        let root = roots.iter().find(|root| root.from.is_remote());
        let input = root.map(|root| place(&root.from, "input", self.reads, None));
        let copies = (self.copies.files > 0).then(|| self.copies.clone());
        let output = spec.output.is_remote();
        let output = output.then(|| place(&spec.output, "output", self.sends, copies));
        input.into_iter().chain(output).collect()
    }
}

/// Files that several tasks copy, round by round.
struct PlannedCuts<'a> {
    stores: &'a Stores,
    rules: &'a CopyRules,
    workers: usize,
    /// How long pieces are, if the user says it.
    given: Option<u64>,
    /// What the round has so far.
    round: Vec<CopyItem>,
}

impl PlannedCuts<'_> {
    fn add(&mut self, item: CopyItem, planned: &mut PlannedCopy) {
        self.round.push(item);
        if self.round.len() >= ROUND_NAMES {
            self.end_round(planned);
        }
    }

    fn end_round(&mut self, planned: &mut PlannedCopy) {
        let bytes = self.round.iter().map(CopyItem::bytes).sum();
        let cutter = Cutter {
            stores: self.stores,
            rules: self.rules,
            sizes: PieceSizes::of(bytes, self.workers, self.given),
            workers: self.workers,
        };
        let requests = |bytes: u64| bytes.div_ceil(RANGE_BYTES as u64);
        for item in self.round.drain(..) {
            let Some((_, pieces)) = cutter.ranges(&item) else {
                continue;
            };
            planned.cut_files += 1;
            planned.pieces += pieces.len() as u64;
            let of_pieces = pieces.iter().map(|piece| requests(piece.end - piece.start));
            planned.reads += of_pieces.sum::<u64>() - requests(item.bytes());
        }
    }
}

pub(super) fn explain(spec: &CpSpec, job: &RunningJob<'_>) -> Result<Explanation> {
    spec.check()?;
    let selection = spec.selection(job)?;
    let roots = roots(job.store(), &spec.inputs, &spec.output)?;
    spec.check_roots(&roots)?;
    let listing = spec.listing(job.store(), &selection);
    let (rules, mut planned) = (spec.rules(job), PlannedCopy::default());
    let within = |item: &CopyItem, bytes| {
        let within = rules.within(job.store(), (&item.from, &item.to), bytes);
        within.map(|(_, how)| how)
    };
    let targets = targets_of(job);
    let mut cut = PlannedCuts {
        stores: &targets,
        rules: &rules,
        workers: job.workers,
        given: spec.piece_bytes(job)?,
        round: Vec::new(),
    };
    for root in &roots {
        listing.root(root, &mut |listed| match listed {
            Listed::Item(item) => {
                if let CopySource::File(stat) = item.what {
                    planned.add(within(&item, stat.bytes), stat.bytes);
                }
                cut.add(item, &mut planned);
                Ok(())
            }
            Listed::Failed(error) if !spec.ignore_failures => Err(error),
            Listed::Failed(_) | Listed::SkippedLink => Ok(()),
        })?;
    }
    cut.end_round(&mut planned);
    let mut explained = job.with_process(job.explanation(planned.files, planned.bytes));
    explained.mode = "maps";
    explained.reason = planned.reason();
    explained.reservations.push(PlannedMemory {
        name: "copy buffers",
        bytes: CopyMemory::of(job, (&spec.inputs, &spec.output)).buffers_bytes()
            * job.workers as u64,
    });
    explained.parts = planned.files;
    explained.stages = planned.stages();
    explained.stores = planned.stores(spec, &roots);
    let free = match spec.output.local() {
        Some(path) => job.store().disk().free_bytes(existing_parent(path))?,
        None => None,
    };
    explained.disks.push(PlannedDisk {
        path: spell(spec.output.as_typed()),
        purpose: "output",
        needs: Some(planned.bytes),
        passes: None,
        free,
        notice: None,
    });
    Ok(explained)
}
