//! Options and lines for tests, the same in every run: what is likely to confuse a reader of keys.

/// Numbers drawn by splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) as usize % limit
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Pieces of lines. No NaN: see the header of the tests.
#[rustfmt::skip]
const PIECES: &[&[u8]] = &[
    b"a", b"A", b"b", b"B", b"z", b"~", b".", b"..", b"-", b"--", b"+", b"_", b"0", b"00", b"1", b"01", b"2", b"9",
    b"10", b"100", b"12", b" ", b"  ", b"\t", b" ", b",", b",", b",,", b"\0", b"\x01", b"\xFF", b"\x80", b"\xC3\xA4",
    b"\r", b"\x7F", b"\x0B", b".5", b"1.5", b"-1", b"-0", b"-.5", b"-0.0", b"0.", b"1K", b"1k", b"2M", b"1G", b"-1M",
    b"0K", b"1.5K", b"3T", b"5m", b"1.K", b"1,000", b"jan", b"Feb", b"MAR", b"APRIL", b"dec", b"ja", b"0x10",
    b"0X1p-3", b"0x", b"0x.", b"1e3", b"1e", b"1E-2", b"1e+", b"inf", b"-Infinity", b"+inf", b"18446744073709551616",
    b"18446744073709551617", b"1e5000", b"1e-5000", b".tar.gz", b".txt", b".~1~", b".c", b"v1", b"foo-1.2", b"1.02",
    b"1.2.3", b".a1.b2", b"%", b"\n",
];

/// Lines of pieces, each ended by `end`, but the last one at times.
pub fn file(random: &mut Random, count: usize, end: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(count) + 2 {
        for _ in 0..random.below(7) {
            let piece = random.one(PIECES);
            if !piece.contains(&end) {
                bytes.extend_from_slice(piece);
            }
        }
        bytes.push(end);
    }
    if random.below(4) == 0 {
        bytes.extend_from_slice(b"a 1");
    }
    bytes
}

/// Options of GNU sort, now and then ones that it refuses.
pub fn options(random: &mut Random) -> Vec<String> {
    let mut options = Vec::new();
    for _ in 0..random.below(4) {
        let end = match random.below(3) {
            0 => String::new(),
            _ => format!(",{}", position(random, 0)),
        };
        options.push(format!("-k{}{end}", position(random, 1)));
    }
    if random.below(2) == 0 {
        options.push(format!(
            "-t{}",
            random.one(&[",", ",", " ", "\t", "1", "a", "\\0"])
        ));
    }
    if random.below(3) == 0 {
        options.push(format!(
            "-{}",
            random.one(&[
                "n", "g", "h", "V", "f", "d", "i", "M", "b", "bf", "fd", "Vf", "bi", "nf"
            ])
        ));
    }
    for (option, chance) in [("-r", 3), ("-s", 3), ("-u", 4), ("-z", 5), ("-b", 6)] {
        if random.below(chance) == 0 {
            options.push(option.to_owned());
        }
    }
    options
}

fn position(random: &mut Random, first_char: usize) -> String {
    let fields = if random.below(9) == 0 { 90 } else { 4 };
    let mut text = (1 + random.below(fields)).to_string();
    if random.below(3) == 0 {
        text.push_str(&format!(".{}", first_char + random.below(5)));
    }
    for _ in 0..[0, 0, 1, 1, 2][random.below(5)] {
        text.push(char::from(random.one(b"bdfghiMnrVbfrn")));
    }
    text
}

/// Numbers near the limits of 80 bits, and what begins like a number.
#[rustfmt::skip]
const HARD_NUMBERS: &[&str] = &[
    "0x1.fffffffffffffffep16383", "0x1.ffffffffffffffffp16383", "0x1.fffffffffffffffefp16383", "0x1p16384",
    "0x1p-16445", "0x1p-16446", "0x1.8p-16446", "0x1.00000000000000008p-16446", "0x3p-16446", "0x1p-16382",
    "0x0.fffffffffffffffep-16382", "0x0.ffffffffffffffffp-16382", "1.18973149535723176502e+4932",
    "1.18973149535723176508575932662800702e4932", "1.189731495357231765085759326628007e4932",
    "1.1897314953572317651e4932", "3.64519953188247460253e-4951", "1.822599765941237301e-4951",
    "1.8225997659412373012e-4951", "1.8225997659412373013e-4951", "3.3621031431120935063e-4932",
    "3.3621031431120935062e-4932", "9223372036854775808", "9223372036854775808.5",
    "9223372036854775808.50000000000000000000000000000000000000000001", "9223372036854775809.5",
    "18446744073709551615", "18446744073709551615.5", "36893488147419103233", "36893488147419103234",
    "36893488147419103235", "0.1", "0.10000000000000000000135", "0.1000000000000000000013", "1e-1", "1e1", "10",
    "1e27", "1e28", "1e-27", "1e-28", "123456789012345678901234567890e-30", "0e99999999999999999999",
    "1e99999999999999999999", "1e-99999999999999999999", "-1e99999999999999999999", "0x1p99999999999999999999",
    "0x1p-99999999999999999999", "0x0p5", "0x.8", "0x8.", "0x8.p", "0x8.p+", "0x8.p+1", "0x.", "0x.p1", "0xg", "0x",
    "0X1P1", "x1", ".", "-", "+", "+.", "-.", "+-1", "-+1", "- 1", " \t1", "\x0b2", "\x0c3", "\r4", "1.2.3", "1..2",
    "00012", "-00012", "-0", "+0", "0", "", " ", "in", "inf", "infinit", "infinity", "INFx", "-inf", "na", "1e1.5",
    "1_000", "1,000", "1e+-5", "١", "1k", "1.5K", "1.K", "1.5.K", ".5K", ".K", "0K", "-0K", "-1K", "-1Y", "1Y", "1Z",
    "1E", "1P", "1T", "1G", "1M", "1m", "1B", "1Ki", "-.5K", "- 1K", "+1K", "000001K", "K", "1 K", "9999K", "1Kx",
    "nan",
];

/// Those, numbers drawn at random, and very long ones.
pub fn hard_numbers(random: &mut Random) -> Vec<Vec<u8>> {
    let fixed = HARD_NUMBERS.iter().map(|text| text.as_bytes().to_vec());
    let mut numbers: Vec<Vec<u8>> = fixed.collect();
    for _ in 0..250 {
        let digits: String = (0..1 + random.below(30))
            .map(|_| char::from(random.one(b"0123456789")))
            .collect();
        let point = random.below(digits.len() + 1);
        let exponent = random.below(10_100) as i64 - 5_050;
        let short = random.below(60) as i64 - 30;
        let exponent = if random.below(2) == 0 {
            exponent
        } else {
            short
        };
        numbers.push(format!("{}.{}e{exponent}", &digits[..point], &digits[point..]).into_bytes());
        let (hex, power) = (
            random.below(usize::MAX),
            random.below(33_000) as i64 - 16_500,
        );
        numbers.push(format!("0x{hex:x}{:x}.8p{power}", random.below(0x1_0000)).into_bytes());
    }
    for zeros in [5_000, 11_000, 15_000] {
        numbers.push(format!("9223372036854775808.5{}1", "0".repeat(zeros)).into_bytes());
        numbers.push(format!("0.{}1e{zeros}", "0".repeat(zeros)).into_bytes());
        numbers.push(format!("-1{}", "0".repeat(zeros)).into_bytes());
        numbers.push(format!("1{}", "7".repeat(zeros)).into_bytes());
        numbers.push(format!("1{}e-{zeros}", "0".repeat(zeros)).into_bytes());
        numbers.push(format!("0x1{}p-{}", "0".repeat(zeros), 4 * zeros).into_bytes());
    }
    numbers
}
