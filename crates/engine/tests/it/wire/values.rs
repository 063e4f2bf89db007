//! Specs, reports and errors of any kind, drawn by chance.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::error::JobOption;
use gristmill_engine::merge::output::MergeProof;
use gristmill_engine::order::borders::Border;
use gristmill_engine::order::check::{Misorder, OrderCheck};
use gristmill_engine::order::{CutPoints, Entry};
use gristmill_engine::record::layout::Layout;
use gristmill_engine::record::shape::{Fixed, Lines, Pairs, ShapeKind};
use gristmill_engine::reduce::RangeProof;
use gristmill_engine::spill::{BucketSizes, MemoryModel, SpilledRun};
use gristmill_engine::storage::input::InputRange;
use gristmill_engine::storage::objects::{Upload, UploadPart};
use gristmill_engine::task::{
    AttemptId, GenerateSpec, MapReport, MapSpec, MergeReport, MergeRun, MergeRunsSpec, MergeSpec,
    MergeTarget, OutputFile, RangeSpec, ReduceSpec, RunPlan, SampleKeysSpec, SampleSpec,
    SpillInput, SpillSpec, SplitData, TaskReport, TaskSpec, UserTaskFile, UserTaskKind,
    UserTaskPlan, UserTaskReport, UserTaskSpec, ValidateReport, ValidateSpec,
};
use gristmill_engine::worker::Printed;
use gristmill_engine::{Error, Kind};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

/// Names of any bytes but zero: most are not UTF-8.
fn path() -> impl Strategy<Value = PathBuf> {
    let plain = "[a-z/é]{0,12}".prop_map(PathBuf::from);
    let any = vec(1_u8.., 0..20).prop_map(|bytes| OsString::from_vec(bytes).into());
    prop_oneof![plain, any]
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn buckets() -> impl Strategy<Value = Range<usize>> {
    (any::<u16>(), any::<u16>()).prop_map(|(start, end)| usize::from(start)..usize::from(end))
}

fn piece() -> impl Strategy<Value = InputRange> {
    any::<(usize, u64, u64)>().prop_map(|(file, offset, bytes)| InputRange {
        file,
        offset,
        bytes,
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    (any::<[u8; 10]>(), 0_u64..1 << 48).prop_map(|(key, position)| Entry::new(&key, position))
}

fn cuts() -> impl Strategy<Value = Arc<CutPoints>> {
    (vec(entry(), 0..9), 1_usize..9)
        .prop_map(|(sample, buckets)| Arc::new(CutPoints::from_sample(sample, buckets)))
}

fn border() -> impl Strategy<Value = Border> {
    (vec(any::<u8>(), 0..40), any::<u64>()).prop_map(|(key, position)| Border { key, position })
}

fn shape() -> impl Strategy<Value = ShapeKind> {
    let fixed = any::<(usize, usize, bool)>();
    prop_oneof![
        fixed.prop_map(|(record_bytes, key_bytes, descending)| {
            ShapeKind::Fixed(Fixed {
                record_bytes,
                key_bytes,
                descending,
            })
        }),
        any::<bool>().prop_map(|descending| ShapeKind::Lines(Lines { descending })),
        Just(ShapeKind::Pairs(Pairs)),
    ]
}

fn run_plan() -> impl Strategy<Value = Arc<RunPlan>> {
    let needed = any::<(u64, u64, u64, usize, u64)>().prop_map(
        |(fixed_bytes, workers, worker_fixed_bytes, buffer_bytes, buffer_share)| MemoryModel {
            fixed_bytes,
            workers,
            worker_fixed_bytes,
            buffer_bytes,
            buffer_share,
        },
    );
    let lists = (vec(border(), 0..4), vec(path(), 0..3));
    (shape(), any::<(bool, usize)>(), lists, needed).prop_map(
        |(shape, (unique, buffer_bytes), (borders, places), needed)| {
            Arc::new(RunPlan {
                shape,
                unique,
                borders,
                places,
                buffer_bytes,
                needed,
            })
        },
    )
}

fn merge_runs() -> impl Strategy<Value = Vec<MergeRun>> {
    let run = (path(), any::<u64>()).prop_map(|(path, longest)| MergeRun { path, longest });
    vec(run, 0..5)
}

fn output_file() -> impl Strategy<Value = OutputFile> {
    (path(), any::<u64>()).prop_map(|(path, bytes)| OutputFile {
        path: path.into(),
        bytes,
    })
}

fn ranges() -> impl Strategy<Value = Vec<RangeSpec>> {
    let range =
        (output_file(), any::<u64>(), buckets()).prop_map(|(file, offset, buckets)| RangeSpec {
            file,
            offset,
            buckets,
        });
    vec(range, 0..4)
}

fn attempt() -> impl Strategy<Value = AttemptId> {
    any::<(u32, u32)>().prop_map(|(task, attempt)| AttemptId { task, attempt })
}

/// JSON as formats describe splits by it: every kind of value, nested.
fn split() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300_f64..1e300).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn work() -> impl Strategy<Value = TaskSpec> {
    let kind = prop_oneof![
        (any::<(u32, u64)>(), split()).prop_map(|((number, bytes), what)| UserTaskKind::Map {
            number,
            bytes,
            what: SplitData::of(&what).unwrap(),
        }),
        (any::<(u32, usize)>(), merge_runs()).prop_map(|((partition, source_bytes), runs)| {
            UserTaskKind::Reduce {
                partition,
                runs: Arc::new(runs),
                source_bytes,
            }
        }),
    ];
    let numbers = any::<(u32, usize, usize)>();
    (kind, numbers, vec(path(), 0..3), path()).prop_map(
        |(work, (partitions, chunk_bytes, buffer_bytes), places, attempts)| {
            let plan = Arc::new(UserTaskPlan {
                partitions,
                places,
                chunk_bytes,
                buffer_bytes,
                uploads_to: Some(attempts.join("out").into()),
                attempts,
            });
            TaskSpec::User(UserTaskSpec { plan, work })
        },
    )
}

fn scattered() -> impl Strategy<Value = TaskSpec> {
    prop_oneof![
        (vec(piece(), 0..4), any::<usize>()).prop_map(|(stretches, record_bytes)| {
            TaskSpec::Sample(SampleSpec {
                stretches,
                record_bytes,
            })
        }),
        (vec(piece(), 0..4), any::<usize>(), cuts()).prop_map(|(split, record_bytes, cuts)| {
            TaskSpec::Map(MapSpec {
                split,
                record_bytes,
                cuts,
            })
        }),
        (
            ranges(),
            vec(attempt(), 0..5),
            cuts(),
            any::<(usize, usize)>()
        )
            .prop_map(|(ranges, inputs, cuts, (record_bytes, batch_records))| {
                TaskSpec::Reduce(ReduceSpec {
                    ranges,
                    inputs: Arc::new(inputs),
                    cuts,
                    record_bytes,
                    batch_records,
                })
            }),
        (vec(any::<(usize, u64)>(), 0..5), shape())
            .prop_map(|(places, shape)| TaskSpec::SampleKeys(SampleKeysSpec { places, shape })),
    ]
}

fn by_runs() -> impl Strategy<Value = TaskSpec> {
    let input = prop_oneof![
        vec(piece(), 0..4).prop_map(SpillInput::Ranges),
        any::<usize>().prop_map(SpillInput::Stream),
    ];
    let target = prop_oneof![
        ranges().prop_map(MergeTarget::Ranges),
        path().prop_map(|path| MergeTarget::File(path.into())),
        Just(MergeTarget::Stream),
    ];
    prop_oneof![
        (input, run_plan(), any::<(usize, usize)>()).prop_map(
            |(input, runs, (chunk_bytes, typical_bytes))| {
                TaskSpec::Spill(SpillSpec {
                    input,
                    runs,
                    chunk_bytes,
                    typical_bytes,
                })
            }
        ),
        (run_plan(), merge_runs(), any::<usize>(), target).prop_map(
            |(plan, runs, source_bytes, target)| {
                TaskSpec::Merge(MergeSpec {
                    plan,
                    runs: Arc::new(runs),
                    source_bytes,
                    target,
                })
            }
        ),
        (run_plan(), merge_runs(), any::<usize>(), any::<u64>()).prop_map(
            |(plan, runs, source_bytes, number)| {
                TaskSpec::MergeRuns(MergeRunsSpec {
                    plan,
                    runs,
                    source_bytes,
                    number,
                })
            }
        ),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(Layout::Hadoop),
        Just(Layout::Gensort),
        Just(Layout::Ascii)
    ]
}

pub fn spec() -> impl Strategy<Value = TaskSpec> {
    let made = (output_file(), any::<(u64, u128, u64, bool)>(), layout()).prop_map(
        |(file, (offset, start, records, skew), layout)| {
            TaskSpec::Generate(GenerateSpec {
                file,
                offset,
                start,
                records,
                layout,
                skew,
            })
        },
    );
    let checked = piece().prop_map(|piece| TaskSpec::Validate(ValidateSpec { piece }));
    prop_oneof![scattered(), by_runs(), work(), made, checked]
}

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
    (path(), any::<[u64; 6]>(), any::<(u128, u32)>()).prop_map(
        |(path, [number, records, bytes, longest, records_read, bytes_read], (sum, crc))| {
            SpilledRun {
                path,
                number,
                records,
                bytes,
                longest,
                records_read,
                bytes_read,
                checksum_read: sum,
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
    let said = (text(), text(), text());
    let kinds = btree_map(text(), any::<u16>(), 0..3);
    (made, any::<[u64; 9]>(), counters, kinds, said).prop_map(
        |((runs, folder, files, uploads), numbers, counters, kinds, (status, stdout, stderr))| {
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
                combine_in: numbers[5],
                combine_out: numbers[6],
                skipped: numbers[7],
                skipped_records: numbers[8],
                counters,
                kinds,
                status,
                printed: Printed { stdout, stderr },
            }
        },
    )
}

pub fn report() -> impl Strategy<Value = TaskReport> {
    let map = (attempt(), any::<(u64, u64, u128, Vec<u32>)>()).prop_map(
        |(output, (bytes, records, checksum, bucket_counts))| MapReport {
            output,
            bytes,
            records,
            checksum,
            bucket_counts,
        },
    );
    let validated =
        (piece(), check(), any::<u128>()).prop_map(|(piece, check, checksum)| ValidateReport {
            piece,
            check,
            checksum,
        });
    prop_oneof![
        vec(entry(), 0..9).prop_map(TaskReport::Sample),
        map.prop_map(TaskReport::Map),
        vec(range_proof(), 0..4).prop_map(TaskReport::Reduce),
        vec(border(), 0..9).prop_map(TaskReport::SampleKeys),
        vec(run(), 0..4).prop_map(TaskReport::Spill),
        (
            vec(merge_proof(), 0..4),
            vec(any::<(u32, Range<u64>)>(), 0..4)
        )
            .prop_map(|(proofs, spent)| TaskReport::Merge(MergeReport { proofs, spent })),
        run().prop_map(TaskReport::MergeRuns),
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
