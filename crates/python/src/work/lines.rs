//! Files of lines: what user code gives, as text, a line for each record.
//!
//! ```text
//!   text   "a line"  b"bytes"     as they are          ("a", 1)         a⇥1        anything else: str(record)
//!   tsv    ("a⇥b", None)          a\tb⇥                (("a", 2), 3)    a⇥2⇥3      {"x": 1}  1
//! ```
//!
//! Tuples within a record are flattened. A field is the content of text and of bytes, nothing for `None`, and `str()` of
//! anything else (`value::fields`). Text that holds bytes as
//! Python's `surrogateescape` has them becomes those bytes again. The columns of the first dict of a file are those of all.
//!
//! The rule that must hold: what `take` writes of encoded pairs is what `consume` writes of the same pairs as Python's objects.

use std::path::PathBuf;

use gristmill_engine::value::fields::Fields;
use gristmill_engine::value::{Token, ValueReader};
use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use super::OrRaise;
use super::files::CompressedWriter;
use super::groups::Groups;
use super::objects::{object, read_value};
use super::value::small_int;

/// Bytes of lines that are collected before they are written.
const PIECE_BYTES: usize = 256_000;

/// Tuples within tuples, at most.
const DEPTH_MAX: u32 = 1000;

/// What becomes of a record.
enum LineFormat {
    Text,
    Tsv,
    /// What the function makes of it: text or bytes.
    Made(Py<PyAny>),
}

/// A new file with a line for each record.
#[pyclass]
pub struct LineWriter {
    file: CompressedWriter,
    form: LineFormat,
    lines: Vec<u8>,
    records: u64,
    /// The columns of the first dict, where their order is all that a reader has.
    columns: Option<Py<PyList>>,
}

#[pymethods]
impl LineWriter {
    #[new]
    #[pyo3(signature = (path, codec = None, *, tsv = false, line_of = None))]
    fn new(
        path: PathBuf,
        codec: Option<&str>,
        tsv: bool,
        line_of: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let form = match line_of {
            Some(function) => LineFormat::Made(function),
            None if tsv => LineFormat::Tsv,
            None => LineFormat::Text,
        };
        Ok(LineWriter {
            file: CompressedWriter::create(path, codec)?,
            form,
            lines: Vec::with_capacity(PIECE_BYTES),
            records: 0,
            columns: None,
        })
    }

    /// Writes a record; of a batch, all its rows.
    fn write(&mut self, record: &Bound<'_, PyAny>) -> PyResult<()> {
        if is_batch(record) {
            return self.consume(&rows_of(record)?);
        }
        if let (LineFormat::Tsv, Ok(row)) = (&self.form, record.cast::<PyDict>()) {
            let values = self.in_order(row)?;
            let write = |_: &LineFormat, out: &mut Vec<u8>| {
                parts(&mut Fields::new(true, out), values.iter(), 0)
            };
            return self.line(record.py(), write);
        }
        self.line(record.py(), |form, out| form.write(record, out))
    }

    /// Writes all records of an iterable.
    fn consume(&mut self, records: &Bound<'_, PyAny>) -> PyResult<()> {
        for record in records.try_iter()? {
            self.write(&record?)?;
        }
        Ok(())
    }

    /// Writes the key and the aggregate of each group.
    fn take(&mut self, py: Python<'_>, groups: &Bound<'_, Groups>) -> PyResult<()> {
        let mut groups = groups.borrow_mut();
        while let Some((key, value)) = groups.next_aggregate().or_raise()? {
            self.line(py, |form, out| form.write_encoded(py, key, value, out))?;
        }
        Ok(())
    }

    /// Records written.
    fn records(&self) -> u64 {
        self.records
    }

    /// Ends the file; its length.
    fn close(&mut self, py: Python<'_>) -> PyResult<u64> {
        self.flush(py)?;
        self.file.close(py)
    }
}

impl LineWriter {
    /// The values of a row in the order of the first row's columns.
    fn in_order<'py>(&mut self, row: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyList>> {
        let (py, names) = (row.py(), row.keys());
        let Some(columns) = &self.columns else {
            self.columns = Some(names.unbind());
            return Ok(row.values());
        };
        let columns = columns.bind(py);
        if columns.eq(&names)? {
            return Ok(row.values());
        }
        let values = PyList::empty(py);
        for value in columns
            .iter()
            .map_while(|name| row.get_item(name).transpose())
        {
            values.append(value?)?;
        }
        if (values.len(), values.len()) == (columns.len(), names.len()) {
            return Ok(values);
        }
        Err(PyValueError::new_err(format!(
            "a record has the columns {}, and the first one of the file has {}: a line of gm.tsv does not name them",
            names.repr()?,
            columns.repr()?
        )))
    }

    /// Adds a line: all of it, or on an error nothing.
    #[inline]
    fn line(
        &mut self,
        py: Python<'_>,
        write: impl FnOnce(&LineFormat, &mut Vec<u8>) -> PyResult<()>,
    ) -> PyResult<()> {
        let start = self.lines.len();
        if let Err(error) = write(&self.form, &mut self.lines) {
            self.lines.truncate(start);
            return Err(error);
        }
        self.lines.push(b'\n');
        self.records += 1;
        if self.lines.len() >= PIECE_BYTES {
            self.flush(py)?;
        }
        Ok(())
    }

    fn flush(&mut self, py: Python<'_>) -> PyResult<()> {
        self.file.write(py, &self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

impl LineFormat {
    fn write(&self, record: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
        match self {
            LineFormat::Text => write_text(record, out),
            LineFormat::Tsv => part(&mut Fields::new(true, out), record, 0),
            LineFormat::Made(function) => {
                let line = function.bind(record.py()).call1((record,))?;
                match line.cast::<PyBytes>() {
                    Ok(bytes) => out.extend_from_slice(bytes.as_bytes()),
                    Err(_) => out.extend_from_slice(line.cast::<PyString>()?.to_str()?.as_bytes()),
                }
                Ok(())
            }
        }
    }

    fn write_encoded(
        &self,
        py: Python<'_>,
        key: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> PyResult<()> {
        if let LineFormat::Made(_) = self {
            let pair = (read_value(py, key)?, read_value(py, value)?);
            return self.write(pair.into_pyobject(py)?.as_any(), out);
        }
        let mut fields = Fields::new(matches!(self, LineFormat::Tsv), out);
        encoded(&mut fields, py, key)?;
        encoded(&mut fields, py, value)
    }
}

/// A record as a line of text: only pairs have fields.
fn write_text(record: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(text) = record.cast::<PyString>() {
        out.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(bytes) = record.cast::<PyBytes>() {
        out.extend_from_slice(bytes.as_bytes());
    } else if record.cast::<PyTuple>().is_ok_and(|tuple| tuple.len() == 2) {
        return part(&mut Fields::new(false, out), record, 0);
    } else {
        out.extend_from_slice(record.str()?.to_str()?.as_bytes());
    }
    Ok(())
}

/// A field, or those of a tuple.
fn part(fields: &mut Fields<'_>, part: &Bound<'_, PyAny>, depth: u32) -> PyResult<()> {
    match part.cast::<PyTuple>() {
        Ok(tuple) => parts(fields, tuple.iter(), depth),
        Err(_) => field(fields, part),
    }
}

fn parts<'py>(
    fields: &mut Fields<'_>,
    found: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: u32,
) -> PyResult<()> {
    if depth == DEPTH_MAX {
        let message = format!("the tuples of a record are more than {DEPTH_MAX} deep");
        return Err(PyRecursionError::new_err(message));
    }
    for one in found {
        part(fields, &one, depth + 1)?;
    }
    Ok(())
}

fn field(fields: &mut Fields<'_>, field: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(found) = field.cast::<PyString>() {
        return text(fields, found);
    }
    if let Some(int) = small_int(field) {
        fields.int(int);
    } else if let Ok(bytes) = field.cast::<PyBytes>() {
        fields.bytes(bytes.as_bytes());
    } else if field.is_none() {
        fields.null();
    } else {
        return text(fields, &field.str()?);
    }
    Ok(())
}

/// The fields of an encoded value.
fn encoded(fields: &mut Fields<'_>, py: Python<'_>, value: &[u8]) -> PyResult<()> {
    let mut reader = ValueReader::new(value);
    while let Some(token) = reader.token().or_raise()? {
        match token {
            Token::Begin | Token::End => {}
            Token::Text(text) => fields.bytes(text.as_bytes()),
            Token::Bytes(bytes) => fields.bytes(&bytes),
            Token::Int(int) => fields.int(int),
            Token::Null => fields.null(),
            Token::Boolean(boolean) => fields.bytes(if boolean { b"True" } else { b"False" }),
            other => part(fields, &object(py, other, &mut reader)?, 0)?,
        }
    }
    Ok(())
}

#[inline]
fn text(fields: &mut Fields<'_>, text: &Bound<'_, PyString>) -> PyResult<()> {
    if let Ok(utf8) = text.to_str() {
        fields.bytes(utf8.as_bytes());
        return Ok(());
    }
    let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
    fields.bytes(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// Whether a record is a batch or table of pyarrow's, which need not be installed.
#[inline]
fn is_batch(record: &Bound<'_, PyAny>) -> bool {
    let plain = record.is_exact_instance_of::<PyTuple>()
        || record.is_exact_instance_of::<PyString>()
        || record.is_exact_instance_of::<PyDict>()
        || record.is_exact_instance_of::<PyList>()
        || record.is_exact_instance_of::<PyBytes>()
        || record.is_exact_instance_of::<PyInt>();
    !plain && is_arrow(record)
}

#[cold]
fn is_arrow(record: &Bound<'_, PyAny>) -> bool {
    let kind = record.get_type();
    let is = |name: PyResult<Bound<'_, PyString>>, one_of: &[&str]| {
        name.is_ok_and(|name| {
            one_of
                .iter()
                .any(|one| name.to_str().is_ok_and(|it| it == *one))
        })
    };
    is(kind.module(), &["pyarrow.lib"]) && is(kind.name(), &["RecordBatch", "Table"])
}

fn rows_of<'py>(batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static ROWS_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function: &Bound<'py, PyAny> = ROWS_OF.import(
        batch.py(),
        "gristmill.mapreduce.formats.table_writer",
        "rows_of",
    )?;
    function.call1((batch,))
}
