//! Where files of a table are cut into tasks: where rows begin, which is known only from the beginning of a file on.
//!
//! ```text
//!   offset asked for          ▼
//!   a,b LF "x LF y",1 LF "z LF LF LF",2 LF c,d LF
//!                        └── quotes ───┘   ▲ the first row that begins behind it
//! ```
//!
//! Most blocks have no quotes: one look at them is enough. All bytes before the last offset are read here, once.

use super::RowsForm;
use super::header::beginning_of_file;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::Result;
use gristmill_base::record::row_ends::RowEnds;
use gristmill_base::record::table_keys::TableKeys;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::window::in_order;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, ReadFile};

/// Bytes that are read at once.
const SCAN_BYTES: usize = 4 << 20;

/// Where the first row begins at or behind offsets of files, which are asked for in their order.
#[derive(Default)]
pub(in crate::jobs) struct Starts {
    scan: Option<(usize, Scan)>,
}

impl Starts {
    /// The one of a file, by its number.
    ///
    /// # Errors
    /// The file cannot be read, or the job is to stop.
    pub(in crate::jobs) fn of(
        &mut self,
        job: &RunningJob<'_>,
        (number, input): (usize, &InputFile),
        offset: u64,
        table: &TableKeys,
    ) -> Result<u64> {
        if offset == 0 || offset >= input.stat.bytes {
            return Ok(offset);
        }
        let scan = match self.scan.take() {
            Some((of, scan)) if of == number => scan,
            _ => {
                let mut scan = Scan::begin(job.store(), input, table.row_ends_of_file())?;
                scan.least = behind_header(job.store(), input, table)?;
                scan
            }
        };
        let (_, scan) = self.scan.insert((number, scan));
        let start = scan.row_start(offset, input.stat.bytes, || job.check_cancelled())?;
        Ok(start.max(scan.least))
    }
}

/// How far a file was looked at.
struct Scan {
    file: Box<dyn ReadFile>,
    ends: RowEnds,
    block: Vec<u8>,
    /// Where in the file the block begins, and how much of it is there.
    at: u64,
    filled: usize,
    /// How much of it was looked at.
    looked: usize,
    /// Where the row began that was found last.
    found: u64,
    /// No row begins before it but the first, which stays with the comments in front of it.
    least: u64,
}

/// Where the second row of a file begins, if comments may stand before the first.
fn behind_header(store: &Stores, input: &InputFile, table: &TableKeys) -> Result<u64> {
    if table.comment.is_none() {
        return Ok(0);
    }
    let begins = beginning_of_file(store, (input, None), RowsForm::of(table))?;
    Ok(begins.behind_header())
}

impl Scan {
    fn begin(store: &Stores, input: &InputFile, ends: RowEnds) -> Result<Self> {
        let opened = store.open_input(input, Caching::Cached)?;
        Ok(Scan {
            file: in_order(opened, 0..input.stat.bytes),
            ends,
            block: vec![0; SCAN_BYTES],
            at: 0,
            filled: 0,
            looked: 0,
            found: 0,
            least: 0,
        })
    }

    /// Where the first row begins at or behind `offset`, or the file's end. Offsets ascend.
    fn row_start(
        &mut self,
        offset: u64,
        file_bytes: u64,
        mut stop: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        while self.found < offset {
            let rest = self.block.get(self.looked..self.filled).unwrap_or_default();
            // Before the offset, no row's beginning is of interest.
            let wanted = offset.saturating_sub(self.at) as usize;
            let before = wanted.min(self.filled).saturating_sub(self.looked);
            let before = rest.get(..before).unwrap_or_default();
            let passed = self.ends.pass_over(before);
            if passed > 0 {
                let ended = before.get(passed - 1) == Some(&b'\n');
                self.looked += passed;
                if ended {
                    self.found = self.at + self.looked as u64;
                }
                continue;
            }
            if let Some(length) = self.ends.rest(rest) {
                self.looked += length;
                self.found = self.at + self.looked as u64;
                continue;
            }
            self.at += self.filled as u64;
            stop()?;
            self.filled = self.file.read_at(&mut self.block, self.at)?;
            self.looked = 0;
            if self.filled == 0 {
                self.found = file_bytes;
            }
        }
        Ok(self.found)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use gristmill_base::record::comment::CommentMark;
    use gristmill_storage::OutputStore as _;
    use gristmill_storage::memory::Memory;
    use gristmill_tasks::split::input_files;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just("a,b\n".to_owned()),
            2 => Just("# a,\"b\n".to_owned()),
            2 => Just("/\"a,\n/\n//\"b\n".to_owned()),
            1 => (1_usize..5000).prop_map(|length| format!("#{},\"\n", "z".repeat(length))),
            2 => Just("\"x\ny\",\"\"\"\"\r\n".to_owned()),
            1 => Just("5\" nail,\n".to_owned()),
            1 => (1_usize..5000).prop_map(|length| format!("{},\n", "z".repeat(length))),
            1 => (1_usize..5000).prop_map(|length| format!("\"{}\",1\n", "\n".repeat(length))),
        ];
        (proptest::collection::vec(piece, 1..30), any::<bool>()).prop_map(|(pieces, ended)| {
            let mut text = pieces.concat().into_bytes();
            if !ended {
                text.pop();
            }
            text
        })
    }

    /// Where rows begin, row by row; and the end.
    fn starts(text: &[u8], mut ends: RowEnds) -> Vec<u64> {
        let (mut starts, mut at) = (vec![0], 0);
        while let Some(length) = ends.rest(&text[at..]) {
            at += length;
            starts.push(at as u64);
        }
        starts.push(text.len() as u64);
        starts
    }

    proptest! {
        #[test]
        fn rows_begin_where_a_reader_from_the_start_finds_them(
            text in text(),
            step in 1_u64..3000,
            block in 1_usize..700,
            comment in prop_oneof![Just(""), Just("#"), Just("//"), Just("#z")],
        ) {
            let memory = Memory::with_room_for(1 << 30);
            let bytes = text.len() as u64;
            let file = memory.create("/t".as_ref(), bytes, Caching::Cached).unwrap();
            file.write_at(&text, 0).unwrap();
            let stores = Stores::new(Arc::new(memory));
            let files = input_files(&stores, &["/t".into()]).unwrap();
            let ends = RowEnds::of_file(b',').with_comment(CommentMark::new(comment.as_bytes()));
            let mut scan = Scan::begin(&stores, &files[0], ends.clone()).unwrap();
            scan.block = vec![0; block];
            let all = starts(&text, ends);
            for offset in (1..bytes).step_by(step as usize) {
                let want = all.iter().copied().find(|start| *start >= offset);
                let found = scan.row_start(offset, bytes, || Ok(())).unwrap();
                prop_assert_eq!(Some(found), want, "{}", offset);
            }
        }
    }
}
