//! Damage to a run file: bits that flip, and ends that are missing.

use super::super::header::HEADER_BYTES;
use super::super::{BLOCK_BYTES, RunFile};
use super::{COMPRESSIONS, put, read, read_all, small, small_of};
use crate::local::Local;
use crate::sorted_run::RunCompression;
use crate::{Caching, OutputStore};
use gristmill_base::error::Kind;

/// All bits outside the data, and those of the data's first and last bytes, of each block's, and of samples.
#[test]
fn every_flipped_bit_is_found() {
    COMPRESSIONS
        .iter()
        .for_each(|compression| flip_bits_of(*compression));
}

fn flip_bits_of(compression: RunCompression) {
    let (store, path, sound) = small_of(compression);
    let run = RunFile::open(&store, path).unwrap();
    let data = HEADER_BYTES..HEADER_BYTES + run.index().stored_bytes() as usize;
    let block_of =
        |stored: u64| (0..3).find(|block| run.index().stored(*block, 1).contains(&stored));
    let writer = store.create(path, 0, Caching::Cached).unwrap();
    let mut found = 0;
    for at in 0..sound.len() {
        let in_data = data.contains(&at);
        let edge = (at - data.start.min(at)) % BLOCK_BYTES;
        if in_data && at % 101 != 0 && (2..BLOCK_BYTES - 2).contains(&edge) && at + 2 < data.end {
            continue;
        }
        for bit in 0..8 {
            writer
                .write_at(&[sound[at] ^ (1 << bit)], at as u64)
                .unwrap();
            let error = if in_data {
                // The index is in memory already; the one block is what a reader would read.
                let block = block_of((at - data.start) as u64).unwrap();
                let start = block * BLOCK_BYTES as u64;
                read(&run, start..start + 1).unwrap_err()
            } else {
                RunFile::open(&store, path).unwrap_err()
            };
            assert!(error.to_string().contains("file /run"), "{error}");
            found += 1;
        }
        writer.write_at(&sound[at..=at], at as u64).unwrap();
    }
    assert!(found > 8 * (2 * crate::BLOCK_BYTES + 1000));
    assert!(read_all(&store, path).is_ok());
}

#[test]
fn a_damaged_block_is_named() {
    let (store, path, sound) = small();
    let run = RunFile::open(&store, path).unwrap();
    let at = HEADER_BYTES + BLOCK_BYTES + 17;
    let writer = store.create(path, 0, Caching::Cached).unwrap();
    writer.write_at(&[!sound[at]], at as u64).unwrap();
    let error = read(&run, 0..run.index().data_bytes).unwrap_err();
    let names: Vec<&str> = error
        .context()
        .iter()
        .map(|(name, _)| name.as_ref())
        .collect();
    assert_eq!(
        names,
        ["file", "block", "offset", "expected CRC", "found CRC"]
    );
    assert_eq!((error.kind(), error.retryable()), (Kind::Io, true));
    assert_eq!(error.context()[1].1, "1");
    assert_eq!(error.context()[2].1, "69632");
    assert!(read(&run, 0..BLOCK_BYTES as u64).is_ok());
}

/// Of a compressed run, too: where it lies in the file.
#[test]
fn a_damaged_compressed_block_is_named() {
    for compression in [RunCompression::Lz4, RunCompression::Zstd] {
        let (store, path, sound) = small_of(compression);
        let run = RunFile::open(&store, path).unwrap();
        let second = run.index().stored(1, 1);
        assert!(second.end - second.start < BLOCK_BYTES as u64 * 3 / 4);
        let at = HEADER_BYTES as u64 + second.start + 17;
        let writer = store.create(path, 0, Caching::Cached).unwrap();
        writer.write_at(&[!sound[at as usize]], at).unwrap();
        let error = read(&run, 0..run.index().data_bytes).unwrap_err();
        let context = error.context();
        let names: Vec<&str> = context.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(
            names,
            ["file", "block", "offset", "expected CRC", "found CRC"]
        );
        assert_eq!((error.kind(), error.retryable()), (Kind::Io, true));
        let offset = (HEADER_BYTES as u64 + second.start).to_string();
        assert_eq!((&*context[1].1, &*context[2].1), ("1", offset.as_str()));
        assert!(read(&run, 0..BLOCK_BYTES as u64).is_ok());
    }
}

#[test]
fn every_truncation_is_found() {
    let (store, path, sound) = small();
    let run = RunFile::open(&store, path).unwrap();
    // Reading the whole file at every length takes the square of its length: near each border, and in samples.
    let borders = [
        0,
        HEADER_BYTES,
        sound.len() - crate::BLOCK_BYTES,
        sound.len(),
    ];
    let near = |length: usize| borders.iter().any(|border| border.abs_diff(length) < 70);
    for length in (0..sound.len()).filter(|length| near(*length) || length % 512 == 0) {
        put(&store, path, &sound[..length]);
        let error = RunFile::open(&store, path).unwrap_err();
        assert!(error.to_string().contains("file /run"), "{error}");
    }
    // One that was cut after it was opened.
    let folder = tempfile::tempdir().unwrap();
    let on_disk = folder.path().join("run");
    std::fs::write(&on_disk, &sound).unwrap();
    let cut = RunFile::open(&Local, &on_disk).unwrap();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&on_disk)
        .unwrap();
    file.set_len(HEADER_BYTES as u64 + 100_000).unwrap();
    assert!(read(&cut, 0..BLOCK_BYTES as u64).is_ok());
    let error = read(&cut, 0..run.index().data_bytes).unwrap_err();
    assert!(error.to_string().contains("became shorter"), "{error}");
}
