//! Folders within an output: `_logs/skip/` for records that were left out, as in Hadoop.

use std::collections::BTreeSet;
use std::path::Path;

use super::Staging;
use crate::error::Result;
use crate::storage::Store;

impl Staging<'_> {
    /// Makes the folders within the output that a file's name begins with.
    pub fn make_folders_of(&self, name: &str) -> Result<()> {
        make_above(self.store, &self.path_of(name))
    }
}

/// Makes the folders that are missing above a file.
pub(super) fn make_above(store: &dyn Store, file: &Path) -> Result<()> {
    let Some(folder) = file.parent() else {
        return Ok(());
    };
    if store.stat(folder)?.is_some() {
        return Ok(());
    }
    make_above(store, folder)?;
    store.create_directory(folder)
}

/// Makes the names of these files durable in a folder, and in the folders within it.
pub(super) fn sync(store: &dyn Store, folder: &Path, names: &[String]) -> Result<()> {
    let paths = names.iter().map(|name| folder.join(name));
    let above: BTreeSet<_> = paths
        .flat_map(|path| {
            let above = path.ancestors().skip(1);
            let within = above.take_while(|above| above.starts_with(folder));
            within.map(Path::to_owned).collect::<Vec<_>>()
        })
        .chain([folder.to_owned()])
        .collect();
    above
        .iter()
        .rev()
        .try_for_each(|path| store.sync_directory(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Caching;
    use crate::storage::memory::Memory;

    #[test]
    fn what_is_missing_above_a_file_is_made() {
        let store = Memory::with_room_for(1 << 20);
        store.create_directory("/out".as_ref()).unwrap();
        for _ in 0..2 {
            let file = Path::new("/out/_logs/skip/a");
            make_above(&store, file).unwrap();
            store.create(file, 0, Caching::Cached).unwrap();
            sync(
                &store,
                "/out".as_ref(),
                &["part-0".to_owned(), "_logs/skip/a".to_owned()],
            )
            .unwrap();
        }
    }
}
