//! What `explain cp` says: files, bytes, and requests to the stores. All is listed for that, and nothing is read.

use super::CpSpec;
use super::listing::Listed;
use super::memory::CopyMemory;
use super::roots::roots;
use crate::jobs::steps::RunningJob;
use crate::plan::explain::{Explanation, PlannedDisk, PlannedMemory, PlannedStage, PlannedStore};
use gristmill_base::error::Result;
use gristmill_base::names::spell;
use gristmill_storage::io::read_ahead::RANGE_BYTES;
use gristmill_storage::location::{Location, existing_parent};
use gristmill_storage::objects::part_bytes;
use gristmill_tasks::task::{CopySource, PUT_FILE_BYTES};

/// Requests of a short file: it is looked for, and written.
const OF_SHORT: u64 = 2;

/// Requests of an upload beside its parts: it is looked for, begun, completed, and looked at.
const OF_UPLOAD: u64 = 4;

pub(super) fn explain(spec: &CpSpec, job: &RunningJob<'_>) -> Result<Explanation> {
    spec.check()?;
    let selection = spec.selection(job)?;
    let roots = roots(job.store(), &spec.inputs, &spec.output)?;
    spec.check_roots(&roots)?;
    let listing = spec.listing(job.store(), &selection);
    let (mut files, mut bytes, mut reads, mut sends) = (0_usize, 0_u64, 0_u64, 0_u64);
    for root in &roots {
        listing.root(root, &mut |listed| match listed {
            Listed::Item(item) => {
                if let CopySource::File(stat) = item.what {
                    files += 1;
                    bytes += stat.bytes;
                    reads += stat.bytes.div_ceil(RANGE_BYTES as u64).max(1);
                    sends += match stat.bytes <= PUT_FILE_BYTES {
                        true => OF_SHORT,
                        false => OF_UPLOAD + stat.bytes.div_ceil(part_bytes(stat.bytes)),
                    };
                }
                Ok(())
            }
            Listed::Failed(error) if !spec.ignore_failures => Err(error),
            Listed::Failed(_) | Listed::SkippedLink => Ok(()),
        })?;
    }
    let mut explained = job.with_process(job.explanation(files, bytes));
    explained.mode = "maps";
    explained.reason =
        "each file is copied by itself, and proved; how many at once is found while they are copied"
            .to_owned();
    explained.reservations.push(PlannedMemory {
        name: "copy buffers",
        bytes: CopyMemory::of(job, (&spec.inputs, &spec.output)).buffers_bytes()
            * job.workers as u64,
    });
    explained.parts = files;
    explained.stages = vec![PlannedStage {
        name: "copy",
        tasks: files as u64,
        reads: Some(bytes),
        writes: Some(bytes),
    }];
    let place = |location: &Location, purpose, requests| PlannedStore {
        place: spell(location.root().as_typed())
            .trim_end_matches('/')
            .to_owned(),
        purpose,
        bytes: Some(bytes),
        requests: Some(requests),
        tried: None,
    };
    if let Some(root) = roots.iter().find(|root| root.from.is_remote()) {
        explained.stores.push(place(&root.from, "input", reads));
    }
    if spec.output.is_remote() {
        explained.stores.push(place(&spec.output, "output", sends));
    }
    let free = match spec.output.local() {
        Some(path) => job.store().disk().free_bytes(existing_parent(path))?,
        None => None,
    };
    explained.disks.push(PlannedDisk {
        path: spell(spec.output.as_typed()),
        purpose: "output",
        needs: Some(bytes),
        passes: None,
        free,
        notice: None,
    });
    Ok(explained)
}
