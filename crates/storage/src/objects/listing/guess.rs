//! Guesses of names that lie about a page apart: names are numbers, and those behind the last one go on as before.
//!
//! ```text
//!   part-000412-00017 ... part-000413-00021      the first and the last of what was found a moment ago
//!              └┴┴┴┴┴┴┴  places that count       digits of the letters that names have there (here 0 to 9, and one `-`)
//!   part-000413-93771, part-000414-87521, ...    15/16 of a page further, each
//! ```
//!
//! Pages overlap a little, since a gap costs one more request. The letters of a place are those that names had there so far:
//! a place has had all that it can have once one before it has changed. Up to the first place that changes, it may also be
//! others of their class (digits, a to f, a to z), and those of places further right in the same word, as in `3f09ab`.

/// The share of a page that guesses lie apart.
const STEP: (u128, u128) = (15, 16);

/// Places that a guess is made of, from the first one in which names differ on.
const PLACES: usize = 8;

/// What a guess is calculated in has room for this and a stride.
const NUMBERS_MAX: u128 = 1 << 100;

const DIGITS: u128 = range(b'0', b'9');
const WORD: u128 = DIGITS | range(b'a', b'z') | range(b'A', b'Z');

const fn range(first: u8, last: u8) -> u128 {
    let below_first = (1 << first) - 1;
    let up_to_last = (1 << (last + 1)) - 1;
    up_to_last & !below_first
}

/// The letters that names have, by place: a bit for each letter.
#[derive(Debug, Default)]
pub struct Letters {
    places: Vec<NamePosition>,
    /// The first place in which names differ.
    changes: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct NamePosition {
    letters: u128,
    /// A name ends before it.
    is_end: bool,
    /// A name has a letter there that is not of ASCII.
    is_closed: bool,
}

impl Letters {
    /// Learns those of one more name.
    pub fn learn(&mut self, name: &str) {
        if self.places.len() <= name.len() {
            self.places.resize(name.len() + 1, NamePosition::default());
        }
        for (place, letter) in self.places.iter_mut().zip(name.bytes()) {
            match letter {
                0..128 => place.letters |= 1 << letter,
                _ => place.is_closed = true,
            }
        }
        if let Some(place) = self.places.get_mut(name.len()) {
            place.is_end = true;
        }
    }

    /// Looks which place is the first in which names differ, once some were learned.
    pub fn compare(&mut self) {
        let differs =
            |place: &NamePosition| place.letters.count_ones() + u32::from(place.is_end) > 1;
        let first = self.places.iter().position(differs);
        self.changes = first.unwrap_or(self.places.len());
    }

    /// What a place of a number can be, where the last name that was found is `to`; nothing where nobody knows.
    fn digit(&self, place: usize, to: &str) -> Option<Digit> {
        let here = self.places.get(place).filter(|place| !place.is_closed)?;
        if place > self.changes {
            let digit = Digit {
                letters: here.letters & !(1 << b'/'),
                is_end: here.is_end,
            };
            return (digit.count() > 0).then_some(digit);
        }
        let in_word = |place: &usize| {
            let letter = to.as_bytes().get(*place);
            letter.is_some_and(u8::is_ascii_alphanumeric)
        };
        let word = (place..to.len()).take_while(in_word);
        let of_word = word.filter_map(|place| self.places.get(place));
        let of_word = of_word.fold(0, |all, place| all | place.letters);
        let letters = classes((of_word & WORD) | here.letters) & !(1 << b'/');
        let digit = Digit {
            letters,
            is_end: here.is_end,
        };
        (digit.count() > 0).then_some(digit)
    }
}

/// All letters of the classes that some are of.
fn classes(letters: u128) -> u128 {
    let mut all = letters;
    for (class, rest) in [
        ((b'0', b'9'), None),
        ((b'a', b'f'), Some((b'g', b'z'))),
        ((b'A', b'F'), Some((b'G', b'Z'))),
    ] {
        let class = range(class.0, class.1);
        let rest = rest.map_or(0, |(first, last)| range(first, last));
        if letters & rest != 0 {
            all |= class | rest;
        } else if letters & class != 0 {
            all |= class;
        }
    }
    all
}

/// A place of a number.
#[derive(Debug, Clone, Copy)]
struct Digit {
    letters: u128,
    /// Nothing may stand there: that comes before all letters.
    is_end: bool,
}

impl Digit {
    fn count(self) -> u128 {
        u128::from(self.letters.count_ones()) + u128::from(self.is_end)
    }

    fn value(self, letter: Option<&u8>) -> u128 {
        let Some(letter) = letter.filter(|letter| letter.is_ascii()) else {
            return 0;
        };
        let below = self.letters & ((1 << letter) - 1);
        let value = u128::from(below.count_ones()) + u128::from(self.is_end);
        value.min(self.count() - 1)
    }

    fn letter(self, value: u128) -> Option<char> {
        let skipped = value.checked_sub(u128::from(self.is_end))?;
        let letters = (0..128_u8).filter(|letter| self.letters >> letter & 1 == 1);
        letters.map(char::from).nth(skipped as usize)
    }
}

/// What was found last: from one name to another, so many.
#[derive(Debug)]
pub struct Stride {
    pub from: String,
    pub to: String,
    pub entries: usize,
}

impl Stride {
    /// Names behind `to`, in order, that lie less than a page of so many entries apart: as many as are wanted, or fewer.
    pub fn guesses(&self, letters: &Letters, page_entries: usize, wanted: usize) -> Vec<String> {
        let Some(numbers) = NumberedNames::of(self, letters) else {
            return Vec::new();
        };
        let (from, to) = (numbers.number(&self.from), numbers.number(&self.to));
        let pages = (to.saturating_sub(from), page_entries as u128);
        let step = pages.0 * pages.1 * STEP.0 / STEP.1 / self.entries.max(1) as u128;
        if step == 0 {
            return Vec::new();
        }
        let names = (1..=wanted as u128).map_while(|count| numbers.name(to + count * step));
        let mut guesses: Vec<String> = names.filter(|name| *name > self.to).collect();
        guesses.dedup();
        guesses
    }
}

/// Numbers for names that are equal before the places that count.
struct NumberedNames<'s> {
    before: &'s str,
    digits: Vec<Digit>,
}

impl<'s> NumberedNames<'s> {
    fn of(stride: &'s Stride, letters: &Letters) -> Option<Self> {
        let (from, to) = (stride.from.as_bytes(), stride.to.as_bytes());
        let equal = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let digit = |place| letters.digit(place, &stride.to);
        let (mut digits, mut all) = (Vec::new(), 1);
        for place in equal..equal + PLACES {
            match digit(place).filter(|digit| all * digit.count() <= NUMBERS_MAX) {
                Some(digit) => {
                    all *= digit.count();
                    digits.push(digit);
                }
                None => break,
            }
        }
        if digits.is_empty() {
            return None;
        }
        // Places before: a number that grows runs over into them.
        let mut first = equal;
        while let Some(before) = first.checked_sub(1) {
            match digit(before).filter(|digit| all * digit.count() <= NUMBERS_MAX) {
                Some(digit) => {
                    all *= digit.count();
                    digits.insert(0, digit);
                    first = before;
                }
                None => break,
            }
        }
        let before = stride.to.get(..first)?;
        Some(NumberedNames { before, digits })
    }

    fn number(&self, name: &str) -> u128 {
        let places = name.as_bytes().get(self.before.len()..).unwrap_or_default();
        let digits = self.digits.iter().enumerate();
        digits.fold(0, |number, (place, digit)| {
            number * digit.count() + digit.value(places.get(place))
        })
    }

    /// The name of a number; nothing behind the last one.
    fn name(&self, mut number: u128) -> Option<String> {
        let mut letters = Vec::new();
        for digit in self.digits.iter().rev() {
            letters.push(digit.letter(number % digit.count()));
            number /= digit.count();
        }
        let name = letters.into_iter().rev().map_while(|letter| letter);
        let name = self.before.chars().chain(name).collect();
        (number == 0).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guesses after two pages of some names.
    fn guesses(names: &[String], wanted: usize) -> Vec<String> {
        let (first, second) = names.split_at(names.len() / 2);
        let stride = Stride {
            from: first.last().unwrap().clone(),
            to: second.last().unwrap().clone(),
            entries: second.len(),
        };
        let mut letters = Letters::default();
        names.iter().for_each(|name| letters.learn(name));
        letters.compare();
        stride.guesses(&letters, second.len(), wanted)
    }

    fn numbered(numbers: std::ops::Range<usize>, name: impl Fn(usize) -> String) -> Vec<String> {
        let mut names: Vec<String> = numbers.map(name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn numbers_go_on_as_before() {
        let names = numbered(0..2000, |number| format!("part-{number:06}.tbl"));
        let wanted = ["part-002936.tbl", "part-003873.tbl", "part-004810.tbl"];
        assert_eq!(guesses(&names, 3), wanted);
        let names = numbered(98_000..99_999, |number| format!("{number:05}"));
        assert_eq!(
            guesses(&names, 3),
            [""; 0],
            "there is no number of five digits behind"
        );
    }

    #[test]
    fn words_of_digits_and_letters_are_numbers() {
        let hash = |number: usize| {
            let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{:016x}", mixed ^ (mixed >> 31))
        };
        let names = numbered(0..100_000, hash);
        let found = guesses(&names[..2000], 40);
        assert_eq!(found.len(), 40);
        let position = |name: &String| names.partition_point(|known| known <= name);
        let places: Vec<usize> = found.iter().map(position).collect();
        let steps = places.windows(2).map(|pair| pair[1] - pair[0]);
        let (least, most) = steps.fold((usize::MAX, 0), |(least, most), step| {
            (least.min(step), most.max(step))
        });
        assert!(least > 700 && most < 1000, "{least} {most}");
    }

    #[test]
    fn names_of_other_alphabets_and_of_other_lengths() {
        let names = numbered(0..2000, |number| format!("übung-{number:04}"));
        assert!(guesses(&names, 3)[0].starts_with("übung-29"));
        let names = numbered(0..2000, |number| format!("{number:04}-ü"));
        assert!(guesses(&names, 3)[0].starts_with("29"));
        let names = numbered(0..2000, |number| format!("é{}", "é".repeat(number % 7)));
        guesses(&names, 3);
        let names = numbered(1..2001, |number| number.to_string());
        let found = guesses(&names, 3);
        assert!(found.is_sorted_by(|a, b| a < b));
        assert!(found.iter().all(|name| *name > names[1999]));
    }
}
