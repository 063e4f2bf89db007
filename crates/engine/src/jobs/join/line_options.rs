//! What GNU join's options ask of lines: which fields are the key, which lines are written, and which fields of them.
//!
//! ```text
//!   -1 2 -2 1 -a 1 -o 0,1.2,2.3     the key is field 2 of the left, 1 of the right; ...
//! ```

use super::join_kind::RowsWanted;
use super::layout::{Layout, RowPiece};
use super::lines::{JoinLines, LinePiece};
use super::names::{field_number, names_by};
use super::row::RowForm;
use super::{JoinKind, JoinSpec};
use crate::jobs::mapreduce::wrong_option;
use gristmill_base::error::Result;

/// What separates fields of the output that blanks separated.
pub(super) const BETWEEN_BLANKS: u8 = b' ';

/// The fields of rows of the output, as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldsWanted {
    /// The key, then all others.
    All,
    /// The same; as many of each input as its first line has.
    Auto,
    /// These: of `None` the key, of an input a field.
    Listed(Vec<Option<(usize, usize)>>),
}

impl FieldsWanted {
    /// As given, where there are so many inputs.
    fn of(given: Option<&str>, inputs: usize) -> Result<Self> {
        match given {
            None => Ok(FieldsWanted::All),
            Some("auto") => Ok(FieldsWanted::Auto),
            Some(list) => {
                let items = list.split([',', ' ', '\t']).map(|item| {
                    listed(item, inputs).ok_or_else(|| {
                        let what = format!("{item:?} names no field of an input");
                        let advice = format!(
                            "give 0 for the key, INPUT.FIELD for others, with INPUT from 1 to {inputs}: 0,1.2,2.1; or auto"
                        );
                        wrong_option("fields", &what).advise(advice)
                    })
                });
                items.collect::<Result<_>>().map(FieldsWanted::Listed)
            }
        }
    }
}

/// An item of a list of fields: 0, or 1.2.
#[expect(
    clippy::option_option,
    reason = "`None` stands for a wrong item, `Some(None)` for the key"
)]
fn listed(item: &str, inputs: usize) -> Option<Option<(usize, usize)>> {
    if item == "0" {
        return Some(None);
    }
    let (input, field) = item.split_once('.')?;
    let (input, field) = (input.parse::<usize>().ok()?, field.parse::<usize>().ok()?);
    ((1..=inputs).contains(&input) && field > 0).then(|| Some((input - 1, field - 1)))
}

/// Lines that are to be joined.
pub(super) struct LinesJoined {
    pub(super) inputs: Vec<JoinLines>,
    pub(super) layout: Layout,
    pub(super) absent: Vec<Vec<u8>>,
}

/// The inputs and how rows are put together, where the first lines of the inputs are these; of an input without lines there is none. The
/// separator tells fields apart, `between` stands between them in the output.
pub(super) fn lines_joined(
    spec: &JoinSpec,
    (separator, between, empty): (Option<u8>, u8, &[u8]),
    first_lines: &[Option<&[u8]>],
) -> Result<LinesJoined> {
    let keys = keys_of(spec)?;
    let selects = spec.how.selects();
    let wanted = FieldsWanted::of(spec.fields.as_deref(), keys.len())?;
    if selects && wanted != FieldsWanted::All {
        return Err(
            wrong_option("fields", "semi and anti write lines as they are")
                .advise("leave it out, or give -v 1 in place of anti"),
        );
    }
    let (layout, pieces) = laid_out(&wanted, keys.len(), spec.ignore_case, between);
    let mut inputs = Vec::new();
    for (number, (key, (pieces, first_piece))) in keys.into_iter().zip(pieces).enumerate() {
        let mut input = JoinLines {
            separator,
            key,
            ignores_case: spec.ignore_case,
            has_header: spec.header,
            form: RowForm::of(number, selects),
            pieces,
            first_piece,
            between,
            empty: empty.to_vec(),
        };
        if wanted == FieldsWanted::Auto {
            let line = first_lines.get(number).copied().flatten();
            let count = line.map_or(0, |line| input.count(line));
            if let Some(last) = input.pieces.last_mut() {
                *last = LinePiece::Others(Some(count));
            }
        }
        inputs.push(input);
    }
    let absent = inputs.iter().map(JoinLines::absent).collect();
    Ok(LinesJoined {
        inputs,
        layout,
        absent,
    })
}

/// The pieces of the rows of an input, and which of them rows of the output begin with.
type InputPieces = (Vec<LinePiece>, Option<usize>);

/// How rows are put together, and what those of each input have.
fn laid_out(
    wanted: &FieldsWanted,
    inputs: usize,
    keeps_key: bool,
    between: u8,
) -> (Layout, Vec<InputPieces>) {
    let key = match keeps_key {
        true => vec![LinePiece::Key],
        false => Vec::new(),
    };
    let FieldsWanted::Listed(items) = wanted else {
        let mut pieces = key;
        pieces.push(LinePiece::Others(None));
        let layout = Layout::key_first(inputs, keeps_key, between);
        return (layout, vec![(pieces, None); inputs]);
    };
    let mut of_inputs: Vec<InputPieces> = vec![(key, None); inputs];
    let mut pieces = Vec::new();
    let mut before = None; // the input of the piece before
    for item in items {
        let Some((input, field)) = *item else {
            if !pieces.is_empty() {
                pieces.push(RowPiece::Between);
            }
            pieces.push(RowPiece::Key);
            before = None;
            continue;
        };
        let Some((own, first)) = of_inputs.get_mut(input) else {
            continue;
        };
        match own.last_mut() {
            Some(LinePiece::Fields(fields)) if before == Some(input) => fields.push(field),
            _ => {
                let piece = own.len();
                if pieces.is_empty() {
                    *first = Some(piece);
                }
                own.push(LinePiece::Fields(vec![field]));
                pieces.push(RowPiece::Of { input, piece });
            }
        }
        before = Some(input);
    }
    let layout = Layout {
        pieces,
        counts: of_inputs.iter().map(|(own, _)| own.len()).collect(),
        keeps_key,
        between,
    };
    (layout, of_inputs)
}

/// The fields of the key of each input, from 0 on.
fn keys_of(spec: &JoinSpec) -> Result<Vec<Vec<usize>>> {
    let inputs = spec.count();
    let gnu = [
        ("field", spec.field),
        ("left_field", spec.left_field),
        ("right_field", spec.right_field),
    ];
    let given = gnu.iter().find(|(_, number)| number.is_some());
    if !spec.by.is_empty() {
        if let Some((name, _)) = given {
            return Err(
                wrong_option(name, "by says which fields are the key").advise("give one of them")
            );
        }
        let names = names_by(&spec.by, inputs)?;
        let number = |name: &Vec<u8>| field_number(name);
        let of = |input: usize| names.iter().filter_map(move |names| names.get(input));
        return (0..inputs)
            .map(|input| of(input).map(number).collect())
            .collect();
    }
    let of = |input: usize| match input {
        0 => spec.left_field,
        1 => spec.right_field,
        _ => None,
    };
    let number = |input| of(input).or(spec.field).unwrap_or(1) - 1;
    Ok((0..inputs).map(|input| vec![number(input)]).collect())
}

/// Which rows are written, of two inputs, by `-a` and `-v`; `None` where neither is given.
///
/// # Errors
/// They name no input.
pub(super) fn unpaired(spec: &JoinSpec) -> Result<Option<RowsWanted>> {
    let mut wanted = RowsWanted {
        matched: spec.only_unpaired.is_empty(),
        ..RowsWanted::default()
    };
    for (name, inputs) in [
        ("unpaired", &spec.unpaired),
        ("only_unpaired", &spec.only_unpaired),
    ] {
        if !inputs.is_empty() && spec.count() > 2 {
            return Err(wrong_option(name, "it is for two inputs")
                .advise("give how: left, right or full; or anti"));
        }
        for input in inputs {
            match input.as_str() {
                "1" => wanted.left = true,
                "2" => wanted.right = true,
                _ => {
                    let what = format!("{input:?} names no input");
                    return Err(
                        wrong_option(name, &what).advise("give 1 for the left, 2 for the right")
                    );
                }
            }
        }
    }
    let is_given = wanted.left || wanted.right;
    if is_given && spec.how != JoinKind::default() {
        let name = match spec.unpaired.is_empty() {
            true => "only_unpaired",
            false => "unpaired",
        };
        return Err(
            wrong_option(name, "how says which rows are written").advise("give one of them")
        );
    }
    Ok(is_given.then_some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_fields_of_inputs() {
        let list = |given: &str| FieldsWanted::of(Some(given), 2);
        let wanted = vec![None, Some((0, 1)), Some((1, 2))];
        assert_eq!(list("0,1.2 2.3").unwrap(), FieldsWanted::Listed(wanted));
        assert_eq!(list("auto").unwrap(), FieldsWanted::Auto);
        for wrong in ["", "1", "0,", "3.1", "1.0", "0.1", "a.b", "1.-1"] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
        assert!(FieldsWanted::of(Some("3.1"), 3).is_ok());
    }

    #[test]
    fn neighbours_share_a_piece() {
        let wanted = FieldsWanted::of(Some("1.2,1.1,0,2.1,1.3"), 2).unwrap();
        let (layout, pieces) = laid_out(&wanted, 2, true, b',');
        let of = |input, piece| RowPiece::Of { input, piece };
        let wanted = [
            of(0, 1),
            RowPiece::Between,
            RowPiece::Key,
            of(1, 1),
            of(0, 2),
        ];
        assert_eq!(
            (layout.pieces.as_slice(), layout.counts),
            (&wanted[..], vec![3, 2])
        );
        let fields = |numbers: &[usize]| LinePiece::Fields(numbers.to_vec());
        let left = vec![LinePiece::Key, fields(&[1, 0]), fields(&[2])];
        assert_eq!(
            pieces,
            [(left, Some(1)), (vec![LinePiece::Key, fields(&[0])], None)]
        );
    }
}
