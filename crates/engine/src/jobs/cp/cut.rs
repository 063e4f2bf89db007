//! Files that several tasks copy: begun before a stage of the round, joined behind it.
//!
//! ```text
//!   long file ── not there, or to be replaced ──▶ staged file, or upload ──▶ pieces ─ stage ─▶ reports ──▶ all there: joined
//!             └─ there: compared, and copied whole, by one task                                      └──▶ one failed: ended
//! ```
//!
//! The history has the reports of pieces. A job that is resumed goes on with what was begun, if the source is what it was and the
//! file that was begun is still there: it looks at the pieces that it knows, and copies the others.
//!
//! The rule that must hold: a file is joined from the reports of its pieces alone, all of one version of the source.
//!
//! Decision: docs/decisions/cut-files.md.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pieces::PieceSizes;
use crate::jobs::steps::ReplayedHistory;
use gristmill_base::error::{Error, Result};
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::location::Location;
use gristmill_storage::objects::{Upload, UploadPart};
use gristmill_storage::stores::Stores;
use gristmill_storage::{CutFile, FileKind, PieceStore, Publisher, Stat};
use gristmill_tasks::split::asked_at_once;
use gristmill_tasks::task::{
    CopiedPiece, CopyItem, CopyPiece, CopyReport, CopyRules, CopySource, ExistingFile,
    JoinedPieces, TaskReport, found_at,
};

/// Pieces for each worker that are begun together: so much room is taken at once, and workers wait for each other once.
const PIECES_AT_ONCE: usize = 32;

/// What the history of a job that was killed says of pieces, by where they go.
#[derive(Debug, Default)]
pub(super) struct KnownPieces(BTreeMap<Location, Vec<CopiedPiece>>);

impl KnownPieces {
    pub(super) fn of(resumed: Option<&ReplayedHistory>) -> Self {
        let mut known: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let (reports, cwd) = resumed.map_or((&[][..], Path::new("")), ReplayedHistory::uploaded);
        for text in reports {
            // What cannot be read is copied again.
            let Ok(TaskReport::CopyFiles(report)) = serde_json::from_str(text) else {
                continue;
            };
            for mut piece in report.pieces {
                // A job that is resumed has absolute names.
                piece.from = piece.from.rooted(cwd);
                piece.upload.path = piece.upload.path.rooted(cwd);
                let pieces = known.entry(piece.upload.path.clone()).or_default();
                pieces.push(piece);
            }
        }
        KnownPieces(known)
    }

    /// What was begun, as its place names it: it is not ended before it is known whether it is of use.
    pub(super) fn uploads(&self) -> BTreeSet<(PathBuf, String)> {
        let pieces = self.0.values().flatten();
        let uploads = pieces.map(|piece| &piece.upload);
        uploads
            .map(|upload| (upload.path.as_typed().to_owned(), upload.id.clone()))
            .collect()
    }

    /// The pieces of a file of this version, with the name of the upload that they are in: of the one that was begun last.
    fn of_file(&self, item: &CopyItem, stat: &Stat) -> Option<(&str, Vec<&CopiedPiece>)> {
        let pieces = self.0.get(&item.to)?;
        let is_same = |piece: &&CopiedPiece| piece.stat == *stat && piece.from == item.from;
        let id = &*pieces.iter().rfind(is_same)?.upload.id;
        let of_id = pieces.iter().filter(|piece| piece.upload.id == id);
        Some((id, of_id.filter(is_same).collect()))
    }
}

/// A file that is long enough to be cut.
#[derive(Debug)]
pub(super) struct LongFile {
    item: CopyItem,
    stat: Stat,
    pieces: Vec<CopyItem>,
    replaces: bool,
}

impl LongFile {
    /// Each piece, as it is to be copied.
    pub(super) fn pieces(&self) -> &[CopyItem] {
        &self.pieces
    }
}

/// How the files of a round are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutter<'a> {
    /// Where they go.
    pub(super) stores: &'a Stores,
    pub(super) rules: &'a CopyRules,
    pub(super) sizes: PieceSizes,
    pub(super) workers: usize,
}

/// What a stage is to copy: files whole, and files that are long enough to be cut.
#[derive(Debug, Default)]
pub(super) struct CopyWave {
    whole: Vec<CopyItem>,
    long: Vec<CopyItem>,
}

/// The same, once the long ones are begun.
#[derive(Debug)]
pub(super) struct BegunWave {
    pub(super) whole: Vec<CopyItem>,
    pub(super) cut: Vec<LongFile>,
}

impl Cutter<'_> {
    /// How many pieces an item is copied in.
    pub(super) fn count(&self, item: &CopyItem) -> usize {
        self.ranges(item).map_or(1, |(_, ranges)| ranges.len())
    }

    /// The pieces of an item that is cut.
    pub(super) fn ranges(&self, item: &CopyItem) -> Option<(Stat, Vec<Range<u64>>)> {
        let CopySource::File(stat) = item.what else {
            return None;
        };
        let place = self.stores.publisher(&item.to)?.pieces()?;
        let ranges = self.sizes.cut(stat.bytes, place.unit_bytes(stat.bytes));
        let files = (&item.from, &item.to);
        let is_whole = ranges.len() < 2
            || self.rules.dry_run
            || self.rules.within(self.stores, files, stat.bytes).is_some();
        (!is_whole).then_some((stat, ranges))
    }

    /// The stages of a round: files that are not cut come with the first.
    pub(super) fn waves(&self, items: Vec<CopyItem>) -> Vec<CopyWave> {
        let most = self.workers.max(1) * PIECES_AT_ONCE;
        let mut waves = vec![CopyWave::default()];
        let (mut whole, mut pieces) = (Vec::new(), 0);
        for item in items {
            let count = self.count(&item);
            if count < 2 {
                whole.push(item);
                continue;
            }
            if pieces >= most {
                waves.push(CopyWave::default());
                pieces = 0;
            }
            pieces += count;
            if let Some(wave) = waves.last_mut() {
                wave.long.push(item);
            }
        }
        if let Some(first) = waves.first_mut() {
            first.whole = whole;
        }
        waves
    }

    /// Begins the long files of a wave, or goes on with them. What cannot be begun is left to a task, which says why.
    pub(super) fn begin(&self, wave: CopyWave, known: &KnownPieces) -> Result<BegunWave> {
        let CopyWave { mut whole, long } = wave;
        let at_a_time = long.first().map_or(1, |item| asked_at_once(&item.to));
        let begun = at_once(&long, at_a_time, |item| {
            Ok(self.begin_file(item, known).ok().flatten())
        })?;
        let mut cut = Vec::new();
        for (item, begun) in long.into_iter().zip(begun) {
            match begun {
                Some(file) => cut.push(file),
                None => whole.push(item),
            }
        }
        Ok(BegunWave { whole, cut })
    }

    fn begin_file(&self, item: &CopyItem, known: &KnownPieces) -> Result<Option<LongFile>> {
        let Some((listed, _)) = self.ranges(item) else {
            return Ok(None);
        };
        let found = found_at(self.stores, &item.to)?;
        let replaces = found.is_some();
        let is_compared = found.is_some_and(|found| {
            let is_other = found.kind == FileKind::File
                && match self.rules.existing {
                    ExistingFile::Overwrite => true,
                    ExistingFile::Update => found.bytes != listed.bytes,
                    ExistingFile::Refuse => false,
                };
            !is_other
        });
        // As it is now: a file of a store as it was listed.
        let now = match self.stores.pins_versions(&item.from) {
            true => Some(listed),
            false => self.stores.stat(&item.from)?,
        };
        let Some(stat) = now.filter(|now| now.kind == FileKind::File && !is_compared) else {
            return Ok(None);
        };
        let item = CopyItem {
            what: CopySource::File(stat),
            ..item.clone()
        };
        let place = self.stores.publisher(&item.to);
        match (self.ranges(&item), place.and_then(Publisher::pieces)) {
            (Some((_, ranges)), Some(place)) => {
                let (file, known) = begin_or_resume(place, &item, &stat, known)?;
                let pieces = ranges.into_iter().map(|range| CopyItem {
                    what: CopySource::Piece(CopyPiece {
                        stat,
                        file: file.clone(),
                        known: known_of(&known, &range),
                        range,
                    }),
                    ..item.clone()
                });
                Ok(Some(LongFile {
                    pieces: pieces.collect(),
                    item,
                    stat,
                    replaces,
                }))
            }
            _ => Ok(None),
        }
    }
}

fn known_of(known: &[CopiedPiece], range: &Range<u64>) -> Option<Upload> {
    let same = known.iter().rfind(|piece| piece.range == *range)?;
    Some(same.upload.clone())
}

/// A file that is begun, and its pieces that are there.
fn begin_or_resume(
    place: &dyn PieceStore,
    item: &CopyItem,
    stat: &Stat,
    known: &KnownPieces,
) -> Result<(CutFile, Vec<CopiedPiece>)> {
    if let Some((id, mut pieces)) = known.of_file(item, stat) {
        let file = CutFile {
            path: item.to.clone(),
            id: id.to_owned(),
            bytes: stat.bytes,
        };
        pieces.reverse(); // what was reported last counts
        pieces.sort_by_key(|piece| piece.range.start);
        pieces.dedup_by_key(|piece| piece.range.start);
        let parts = pieces.iter().flat_map(|piece| &piece.upload.parts);
        let parts: Vec<UploadPart> = parts.cloned().collect();
        if place.keeps(&file, &parts)? {
            return Ok((file, pieces.into_iter().cloned().collect()));
        }
    }
    let file = place.begin(item.to.as_typed(), stat.bytes)?;
    Ok((file, Vec::new()))
}

/// What the reports of a stage say of the files that were cut.
#[derive(Debug, Default)]
pub(super) struct JoinedFiles {
    /// Those whose pieces are all there, to be made seen.
    pub(super) items: Vec<CopyItem>,
    /// Those of which a piece could not be copied, and why.
    pub(super) failures: Vec<String>,
    pub(super) pieces: u64,
    pub(super) kept_pieces: u64,
}

impl JoinedFiles {
    pub(super) fn of(
        (stores, rules): (&Stores, &CopyRules),
        cut: Vec<LongFile>,
        reports: &mut [CopyReport],
    ) -> Result<Self> {
        let mut joined = JoinedFiles::default();
        let (mut copied, mut failed) = (BTreeMap::new(), BTreeMap::new());
        for report in reports {
            for piece in report.pieces.drain(..) {
                joined.pieces += 1;
                joined.kept_pieces += u64::from(piece.is_kept);
                copied.insert((piece.upload.path.clone(), piece.range.start), piece);
            }
            for piece in report.failed_pieces.drain(..) {
                failed.entry(piece.to).or_insert(piece.error);
            }
        }
        for long in cut {
            if let Some(error) = failed.remove(&long.item.to) {
                joined.failures.push(error);
                continue;
            }
            match join(stores, long, &mut copied) {
                Err(error) if rules.ignore_failures => joined.failures.push(error.to_string()),
                item => joined.items.push(item?),
            }
        }
        Ok(joined)
    }
}

fn join(
    stores: &Stores,
    long: LongFile,
    copied: &mut BTreeMap<(Location, u64), CopiedPiece>,
) -> Result<CopyItem> {
    let missing = || Error::bug("copy a file", "a piece of it was not reported");
    let (mut parts, mut file) = (Vec::new(), None);
    for piece in &long.pieces {
        let CopySource::Piece(wanted) = &piece.what else {
            return Err(missing());
        };
        let done = copied.remove(&(piece.to.clone(), wanted.range.start));
        let done = done.filter(|done| {
            done.range == wanted.range
                && done.stat == long.stat
                && done.upload.id == wanted.file.id
                && done.upload.bytes() == wanted.range.end - wanted.range.start
        });
        parts.extend(done.ok_or_else(missing)?.upload.parts);
        file = Some(&wanted.file);
    }
    let place = stores.publisher(&long.item.to);
    let place = place.and_then(Publisher::pieces);
    let (Some(file), Some(place)) = (file, place) else {
        return Err(missing());
    };
    Ok(CopyItem {
        what: CopySource::Joined(JoinedPieces {
            stat: long.stat,
            upload: place.joined(file, parts)?,
            replaces: long.replaces,
        }),
        ..long.item
    })
}
