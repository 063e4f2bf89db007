//! Tasks, reports and errors as bytes: what a runner sends to another process, and what comes back.
//!
//! ```text
//!   message    kind 4 B │ version u16 │ XXH3-64 of the rest │ count u32 │ shared values │ the value
//!   shared     content id u128: SHA-256 of type and bytes, truncated │ length u64 │ the value      (integers little-endian)
//! ```
//!
//! Values are MessagePack. What many tasks share (cut points, run plans, lists of runs: the `Arc` fields of specs)
//! stands in a spec as a content id ([`shared`]). The first message that needs a shared value carries it; the
//! [`Sender`] remembers what it has sent to a process, and the [`Receiver`] there keeps what came. So a list of M
//! inputs crosses once per process, not once for each of R tasks.
//!
//! The rules that must hold: a value that is written and read back is equal. Bytes that are damaged, or that another
//! version wrote, give an error; they never cause a panic, or an allocation of a size that they only claim. A spec
//! holds no credential: neither user code and its environment nor anything that opens a store is part of it.

pub mod shared;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use twox_hash::XxHash3_64;

use gristmill_base::error::{Error, Kind, Result};

/// The version of the format: raise it with every change of a type that is sent.
pub const VERSION: u16 = 2;

/// The deepest nesting that is read, so that damaged bytes cannot exhaust a thread's stack. JSON in a split has at most
/// 128 levels.
const DEPTH_MAX: usize = 192;

/// A value that is sent between processes.
pub trait Message: Serialize + DeserializeOwned {
    /// The first bytes of its messages.
    const KIND: [u8; 4];
    /// What it is, with an article, for errors.
    const NAME: &'static str;
}

impl Message for Error {
    const KIND: [u8; 4] = *b"fail";
    const NAME: &'static str = "an error";
}

/// The content id of a shared value.
type Id = u128;

/// A shared value of any type.
type Shared = Arc<dyn Any + Send + Sync>;

/// The sending end of a connection to one process: knows which shared values that process has already.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_base::order::CutPoints;
/// use gristmill_tasks::task::wire::{Receiver, Sender};
/// use gristmill_tasks::task::{EntryPlan, GatherSpec, TaskSpec};
/// let plan = EntryPlan {
///     cuts: CutPoints::from_sample(Vec::new(), 1000),
///     record_bytes: 100,
///     batch_records: 1,
/// };
/// let spec = TaskSpec::Reduce(GatherSpec {
///     ranges: Vec::new(),
///     inputs: Arc::default(),
///     plan: Arc::new(plan),
/// });
/// let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
/// let first = sender.to_bytes(&spec)?;
/// let second = sender.to_bytes(&spec)?; // without the cut points
/// assert!(first.len() > 10_000 && second.len() < 100);
/// for bytes in [first, second] {
///     assert_eq!(receiver.from_bytes::<TaskSpec>(&bytes)?, spec);
/// }
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Sender {
    /// Content ids by address. The values are held, so that no other value gets the address.
    known: BTreeMap<usize, (Id, Shared)>,
    sent: BTreeSet<Id>,
    /// Shared values that the message being written must carry.
    unsent: Vec<(Id, Vec<u8>)>,
}

impl Sender {
    /// The value as a message, with the shared values that the other process does not have yet.
    ///
    /// # Errors
    /// A value cannot be written: a defect of Gristmill.
    pub fn to_bytes<T: Message>(&mut self, value: &T) -> Result<Vec<u8>> {
        let body = shared::with_sender(self, || pack(value));
        let body = match body {
            Ok(body) => body,
            Err(error) => {
                *self = Sender::default(); // it counts values as sent that may never be
                return Err(unwritable::<T>(&error));
            }
        };
        let unsent = std::mem::take(&mut self.unsent);
        let mut rest = Vec::with_capacity(size_of::<u32>() + body.len());
        rest.extend((unsent.len() as u32).to_le_bytes());
        for (id, bytes) in unsent {
            rest.extend(id.to_le_bytes());
            rest.extend((bytes.len() as u64).to_le_bytes());
            rest.extend(bytes);
        }
        rest.extend(body);
        Ok(header::<T>(&rest).into_iter().chain(rest).collect())
    }

    /// The id of the value at `address`, if it is known.
    fn id_at(&self, address: usize) -> Option<Id> {
        self.known.get(&address).map(|(id, _)| *id)
    }

    fn learn(&mut self, address: usize, (id, value): (Id, Shared), bytes: Vec<u8>) -> Id {
        self.known.insert(address, (id, value));
        if self.sent.insert(id) {
            self.unsent.push((id, bytes));
        }
        id
    }
}

/// The receiving end: holds the shared values that have come so far.
#[derive(Debug, Default)]
pub struct Receiver {
    values: BTreeMap<Id, SharedValue>,
}

/// A shared value. It stays bytes until a spec asks for it, since only then its type is known.
#[derive(Debug)]
enum SharedValue {
    Bytes(Vec<u8>),
    Value(Shared),
}

impl Receiver {
    /// The value of a message.
    ///
    /// # Errors
    /// The bytes are damaged, another version wrote them, they hold something else, or an earlier message of the same
    /// sender is missing.
    pub fn from_bytes<T: Message>(&mut self, bytes: &[u8]) -> Result<T> {
        let rest = checked::<T>(bytes)?;
        let body = self
            .take_shared(rest)
            .ok_or_else(|| damaged::<T>("it ends early"))?;
        shared::with_receiver(self, || unpack(body)).map_err(|error| damaged::<T>(error))
    }

    /// Keeps the shared values of a message; returns the bytes after them.
    fn take_shared<'b>(&mut self, rest: &'b [u8]) -> Option<&'b [u8]> {
        let (count, mut rest) = rest.split_first_chunk()?;
        for _ in 0..u32::from_le_bytes(*count) {
            let (id, after) = rest.split_first_chunk()?;
            let (length, after) = after.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (bytes, after) = after.split_at_checked(length)?;
            let id = Id::from_le_bytes(*id);
            self.values
                .entry(id)
                .or_insert_with(|| SharedValue::Bytes(bytes.to_vec()));
            rest = after;
        }
        Some(rest)
    }
}

/// The value as a message that stands alone.
///
/// ```
/// use gristmill_base::{Error, Kind};
/// use gristmill_tasks::task::wire;
/// let error = Error::new(Kind::DiskFull, "write output", "no space is left").with("file", "part-r-00000");
/// let bytes = wire::to_bytes(&error)?;
/// assert_eq!(wire::from_bytes::<Error>(&bytes)?, error);
/// assert!(wire::from_bytes::<Error>(&bytes[1..]).is_err());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
///
/// # Errors
/// As [`Sender::to_bytes`].
pub fn to_bytes<T: Message>(value: &T) -> Result<Vec<u8>> {
    Sender::default().to_bytes(value)
}

/// The value of a message that stands alone.
///
/// # Errors
/// As [`Receiver::from_bytes`].
pub fn from_bytes<T: Message>(bytes: &[u8]) -> Result<T> {
    Receiver::default().from_bytes(bytes)
}

const HEADER_BYTES: usize = 14;

fn header<T: Message>(rest: &[u8]) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = T::KIND;
    let [v, w] = VERSION.to_le_bytes();
    let [s, t, u, x, y, z, p, q] = XxHash3_64::oneshot(rest).to_le_bytes();
    [a, b, c, d, v, w, s, t, u, x, y, z, p, q]
}

/// What follows the header, once kind, version and checksum are right.
fn checked<T: Message>(bytes: &[u8]) -> Result<&[u8]> {
    let (found, rest) = bytes
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or_else(|| damaged::<T>("it ends early"))?;
    let [a, b, c, d, v, w, ..] = *found;
    if [a, b, c, d] != T::KIND {
        return Err(damaged::<T>("it holds something else"));
    }
    let version = u16::from_le_bytes([v, w]);
    if version != VERSION {
        let message = format!("it has format {version}, and this version reads format {VERSION}");
        return Err(Error::new(Kind::BadInput, reading::<T>(), message)
            .advise("run the same version of Gristmill in all processes of the job"));
    }
    if *found != header::<T>(rest) {
        return Err(damaged::<T>("its checksum is wrong"));
    }
    Ok(rest)
}

/// The type is part of it: an empty list and empty cut points have the same bytes, and are different values.
fn content_id<T>(bytes: &[u8]) -> Id {
    let hasher = Sha256::new_with_prefix(std::any::type_name::<T>());
    let digest: [u8; 32] = hasher.chain_update(bytes).finalize().into();
    digest.first_chunk().map_or(0, |id| Id::from_le_bytes(*id))
}

fn pack<T: Serialize>(value: &T) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    rmp_serde::to_vec(value)
}

fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, rmp_serde::decode::Error> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(DEPTH_MAX);
    T::deserialize(&mut reader)
}

fn reading<T: Message>() -> String {
    format!("read {} from another process", T::NAME)
}

fn unwritable<T: Message>(error: &rmp_serde::encode::Error) -> Error {
    Error::bug(
        format!("send {} to another process", T::NAME),
        error.to_string(),
    )
}

/// It is retryable: a repeated task sends the bytes again.
fn damaged<T: Message>(how: impl std::fmt::Display) -> Error {
    Error::new(
        Kind::Io,
        reading::<T>(),
        format!("its bytes are damaged: {how}"),
    )
    .retryable_error()
}
