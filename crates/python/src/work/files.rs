//! Files that may be compressed, for readers and writers in Python.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use gristmill_engine::codec::{self, Codec, Coding, Encoder};
use gristmill_engine::storage::Caching;
use gristmill_engine::storage::location::Location;
use gristmill_engine::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{OrRaise, exclusive};
use crate::error::to_python;
use crate::stores::stores;

/// Bytes that a writer collects before it writes.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that is written, compressed or not.
#[pyclass]
pub struct CompressedWriter {
    path: PathBuf,
    encoder: Option<FileEncoder>,
}

enum FileEncoder {
    Plain(BufWriter<File>),
    Coded(Box<Encoder<BufWriter<File>>>),
}

#[pymethods]
impl CompressedWriter {
    #[new]
    #[pyo3(signature = (path, codec = None))]
    pub(super) fn create(path: PathBuf, codec: Option<&str>) -> PyResult<Self> {
        let codec = codec.map(codec_of).transpose()?;
        let file = File::create_new(&path)
            .map_err(|error| to_python(&Error::from_io("write the output", &path, &error)))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let encoder = match codec {
            None => FileEncoder::Plain(file),
            Some(codec) => {
                FileEncoder::Coded(Box::new(codec::encoder(codec, file, None).or_raise()?))
            }
        };
        let encoder = Some(encoder);
        Ok(CompressedWriter { path, encoder })
    }

    pub(super) fn write(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let written = match &mut self.encoder {
            Some(FileEncoder::Plain(file)) if data.len() < BUFFER_BYTES => file.write_all(data),
            Some(FileEncoder::Plain(file)) => py.detach(|| file.write_all(data)),
            Some(FileEncoder::Coded(encoder)) => py.detach(|| encoder.write_all(data)),
            None => Err(std::io::Error::other("it is closed")),
        };
        written.map_err(|error| to_python(&Error::from_io("write the output", &self.path, &error)))
    }

    pub(super) fn close(&mut self, py: Python<'_>) -> PyResult<u64> {
        let Some(encoder) = self.encoder.take() else {
            return Err(to_python(&Error::bug("write the output", "it is closed")));
        };
        let path = &self.path;
        let failed =
            |error: &std::io::Error| to_python(&Error::from_io("write the output", path, error));
        let closed = py.detach(|| {
            let mut file = match encoder {
                FileEncoder::Plain(file) => file,
                FileEncoder::Coded(encoder) => encoder.finish()?,
            };
            file.flush()?;
            Ok(file.get_ref().metadata()?.len())
        });
        closed.map_err(|error| failed(&error))
    }
}

/// A file that is read from front to back, decoded where it is compressed.
#[pyclass]
pub struct CompressedReader {
    reader: Mutex<codec::FileDecoder>, // which makes it one thread's at a time
}

#[pymethods]
impl CompressedReader {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let (stores, location) = (stores(), Location::from(path));
        let (store, path) = stores.resolve(&location).or_raise()?;
        let reader = codec::open(store, path, Caching::Cached, Coding::Detect).or_raise()?;
        let reader = Mutex::new(reader);
        Ok(CompressedReader { reader })
    }

    #[pyo3(signature = (size = -1), text_signature = "($self, size=-1)")]
    fn read<'py>(&mut self, py: Python<'py>, size: i64) -> PyResult<Bound<'py, PyBytes>> {
        let reader = exclusive(&mut self.reader);
        let data = py.detach(|| {
            let mut data = Vec::new();
            let most = usize::try_from(size).unwrap_or(usize::MAX);
            while data.len() < most {
                let start = data.len();
                data.resize(start + (most - start).min(BUFFER_BYTES), 0);
                let read = reader.fill(&mut data[start..])?;
                data.truncate(start + read);
                if read == 0 {
                    break;
                }
            }
            Ok(data)
        });
        Ok(PyBytes::new(py, &data.or_raise()?))
    }

    /// Bytes of the file that were consumed.
    fn consumed(&mut self) -> u64 {
        exclusive(&mut self.reader).consumed()
    }

    /// The codec's name, if it is compressed.
    fn codec(&mut self) -> Option<&'static str> {
        exclusive(&mut self.reader).codec().map(Codec::name)
    }
}

fn codec_of(name: &str) -> PyResult<Codec> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|_unknown| {
        let names = "gzip, bzip2, zstd, lz4, xz, snappy or deflate";
        let message = format!("there is no codec {name:?}: {names}");
        to_python(&Error::new(Kind::BadOption, "write the output", message))
    })
}
