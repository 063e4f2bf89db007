//! Which types a task met where in its keys: one bit a type and place, set as keys are written.

use gristmill_engine::task::key_types::{self, Kinds};

/// Elements of a tuple that are told apart, and tuples in tuples.
const ELEMENTS_MAX: usize = 32;

/// The types at a place, and at those inside it.
#[derive(Debug, Default)]
pub struct SeenKeyTypes {
    /// Bits of `kinds`.
    pub types: u16,
    /// Whether there was an order that was turned.
    pub descending: bool,
    elements: Vec<SeenKeyTypes>,
}

impl SeenKeyTypes {
    /// The place of an element of the tuple here; the last one stands for nothing that could be said.
    #[inline]
    pub fn element(&mut self, at: usize) -> &mut SeenKeyTypes {
        let at = at.min(ELEMENTS_MAX);
        if at >= self.elements.len() {
            self.elements.resize_with(at + 1, SeenKeyTypes::default);
        }
        &mut self.elements[at]
    }

    /// Whether an order was turned, here or inside.
    pub fn has_descending(&self) -> bool {
        self.descending || self.elements.iter().any(SeenKeyTypes::has_descending)
    }

    /// Adds which of some types were met to `out`, by places that begin with `place`.
    pub fn give(&self, types: u16, place: &str, out: &mut Kinds) {
        if self.types & types != 0 {
            key_types::add(out, &[(place.to_owned(), self.types & types)].into());
        }
        for (at, element) in self.elements.iter().enumerate().take(ELEMENTS_MAX) {
            element.give(types, &format!("{place}[{at}]"), out);
        }
    }
}
