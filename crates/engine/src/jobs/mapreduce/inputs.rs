//! The files of a job of user code, as they are when it begins.
//!
//! ```text
//!   splits ── versions of far files, from a listing or a HEAD ──▶ no request
//!   files that no split says that of, and all files of a resumed job ──▶ stat
//! ```
//!
//! A job that is resumed has the splits of the job that began: what its inputs are by now, only their store knows.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::plan::mapreduce::MapReduceSpec;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::input::InputFile;
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::local::no_input;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::version::FoundVersion;
use gristmill_tasks::split::asked_at_once;

/// What is wanted of a split; formats of users say what they like.
#[derive(Deserialize)]
struct Pieces {
    pieces: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    path: Location,
    file_bytes: u64,
    found: FoundVersion,
}

/// The input's files, and behind them the side files; none of them lies in an output directory. One file may take the place of
/// one of them.
pub(super) fn files(
    store: &Stores,
    spec: &MapReduceSpec,
    is_resumed: bool,
) -> Result<Vec<InputFile>> {
    let known = match is_resumed {
        true => BTreeMap::new(),
        false => found(spec),
    };
    let file = |path: &Location| {
        if !spec.form.is_joined() && path.lies_in(&spec.output) {
            let message = "the output directory holds an input";
            return Err(Error::new(Kind::BadOption, "write the output", message)
                .with_path(path.as_typed())
                .advise("name another output"));
        }
        let stat = match known.get(path) {
            Some((bytes, version)) => version.stat(*bytes),
            None => store.stat(path)?.ok_or_else(|| no_input(path.as_typed()))?,
        };
        Ok(InputFile {
            path: path.clone(),
            stat,
        })
    };
    let most = spec.files.first().map_or(1, asked_at_once);
    let mut files = at_once(&spec.files, most, file)?;
    files.append(&mut at_once(&spec.side_files, 1, file)?);
    Ok(files)
}

/// What the splits say of far files: the length and the version of each.
fn found(spec: &MapReduceSpec) -> BTreeMap<Location, (u64, FoundVersion)> {
    if !spec.files.iter().any(Location::is_remote) {
        return BTreeMap::new();
    }
    let of_split = |text| serde_json::from_str::<Pieces>(text).ok();
    let splits = spec.splits.iter();
    splits
        .filter_map(|split| of_split(split.what.text()))
        .flat_map(|split| split.pieces)
        .map(|piece| (piece.path, (piece.file_bytes, piece.found)))
        .collect()
}
