//! The input of a job that sorts it where it lies.

use gristmill_base::error::Result;
use gristmill_base::record::arena::Arena;
use gristmill_storage::Caching;
use gristmill_storage::input::InputFile;
use gristmill_storage::stores::Stores;

/// Address space for the input: files that can be mapped are, others will be read.
pub(in crate::jobs) fn map_inputs(store: &Stores, files: &[InputFile]) -> Result<Arena> {
    let sizes: Vec<u64> = files.iter().map(|file| file.stat.bytes).collect();
    let mut arena = Arena::reserve(&sizes)?;
    for (number, input) in files.iter().enumerate() {
        let file = store.open_input(input, Caching::Cached)?; // all of them can be read, or the job ends here
        if !file
            .descriptor()
            .is_some_and(|descriptor| arena.map(number, descriptor))
        {
            arena.make_writable(number)?;
        }
    }
    Ok(arena)
}
