//! What is written is read, whatever is compressed and wherever the file is cut.

use proptest::prelude::*;

use super::*;
use gristmill_storage::memory::Memory;
use gristmill_storage::{Caching, LocalDisk, OutputStore};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn written(pairs: &Pairs, compression: Compression) -> Vec<u8> {
    let mut writer = SequenceWriter::new(
        Vec::new(),
        "key.Class",
        "value.Class",
        compression,
        "part-00000",
    );
    for (key, value) in pairs {
        writer.append(key, value).unwrap();
    }
    writer.finish().unwrap()
}

fn read(file: &[u8], borders: &[u64]) -> Pairs {
    let store = Memory::with_room_for(64 << 20);
    store
        .create("/f".as_ref(), file.len() as u64, Caching::Cached)
        .unwrap()
        .write_at(file, 0)
        .unwrap();
    let mut found = Vec::new();
    for range in borders.windows(2) {
        let mut reader = SequenceReader::open(&store, "/f".as_ref(), range[0]..range[1]).unwrap();
        assert_eq!(reader.classes(), ("key.Class", "value.Class"));
        while reader.advance().unwrap() {
            let (key, value) = reader.pair();
            found.push((key.to_vec(), value.to_vec()));
        }
    }
    found
}

fn compressions() -> Vec<Compression> {
    let codecs = [
        Codec::Deflate,
        Codec::Gzip,
        Codec::Bzip2,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ];
    let both = |codec| [Compression::Records(codec), Compression::Blocks(codec)];
    std::iter::once(Compression::None)
        .chain(codecs.into_iter().flat_map(both))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn records_come_back(pairs: Pairs) {
        for compression in compressions() {
            let file = written(&pairs, compression);
            prop_assert_eq!(&read(&file, &[0, file.len() as u64]), &pairs, "{:?}", compression);
        }
    }
}

#[test]
fn splits_share_the_records_wherever_they_are_cut() {
    let pairs: Pairs = (0..40_000_u32)
        .map(|i| (i.to_be_bytes().to_vec(), vec![b'v'; (i % 97) as usize]))
        .collect();
    for compression in [
        Compression::None,
        Compression::Records(Codec::Snappy),
        Compression::Blocks(Codec::Deflate),
    ] {
        let file = written(&pairs, compression);
        let size = file.len() as u64;
        for step in [size / 2, size / 7 + 1, 30_001] {
            let mut borders: Vec<u64> = (0..size).step_by(step as usize).collect();
            borders.push(size);
            assert_eq!(read(&file, &borders), pairs, "{compression:?}, {step}");
        }
    }
}

#[test]
fn damage_is_named() {
    let pairs: Pairs = vec![(b"key".to_vec(), b"value".to_vec()); 3];
    let store = Memory::with_room_for(1 << 20);
    let opened = |file: &[u8]| {
        store.remove("/f".as_ref()).unwrap();
        store
            .create("/f".as_ref(), file.len() as u64, Caching::Cached)
            .unwrap()
            .write_at(file, 0)
            .unwrap();
        let mut reader = SequenceReader::open(&store, "/f".as_ref(), 0..file.len() as u64)?;
        while reader.advance()? {}
        Ok::<_, gristmill_base::Error>(())
    };
    let file = written(&pairs, Compression::None);
    assert!(opened(&file).is_ok());
    assert!(
        opened(&file[..file.len() - 1])
            .unwrap_err()
            .to_string()
            .contains("ends inside a record")
    );
    assert!(
        opened(b"text")
            .unwrap_err()
            .to_string()
            .contains("-inputformat")
    );
    assert!(
        opened(b"SEQ\x05")
            .unwrap_err()
            .to_string()
            .contains("version is 5")
    );
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let pairs: Pairs = vec![(b"key".to_vec(), b"value".to_vec())];
    assert_eq!(
        written(&pairs, Compression::None),
        written(&pairs, Compression::None)
    );
    let other = vec![(b"key".to_vec(), b"valuf".to_vec())];
    assert_ne!(
        written(&pairs, Compression::None)[..60],
        written(&other, Compression::None)[..60]
    );
}
