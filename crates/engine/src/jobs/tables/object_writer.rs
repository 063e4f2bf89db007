//! Writes JSON objects, a line each, whose names are known.

use gristmill_base::record::objects::{write_name, write_value};

/// Writes objects, value by value.
#[derive(Debug, Clone)]
pub(in crate::jobs) struct ObjectWriter {
    /// The names, each as a string with its colon.
    names: Vec<Vec<u8>>,
    /// Values of the object so far.
    values: usize,
}

impl ObjectWriter {
    /// What writes objects with these names.
    pub(in crate::jobs) fn new<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Self {
        let named = |name: &[u8]| {
            let mut named = Vec::new();
            write_name(&String::from_utf8_lossy(name), &mut named);
            named.push(b':');
            named
        };
        ObjectWriter {
            names: names.into_iter().map(named).collect(),
            values: 0,
        }
    }

    /// Writes the next value: JSON as it stands, or what says a text.
    pub(in crate::jobs) fn value(&mut self, value: &[u8], is_json: bool, out: &mut Vec<u8>) {
        out.push(if self.values == 0 { b'{' } else { b',' });
        out.extend_from_slice(self.names.get(self.values).map_or(&[], Vec::as_slice));
        self.values += 1;
        match is_json && !value.is_empty() {
            true => out.extend_from_slice(value),
            false => write_value(value, out),
        }
    }

    /// Ends the object.
    pub(in crate::jobs) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"}\n");
        self.values = 0;
    }
}
