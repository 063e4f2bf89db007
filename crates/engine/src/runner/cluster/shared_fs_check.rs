//! Whether all nodes see the same files: asked before the first task, since a node that does not would fail late, or write
//! where nobody looks.
//!
//! ```text
//!   driver: a staged file beside the output ──Begin──▶ agents: is it there? the first input of each folder, too
//!           removed again                   ◀─Events── as the driver sees it, or what is not
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::Location;
use gristmill_storage::net::waiting::PendingWaits;
use gristmill_storage::objects::Upload;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, Publisher};
use gristmill_tasks::task::{NodeEnvironment, TaskContext};

/// What stands in the file by which nodes know that they see the folder of the output: its name is by chance.
const MARKER: &[u8] = b"This file goes before the first task of its job begins.\n";

/// How long a file that was just made may take to be seen on another machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks.
const WAIT: Duration = Duration::from_millis(100);

/// Folders of the input that are looked at.
const FOLDERS: usize = 64;

const ADVICE: &str =
    "name a directory that all nodes share under the same path, or a place in s3:// or hdfs://";

const COLLECT: &str = "name a directory that all nodes share under the same path, or a place in s3:// or hdfs://; or add \
                       --collect: the output comes to the machine where the job was started";

/// A file beside the output, while nodes are asked whether they see it.
pub(super) struct Marker<'s> {
    place: &'s dyn Publisher,
    pub(super) upload: Upload,
}

impl<'s> Marker<'s> {
    /// Makes the marker for a file of the output, where that is at a path: all machines have the same stores. Nodes need not
    /// see what is collected.
    pub(super) fn of(stores: &'s Stores, file: Option<&Location>) -> Result<Option<Self>> {
        if stores
            .shared_outputs()
            .is_some_and(|outputs| outputs.collects)
        {
            return Ok(None);
        }
        let Some(file) = file.filter(|file| file.local().is_some()) else {
            return Ok(None);
        };
        let Some(place) = stores.publisher(file) else {
            return Ok(None);
        };
        let written = stores.create(file, MARKER.len() as u64, Caching::Cached)?;
        written.write_at(MARKER, 0)?;
        Ok(written.finish()?.map(|upload| Marker { place, upload }))
    }
}

impl Drop for Marker<'_> {
    fn drop(&mut self) {
        // The committer ends what stays.
        let _ = self
            .place
            .abort(self.upload.path.as_typed(), &self.upload.id);
    }
}

/// Fails, on a node, where the job's files at paths are not what the driver sees. A mount may hang: `waiting` knows at which file.
pub(super) fn check_shared_files(
    context: &TaskContext,
    marker: Option<&Upload>,
    here: &NodeEnvironment,
    waiting: &Arc<PendingWaits>,
) -> Result<()> {
    if let Some(marker) = marker {
        let _awaited = waiting.begin(marker.path.to_string());
        check_output(&context.node.store, marker)?;
    }
    let mut folders = BTreeSet::new();
    for file in &context.job.files {
        let Some(path) = file.path.local() else {
            continue;
        };
        let came_along = here.path(path) != path;
        if came_along || !folders.insert(file.path.parent()) {
            continue;
        }
        let awaited = waiting.begin(file.path.to_string());
        let found = context.node.store.stat(&file.path)?;
        drop(awaited);
        if found.is_none_or(|found| found.bytes != file.stat.bytes) {
            let message = match found {
                None => "a node does not see it, though it is there where the job was started",
                Some(_) => "a node sees another file under its name",
            };
            return Err(unseen("read the input", message, &file.path, ADVICE));
        }
        if folders.len() == FOLDERS {
            break;
        }
    }
    Ok(())
}

fn check_output(stores: &Stores, marker: &Upload) -> Result<()> {
    let wrong = || Error::bug("look for the output", "it is in no place that is shared");
    let place = stores.publisher(&marker.path).ok_or_else(wrong)?;
    let began = Instant::now();
    loop {
        let seen = place.parts(marker.path.as_typed(), &marker.id)?;
        if seen.is_some_and(|seen| marker.is_kept(&seen)) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let folder = marker.path.parent().unwrap_or_default();
            let message =
                "a node does not see the directory that was made for it where the job was started";
            return Err(unseen("write the output", message, &folder, COLLECT));
        }
        sleep(WAIT);
    }
}

fn unseen(operation: &'static str, message: &str, path: &Location, advice: &'static str) -> Error {
    Error::new(Kind::NotFound, operation, message)
        .with_path(path.as_typed())
        .advise(advice)
        .final_error()
}
