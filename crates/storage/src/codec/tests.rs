//! What every codec must do, whichever it is: round trips, members in a row, detection, files of a store.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::memory::Memory;
use crate::{Caching, OutputStore};
use gristmill_base::error::Kind;

mod damage;
mod hadoop_framing;
mod programs;

/// Compresses at once.
pub(super) fn packed(codec: Codec, data: &[u8]) -> Vec<u8> {
    let mut encoder = encoder(codec, Vec::new(), None).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Decodes at once, or says why not. Checks that all of the input was used.
pub(super) fn unpacked(codec: Codec, data: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = decoder(codec, Cursor::new(data.to_vec())).named("in".as_ref());
    let mut out = Vec::new();
    match decoder.read_to_end(&mut out) {
        Ok(_) => {
            assert_eq!(decoder.consumed(), data.len() as u64);
            assert_eq!(decoder.produced(), out.len() as u64);
            Ok(out)
        }
        Err(error) => {
            let error = error.downcast::<Error>().unwrap();
            assert_eq!(
                decoder.decode(&mut [0; 9]).unwrap_err(),
                error,
                "an error stays"
            );
            Err(error)
        }
    }
}

/// Data of some entropy: `symbols` different bytes, and repeats of what went before.
pub(super) fn data(bytes: usize, symbols: u16, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut out: Vec<u8> = Vec::with_capacity(bytes);
    while out.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = (state >> 33) as usize;
        if symbols < 256 && high.is_multiple_of(7) && out.len() > 50 {
            let from = high % (out.len() - 40);
            out.extend_from_within(from..from + 40);
        } else {
            out.push((high % usize::from(symbols)) as u8);
        }
    }
    out.truncate(bytes);
    out
}

/// A file in a store of its own.
fn stored(name: &str, data: &[u8]) -> Memory {
    let store = Memory::with_room_for(1 << 30);
    let file = store
        .create(name.as_ref(), data.len() as u64, Caching::Cached)
        .unwrap();
    file.write_at(data, 0).unwrap();
    store
}

fn codecs() -> impl Strategy<Value = Codec> {
    proptest::sample::select(Codec::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_is_packed_comes_back(
        codec in codecs(),
        bytes in prop_oneof![0_usize..300, 0_usize..3_000_000],
        symbols in prop_oneof![Just(1_u16), Just(4), Just(256)],
        seed: u64,
        step in prop_oneof![1_usize..100, 1_usize..1_000_000],
    ) {
        let whole = data(bytes, symbols, seed);
        let compressed = packed(codec, &whole);
        prop_assert_eq!(Codec::by_magic(&compressed).unwrap_or(Codec::Deflate), codec);
        // Tables make bzip2 the worst: of 200 bytes that do not compress, 400.
        prop_assert!(compressed.len() <= bytes + bytes / 40 + 400);
        prop_assert!(unpacked(codec, &compressed).unwrap() == whole);
        // However the data come, the bytes are the same.
        let mut encoder = encoder(codec, Vec::new(), None).unwrap();
        let step = step.max(bytes / 1000);
        for part in whole.chunks(step) {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
        }
        prop_assert!(encoder.finish().unwrap() == compressed);
    }

    #[test]
    fn members_in_a_row_are_one_stream(
        codec in codecs(),
        sizes in proptest::collection::vec(prop_oneof![Just(0_usize), 1_usize..200_000], 1..6),
        read in 1_usize..100_000,
    ) {
        let parts: Vec<Vec<u8>> = sizes.iter().map(|&bytes| data(bytes, 9, bytes as u64)).collect();
        let compressed: Vec<u8> = parts.iter().flat_map(|part| packed(codec, part)).collect();
        let store = stored("/in/a", &compressed);
        let mut reader = open(&store, "/in/a".as_ref(), Caching::Cached, Coding::Coded(codec)).unwrap();
        let (mut out, mut part) = (Vec::new(), vec![0; read]);
        loop {
            let before = reader.consumed();
            let count = reader.fill(&mut part).unwrap();
            prop_assert!(reader.consumed() >= before && reader.consumed() <= reader.fetched());
            out.extend_from_slice(&part[..count]);
            prop_assert_eq!(reader.produced(), out.len() as u64);
            if count < read {
                break;
            }
        }
        prop_assert!(out == parts.concat());
        prop_assert_eq!(reader.consumed(), compressed.len() as u64);
    }
}

#[test]
fn every_level_decodes() {
    let whole = data(100_000, 11, 5);
    for codec in Codec::ALL {
        let (levels, usual) = codec.levels();
        assert!(levels.contains(&usual));
        for level in levels.clone() {
            let mut encoder = encoder(codec, Vec::new(), Some(level)).unwrap();
            encoder.write_all(&whole).unwrap();
            assert!(
                unpacked(codec, &encoder.finish().unwrap()).unwrap() == whole,
                "{codec} {level}"
            );
        }
        for level in [levels.start() - 1, levels.end() + 1] {
            let error = encoder(codec, Vec::new(), Some(level))
                .map(|_| ())
                .unwrap_err();
            assert_eq!(error.kind(), Kind::BadOption);
        }
    }
}

#[test]
fn gzip_headers_hold_no_time_and_no_name() {
    let compressed = packed(Codec::Gzip, b"words");
    assert_eq!(compressed[3..8], [0; 5], "flags and time");
}

#[test]
fn names_and_contents_are_told_apart() {
    let words = b"some words, not compressed";
    for codec in Codec::ALL {
        let compressed = packed(codec, words);
        for suffix in codec.suffixes() {
            let name = format!("dir.gz/a{suffix}");
            assert_eq!(Codec::by_suffix(name.as_ref()), Some(codec));
            assert_eq!(detect(name.as_ref(), &compressed).unwrap(), Some(codec));
            assert_eq!(detect(name.as_ref(), &[]).unwrap(), None);
            let error = detect(name.as_ref(), words).unwrap_err();
            assert_eq!(error.kind(), Kind::BadInput);
            let text = error.to_string();
            assert!(
                text.contains("found 73 6f 6d") && text.contains(&name),
                "{text}"
            );
        }
        if codec != Codec::Deflate {
            for other in [
                "a",
                "a.txt",
                "a.gz",
                "a.xz",
                "a.lz4",
                "a.snappy",
                "a.deflate",
            ] {
                assert_eq!(
                    detect(other.as_ref(), &compressed).unwrap(),
                    Some(codec),
                    "{other}"
                );
            }
        }
        let json = serde_json::to_string(&codec).unwrap();
        assert_eq!(json, format!("\"{codec}\""));
        assert_eq!(serde_json::from_str::<Codec>(&json).unwrap(), codec);
    }
    for plain in [".gz", "gz", "a.gz.txt", "a.tar"] {
        assert_eq!(detect(plain.as_ref(), words).unwrap(), None, "{plain}");
    }
}

#[test]
fn hadoop_class_names_are_known() {
    for (class, codec) in [
        ("GzipCodec", Codec::Gzip),
        ("BZip2Codec", Codec::Bzip2),
        ("ZStandardCodec", Codec::Zstd),
        ("Lz4Codec", Codec::Lz4),
        ("SnappyCodec", Codec::Snappy),
        ("DefaultCodec", Codec::Deflate),
        ("DeflateCodec", Codec::Deflate),
    ] {
        let class = format!("org.apache.hadoop.io.compress.{class}");
        assert_eq!(Codec::by_hadoop_class(&class), Some(codec));
    }
    assert_eq!(Codec::by_hadoop_class("GzipCodec"), None);
}

#[test]
fn plain_and_empty_files_are_read_as_they_are() {
    let whole = data(2_500_000, 256, 3);
    for (name, content) in [("/a.txt", &whole[..]), ("/a.gz", &[]), ("/a", &[7])] {
        let store = stored(name, content);
        let mut reader = open(&store, name.as_ref(), Caching::Cached, Coding::Detect).unwrap();
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        assert!(out == content && reader.codec().is_none());
        let size = content.len() as u64;
        assert_eq!(
            (reader.consumed(), reader.produced(), reader.fetched()),
            (size, size, size)
        );
    }
    // Told that it is plain, a compressed file is what its bytes are.
    let compressed = packed(Codec::Gzip, b"words");
    let store = stored("/a.gz", &compressed);
    let mut reader = open(&store, "/a.gz".as_ref(), Caching::Cached, Coding::Plain).unwrap();
    let mut out = Vec::new();
    reader.read_to_end(&mut out).unwrap();
    assert_eq!(out, compressed);
    // Told that it is compressed, an empty file is empty, and words are an error.
    for codec in Codec::ALL {
        assert_eq!(unpacked(codec, b"").unwrap(), b"");
        assert_eq!(
            unpacked(codec, b"words").unwrap_err().kind(),
            Kind::BadInput
        );
    }
}

#[test]
fn errors_of_a_store_come_through_as_they_are() {
    #[derive(Debug)]
    struct Broken(Cursor<Vec<u8>>);
    impl Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(out)? {
                0 => {
                    let error = Error::new(Kind::Io, "read the input", "the device is gone");
                    Err(std::io::Error::other(
                        error.with_path(Path::new("in")).retryable_error(),
                    ))
                }
                count => Ok(count),
            }
        }
    }
    // At 65554 ends snappy's first chunk.
    for (codec, cut) in Codec::ALL
        .into_iter()
        .flat_map(|codec| [0, 1, 10, 50_000, 65_554].map(|cut| (codec, cut)))
    {
        let mut compressed = packed(codec, &data(100_000, 256, 1));
        compressed.truncate(cut);
        let mut reader = decoder(codec, Broken(Cursor::new(compressed)));
        let error = loop {
            match reader.decode(&mut [0; 1000]) {
                Ok(count) => assert!(count > 0),
                Err(error) => break error,
            }
        };
        let found = (error.kind(), error.retryable());
        assert_eq!(found, (Kind::Io, true), "{codec} at {cut}: {error}");
    }
}
