//! A run file gives back what it was given, and every byte that is not what was written is found.

mod damage;

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::format::FOOTER_BYTES;
use super::header::HEADER_BYTES;
use super::reader::read_index;
use super::{
    BLOCK_BYTES, BlockDecoder, RunCompression, RunFile, RunHeader, RunIndex, RunWriter, file_bytes,
    file_bytes_max,
};
use crate::faulty::{Fault, FaultPlan, Faulty};
use crate::io::overlap::OverlappedWriter;
use crate::local::Local;
use crate::memory::Memory;
use crate::{Caching, LocalDisk, OutputStore, ReadFile, Store};
use gristmill_base::error::{Kind, Result};
use gristmill_base::record::shape::{Fixed, LineShape, Shape, ShapeKind};
use gristmill_base::sys::pages::Pages;

const BYTES: ShapeKind = ShapeKind::Fixed(Fixed {
    record_bytes: 1,
    key_bytes: 1,
    descending: false,
});

/// Smaller than a block of data, so that blocks begin and end anywhere in a buffer.
const BUFFER_BYTES: usize = 16 << 10;

/// The least that a compressed run takes.
const TWO_BLOCKS: usize = 2 * BLOCK_BYTES;

fn header(shape: ShapeKind) -> RunHeader {
    RunHeader {
        shape,
        job_id: "job-1".to_owned(),
        number: 7,
        compression: RunCompression::None,
    }
}

fn compressed(compression: RunCompression) -> RunHeader {
    RunHeader {
        compression,
        ..header(BYTES)
    }
}

const COMPRESSIONS: [RunCompression; 3] = [
    RunCompression::None,
    RunCompression::Lz4,
    RunCompression::Zstd,
];

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Writes `data` in pieces of these lengths, over and over.
fn write(
    store: &dyn LocalDisk,
    path: &Path,
    header: &RunHeader,
    data: &[u8],
    pieces: &[usize],
    ends: &[(u64, u64)],
) -> Result<RunIndex> {
    let (compression, buckets) = (header.compression, ends.len() as u64);
    let length = file_bytes_max(compression, data.len() as u64, buckets).unwrap();
    let (buffer_bytes, room) = match compression {
        RunCompression::None => (BUFFER_BYTES, BUFFER_BYTES),
        _ => (TWO_BLOCKS, 4096),
    };
    let reserved = if pieces.len() > 1 { length } else { 0 }; // both ways there are
    let file = Arc::from(store.create(path, reserved, Caching::Direct)?);
    OverlappedWriter::run(&mut Vec::new(), buffer_bytes, |writer| {
        let mut run = RunWriter::begin(writer, file, header)?;
        let (mut rest, mut lengths) = (data, pieces.iter().cycle());
        while !rest.is_empty() {
            let bytes = lengths.next().map_or(1, |length| *length).min(rest.len());
            let (piece, behind) = rest.split_at(bytes);
            if bytes % 2 == 0 && bytes <= room {
                run.room(bytes)?[..bytes].copy_from_slice(piece);
                run.advance(bytes);
            } else {
                run.append(piece)?;
            }
            rest = behind;
        }
        assert_eq!(run.data_bytes(), data.len() as u64);
        run.finish(ends, 0)
    })
}

/// Reads a range, in whole blocks as the merge does.
fn read(run: &RunFile, bytes: std::ops::Range<u64>) -> Result<Vec<u8>> {
    let mut memory = Pages::zeroed(RunFile::covering_bytes(&bytes))?;
    let range = run.read_blocks(bytes, &mut memory, &mut BlockDecoder::default())?;
    Ok(memory[range].to_vec())
}

/// Everything a reader of a whole run sees.
fn read_all(store: &dyn LocalDisk, path: &Path) -> Result<(RunHeader, RunIndex, Vec<u8>)> {
    let run = RunFile::open(store, path)?;
    let data = read(&run, 0..run.index().data_bytes)?;
    Ok((run.header().clone(), run.index().clone(), data))
}

fn put(store: &Memory, path: &Path, bytes: &[u8]) {
    store.remove(path).unwrap();
    let file = store.create(path, 0, Caching::Cached).unwrap();
    file.write_at(bytes, 0).unwrap();
}

/// A store with one run of three blocks, the last one short.
fn small() -> (Memory, &'static Path, Vec<u8>) {
    let made = small_of(RunCompression::None);
    let bytes = (2 * BLOCK_BYTES + 5000) as u64;
    assert_eq!(Some(made.2.len() as u64), file_bytes(bytes, 4));
    made
}

/// The same compressed: the first block is noise and does not shrink, the others do.
fn small_of(compression: RunCompression) -> (Memory, &'static Path, Vec<u8>) {
    let store = Memory::with_room_for(1 << 24);
    let path = Path::new("/run");
    let mut data = noise(2 * BLOCK_BYTES + 5000);
    if compression != RunCompression::None {
        data[BLOCK_BYTES..].iter_mut().for_each(|byte| *byte &= 1);
    }
    let bytes = data.len() as u64;
    let ends = [(0, 0), (70_000, 70_000), (bytes, bytes), (bytes, bytes)];
    write(
        &store,
        path,
        &compressed(compression),
        &data,
        &[9_000],
        &ends,
    )
    .unwrap();
    let file = store.bytes_of(path).unwrap();
    (store, path, file)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn segments_come_back(
        bytes in 0_usize..300_000,
        pieces in vec(1_usize..20_000, 1..5),
        cuts in vec(0.0..1.0_f64, 0..20),
        segment in (0.0..1.0_f64, 0.0..1.0_f64),
        (on_disk, compression, shrinks) in (any::<bool>(), select(&COMPRESSIONS), 0_u8..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::with_room_for(1 << 24);
        let store: &dyn LocalDisk = if on_disk { &Local } else { &memory };
        let path = folder.path().join("run");
        let mut data = noise(bytes);
        if shrinks > 0 {
            // Some blocks shrink, or all of them do.
            data.iter_mut().skip(bytes / 3 * usize::from(2 - shrinks)).for_each(|byte| *byte &= 15);
        }
        let mut ends: Vec<u64> = cuts.iter().map(|cut| (cut * bytes as f64) as u64).collect();
        ends.push(bytes as u64);
        ends.sort_unstable();
        let ends: Vec<(u64, u64)> = ends.into_iter().map(|end| (end, end)).collect();
        let index = write(store, &path, &compressed(compression), &data, &pieces, &ends).unwrap();
        let run = RunFile::open(store, &path).unwrap();
        prop_assert_eq!(run.index(), &index);
        prop_assert_eq!(run.header(), &compressed(compression));
        let stat = store.stat(&path).unwrap().unwrap();
        prop_assert_eq!(stat.bytes, index.file_bytes().unwrap());
        let most = file_bytes_max(compression, bytes as u64, ends.len() as u64).unwrap();
        prop_assert!(stat.bytes <= most && index.stored_bytes() <= bytes as u64);
        if shrinks == 2 && bytes > 1000 && compression == RunCompression::Zstd {
            prop_assert!(index.stored_bytes() < bytes as u64 / 3 * 2);
        }
        prop_assert_eq!(&index.ends, &ends);
        let buckets = run.buckets();
        let mut range = [segment.0, segment.1].map(|at| (at * (buckets + 1) as f64) as usize);
        range.sort_unstable();
        let (bytes, records) = run.segment(range[0]..range[1]).unwrap();
        prop_assert_eq!(bytes.end - bytes.start, records);
        let whole = run.segment(0..buckets).unwrap();
        prop_assert_eq!(whole, (0..data.len() as u64, data.len() as u64));
        let want = &data[bytes.start as usize..bytes.end as usize];
        let inside = run.blocks_inside(&bytes);
        let data_at = HEADER_BYTES as u64..HEADER_BYTES as u64 + index.stored_bytes();
        prop_assert!(inside.start >= data_at.start && inside.end <= data_at.end.max(inside.start));
        prop_assert!(read(&run, bytes).unwrap() == want);
        prop_assert!(run.blocks_inside(&(0..0)).is_empty());
        prop_assert!(run.segment(0..buckets + 1).is_err());
    }

    /// Bytes that were never a run file: an error, whatever they are.
    #[test]
    fn anything_else_is_refused(
        bytes in vec(any::<u8>(), 0..20_000),
        blocks in 0_usize..6,
        head in any::<bool>(),
        tail in any::<bool>(),
    ) {
        let (store, path, sound) = small();
        let mut file = bytes;
        if blocks > 0 {
            file.resize(blocks * crate::BLOCK_BYTES, 0);
        }
        if head && file.len() >= HEADER_BYTES {
            file[..HEADER_BYTES].copy_from_slice(&sound[..HEADER_BYTES]);
        }
        if tail && file.len() >= FOOTER_BYTES {
            let at = file.len() - FOOTER_BYTES;
            file[at..].copy_from_slice(&sound[sound.len() - FOOTER_BYTES..]);
        }
        put(&store, path, &file);
        prop_assert!(RunFile::open(&store, path).is_err());
    }

    /// A sound file with pieces overwritten, moved or cut: the same bytes come back, or an error.
    #[test]
    fn mutations_are_found(
        edits in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_usize..5000, 0_u8..4), 1..4),
        crc_again in any::<bool>(),
        compression in select(&COMPRESSIONS),
    ) {
        let (store, path, sound) = small_of(compression);
        let want = read_all(&store, path).unwrap();
        let mut file = sound.clone();
        for (at, from, bytes, edit) in edits {
            let (at, from) = (at.index(file.len()), from.index(file.len()));
            let bytes = bytes.min(file.len() - at).min(file.len() - from);
            match edit {
                0 => file.copy_within(from..from + bytes, at),
                1 => file[at..at + bytes].fill(0),
                2 => file[at] ^= 1 << (from % 8),
                _ => drop(file.drain(at..at + bytes)),
            }
        }
        if crc_again {
            mend_crcs(&mut file);
        }
        put(&store, path, &file);
        if let Ok(found) = read_all(&store, path) {
            prop_assert!(found == want || crc_again);
        }
    }

    /// Headers and footers that say anything, with good CRCs: no panic, and no memory beyond the file's.
    #[test]
    fn good_crcs_over_nonsense(
        fields in vec((0_usize..52, any::<u64>(), 0_u32..64), 1..4),
        in_header in any::<bool>(),
        in_index in any::<bool>(),
        compression in select(&COMPRESSIONS),
    ) {
        let (store, path, mut file) = small_of(compression);
        let length = file.len();
        for (at, value, shift) in fields {
            let start = match (in_header, in_index) {
                (true, _) => 12 + at,
                (_, true) => length - crate::BLOCK_BYTES + at,
                _ => length - FOOTER_BYTES + at % 40,
            };
            file[start..start + 8].copy_from_slice(&(value >> shift).to_le_bytes());
        }
        mend_crcs(&mut file);
        put(&store, path, &file);
        let _ = read_all(&store, path);
        let spy = Spy {
            file: store.open(path, Caching::Cached).unwrap(),
            bytes: AtomicUsize::new(0),
        };
        let _ = read_index(&spy, length as u64);
        // A first and a last block, and the index, of which nothing is larger in memory than in the file.
        let asked = spy.bytes.load(Ordering::Relaxed);
        prop_assert!(asked <= length + 2 * crate::BLOCK_BYTES, "{asked} of {length}");
    }
}

/// Counts what it is asked for: what a reader allocates.
#[derive(Debug)]
struct Spy {
    file: Box<dyn ReadFile>,
    bytes: AtomicUsize,
}

impl ReadFile for Spy {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.bytes.fetch_add(buffer.len(), Ordering::Relaxed);
        self.file.read_at(buffer, offset)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Makes the CRCs of header, index and footer agree with whatever is there.
fn mend_crcs(file: &mut [u8]) {
    if file.len() < HEADER_BYTES + crate::BLOCK_BYTES {
        return;
    }
    let mut set = |range: std::ops::Range<usize>, at: usize| {
        let crc = crc32fast::hash(&file[range]).to_le_bytes();
        file[at..at + 4].copy_from_slice(&crc);
        crc
    };
    let header_crc = set(0..HEADER_BYTES - 4, HEADER_BYTES - 4);
    let length = file.len();
    let footer_at = length - FOOTER_BYTES;
    let field = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let stored_bytes = match file[length - 12] {
        2 => field(footer_at + 40),
        _ => field(footer_at + 16),
    };
    let tail_at = stored_bytes.saturating_add(HEADER_BYTES as u64);
    file[footer_at + 36..footer_at + 40].copy_from_slice(&header_crc);
    let mut set = |range: std::ops::Range<usize>, at: usize| {
        let crc = crc32fast::hash(&file[range]).to_le_bytes();
        file[at..at + 4].copy_from_slice(&crc);
    };
    if tail_at <= footer_at as u64 {
        set(tail_at as usize..footer_at, footer_at + 32);
    }
    set(footer_at..footer_at + 48, footer_at + 48);
}

#[test]
fn another_version_is_refused_by_name() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-version-0");
    let error = RunFile::open(&Local, &path).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    let text = error.to_string();
    assert!(
        text.contains("run file version 0; this program reads versions 1 and 2"),
        "{text}"
    );
    assert!(text.contains("run-version-0"), "{text}");
    let (store, path, mut file) = small();
    let version_at = file.len() - 12;
    file[version_at] = 7;
    put(&store, path, &file);
    let text = RunFile::open(&store, path).unwrap_err().to_string();
    assert!(
        text.contains("run file version 7; this program reads versions 1 and 2"),
        "{text}"
    );
}

/// The file that this version writes stays readable: what a later version must still read, or refuse by name.
#[test]
fn the_fixture_of_this_version_is_what_is_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-version-1");
    let store = Memory::with_room_for(1 << 20);
    let shape = LineShape { descending: true }.kind();
    let index = write(
        &store,
        &path,
        &header(shape),
        b"two\none\n",
        &[4],
        &[(4, 1), (8, 2)],
    )
    .unwrap();
    assert_eq!(
        std::fs::read(&path).unwrap(),
        store.bytes_of(&path).unwrap()
    );
    let (found, found_index, data) = read_all(&Local, &path).unwrap();
    assert_eq!((found, found_index), (header(shape), index));
    assert_eq!(data, b"two\none\n");
}

#[test]
fn ends_that_are_not_what_was_written_are_refused() {
    let store = Memory::with_room_for(1 << 20);
    let fixed = Fixed {
        record_bytes: 4,
        key_bytes: 2,
        descending: false,
    }
    .kind();
    let lines = LineShape { descending: false }.kind();
    let cases: [(ShapeKind, &[(u64, u64)]); 7] = [
        (lines, &[]),
        (lines, &[(8, 2), (4, 1)]),
        (lines, &[(4, 2), (8, 1)]),
        (lines, &[(4, 1)]),
        (lines, &[(8, 0)]),
        (lines, &[(8, 9)]),
        (fixed, &[(3, 1), (8, 2)]),
    ];
    for (shape, ends) in cases {
        let error = write(
            &store,
            "/run".as_ref(),
            &header(shape),
            b"abc\nabc\n",
            &[8],
            ends,
        )
        .unwrap_err();
        assert_eq!(error.kind(), Kind::Bug, "{ends:?}");
    }
    let mut long = header(lines);
    long.job_id = "j".repeat(257);
    assert!(write(&store, "/run".as_ref(), &long, b"", &[1], &[]).is_err());
    let none = Fixed {
        record_bytes: 0,
        key_bytes: 0,
        descending: false,
    }
    .kind();
    assert!(write(&store, "/run".as_ref(), &header(none), b"", &[1], &[]).is_err());
    // An empty run is a run, with or without buckets.
    for ends in [&[][..], &[(0, 0), (0, 0)]] {
        write(&store, "/run".as_ref(), &header(lines), b"", &[1], ends).unwrap();
        let (_, index, data) = read_all(&store, "/run".as_ref()).unwrap();
        assert_eq!((index.ends.as_slice(), data.len()), (ends, 0));
        store.remove("/run".as_ref()).unwrap();
    }
}

/// Whatever call fails, and however: an error, or the bytes that were written.
#[test]
fn faults_at_every_call() {
    COMPRESSIONS
        .iter()
        .for_each(|compression| faults_of(*compression));
}

fn faults_of(compression: RunCompression) {
    let mut data = noise(3 * BLOCK_BYTES);
    data[BLOCK_BYTES..].iter_mut().for_each(|byte| *byte &= 15);
    let ends = [(data.len() as u64, data.len() as u64)];
    let path = Path::new("/run");
    let work = |store: &Faulty<Memory>| -> Result<Vec<u8>> {
        let header = compressed(compression);
        write(store, path, &header, &data, &[7000, 9000], &ends)?;
        Ok(read_all(store, path)?.2)
    };
    let faulty = |fault, from| {
        let plan = FaultPlan {
            fault,
            from,
            to: from + 1,
        };
        Faulty::new(Memory::with_room_for(1 << 24), plan)
    };
    let sound = faulty(Fault::Short, u64::MAX - 1);
    assert!(work(&sound).unwrap() == data);
    for fault in [
        Fault::Code(5),
        Fault::Code(28),
        Fault::Short,
        Fault::BitFlip,
    ] {
        for call in 0..sound.calls() {
            // A flip may hit what a read brought along and nobody uses; what is used is right then.
            match work(&faulty(fault, call)) {
                Ok(found) => assert!(
                    fault == Fault::BitFlip && found == data,
                    "{fault:?} at {call}"
                ),
                Err(error) => assert!(error.to_string().contains("/run"), "{error}"),
            }
        }
    }
}
