//! Specs of any kind, drawn by chance.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::codec::Codec;
use gristmill_engine::order::borders::Border;
use gristmill_engine::order::{CutPoints, Entry};
use gristmill_engine::record::comment::CommentMark;
use gristmill_engine::record::layout::RecordLayout;
use gristmill_engine::record::shape::{Fixed, Keyed, LineShape, PairShape, ShapeKind};
use gristmill_engine::record::table_keys::{ColumnKey, TableKeys, TableSource};
use gristmill_engine::sorted_run::RunCompression;
use gristmill_engine::spill::MemoryModel;
use gristmill_engine::storage::input::InputRange;
use gristmill_engine::task::{
    AttemptId, EntryPlan, GatherSpec, GenerateSpec, InputRanges, LinePlan, MergeRun, MergeRunsSpec,
    MergeSpec, MergeTarget, OutputFile, RangeSpec, RunPlan, SampleKeysSpec, SampleSpec,
    ScatterSpec, SpillInput, SpillSpec, SplitData, TaskSpec, UserTaskKind, UserTaskPlan,
    UserTaskSpec, ValidateSpec, WholeFile,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

/// Names of any bytes but zero: most are not UTF-8.
pub(super) fn path() -> impl Strategy<Value = PathBuf> {
    let plain = "[a-z/é]{0,12}".prop_map(PathBuf::from);
    let any = vec(1_u8.., 0..20).prop_map(|bytes| OsString::from_vec(bytes).into());
    prop_oneof![plain, any]
}

pub(super) fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn buckets() -> impl Strategy<Value = Range<usize>> {
    (any::<u16>(), any::<u16>()).prop_map(|(start, end)| usize::from(start)..usize::from(end))
}

pub(super) fn piece() -> impl Strategy<Value = InputRange> {
    any::<(usize, u64, u64)>().prop_map(|(file, offset, bytes)| InputRange {
        file,
        offset,
        bytes,
    })
}

pub(super) fn entry() -> impl Strategy<Value = Entry> {
    (any::<[u8; 10]>(), 0_u64..1 << 48).prop_map(|(key, position)| Entry::new(&key, position))
}

fn entry_plan() -> impl Strategy<Value = Arc<EntryPlan>> {
    let cuts = (vec(entry(), 0..9), 1_usize..9)
        .prop_map(|(sample, buckets)| CutPoints::from_sample(sample, buckets));
    (cuts, any::<(usize, usize)>()).prop_map(|(cuts, (record_bytes, batch_records))| {
        Arc::new(EntryPlan {
            cuts,
            record_bytes,
            batch_records,
        })
    })
}

pub(super) fn border() -> impl Strategy<Value = Border> {
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
        any::<bool>().prop_map(|descending| ShapeKind::Lines(LineShape { descending })),
        Just(ShapeKind::Pairs(PairShape)),
        any::<bool>().prop_map(|whole_lines| ShapeKind::Keyed(Keyed { whole_lines })),
    ]
}

const COMPRESSIONS: [RunCompression; 3] = [
    RunCompression::None,
    RunCompression::Lz4,
    RunCompression::Zstd,
];

fn run_plan() -> impl Strategy<Value = Arc<RunPlan>> {
    let needed = any::<(u64, u64, bool, u64, usize, u64)>().prop_map(
        |(fixed_bytes, workers, half, worker_fixed_bytes, buffer_bytes, buffer_share)| {
            MemoryModel {
                fixed_bytes,
                workers,
                half,
                worker_fixed_bytes,
                buffer_bytes,
                buffer_share,
            }
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
                compression: COMPRESSIONS[buffer_bytes % 3],
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

pub(super) fn attempt() -> impl Strategy<Value = AttemptId> {
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
        (any::<(u32, usize)>(), merge_runs(), vec(any::<u64>(), 0..4)).prop_map(
            |((partition, source_bytes), runs, lengths)| UserTaskKind::Regroup {
                partition,
                runs: Arc::new(runs),
                source_bytes,
                ranges: Arc::new(InputRanges::even(&lengths, partition % 9 + 1)),
            }
        ),
    ];
    let numbers = any::<(u32, usize, usize)>();
    (kind, numbers, vec(path(), 0..3), path()).prop_map(
        |(work, (partitions, chunk_bytes, buffer_bytes), places, attempts)| {
            let plan = Arc::new(UserTaskPlan {
                partitions,
                places,
                chunk_bytes,
                buffer_bytes,
                ahead_bytes: chunk_bytes as u64 / 8,
                compression: COMPRESSIONS[buffer_bytes % 3],
                uploads_to: Some(attempts.join("out").into()),
                is_one_file: chunk_bytes % 2 == 1,
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
        (vec(piece(), 0..4), entry_plan())
            .prop_map(|(split, plan)| TaskSpec::Map(ScatterSpec { split, plan })),
        (ranges(), vec(attempt(), 0..5), entry_plan()).prop_map(|(ranges, inputs, plan)| {
            TaskSpec::Reduce(GatherSpec {
                ranges,
                inputs: Arc::new(inputs),
                plan,
            })
        }),
        (vec(any::<(usize, u64)>(), 0..5), shape()).prop_map(|(places, shape)| {
            let keys = vec!["-k2,2n".to_owned()];
            TaskSpec::SampleKeys(SampleKeysSpec {
                places,
                decoded: vec![(3, Codec::Bzip2)],
                shape,
                keys,
                table: Some(table_keys()),
            })
        }),
    ]
}

fn table_keys() -> TableKeys {
    let keys = [(1, "gr"), (0, "")];
    let key = |(column, letters): (usize, &str)| ColumnKey {
        column,
        letters: letters.to_owned(),
    };
    TableKeys {
        delimiter: b',',
        columns: 2,
        keys: keys.into_iter().map(key).collect(),
        skip_bad: 3,
        pads: true,
        comment: CommentMark::new(b"//"),
        ending: "\r\n".to_owned(),
        header: Some(TableSource::File(7)),
        no_header: true,
    }
}

fn by_runs() -> impl Strategy<Value = TaskSpec> {
    let input = prop_oneof![
        vec(piece(), 0..4).prop_map(SpillInput::Ranges),
        any::<usize>().prop_map(SpillInput::Stream),
        any::<usize>().prop_map(|file| SpillInput::Decoded {
            file,
            codec: Codec::Zstd,
        }),
    ];
    let target = prop_oneof![
        ranges().prop_map(MergeTarget::Ranges),
        (path(), any::<(Range<usize>, u64)>()).prop_map(|(path, (buckets, bytes_max))| {
            MergeTarget::File(WholeFile {
                path: path.into(),
                buckets,
                bytes_max,
                codec: Some(Codec::Gzip),
            })
        }),
        Just(MergeTarget::Stream(Some(Codec::Zstd))),
    ];
    prop_oneof![
        (input, run_plan(), any::<(usize, usize)>()).prop_map(
            |(input, runs, (chunk_bytes, typical_bytes))| {
                TaskSpec::Spill(SpillSpec {
                    input,
                    runs,
                    chunk_bytes,
                    typical_bytes,
                    keys: vec!["-t,".to_owned(), "-k2".to_owned()],
                    table: Some(table_keys()),
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
        (
            (run_plan(), merge_runs(), any::<usize>(), any::<u64>()),
            any::<(Option<Range<usize>>, Option<u32>)>()
        )
            .prop_map(|((plan, runs, source_bytes, number), (slice, home))| {
                TaskSpec::MergeRuns(MergeRunsSpec {
                    plan,
                    runs,
                    source_bytes,
                    number,
                    slice,
                    home,
                })
            }),
    ]
}

fn of_lines() -> impl Strategy<Value = TaskSpec> {
    let plan = || {
        (any::<bool>(), vec(border(), 0..4)).prop_map(|(descending, borders)| {
            Arc::new(LinePlan {
                shape: LineShape { descending },
                borders,
            })
        })
    };
    prop_oneof![
        (vec(piece(), 0..4), plan())
            .prop_map(|(split, plan)| TaskSpec::ScatterLines(ScatterSpec { split, plan })),
        (ranges(), vec(attempt(), 0..5), plan()).prop_map(|(ranges, inputs, plan)| {
            TaskSpec::GatherLines(GatherSpec {
                ranges,
                inputs: Arc::new(inputs),
                plan,
            })
        }),
    ]
}

fn layout() -> impl Strategy<Value = RecordLayout> {
    prop_oneof![
        Just(RecordLayout::Hadoop),
        Just(RecordLayout::Gensort),
        Just(RecordLayout::Ascii)
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
    prop_oneof![scattered(), by_runs(), of_lines(), work(), made, checked]
}
