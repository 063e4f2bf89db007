//! Scatters the lines of one split: an entry for each to its bucket, and the checksum of all.
//!
//! ```text
//!   file ──mapped where it lies, or read──▶ arena ──eight lines at a time──▶ checksum
//!                                                                        └─▶ bucket of each ──▶ ScatteredLines
//! ```
//!
//! Lines stay in the arena. A last line without a newline counts as one with it, in the sum and in all lengths.
//!
//! Decision: docs/decisions/lines-in-memory.md.

use memchr::Memchr;

use gristmill_base::budget::Budget;
use gristmill_base::error::Result;
use gristmill_base::order::lines::{
    Buckets, LineEntry, LineStaging, ScatteredLines, TOGETHER, leading,
};
use gristmill_base::record::arena::{Arena, ArenaClaim};
use gristmill_base::record::sum::line_crc;
use gristmill_storage::Caching;
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::io::direct::ended_early;
use gristmill_storage::stores::Stores;

/// Bytes between two notes of progress.
const PROGRESS_BYTES: usize = 1 << 20;

/// What a task reads from, and how.
#[derive(Debug)]
pub struct LineInput<'a> {
    /// Where the files are.
    pub store: &'a Stores,
    /// Where their bytes lie, or come to lie.
    pub arena: &'a Arena,
    /// All files of the input.
    pub files: &'a [InputFile],
    /// Finds buckets.
    pub buckets: &'a Buckets<'a>,
    /// The job's memory.
    pub budget: &'a Budget,
}

/// What a split held.
#[derive(Debug)]
pub struct LineOutput {
    /// Its lines, by bucket.
    pub lines: ScatteredLines,
    /// The sum of their CRCs.
    pub checksum: u128,
    /// Their bytes, newlines that were missing included.
    pub bytes: u64,
    /// How many there are.
    pub records: u64,
    /// Bytes of the longest.
    pub longest: u64,
}

/// Scatters the lines of the split made of `pieces`, each of which begins where a line does. `progress` is told of bytes as
/// they are done, and may stop the task.
pub fn scatter_lines(
    input: &LineInput<'_>,
    pieces: &[InputRange],
    staging: &mut LineStaging,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<LineOutput> {
    staging.begin(input.buckets.count())?;
    let mut scatter = Scatter {
        input,
        staging,
        progress,
        lines: ScatteredLines::default(),
        checksum: 0,
        longest: 0,
    };
    let mut claims = Vec::new(); // kept when all is well: a retry must find the memory free
    for piece in pieces {
        let start = input.arena.start_of(piece.file) + piece.offset;
        match input.arena.mapped(start..start + piece.bytes) {
            Some(data) => scatter.take(data, start)?,
            None => {
                let mut claim = read_piece(input, piece, start)?;
                scatter.take(&claim.bytes()[..piece.bytes as usize], start)?;
                claims.push((claim, piece.bytes));
            }
        }
    }
    let Scatter {
        staging,
        mut lines,
        checksum,
        longest,
        ..
    } = scatter;
    staging.finish(&mut lines, input.budget)?;
    claims
        .into_iter()
        .for_each(|(claim, bytes)| claim.keep(bytes));
    let sizes = lines.sizes().iter();
    let (bytes, records) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    Ok(LineOutput {
        lines,
        checksum,
        bytes,
        records,
        longest: longest as u64,
    })
}

/// A split on its way.
struct Scatter<'a, 'i> {
    input: &'a LineInput<'i>,
    staging: &'a mut LineStaging,
    progress: &'a dyn Fn(u64) -> Result<()>,
    lines: ScatteredLines,
    checksum: u128,
    longest: usize,
}

impl Scatter<'_, '_> {
    /// Takes the lines of `data`, which lies at `position`.
    fn take(&mut self, data: &[u8], position: u64) -> Result<()> {
        let mut ends = memchr::memchr_iter(b'\n', data);
        let (mut start, mut noted) = (0, 0);
        while start < data.len() {
            if self.staging.room() < TOGETHER {
                self.staging.scatter(&mut self.lines, self.input.budget)?;
            }
            start = self.take_some(data, position, start, &mut ends);
            if start - noted >= PROGRESS_BYTES {
                (self.progress)((start - noted) as u64)?;
                noted = start;
            }
        }
        (self.progress)((data.len() - noted) as u64)
    }

    /// Takes the next few lines, from `start` on; gives where the one behind them begins.
    #[inline]
    fn take_some(
        &mut self,
        data: &[u8],
        position: u64,
        mut start: usize,
        ends: &mut Memchr<'_>,
    ) -> usize {
        let buckets = self.input.buckets;
        let mut keys: [&[u8]; TOGETHER] = [&[]; TOGETHER];
        let mut leadings = [0; TOGETHER];
        let (mut at, mut count) = (start, 0);
        while count < TOGETHER && at < data.len() {
            let end = ends.next().unwrap_or(data.len());
            keys[count] = &data[at..end];
            leadings[count] = leading(&data[at..], end - at);
            (at, count) = ((end + 1).min(data.len()), count + 1);
        }
        let near = buckets.near(&leadings);
        for ((key, leading), near) in keys.iter().zip(leadings).zip(near).take(count) {
            let place = position + start as u64;
            let bucket = buckets.settle(near, leading, key, place);
            let length = key.len() + 1;
            let end = (start + length).min(data.len());
            self.checksum += u128::from(line_crc(&data[start..end]));
            self.longest = self.longest.max(length);
            self.staging
                .push(bucket, LineEntry::new(place, length), length);
            start = end;
        }
        start
    }
}

/// Reads a piece to its place in the arena.
fn read_piece<'a>(input: &LineInput<'a>, piece: &InputRange, start: u64) -> Result<ArenaClaim<'a>> {
    let found = &input.files[piece.file];
    let file = input.store.open_input(found, Caching::Cached)?;
    let mut claim = input.arena.claim(start..start + piece.bytes)?;
    let memory = &mut claim.bytes()[..piece.bytes as usize];
    let read = file.read_at(memory, piece.offset)?;
    if read < memory.len() {
        let wanted = piece.offset + piece.bytes;
        let path = found.path.as_typed();
        return Err(ended_early(path, wanted, piece.offset + read as u64));
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use gristmill_base::order::borders::Border;
    use gristmill_base::record::shape::LineShape;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{Caching, OutputStore};

    /// Two files that are read: all their lines by bucket, the last of each with a newline that was missing.
    #[test]
    fn lines_of_files_are_scattered() {
        let store = Memory::with_room_for(1000);
        let texts: [&[u8]; 3] = [b"pear\nfig\n\nplum", b"", b"apple\nfig\n"];
        for (number, text) in texts.iter().enumerate() {
            let path = format!("/{number}");
            let file = store.create(path.as_ref(), text.len() as u64, Caching::Cached);
            file.unwrap().write_at(text, 0).unwrap();
        }
        let stores = Stores::new(Arc::new(store));
        let files = ["/0", "/1", "/2"].map(|path| InputFile {
            path: path.into(),
            stat: stores.stat(&path.into()).unwrap().unwrap(),
        });
        let mut arena = Arena::reserve(&[14, 0, 10]).unwrap();
        (0..3).for_each(|file| arena.make_writable(file).unwrap());
        let borders = [Border {
            key: b"fig".to_vec(),
            position: 100,
        }];
        let budget = Budget::new(1 << 20);
        let input = LineInput {
            store: &stores,
            arena: &arena,
            files: &files,
            buckets: &Buckets::new(LineShape { descending: false }, &borders),
            budget: &budget,
        };
        let piece = |file, bytes| InputRange {
            file,
            offset: 0,
            bytes,
        };
        let pieces = [piece(0, 14), piece(2, 10)];
        let out = scatter_lines(&input, &pieces, &mut LineStaging::default(), &|_| Ok(())).unwrap();
        arena.seal().unwrap();
        let sum = [
            &b"pear\n"[..],
            b"fig\n",
            b"\n",
            b"plum\n",
            b"apple\n",
            b"fig\n",
        ]
        .map(crc32fast::hash);
        assert_eq!(out.checksum, sum.map(u128::from).iter().sum());
        assert_eq!((out.bytes, out.records, out.longest), (25, 6, 6));
        assert_eq!(out.lines.sizes(), [(11, 3), (14, 3)]);
        let found: Vec<LineEntry> = out
            .lines
            .slices(0, 2)
            .flat_map(|(_, words)| words.iter().map(|word| LineEntry::of_word(*word)))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|entry| (entry.position(), entry.length()))
            .collect();
        assert_eq!(
            found,
            [(5, 4), (9, 1), (4096, 6), (0, 5), (10, 5), (4102, 4)]
        );
    }
}
