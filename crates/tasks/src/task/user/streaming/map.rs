//! A map task: the records of a split, through the mapper, to wherever pairs go.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};

use super::definition::{SelectStep, StreamingStep};
use super::sink::MapSink;
use super::skip::{Fewer, Skipper};
use super::{ScriptAttempt, StreamSplit, StreamingExecutor};
use crate::hadoop::script::input::{Pair, RecordReader, open};
use crate::hadoop::script::pipes::{Stdin, Stdout};
use crate::hadoop::script::protocol::{Protocol, ScriptReader, ScriptWriter};
use crate::hadoop::select::FieldSelection;
use crate::hadoop::value::WritableClass;
use crate::task::user::spec::UserTaskReport;
use gristmill_base::error::Result;

/// Records between two notes of progress.
const NOTE_RECORDS: u64 = 4096;

pub(super) fn run(
    work: &StreamingExecutor,
    attempted: &ScriptAttempt<'_>,
    split: &StreamSplit,
    bytes: u64,
) -> Result<UserTaskReport> {
    let mut report = UserTaskReport::default();
    let mut sink = MapSink::new(work, attempted)?;
    let definition = attempted.definition;
    let records_in = match &definition.map {
        StreamingStep::Script(argv) => by_script(attempted, argv, split, &mut sink, &mut report)?,
        StreamingStep::Select(select) => {
            let selection = FieldSelection::parse(&select.spec, select.separator.as_bytes())?;
            let mut record = Vec::new();
            each(attempted, split, |(key, value)| {
                selected_from(select, key, value, &mut record);
                let (key, value) = selection.select(&record, true);
                // What was not selected is empty in a map's output, where it is nothing in a reduce's.
                sink.emit(
                    &key.unwrap_or_default(),
                    Some(&value.unwrap_or_default()),
                    &mut report,
                )
            })?
        }
        StreamingStep::Inverse => each(attempted, split, |(key, value)| {
            sink.emit(value.1, Some(key.1), &mut report)
        })?,
        StreamingStep::Identity | StreamingStep::Aggregate => {
            each(attempted, split, |(key, value)| {
                sink.emit(key.1, Some(value.1), &mut report)
            })?
        }
    };
    sink.finish(work, &mut report)?;
    (report.records_in, report.bytes_in) = (records_in, bytes);
    Ok(report)
}

/// A run of the script that does not count.
pub(super) fn trial(
    attempted: &ScriptAttempt<'_>,
    argv: &[OsString],
    split: &StreamSplit,
) -> Result<()> {
    let mut report = UserTaskReport::default();
    by_script(attempted, argv, split, &mut MapSink::Nowhere, &mut report).map(|_| ())
}

/// The record that fields are selected from: the key right before the value, as Hadoop has it.
fn selected_from(
    select: &SelectStep,
    key: (WritableClass, &[u8]),
    value: (WritableClass, &[u8]),
    out: &mut Vec<u8>,
) {
    out.clear();
    if !select.ignore_key {
        key.0.display(key.1, out);
    }
    value.0.display(value.1, out);
}

/// Calls `act` with each record of a split; gives their number.
fn each(
    attempted: &ScriptAttempt<'_>,
    split: &StreamSplit,
    mut act: impl FnMut(Pair<'_>) -> Result<()>,
) -> Result<u64> {
    let definition = attempted.definition;
    let mut count = 0_u64;
    for piece in &split.pieces {
        let (store, _) = attempted.store.resolve(&piece.file.path)?;
        let mut records = open(store, &definition.format, piece)?;
        while records.advance()? {
            act(records.pair())?;
            count += 1;
            if count.is_multiple_of(NOTE_RECORDS) {
                attempted.attempt.progress(0)?;
            }
        }
        attempted.attempt.progress(piece.bytes)?;
    }
    Ok(count)
}

fn by_script(
    attempted: &ScriptAttempt<'_>,
    argv: &[OsString],
    split: &StreamSplit,
    sink: &mut MapSink<'_>,
    report: &mut UserTaskReport,
) -> Result<u64> {
    let streams = &attempted.definition.map_streams;
    let mut ran = UserTaskReport::default();
    let take = |stdout: &mut Stdout<'_>| {
        let source = |buffer: &mut [u8]| Ok(stdout.read(buffer));
        let separator = streams.output_separator.as_bytes().to_vec();
        let mut reader = ScriptReader::new(source, streams.output, separator, streams.key_fields);
        let has_value = streams.output != Protocol::KeyOnlyText;
        loop {
            let block = reader.many()?;
            if !block.is_empty() {
                sink.emit_block(block, report)?;
                continue;
            }
            if !reader.advance()? {
                return Ok(());
            }
            let (key, value) = reader.pair();
            sink.emit(key, has_value.then_some(value), report)?;
        }
    };
    let feed = |stdin: &mut Stdin<'_>, fed: &AtomicU64| feed(attempted, split, stdin, fed);
    let piece = split.pieces.first();
    let ((), (count, skipper)) = attempted.script("mapper", argv, piece, &mut ran, feed, take)?;
    if let Some(skipper) = skipper {
        attempted.left_out(skipper, report)?;
    }
    super::add_counters(&mut report.counters, &ran.counters);
    report.printed.stderr.push_str(&ran.printed.stderr);
    if !ran.status.is_empty() {
        report.status = ran.status;
    }
    Ok(count)
}

/// Writes the records of a split to a script; what it does not want to read is counted all the same, unless it failed.
fn feed<'a>(
    attempted: &'a ScriptAttempt<'_>,
    split: &StreamSplit,
    stdin: &mut Stdin<'_>,
    fed: &AtomicU64,
) -> Result<(u64, Option<Skipper<'a>>)> {
    let definition = attempted.definition;
    let streams = &definition.map_streams;
    let writer = ScriptWriter {
        protocol: streams.input,
        separator: streams.input_separator.as_bytes().to_vec(),
        ignore_key: streams.ignore_key,
    };
    let as_they_are = streams.input == Protocol::Text && streams.ignore_key;
    let mut count = 0;
    let mut skipper = attempted.skipper(definition.input_classes)?;
    for piece in &split.pieces {
        let (store, _) = attempted.store.resolve(&piece.file.path)?;
        let mut records = open(store, &definition.format, piece)?;
        if let Some(skipper) = &mut skipper {
            records = Box::new(Fewer::new(records, skipper));
        }
        let noted = feed_piece(
            attempted,
            &mut *records,
            &writer,
            as_they_are,
            stdin,
            fed,
            &mut count,
        )?;
        attempted
            .attempt
            .progress(piece.bytes.saturating_sub(noted))?;
    }
    Ok((count, skipper))
}

fn feed_piece(
    attempted: &ScriptAttempt<'_>,
    records: &mut dyn RecordReader,
    writer: &ScriptWriter,
    as_they_are: bool,
    stdin: &mut Stdin<'_>,
    fed: &AtomicU64,
    count: &mut u64,
) -> Result<u64> {
    let (mut open, mut noted) = (true, 0);
    loop {
        if as_they_are {
            let (lines, bytes) = records.many()?;
            if lines > 0 {
                if open {
                    open = stdin.write(bytes);
                    fed.fetch_add(lines, Ordering::Relaxed);
                } else {
                    stdin.check_wanted()?;
                }
                *count += lines;
                noted += bytes.len() as u64;
                attempted.attempt.progress(bytes.len() as u64)?;
                continue;
            }
        }
        if !records.advance()? {
            return Ok(noted);
        }
        *count += 1;
        if open {
            let (key, value) = records.pair();
            writer.write(key, value, stdin.buffer());
            open = stdin.gathered();
            fed.fetch_add(1, Ordering::Relaxed);
        } else {
            stdin.check_wanted()?;
        }
        if count.is_multiple_of(NOTE_RECORDS) {
            attempted.attempt.progress(0)?;
        }
    }
}
