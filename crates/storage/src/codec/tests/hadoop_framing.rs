//! Files as Hadoop's `BlockCompressorStream` writes them, made by hand.

use super::*;

/// One block of several chunks.
fn block(codec: Codec, chunks: &[&[u8]]) -> Vec<u8> {
    let decoded: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let mut out = (decoded as u32).to_be_bytes().to_vec();
    for chunk in chunks {
        let compressed = match codec {
            Codec::Snappy => snap::raw::Encoder::new().compress_vec(chunk).unwrap(),
            _ => lz4_flex::block::compress(chunk),
        };
        out.extend((compressed.len() as u32).to_be_bytes());
        out.extend(compressed);
    }
    out
}

const BOTH: [Codec; 2] = [Codec::Snappy, Codec::Lz4];

#[test]
fn blocks_of_chunks_are_one_stream() {
    let whole = data(900_000, 30, 8);
    for codec in BOTH {
        let mut file = block(codec, &[&whole[..300_000], &whole[300_000..300_001]]);
        file.extend([0; 4]); // an empty block
        file.extend(block(codec, &[&whole[300_001..]]));
        assert!(unpacked(codec, &file).unwrap() == whole);
        let name = format!("a{}", codec.suffixes()[0]);
        assert_eq!(detect(name.as_ref(), &file).unwrap(), Some(codec));
        assert_eq!(detect("a".as_ref(), &file).unwrap(), None);
        // What Hadoop makes of an empty file.
        assert_eq!(detect(name.as_ref(), &[0; 4]).unwrap(), Some(codec));
        assert_eq!(unpacked(codec, &[0; 4]).unwrap(), b"");
    }
}

#[test]
fn every_cut_is_found_but_those_between_blocks() {
    let whole = data(60, 5, 2);
    for codec in BOTH {
        let first = block(codec, &[&whole[..20], &whole[20..40]]);
        let file = [first.clone(), block(codec, &[&whole[40..]])].concat();
        for cut in 0..file.len() {
            match unpacked(codec, &file[..cut]) {
                Ok(out) if cut == 0 => assert!(out.is_empty()),
                Ok(out) if cut == first.len() => assert_eq!(out, whole[..40]),
                Ok(_) => panic!("{codec} cut at {cut} of {} passes", file.len()),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::BadInput);
                    assert!(error.to_string().contains("cut short"), "{error}");
                }
            }
        }
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    for codec in BOTH {
        let good = block(codec, &[b"words"]);
        // A chunk of 3 GB behind a good block; one of 100 MB; a chunk longer than its block; an empty one.
        let more = |decoded: u32, compressed: u32| {
            let mut file = good.clone();
            file.extend(decoded.to_be_bytes());
            file.extend(compressed.to_be_bytes());
            file.extend([0; 100]);
            unpacked(codec, &file).unwrap_err()
        };
        for (decoded, compressed) in [(u32::MAX, 3 << 30), (100 << 20, 100 << 20), (1, 10), (1, 0)]
        {
            let error = more(decoded, compressed);
            assert_eq!(error.kind(), Kind::BadInput, "{error}");
        }
        let mut file = good.clone();
        file[3] = 4; // five bytes in a block of four
        assert_eq!(unpacked(codec, &file).unwrap_err().kind(), Kind::BadInput);
    }
}
