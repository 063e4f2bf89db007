//! The three layouts of the sort benchmark's 100-byte records, and the skewed keys of its Daytona check.
//!
//! All three take their key from the same generator; they differ in how the other 90 bytes are filled.
//!
//! ```text
//!          0        10  12                    44   48               96  100
//! hadoop   | key 10 |0011| n as 32 hex digits |8899AABB| 12 digits x 4 |CCDDEEFF|
//! ascii    | key 10 |    | n as 32 hex digits |  | 13 digits x 4     |CR LF|
//! gensort  | key 10 | nine 10-byte parts: the next nine records' keys, each XOR its constant |
//! ```
//!
//! Source: gensort 1.1 and 1.5 and Hadoop's TeraGen, restated; golden sums are in the tests.

use super::random::Random;
use super::{KEY_BYTES, RECORD_BYTES};

/// How the bytes of a record follow from its number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordLayout {
    /// Hadoop's TeraGen, and gensort up to 1.1. Compresses well.
    #[default]
    Hadoop,
    /// gensort 1.5, binary. Does not compress.
    Gensort,
    /// gensort `-a`: printable, one record a line.
    Ascii,
}

/// gensort 1.5's constants for the ten parts of a binary record, as ten-byte integers.
const GENSORT_MASKS: [u128; 10] = [
    0,
    0xF0E8_E4E2_E1D8_D4D2_D1CC,
    0xCAC9_C6C5_C3B8_B4B2_B1AC,
    0xAAA9_A6A5_A39C_9A99_9695,
    0x938E_8D8B_8778_7472_716C,
    0x6A69_6665_635C_5A59_5655,
    0x534E_4D4B_473C_3A39_3635,
    0x332E_2D2B_271E_1D1B_170F,
    0xC8C4_C2C1_9894_9291_8CE0,
    0x170F_332E_2D2B_271E_1D1B,
];

/// Writes consecutive records of a layout.
///
/// ```
/// use gristmill_base::record::layout::{RecordLayout, RecordGenerator};
/// let mut record = [0; 100];
/// RecordGenerator::new(RecordLayout::Hadoop, false, 0).fill(&mut record);
/// assert_eq!(&record[..10], b"JimGrayRIP");
/// assert_eq!(&record[12..44], b"00000000000000000000000000000000");
/// ```
#[derive(Debug, Clone)]
pub struct RecordGenerator {
    layout: RecordLayout,
    skew: Option<Box<SkewPrefixes>>,
    number: u128,
    random: Random,
}

impl RecordGenerator {
    /// Records of `layout` from number `start` on; with `skew`, most keys share prefixes.
    pub fn new(layout: RecordLayout, skew: bool, start: u128) -> Self {
        RecordGenerator {
            layout,
            skew: skew.then(|| Box::new(SkewPrefixes::new(layout))),
            number: start,
            random: Random::at(start),
        }
    }

    /// Fills `out`, whose length is a multiple of 100, with the next records.
    pub fn fill(&mut self, out: &mut [u8]) {
        debug_assert_eq!(out.len() % RECORD_BYTES, 0);
        let (records, _) = out.as_chunks_mut::<RECORD_BYTES>();
        for record in records {
            match self.layout {
                RecordLayout::Hadoop => fill_hadoop(record, self.number, self.random.value()),
                RecordLayout::Gensort => fill_gensort(record, self.random),
                RecordLayout::Ascii => fill_ascii(record, self.number, self.random.value()),
            }
            if let Some(skew) = &self.skew {
                skew.apply(record, self.layout, self.number, self.random.value());
            }
            self.number = self.number.wrapping_add(1); // behind the last number there is
            self.random.step();
        }
    }
}

fn fill_hadoop(record: &mut [u8; RECORD_BYTES], number: u128, random: u128) {
    record[..10].copy_from_slice(&random.to_be_bytes()[..10]);
    record[10..12].copy_from_slice(&[0x00, 0x11]);
    record[12..44].copy_from_slice(&hex32(number));
    record[44..48].copy_from_slice(&[0x88, 0x99, 0xAA, 0xBB]);
    repeat_digits(&mut record[48..96], random);
    record[96..].copy_from_slice(&[0xCC, 0xDD, 0xEE, 0xFF]);
}

fn fill_ascii(record: &mut [u8; RECORD_BYTES], number: u128, random: u128) {
    record[..KEY_BYTES].copy_from_slice(&ascii_key(random));
    record[10..12].copy_from_slice(b"  ");
    record[12..44].copy_from_slice(&hex32(number));
    record[44..46].copy_from_slice(b"  ");
    repeat_digits(&mut record[46..98], random);
    record[98..].copy_from_slice(b"\r\n");
}

fn fill_gensort(record: &mut [u8; RECORD_BYTES], mut random: Random) {
    let (parts, _) = record.as_chunks_mut::<10>();
    for (part, mask) in parts.iter_mut().zip(GENSORT_MASKS) {
        let bits = (random.value() >> 48) ^ mask;
        part.copy_from_slice(&bits.to_be_bytes()[6..]);
        random.step();
    }
}

/// Ten printable characters: eight from the high half, two from the low half, base 95 from its low end.
fn ascii_key(random: u128) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let (mut high, mut low) = ((random >> 64) as u64, random as u64);
    for (i, byte) in key.iter_mut().enumerate() {
        let half = if i < 8 { &mut high } else { &mut low };
        *byte = 32 + (*half % 95) as u8;
        *half /= 95;
    }
    key
}

/// `number` as 32 upper-case hexadecimal digits.
fn hex32(number: u128) -> [u8; 32] {
    let mut text = [b'0'; 32];
    let mut left = number;
    for digit in text.iter_mut().rev() {
        if left == 0 {
            break; // leading zeros stand already: row numbers are short
        }
        *digit = hex_digit(left as u64);
        left >>= 4;
    }
    text
}

/// The low hexadecimal digits of `random`, the highest first, each four times, until `out` is full.
fn repeat_digits(out: &mut [u8], random: u128) {
    let (groups, _) = out.as_chunks_mut::<4>();
    let mut shift = groups.len() * 4;
    for group in groups {
        shift -= 4;
        *group = [hex_digit((random as u64) >> shift); 4];
    }
}

fn hex_digit(bits: u64) -> u8 {
    b"0123456789ABCDEF"[(bits & 15) as usize]
}

/// The 129 key prefixes of skewed data: those of records 0 to 128, chosen by the bit length of the number.
#[derive(Debug, Clone)]
struct SkewPrefixes {
    keys: Vec<[u8; KEY_BYTES]>,
}

impl SkewPrefixes {
    fn new(layout: RecordLayout) -> Self {
        let mut records = RecordGenerator::new(layout, false, 0);
        let mut record = [0; RECORD_BYTES];
        let mut next_key = || {
            records.fill(&mut record);
            let mut key = [0; KEY_BYTES];
            key.copy_from_slice(&record[..KEY_BYTES]);
            key
        };
        SkewPrefixes {
            keys: (0..=128).map(|_| next_key()).collect(),
        }
    }

    /// Replaces the leading bits (ascii: characters) of the record's key, how many decided by random bits.
    fn apply(
        &self,
        record: &mut [u8; RECORD_BYTES],
        layout: RecordLayout,
        number: u128,
        random: u128,
    ) {
        let prefix = &self.keys[(128 - number.leading_zeros()) as usize];
        let choice = (random as u64) >> 32;
        if layout == RecordLayout::Ascii {
            let chars = match choice & 7 {
                7 => 0,
                chars => chars as usize,
            };
            record[..chars].copy_from_slice(&prefix[..chars]);
            return;
        }
        let bits = match choice & 63 {
            bits @ 0..=48 => bits as usize,
            _ => 0,
        };
        let (whole, rest) = (bits / 8, bits % 8);
        record[..whole].copy_from_slice(&prefix[..whole]);
        let mask = !(0xFF_u8 >> rest);
        record[whole] = (prefix[whole] & mask) | (record[whole] & !mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::checksum::Checksum;

    fn sum(layout: RecordLayout, skew: bool, start: u128, n: usize) -> String {
        let mut data = vec![0; n * RECORD_BYTES];
        RecordGenerator::new(layout, skew, start).fill(&mut data);
        let mut checksum = Checksum::new(RECORD_BYTES);
        checksum.update(&data);
        checksum.to_string()
    }

    /// The sums that gensort and TeraGen print for the same records.
    #[test]
    fn golden_sums() {
        let table: [(usize, [&str; 5]); 3] = [
            (
                1,
                ["97503e23", "3fcaea0a", "9ea593a0", "9ea593a0", "3fcaea0a"],
            ),
            (
                10,
                [
                    "5b2d1434d",
                    "469302dca",
                    "55fea8a1a",
                    "5d95519b3",
                    "46073c01c",
                ],
            ),
            (
                1000,
                [
                    "1f9ffe645ec",
                    "1f5dfb3631a",
                    "1ea6370b955",
                    "1e96301166b",
                    "1eef17d1cac",
                ],
            ),
        ];
        for (n, [h, a, g, g_skew, a_skew]) in table {
            assert_eq!(sum(RecordLayout::Hadoop, false, 0, n), h);
            assert_eq!(sum(RecordLayout::Ascii, false, 0, n), a);
            assert_eq!(sum(RecordLayout::Gensort, false, 0, n), g);
            assert_eq!(sum(RecordLayout::Gensort, true, 0, n), g_skew);
            assert_eq!(sum(RecordLayout::Ascii, true, 0, n), a_skew);
        }
        assert_eq!(
            sum(RecordLayout::Gensort, false, 1_000_000, 10),
            "54582d61d"
        );
    }

    #[test]
    fn record_zero_of_hadoop() {
        let mut record = [0; RECORD_BYTES];
        RecordGenerator::new(RecordLayout::Hadoop, false, 0).fill(&mut record);
        let mut want = b"JimGrayRIP\x00\x11".to_vec();
        want.extend([b'0'; 32]);
        want.extend([0x88, 0x99, 0xAA, 0xBB]);
        want.extend(b"222200002222000022220000222200002222000000001111");
        want.extend([0xCC, 0xDD, 0xEE, 0xFF]);
        assert_eq!(record.as_slice(), want);
    }

    #[test]
    fn any_start_gives_the_same_records() {
        for layout in [
            RecordLayout::Hadoop,
            RecordLayout::Gensort,
            RecordLayout::Ascii,
        ] {
            for skew in [false, true] {
                let mut whole = vec![0; 300 * RECORD_BYTES];
                RecordGenerator::new(layout, skew, 5).fill(&mut whole);
                let mut tail = vec![0; 100 * RECORD_BYTES];
                RecordGenerator::new(layout, skew, 205).fill(&mut tail);
                assert_eq!(whole[200 * RECORD_BYTES..], tail);
            }
        }
    }
}
