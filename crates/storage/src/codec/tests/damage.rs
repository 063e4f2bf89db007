//! Damage: what is cut, flipped, followed by something else, or made to hurt.

use super::*;

/// Two members, and where the first ends.
fn two_members(codec: Codec) -> (Vec<u8>, usize, Vec<u8>) {
    let (one, two) = (data(700, 20, 1), data(300, 256, 2));
    let first = packed(codec, &one);
    let border = first.len();
    (
        [first, packed(codec, &two)].concat(),
        border,
        [one, two].concat(),
    )
}

/// The borders of snappy's chunks: that framing has no end mark.
fn chunk_borders(file: &[u8]) -> Vec<usize> {
    let mut borders = vec![0];
    let mut at = 0;
    while at + 4 <= file.len() {
        at += 4 + u32::from_le_bytes([file[at + 1], file[at + 2], file[at + 3], 0]) as usize;
        borders.push(at);
    }
    borders
}

#[test]
fn every_cut_is_found_but_those_between_members() {
    for codec in Codec::ALL {
        let (file, border, whole) = two_members(codec);
        assert!(unpacked(codec, &file).unwrap() == whole);
        let borders = match codec {
            Codec::Snappy => chunk_borders(&file),
            _ => vec![0, border],
        };
        for cut in 0..file.len() {
            match unpacked(codec, &file[..cut]) {
                Ok(out) => {
                    assert!(
                        borders.contains(&cut),
                        "{codec} cut at {cut} of {} passes",
                        file.len()
                    );
                    assert!(whole.starts_with(&out));
                }
                Err(error) => {
                    assert!(!borders.contains(&cut), "{codec}, cut at {cut}: {error}");
                    assert_eq!(error.kind(), Kind::BadInput);
                    let text = error.to_string();
                    let offset = format!("compressed offset {cut},");
                    assert!(
                        text.contains("cut short") && text.contains("file in"),
                        "{codec} {cut}: {text}"
                    );
                    assert!(
                        text.contains(&offset) || codec != Codec::Gzip,
                        "{cut}: {text}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_flipped_byte_is_found_or_harmless() {
    for codec in Codec::ALL {
        let (file, _, whole) = two_members(codec);
        let mut found = 0;
        for at in 0..file.len() {
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut file = file.clone();
                file[at] ^= flip;
                match unpacked(codec, &file) {
                    Ok(out) => {
                        assert!(out == whole, "{codec}: {flip:02x} at {at} makes other data");
                    }
                    Err(error) => {
                        found += 1;
                        assert_eq!(
                            error.kind(),
                            Kind::BadInput,
                            "{codec}: {flip:02x} at {at}: {error}"
                        );
                    }
                }
            }
        }
        // Harmless are a few bytes of headers alone: a time, a level, a system.
        assert!(
            found * 100 > file.len() * 4 * 95,
            "{codec}: {found} of {}",
            4 * file.len()
        );
    }
}

#[test]
fn what_follows_the_last_member_is_an_error() {
    for codec in Codec::ALL {
        let good = packed(codec, b"words");
        for more in [&b"~"[..], b"more words", &[0, 0, 0, 7]] {
            let error = unpacked(codec, &[&good[..], more].concat()).unwrap_err();
            assert_eq!(error.kind(), Kind::BadInput, "{codec}");
            let text = error.to_string();
            if codec != Codec::Snappy {
                assert!(
                    text.contains("other bytes follow") && text.contains("decoded offset 5"),
                    "{text}"
                );
                assert!(
                    text.contains(&format!("first {} bytes", good.len())),
                    "{text}"
                );
            }
        }
        for zeros in [1, 4, 512, 300_000] {
            let padded = unpacked(codec, &[&good[..], &vec![0; zeros]].concat());
            let fits = match codec {
                Codec::Gzip => true,
                Codec::Xz => zeros % 4 == 0,
                _ => false,
            };
            assert_eq!(padded.is_ok(), fits, "{codec} and {zeros} zeros");
        }
    }
    let padded = [
        packed(Codec::Xz, b"one, "),
        vec![0; 8],
        packed(Codec::Xz, b"two"),
    ]
    .concat();
    assert_eq!(unpacked(Codec::Xz, &padded).unwrap(), b"one, two");
}

#[test]
fn windows_beyond_the_bound_are_refused() {
    // A zstd frame header with a window of 2^28 bytes, and a raw block of one byte.
    let frame = |log: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 9, 0, 0, b'x'];
    assert_eq!(unpacked(Codec::Zstd, &frame(27)).unwrap(), b"x");
    for log in [28, 31, 41] {
        let error = unpacked(Codec::Zstd, &frame(log)).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.to_string().contains("more than 128 MB"), "{error}");
    }
    for (bytes, fits) in [(128 << 20, true), (256 << 20, false)] {
        let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
        options.dict_size(bytes);
        let mut filters = liblzma::stream::Filters::new();
        filters.lzma2(&options);
        let check = liblzma::stream::Check::Crc32;
        let stream = liblzma::stream::Stream::new_stream_encoder(&filters, check).unwrap();
        let mut writer = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
        writer.write_all(b"words").unwrap();
        match unpacked(Codec::Xz, &writer.finish().unwrap()) {
            Ok(out) => assert!(fits && out == b"words"),
            Err(error) => assert!(
                !fits && error.to_string().contains("more than 128 MB"),
                "{error}"
            ),
        }
    }
}

#[test]
fn frames_that_are_not_for_decoders_are_passed_over() {
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"notes"].concat();
    for codec in [Codec::Zstd, Codec::Lz4] {
        let file = [
            &skipped[..],
            &packed(codec, b"one, "),
            &skipped,
            &skipped,
            &packed(codec, b"two"),
        ]
        .concat();
        assert_eq!(unpacked(codec, &file).unwrap(), b"one, two");
        assert_eq!(unpacked(codec, &skipped).unwrap(), b"");
        for cut in 1..skipped.len() {
            assert!(unpacked(codec, &skipped[..cut]).is_err(), "{codec} {cut}");
        }
        // A length of 4 GB that is not there.
        assert!(unpacked(codec, &[0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
    }
}

#[test]
fn lz4_frames_of_any_shape_are_decoded() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let whole = data(3_000_000, 40, 9);
    let mut file = Vec::new();
    for size in [BlockSize::Max4MB, BlockSize::Max64KB, BlockSize::Max256KB] {
        for mode in [BlockMode::Linked, BlockMode::Independent] {
            let info = FrameInfo::new()
                .block_size(size)
                .block_mode(mode)
                .block_checksums(true);
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(&whole).unwrap();
            file.extend(encoder.finish().unwrap());
        }
    }
    assert!(unpacked(Codec::Lz4, &file).unwrap() == whole.repeat(6));
}

fn magic(codec: Codec) -> Vec<u8> {
    packed(codec, b"")[..match codec {
        Codec::Gzip => 10,
        Codec::Bzip2 => 4,
        Codec::Deflate => 2,
        Codec::Snappy => 10,
        Codec::Zstd | Codec::Lz4 => 4,
        Codec::Xz => 12,
    }]
        .to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// No input makes a decoder panic, or go on for ever: it ends, or it fails.
    #[test]
    fn noise_ends(codec in codecs(), begun: bool, noise in proptest::collection::vec(any::<u8>(), 0..400)) {
        let file = if begun { [magic(codec), noise].concat() } else { noise };
        let _ = detect("a".as_ref(), &file);
        let _ = unpacked(codec, &file);
    }

    #[test]
    fn hadoop_noise_ends(
        lz4: bool,
        decoded in 0_u32..100_000,
        compressed in 1_u32..400,
        noise in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let lengths = [decoded.to_be_bytes(), compressed.to_be_bytes()].concat();
        let _ = unpacked(if lz4 { Codec::Lz4 } else { Codec::Snappy }, &[lengths, noise].concat());
    }

    /// Some bytes of a good file replaced: the same data, or an error.
    #[test]
    fn patched_files_end(
        codec in codecs(),
        patches in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..9),
    ) {
        let whole = data(5_000, 12, 6);
        let mut file = packed(codec, &whole);
        for (at, byte) in patches {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(out) = unpacked(codec, &file) {
            prop_assert!(out == whole || out.is_empty());
        }
    }
}
