//! Reports and errors of any kind, drawn by chance.

use std::ops::Range;

use gristmill_engine::error::JobOption;
use gristmill_engine::merge::output::MergeProof;
use gristmill_engine::order::check::{Misorder, OrderCheck};
use gristmill_engine::reduce::RangeProof;
use gristmill_engine::spill::{BucketSizes, LeftOut, SpilledRun};
use gristmill_engine::storage::agents::ReadOf;
use gristmill_engine::storage::objects::{Upload, UploadPart};
use gristmill_engine::task::{
    LargestGroup, MergeReport, MergeRunsReport, ScatterReport, TaskReport, UserTaskFile,
    UserTaskReport, ValidateReport,
};
use gristmill_engine::worker::TaskPrintout;
use gristmill_engine::{Error, Kind};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::specs::{attempt, border, entry, path, piece, text};

fn check() -> impl Strategy<Value = OrderCheck> {
    type Key = [u8; 10];
    let misorder = any::<(u64, Key, Key)>().prop_map(|(record, before, after)| Misorder {
        record,
        before,
        after,
    });
    let ends = any::<Option<(Key, Key)>>();
    (any::<(u64, u64, u64)>(), vec(misorder, 0..4), ends).prop_map(
        |((records, duplicates, misorders), first_misorders, ends)| OrderCheck {
            records,
            duplicates,
            misorders,
            first_misorders,
            ends,
        },
    )
}

fn range_proof() -> impl Strategy<Value = RangeProof> {
    (check(), any::<u128>(), upload()).prop_map(|(check, checksum, upload)| RangeProof {
        check,
        checksum,
        upload,
    })
}

fn merge_proof() -> impl Strategy<Value = MergeProof> {
    let key = || vec(any::<u8>(), 0..30);
    let ends = proptest::option::of((key(), key()));
    let check = proptest::option::of(check());
    (any::<(u64, u64, u64, u128)>(), ends, check, upload()).prop_map(
        |((records, bytes, duplicates, checksum), ends, check, upload)| MergeProof {
            records,
            bytes,
            duplicates,
            checksum,
            ends,
            check,
            upload,
        },
    )
}

fn upload() -> impl Strategy<Value = Option<Upload>> {
    let part = any::<(u64, u32, String)>();
    let parts = vec(
        part.prop_map(|(bytes, crc, etag)| UploadPart { bytes, crc, etag }),
        0..4,
    );
    let upload = (path(), any::<String>(), parts);
    proptest::option::of(upload.prop_map(|(path, id, parts)| Upload {
        path: path.into(),
        id,
        parts,
    }))
}

fn run() -> impl Strategy<Value = SpilledRun> {
    (path(), any::<[u64; 7]>(), any::<(u128, u32)>()).prop_map(
        |(
            path,
            [
                number,
                records,
                bytes,
                stored_bytes,
                longest,
                records_read,
                bytes_read,
            ],
            (sum, crc),
        )| {
            SpilledRun {
                path,
                number,
                records,
                bytes,
                stored_bytes,
                longest,
                records_read,
                bytes_read,
                checksum_read: sum,
                left_out: LeftOut {
                    bad_rows: records,
                    bytes,
                    added: number,
                    first: vec![format!("row {number}")],
                },
                index_crc: crc,
                buckets: BucketSizes::of(&[(bytes, records)]),
            }
        },
    )
}

fn work_report() -> impl Strategy<Value = UserTaskReport> {
    let file =
        (path(), any::<(u64, u64, Option<u32>)>()).prop_map(|(name, (bytes, records, crc))| {
            UserTaskFile {
                name,
                bytes,
                records,
                crc,
            }
        });
    let uploads = upload().prop_map(Vec::from_iter);
    let made = (vec(run(), 0..4), path(), vec(file, 0..4), uploads);
    let counters = btree_map(text(), btree_map(text(), any::<i64>(), 0..3), 0..3);
    let said = (text(), text(), text(), text());
    let kinds = btree_map(text(), any::<u16>(), 0..3);
    let read = any::<(u32, u64, u64)>().prop_map(|(agent, far_bytes, file_bytes)| ReadOf {
        agent,
        far_bytes,
        file_bytes,
    });
    let said = (said, vec(read, 0..3));
    (made, any::<[u64; 9]>(), counters, kinds, said).prop_map(
        |((runs, folder, files, uploads), numbers, counters, kinds, (said, reads))| {
            let (status, stdout, stderr, largest) = said;
            UserTaskReport {
                runs,
                folder,
                files,
                uploads,
                records_in: numbers[0],
                bytes_in: numbers[1],
                records_out: numbers[2],
                bytes_out: numbers[3],
                groups: numbers[4],
                largest_group: LargestGroup {
                    pairs: numbers[4],
                    key: largest,
                },
                combine_in: numbers[5],
                combine_out: numbers[6],
                skipped: numbers[7],
                skipped_records: numbers[8],
                counters,
                kinds,
                status,
                printed: TaskPrintout { stdout, stderr },
                reads,
            }
        },
    )
}

pub fn report() -> impl Strategy<Value = TaskReport> {
    let map = (attempt(), any::<(u64, u64, u128, Vec<u32>)>()).prop_map(
        |(output, (bytes, records, checksum, sizes))| ScatterReport {
            output,
            bytes,
            records,
            longest: bytes / 3,
            checksum,
            sizes,
        },
    );
    let validated =
        (piece(), check(), any::<u128>()).prop_map(|(piece, check, checksum)| ValidateReport {
            piece,
            check,
            checksum,
        });
    let scattered = (attempt(), any::<(u64, u64, u128, Vec<(u64, u64)>)>()).prop_map(
        |(output, (bytes, records, checksum, sizes))| ScatterReport {
            output,
            bytes,
            records,
            longest: bytes / 3,
            checksum,
            sizes,
        },
    );
    prop_oneof![
        scattered.prop_map(TaskReport::ScatterLines),
        vec(merge_proof(), 0..4).prop_map(TaskReport::GatherLines),
        vec(entry(), 0..9).prop_map(TaskReport::Sample),
        map.prop_map(TaskReport::Map),
        vec(range_proof(), 0..4).prop_map(TaskReport::Reduce),
        vec(border(), 0..9).prop_map(TaskReport::SampleKeys),
        vec(run(), 0..4).prop_map(TaskReport::Spill),
        (
            vec(merge_proof(), 0..4),
            vec(any::<(u32, Range<u64>)>(), 0..4),
            any::<u64>()
        )
            .prop_map(
                |(proofs, spent, read_bytes)| TaskReport::Merge(MergeReport {
                    proofs,
                    spent,
                    read_bytes
                })
            ),
        (run(), vec(any::<(u32, Range<u64>)>(), 0..4))
            .prop_map(|(run, spent)| TaskReport::MergeRuns(MergeRunsReport { run, spent })),
        range_proof().prop_map(TaskReport::Generate),
        validated.prop_map(TaskReport::Validate),
        work_report().prop_map(TaskReport::User),
    ]
}

pub const KINDS: [Kind; 15] = [
    Kind::BadInput,
    Kind::BadOption,
    Kind::NotFound,
    Kind::Exists,
    Kind::Permission,
    Kind::Memory,
    Kind::DiskFull,
    Kind::Io,
    Kind::InputChanged,
    Kind::Disorder,
    Kind::Cancelled,
    Kind::ReaderGone,
    Kind::UserCode,
    Kind::Proof,
    Kind::Bug,
];

pub fn error() -> impl Strategy<Value = Error> {
    let pairs = || vec((text(), text()), 0..3);
    let kind = proptest::sample::select(&KINDS[..]);
    (
        kind,
        any::<(bool, bool, u8)>(),
        text(),
        text(),
        pairs(),
        pairs(),
    )
        .prop_map(
            |(kind, (retryable, own_work, advised), operation, message, context, details)| {
                let mut error = Error::new(kind, operation, message);
                for (name, value) in context {
                    error = error.with(name, value);
                }
                for (name, text) in details {
                    error = error.detail(name, text);
                }
                if retryable {
                    error = error.retryable_error();
                }
                if own_work {
                    error = error.of_own_work();
                }
                match advised % 3 {
                    0 => error,
                    1 => error.advise("sleep"),
                    _ => {
                        let options = [
                            JobOption::Memory.at_least(u64::from(advised)),
                            JobOption::Workers.count(2),
                        ];
                        error.advise_options("give {} or {}", options)
                    }
                }
            },
        )
}
