//! Values that come back as they were: of lists and dicts, and of the types of `datetime`, `decimal` and `uuid`.
//!
//! ```text
//!   value ──▶ its parts, asked of Python ──▶ value/exact.rs ──▶ made by the type itself
//!     └─ a subclass, a time zone of another library, what is shared ──▶ pickled (`value.rs`)
//! ```
//!
//! The rule that must hold: a value is equal to what was written, of the same type, and shows the same. So only the types themselves are
//! taken, not their subclasses (a `pandas.Timestamp` is a datetime), and of zones those that can be made again from what they say.
//! A list or dict that stands in a value twice is one object after pickling, too: such a value is pickled.
//!
//! The bytes that `__reduce_ex__` gives for datetimes and times are what pickles hold, so they stay what they are: one call in
//! place of nine attributes.
//!
//! Decision: docs/decisions/exact-values.md.

use std::sync::Mutex;

use gristmill_engine::value::exact::{self, Moment, Zone};
use gristmill_engine::value::moment::{self, MICROS_A_DAY};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple, PyType};

use super::refused::{damaged, refuse_deeper};
use gristmill_engine::sync::lock;

/// A class of the standard library. Where nobody has imported its module, no value is one of it.
struct LibraryType(&'static str, &'static str, PyOnceLock<Py<PyType>>);

static DATE: LibraryType = LibraryType("datetime", "date", PyOnceLock::new());
static DATETIME: LibraryType = LibraryType("datetime", "datetime", PyOnceLock::new());
static TIME: LibraryType = LibraryType("datetime", "time", PyOnceLock::new());
static TIMEDELTA: LibraryType = LibraryType("datetime", "timedelta", PyOnceLock::new());
static TIMEZONE: LibraryType = LibraryType("datetime", "timezone", PyOnceLock::new());
static ZONE_INFO: LibraryType = LibraryType("zoneinfo", "ZoneInfo", PyOnceLock::new());
static DECIMAL: LibraryType = LibraryType("decimal", "Decimal", PyOnceLock::new());
static UUID: LibraryType = LibraryType("uuid", "UUID", PyOnceLock::new());

impl LibraryType {
    /// Whether this is the class, and no subclass.
    #[inline]
    fn is(&self, kind: &Bound<'_, PyType>) -> PyResult<bool> {
        let py = kind.py();
        if let Some(class) = self.2.get(py) {
            return Ok(class.is(kind));
        }
        let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
        Ok(modules.contains(self.0)? && self.of(py)?.is(kind))
    }

    fn of<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyType>> {
        self.2.import(py, self.0, self.1)
    }
}

/// Bytes of a value with lists and dicts, at most: in longer ones a pickle says once what they say often, and its cost by
/// value weighs little.
const BYTES_MAX: usize = 16 << 10;

/// What the writing of a value has met.
#[derive(Debug)]
pub struct NestingState {
    start: usize,
    /// The lists, dicts and tuples inside it. One that holds itself goes too deep.
    inside: Vec<usize>,
    /// Whether there is a list or dict.
    mutable: bool,
}

impl NestingState {
    /// Nothing yet, of a value whose encoding begins at `start`.
    #[inline]
    pub fn new(start: usize) -> Self {
        NestingState {
            start,
            inside: Vec::new(),
            mutable: false,
        }
    }

    /// Notes a list, dict or tuple. An error (`ValueError`) where it stands too deep.
    #[inline]
    pub fn go_in(&mut self, holder: &Bound<'_, PyAny>, depth: u32, mutable: bool) -> PyResult<()> {
        refuse_deeper(depth)?;
        self.mutable |= mutable;
        if depth > 0 {
            self.inside.push(holder.as_ptr() as usize);
        }
        Ok(())
    }

    /// Whether the value has become so long that it is to be pickled.
    #[inline]
    pub fn is_long(&self, out: &[u8]) -> bool {
        self.mutable && out.len() - self.start > BYTES_MAX
    }

    /// Whether one of its parts may stand in it twice, and be changed: it is to be pickled. Called at the end.
    #[inline]
    pub fn is_shared(&mut self) -> bool {
        if !self.mutable || self.inside.len() < 2 {
            return false;
        }
        self.inside.sort_unstable();
        self.inside
            .iter()
            .zip(self.inside.iter().skip(1))
            .any(|(one, next)| one == next)
    }
}

/// Keeps what was met last.
fn remember<T>(last: &Mutex<Option<T>>, met: T) {
    let before = lock(last).replace(met);
    drop(before); // not under the lock: the end of an object may run code of Python's
}

/// The class met last that is none of these: most values that are pickled are of one.
static OTHER: Mutex<Option<Py<PyType>>> = Mutex::new(None);

/// Appends a value of one of these types; false where it is of another.
pub fn write(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    let kind = &value.get_type();
    let is_other = |other: &Option<Py<PyType>>| other.as_ref().is_some_and(|other| other.is(kind));
    if is_other(&lock(&OTHER)) {
        return Ok(false);
    }
    if DATETIME.is(kind)? {
        return write_datetime(value, out);
    }
    if DATE.is(kind)? {
        moment::write_date(out, ordinal_of(value)?);
    } else if DECIMAL.is(kind)? {
        exact::write_decimal(out, value.str()?.to_str()?);
    } else if UUID.is(kind)? {
        return write_uuid(value, out);
    } else if TIMEDELTA.is(kind)? {
        let (days, micros) = duration_of(value)?;
        exact::write_duration(out, days, micros);
    } else if TIME.is(kind)? {
        let (state, zone) = parts::<6>(value)?;
        let [hour, minute, second, fraction @ ..] = state;
        let micros = micros_of([hour & 0x7f, minute, second], fraction);
        return write_moment(false, micros, hour & 0x80 != 0, &zone, out);
    } else {
        remember(&OTHER, kind.clone().unbind());
        return Ok(false);
    }
    Ok(true)
}

/// The day of a date, if it is one and no subclass.
pub fn exact_date(value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if !DATE.is(&value.get_type())? {
        return Ok(None);
    }
    ordinal_of(value).map(Some)
}

/// The microseconds of a datetime, and whether it is in UTC, if it is one and no subclass, in UTC or without a zone.
pub fn exact_datetime(value: &Bound<'_, PyAny>) -> PyResult<Option<(i64, bool)>> {
    if !DATETIME.is(&value.get_type())? {
        return Ok(None);
    }
    let (state, zone) = parts::<10>(value)?;
    let (micros, _fold) = since_year_1(state);
    Ok(match zone {
        None => Some((micros, false)),
        Some(zone) if zone.is(utc(value.py())?) => Some((micros, true)),
        Some(_) => None,
    })
}

fn ordinal_of(date: &Bound<'_, PyAny>) -> PyResult<u32> {
    date.call_method0(intern!(date.py(), "toordinal"))?
        .extract()
}

fn write_datetime(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    let (state, zone) = parts::<10>(value)?;
    let (micros, fold) = since_year_1(state);
    write_moment(true, micros, fold, &zone, out)
}

/// The bytes that a datetime or a time is pickled as, and its time zone.
fn parts<'py, const BYTES: usize>(
    value: &Bound<'py, PyAny>,
) -> PyResult<([u8; BYTES], Option<Bound<'py, PyAny>>)> {
    let py = value.py();
    // Since protocol 4 the bytes have the fold.
    let reduced = value.call_method1(intern!(py, "__reduce_ex__"), (4,))?;
    let reduced = reduced.cast::<PyTuple>()?;
    let of_new = reduced.get_borrowed_item(1)?;
    let of_new = of_new.cast::<PyTuple>()?;
    let state = of_new.get_borrowed_item(0)?;
    let state = state.cast::<PyBytes>()?;
    let state = state.as_bytes().try_into();
    let state = state.map_err(|_other_length| damaged("a time has another state"))?;
    let zone = if of_new.len() > 1 {
        Some(of_new.get_item(1)?)
    } else {
        None
    };
    Ok((state, zone))
}

fn since_year_1(state: [u8; 10]) -> (i64, bool) {
    let [high, low, month, day, hour, minute, second, fraction @ ..] = state;
    let year = u16::from_be_bytes([high, low]);
    let day = moment::ordinal(year.into(), (month & 0x7f).into(), day.into());
    let micros = micros_of([hour, minute, second], fraction);
    ((day - 1) * MICROS_A_DAY + micros, month & 0x80 != 0)
}

fn micros_of([hour, minute, second]: [u8; 3], [high, middle, low]: [u8; 3]) -> i64 {
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    seconds * 1_000_000 + i64::from(u32::from_be_bytes([0, high, middle, low]))
}

/// Days, and microseconds of a day, of a timedelta.
fn duration_of(delta: &Bound<'_, PyAny>) -> PyResult<(i32, i64)> {
    let py = delta.py();
    let days: i32 = delta.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i64 = delta.getattr(intern!(py, "seconds"))?.extract()?;
    let micros: i64 = delta.getattr(intern!(py, "microseconds"))?.extract()?;
    Ok((days, seconds * 1_000_000 + micros))
}

/// A zone and what it is; nothing where it is to be pickled.
type Known = (Py<PyAny>, Option<Zone<'static>>);

/// The zone met last: that of the next time is mostly the same object.
static LAST_ZONE: Mutex<Option<Known>> = Mutex::new(None);

/// Appends a time or a datetime; false where its zone is of a type that only pickling keeps.
fn write_moment(
    dated: bool,
    micros: i64,
    fold: bool,
    zone: &Option<Bound<'_, PyAny>>,
    out: &mut Vec<u8>,
) -> PyResult<bool> {
    let mut written = |zone: Option<&Zone<'_>>| {
        if let Some(zone) = zone {
            let zone = zone.borrowed();
            let moment = Moment {
                dated,
                micros,
                fold,
                zone,
            };
            moment.write(out);
        }
        zone.is_some()
    };
    let Some(zone) = zone else {
        return Ok(written(Some(&Zone::Nowhere)));
    };
    if let Some((last, known)) = &*lock(&LAST_ZONE)
        && last.is(zone)
    {
        return Ok(written(known.as_ref()));
    }
    let known = zone_of(zone)?;
    let written = written(known.as_ref());
    remember(&LAST_ZONE, (zone.clone().unbind(), known));
    Ok(written)
}

/// What a zone is, if it can be made again from that.
fn zone_of(zone: &Bound<'_, PyAny>) -> PyResult<Option<Zone<'static>>> {
    let py = zone.py();
    let kind = &zone.get_type();
    if TIMEZONE.is(kind)? {
        let given = zone.call_method0(intern!(py, "__getinitargs__"))?;
        let given = given.cast::<PyTuple>()?;
        let (days, micros) = duration_of(&given.get_item(0)?)?;
        let offset = i64::from(days) * MICROS_A_DAY + micros;
        if given.len() == 1 {
            return Ok(Some(Zone::Offset(offset)));
        }
        let name: String = given.get_item(1)?.extract()?;
        return Ok(Some(Zone::Named(offset, name.into())));
    }
    if !ZONE_INFO.is(kind)? {
        return Ok(None);
    }
    // One that was made of a file raises; one beside the cache of zones says 0.
    let Ok(reduced) = zone.call_method0(intern!(py, "__reduce__")) else {
        return Ok(None);
    };
    let (_, (key, cached)): (Bound<'_, PyAny>, (String, u8)) = reduced.extract()?;
    Ok((cached == 1).then(|| Zone::Region(key.into())))
}

fn utc<'a, 'py>(py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
    static UTC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let utc = UTC.get_or_try_init(py, || TIMEZONE.of(py)?.getattr("utc").map(Bound::unbind))?;
    Ok(utc.bind(py))
}

/// Python's time zone, if there is one.
fn zone_object<'py>(py: Python<'py>, zone: &Zone<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static LAST: Mutex<Option<(i64, Py<PyAny>)>> = Mutex::new(None);
    let delta = |offset: i64| duration(py, 0, offset);
    Ok(Some(match zone {
        Zone::Nowhere => return Ok(None),
        Zone::Offset(0) => utc(py)?.clone(),
        Zone::Offset(offset) => {
            if let Some((last, object)) = &*lock(&LAST)
                && last == offset
            {
                return Ok(Some(object.bind(py).clone()));
            }
            let made = TIMEZONE.of(py)?.call1((delta(*offset)?,))?;
            remember(&LAST, (*offset, made.clone().unbind()));
            made
        }
        Zone::Named(offset, name) => TIMEZONE.of(py)?.call1((delta(*offset)?, &**name))?,
        Zone::Region(key) => ZONE_INFO.of(py)?.call1((&**key,))?,
    }))
}

/// Python's date.
pub fn date(py: Python<'_>, day: u32) -> PyResult<Bound<'_, PyAny>> {
    DATE.of(py)?
        .call_method1(intern!(py, "fromordinal"), (day,))
}

/// Python's timedelta.
pub fn duration(py: Python<'_>, days: i32, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    TIMEDELTA.of(py)?.call1((days, seconds, micros))
}

/// Python's datetime, in UTC or without a zone.
pub fn datetime(py: Python<'_>, micros: i64, in_utc: bool) -> PyResult<Bound<'_, PyAny>> {
    let zone = in_utc.then(|| utc(py)).transpose()?;
    dated(py, micros, false, zone)
}

/// Python's datetime or time.
pub fn moment<'py>(py: Python<'py>, moment: &Moment<'_>) -> PyResult<Bound<'py, PyAny>> {
    let zone = zone_object(py, &moment.zone)?;
    if moment.dated {
        return dated(py, moment.micros, moment.fold, zone.as_ref());
    }
    let [hour, rest @ ..] = clock(moment.micros);
    let mut state = [0; 6];
    state[0] = hour | folded(moment.fold);
    state[1..].copy_from_slice(&rest);
    made(TIME.of(py)?, &state, zone.as_ref())
}

/// The bit that the second of two equal times has in its state.
fn folded(fold: bool) -> u8 {
    if fold { 0x80 } else { 0 }
}

fn dated<'py>(
    py: Python<'py>,
    micros: i64,
    fold: bool,
    zone: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    const DAYS_MAX: i64 = 3_652_059; // to the end of the year 9999
    let day = micros.div_euclid(MICROS_A_DAY) + 1;
    if !(1..=DAYS_MAX).contains(&day) {
        return Err(damaged("a datetime is in no year from 1 to 9999"));
    }
    let (year, month, day) = moment::civil(day);
    let mut state = [0; 10];
    state[..2].copy_from_slice(&(year as u16).to_be_bytes());
    state[2] = month as u8 | folded(fold);
    state[3] = day as u8;
    state[4..].copy_from_slice(&clock(micros.rem_euclid(MICROS_A_DAY)));
    made(DATETIME.of(py)?, &state, zone)
}

/// Hour, minute, second, and microseconds in three bytes.
fn clock(micros: i64) -> [u8; 6] {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let [.., high, middle, low] = fraction.to_be_bytes();
    let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
    [
        hour as u8,
        minute as u8,
        (seconds % 60) as u8,
        high,
        middle,
        low,
    ]
}

fn made<'py>(
    class: &Bound<'py, PyType>,
    state: &[u8],
    zone: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let state = PyBytes::new(class.py(), state);
    match zone {
        None => class.call1((state,)),
        Some(zone) => class.call1((state, zone)),
    }
}

/// Python's Decimal, as it was written.
pub fn decimal<'py>(py: Python<'py>, written: &str) -> PyResult<Bound<'py, PyAny>> {
    DECIMAL.of(py)?.call1((written,))
}

/// What `is_safe` may be: a UUID's byte is a place here.
fn safeties(py: Python<'_>) -> PyResult<&[Py<PyAny>; 3]> {
    static ALL: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();
    ALL.get_or_try_init(py, || {
        let class = py.import("uuid")?.getattr("SafeUUID")?;
        let named = |name: &str| class.getattr(name).map(Bound::unbind);
        Ok([named("unknown")?, named("safe")?, named("unsafe")?])
    })
}

fn write_uuid(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    let py = value.py();
    let is_safe = value.getattr(intern!(py, "is_safe"))?;
    let known = safeties(py)?.iter().position(|one| one.is(&is_safe));
    let Some(at) = known else {
        return Ok(false);
    };
    let bytes = value
        .getattr(intern!(py, "int"))?
        .call_method1(intern!(py, "to_bytes"), (16, intern!(py, "big")))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    let bytes = bytes
        .try_into()
        .map_err(|_other_length| damaged("a UUID has another size"))?;
    exact::write_uuid(out, at as u8, bytes);
    Ok(true)
}

/// Python's UUID. It refuses to be changed, and its constructor takes three times as long.
pub fn uuid<'py>(py: Python<'py>, at: u8, bytes: [u8; 16]) -> PyResult<Bound<'py, PyAny>> {
    static SET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let set = SET.get_or_try_init(py, || {
        let object = py.import("builtins")?.getattr("object")?;
        object.getattr("__setattr__").map(Bound::unbind)
    })?;
    let class = UUID.of(py)?;
    let made = class.call_method1(intern!(py, "__new__"), (class,))?;
    let int = py.get_type::<pyo3::types::PyInt>();
    let bytes = (PyBytes::new(py, &bytes), intern!(py, "big"));
    let int = int.call_method1(intern!(py, "from_bytes"), bytes)?;
    set.call1(py, (&made, intern!(py, "int"), int))?;
    let is_safe = safeties(py)?.get(usize::from(at));
    let is_safe = is_safe.ok_or_else(|| damaged("a UUID is neither safe nor unsafe"))?;
    set.call1(py, (&made, intern!(py, "is_safe"), is_safe))?;
    Ok(made)
}
