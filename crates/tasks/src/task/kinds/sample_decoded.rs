//! Samples of the keys of compressed files: of their beginnings, as nothing can be read behind them without reading all.
//!
//! So parts of files that are sorted already are less even than those of others.

use super::sampled::{Sampled, bytes_of_key, code_of};
use super::spill::parse_keys;
use crate::spill::keyed::lines_of;
use crate::task::{TaskAttempt, TaskContext};
use gristmill_base::error::Result;
use gristmill_base::order::borders::{Border, KEY_BYTES_MAX};
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_base::record::table_keys::RowCodes;
use gristmill_storage::Caching;
use gristmill_storage::codec::{Codec, Coding, open_file};

/// Decoded bytes that are looked at, of all files together; and of one, at least and at most.
const LOOK_BYTES: usize = 128 << 20;
const LOOK_BYTES_MIN: usize = 64 << 10;
const LOOK_BYTES_MAX: usize = 4 << 20;

/// Keys that are kept of a file, at most: as many as matter for a few hundred parts.
const KEYS_MAX: usize = 4096;

/// Gives what ends a record at the beginning of some bytes, and its key; no key where it is not to count.
type Next<'n> = &'n mut dyn FnMut(&[u8]) -> Option<(usize, Option<Vec<u8>>)>;

/// The keys of the records at the beginnings of files.
pub(super) fn sample(
    decoded: &[(usize, Codec)],
    of: Sampled<'_>,
    context: &TaskContext,
    attempt: &TaskAttempt<'_>,
) -> Result<Vec<Border>> {
    let mut borders = Vec::new();
    for (file, codec) in decoded {
        attempt.progress(0)?;
        let beginning = beginning(context, *file, *codec)?;
        let keys = keys_in(of, &beginning)?;
        borders.extend(keys.into_iter().map(|key| Border { key, position: 0 }));
    }
    Ok(borders)
}

fn beginning(context: &TaskContext, file: usize, codec: Codec) -> Result<Vec<u8>> {
    let files = &context.job.files;
    let bytes = (LOOK_BYTES / files.len().max(1)).clamp(LOOK_BYTES_MIN, LOOK_BYTES_MAX);
    let input = &files[file];
    let opened = context.node.store.open_input(input, Caching::Cached)?;
    let mut reader = open_file(opened, input.path.as_typed(), Coding::Coded(codec))?;
    let mut beginning = vec![0; bytes];
    let read = reader.fill(&mut beginning)?;
    beginning.truncate(read);
    Ok(beginning)
}

fn keys_in(of: Sampled<'_>, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    Ok(match (of.shape, of.table) {
        (ShapeKind::Fixed(shape), _) => keys(bytes, &mut |rest| plain(shape, rest)),
        (ShapeKind::Lines(shape), _) => keys(bytes, &mut |rest| plain(shape, rest)),
        (ShapeKind::Pairs(_), _) => Vec::new(),
        (ShapeKind::Keyed(_), Some(table)) => {
            let mut codes = RowCodes::new(table)?;
            let (mut ends, mut is_header) = (table.row_ends_of_file(), true);
            keys(bytes, &mut |rest| {
                let length = ends.rest(rest)?;
                let mut code = Vec::new();
                let row = rest.get(..length).unwrap_or_default();
                let counts = !std::mem::take(&mut is_header);
                let known = counts && codes.encode(row, &mut code).is_ok();
                code.truncate(KEY_BYTES_MAX);
                Some((length, known.then_some(code)))
            })
        }
        (ShapeKind::Keyed(keyed), None) => {
            let gnu = parse_keys(of.keys)?;
            let lines = lines_of(&gnu);
            keys(bytes, &mut |rest| {
                let length = lines.length(rest)?;
                let line = lines.key(rest.get(..length).unwrap_or_default());
                Some((length, Some(code_of(keyed, &gnu, line))))
            })
        }
    })
}

fn plain<S: Shape>(shape: S, rest: &[u8]) -> Option<(usize, Option<Vec<u8>>)> {
    let length = shape.length(rest)?;
    let record = rest.get(..length).unwrap_or_default();
    Some((length, Some(bytes_of_key(shape.key(record)))))
}

fn keys(bytes: &[u8], next: Next<'_>) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (bytes, Vec::new());
    let (mut number, mut step) = (0_usize, 1);
    while let Some((length, key)) = next(rest) {
        if number.is_multiple_of(step) {
            found.extend(key);
        }
        if found.len() == KEYS_MAX {
            let mut keep = false;
            found.retain(|_| {
                keep = !keep;
                keep
            });
            step *= 2;
        }
        number += 1;
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::LineShape;

    #[test]
    fn keys_of_many_records_are_thinned_evenly() {
        let text: Vec<u8> = (0..20_000)
            .flat_map(|i| format!("{i:05}\n").into_bytes())
            .collect();
        let lines = LineShape { descending: false };
        let found = keys(&text, &mut |rest| plain(lines, rest));
        assert!((KEYS_MAX / 2..=KEYS_MAX).contains(&found.len()));
        let middle = String::from_utf8(found[found.len() / 2].clone()).unwrap();
        let middle: u32 = middle.parse().unwrap();
        assert!((9_000..11_000).contains(&middle), "{middle}");
    }
}
