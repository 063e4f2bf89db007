//! Cells against rationals and Python's rules for numbers.

use super::*;
use crate::value::{ValueReader, one_nan, skip};
use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

/// What the digits say, by way of rationals; a double where it is no number.
fn naive(cell: &str) -> Option<Result<BigRational, f64>> {
    let text = cell.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
    let double = text.parse::<f64>().ok()?;
    let lower = text.to_ascii_lowercase();
    if lower.contains("inf") || lower.contains("nan") {
        return Some(Err(double));
    }
    let (digits, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa: BigInt = format!("{whole}{fraction}").parse().ok()?;
    let exponent = exponent.parse::<i32>().ok()? - fraction.len() as i32;
    let ten = BigRational::from(BigInt::from(10));
    Some(Ok(BigRational::from(mantissa) * ten.pow(exponent)))
}

fn order(cell: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    CellNumber::of(cell.as_bytes()).ok()?.write_order(&mut out);
    assert_eq!(skip(&out).unwrap(), out.len());
    assert_eq!(ValueReader::new(&out).count(), 1);
    Some(out)
}

fn cells() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ \t]{0,2}[-+]?[0-9]{0,25}[ \n]{0,2}",
        "[-+]?[0-9]{0,4}[.]?[0-9]{0,20}([eE][-+]?[0-9]{0,2})?",
        "[-+]?0{0,3}[0-9]{0,2}[.]?[0-9]{0,2}0{0,3}",
        "[-+.0-9eEinfatyNINF_x, ]{0,8}",
        any::<f64>().prop_map(|double| format!("{double:e}")),
        any::<String>(),
    ]
}

#[test]
fn what_is_a_number_is_what_python_takes() {
    for text in [
        "0",
        "-0",
        "+7",
        "007",
        "1.5",
        "-.5",
        "5.",
        "1.E-2",
        "0.1",
        "1e400",
        "inf",
        "-INF",
        "Infinity",
        "nan",
        "-NaN",
        " \t12\r\n",
        "00000000000000000000000000012",
        "0e999999999999999999999",
        "0.000000000000000000000000000001",
    ] {
        assert!(CellNumber::of(text.as_bytes()).is_ok(), "{text:?}");
    }
    for text in [
        "",
        "  ",
        "+",
        "-",
        ".",
        "-.",
        "e5",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "1,5",
        "1 000",
        "+-1",
        "--1",
        "- 1",
        "1.2.3",
        "in",
        "infin",
        "nano",
        "true",
        "NULL",
        "\u{661}",
        "1\u{a0}",
        "1.5f",
        "1\0",
        "1234567890123456789x",
        "1e5.0",
    ] {
        let said = CellNumber::of(text.as_bytes());
        assert_eq!(said, Err(NoNumber::Text), "{text:?}");
    }
    assert_eq!(CellNumber::of(b"1.5\xff"), Err(NoNumber::Text));
}

#[test]
fn numbers_have_600_digits_on_either_side() {
    let zeros = "0".repeat(700);
    for text in [
        "9".repeat(600),
        format!("{zeros}1"),
        format!("1.{zeros}"),
        format!("1{zeros}e-101"),
        "1e599".into(),
        "1e-600".into(),
        format!(".{}1e100", "0".repeat(600)),
    ] {
        assert!(CellNumber::of(text.as_bytes()).is_ok(), "{text}");
    }
    for text in [
        "9".repeat(601),
        "1e600".into(),
        "-1e-601".into(),
        "1e99999999999999999999".into(),
        "1e-99999999999999999999".into(),
        format!("1{zeros}"),
    ] {
        let said = CellNumber::of(text.as_bytes());
        assert_eq!(said, Err(NoNumber::TooLong), "{text}");
    }
}

proptest! {
    #[test]
    fn cells_compare_by_what_they_are_worth(one in cells(), other in cells()) {
        let (a, b) = (CellNumber::of(one.as_bytes()), CellNumber::of(other.as_bytes()));
        prop_assert_eq!(a.is_ok(), naive(&one).is_some(), "{:?}", one);
        let (Ok(a), Ok(b)) = (a, b) else { return Ok(()) };
        let (worth, other_worth) = (naive(&one), naive(&other));
        prop_assert_eq!(a.compare(&b), order(&one).cmp(&order(&other)));
        if let (Some(Ok(worth)), Some(Ok(other_worth))) = (worth, other_worth) {
            prop_assert_eq!(a.compare(&b), worth.cmp(&other_worth), "{:?} {:?}", one, other);
        }
    }

    #[test]
    fn the_nearest_double_is_that_of_the_standard_library(cell in cells()) {
        if let Ok(number) = CellNumber::of(cell.as_bytes()) {
            let text = cell.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
            let double = one_nan(text.parse().unwrap());
            let nearest = one_nan(number.nearest());
            prop_assert!(nearest == double || nearest.to_bits() == double.to_bits(), "{:?}", cell);
        }
    }

    #[test]
    fn a_short_code_is_that_of_the_decimal(mantissa in any::<i64>(), cut in 0_u32..18, scale in 0_u8..=18) {
        let mantissa = mantissa % POWERS[18] / 10_i64.pow(cut);
        let digits: Vec<u8> = mantissa.unsigned_abs().to_string().bytes().map(|digit| digit - b'0').collect();
        let (mut short, mut long) = (Vec::new(), Vec::new());
        CellNumber::Short { mantissa, scale }.write_order(&mut short);
        let decimal = Finite::new(mantissa < 0, &digits, -i64::from(scale)).unwrap();
        Decimal::Finite(decimal).write(&mut long);
        prop_assert_eq!(short, long);
    }
}
