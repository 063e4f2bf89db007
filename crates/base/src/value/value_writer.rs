//! Writes values of any shape: what a null becomes, and how deep a tuple is, depend on where it stands.

use super::{DEPTH_MAX, write};
use crate::{Error, Kind, Result};

/// Writes values of any shape, and knows whether it stands inside a tuple.
///
/// ```
/// use gristmill_base::value::ValueWriter;
/// let mut out = Vec::new();
/// let mut writer = ValueWriter::new(&mut out);
/// writer.begin_tuple()?;
/// writer.text("word");
/// writer.null();
/// writer.end_tuple();
/// assert_eq!(out, b"\x05\x02word\0\0\xff\0");
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug)]
pub struct ValueWriter<'a> {
    out: &'a mut Vec<u8>,
    depth: u32,
}

impl<'a> ValueWriter<'a> {
    /// Writes at the end of `out`.
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = vec![0x14];
    /// ValueWriter::new(&mut out).int(1);
    /// assert_eq!(out, [0x14, 0x15, 1]);
    /// ```
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        ValueWriter { out, depth: 0 }
    }

    /// The buffer, for the functions of this module that need no [`ValueWriter`].
    ///
    /// ```
    /// use gristmill_base::value::{ValueWriter, write};
    /// let mut out = Vec::new();
    /// write::boolean(ValueWriter::new(&mut out).out(), false);
    /// assert_eq!(out, [0x26]);
    /// ```
    #[inline]
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Appends a null, escaped where it is an element.
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.null();
    /// assert_eq!(out, [0x00]);
    /// ```
    #[inline]
    pub fn null(&mut self) {
        if self.depth > 0 {
            write::null_in_tuple(self.out);
        } else {
            write::null(self.out);
        }
    }

    /// Appends bytes, as [`write::bytes()`].
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.bytes(b"a");
    /// assert_eq!(out, b"\x01a\0");
    /// ```
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        write::bytes(self.out, value);
    }

    /// Appends text, as [`write::text`].
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.text("a");
    /// assert_eq!(out, b"\x02a\0");
    /// ```
    #[inline]
    pub fn text(&mut self, value: &str) {
        write::text(self.out, value);
    }

    /// Appends an integer of up to 64 bits, as [`write::int`].
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.int(7);
    /// assert_eq!(out, [0x15, 7]);
    /// ```
    #[inline]
    pub fn int(&mut self, value: i64) {
        write::int(self.out, value);
    }

    /// Appends an integer of any size, as [`write::big_int`], with its error.
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.big_int(true, &[1])?;
    /// assert_eq!(out, [0x13, 0xfe]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn big_int(&mut self, negative: bool, magnitude_be: &[u8]) -> Result<()> {
        write::big_int(self.out, negative, magnitude_be)
    }

    /// Appends a double, as [`write::double`].
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.double(-0.0);
    /// assert_eq!(out, [0x21, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
    /// ```
    #[inline]
    pub fn double(&mut self, value: f64) {
        write::double(self.out, value);
    }

    /// Appends a boolean, as [`write::boolean`].
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.boolean(true);
    /// assert_eq!(out, [0x27]);
    /// ```
    #[inline]
    pub fn boolean(&mut self, value: bool) {
        write::boolean(self.out, value);
    }

    /// Appends pickled bytes, as [`write::pickled`].
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.pickled(b"N.");
    /// assert_eq!(out, b"\x40N.\0");
    /// ```
    #[inline]
    pub fn pickled(&mut self, value: &[u8]) {
        write::pickled(self.out, value);
    }

    /// Begins a tuple. An error (`bad_input`) where 100 tuples are open, which is as deep as values go.
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// for _ in 0..100 {
    ///     writer.begin_tuple()?;
    /// }
    /// assert!(writer.begin_tuple().is_err());
    /// assert_eq!(out, [0x05; 100]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn begin_tuple(&mut self) -> Result<()> {
        if self.depth == DEPTH_MAX {
            let message = format!("tuples go deeper than {DEPTH_MAX}");
            return Err(Error::new(Kind::BadInput, "encode a value", message)
                .advise("make the value flatter"));
        }
        self.depth += 1;
        write::begin_tuple(self.out);
        Ok(())
    }

    /// Ends the tuple begun last; where none is open nothing happens.
    ///
    /// ```
    /// use gristmill_base::value::ValueWriter;
    /// let mut out = Vec::new();
    /// let mut writer = ValueWriter::new(&mut out);
    /// writer.begin_tuple()?;
    /// writer.end_tuple();
    /// assert_eq!(out, [0x05, 0x00]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn end_tuple(&mut self) {
        if self.depth > 0 {
            self.depth -= 1;
            write::end_tuple(self.out);
        }
    }
}
