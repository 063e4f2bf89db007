//! Shared values in specs: `#[serde(with = "super::wire::shared")]` on an `Arc` field.
//!
//! In a message the field is the content id of its value; in JSON (specs for workers in Python) it is the value.
//!
//! Serde hands no state from the message down to a field. The ends of the connection therefore lie in thread-locals
//! while one message is written or read: set and taken back by `with_sender` and `with_receiver`, and seen by
//! nobody else.

use std::cell::RefCell;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Id, Receiver, Sender, Shared, SharedValue, content_id, pack, unpack};

thread_local! {
    static SENDER: RefCell<Option<Sender>> = const { RefCell::new(None) };
    static RECEIVER: RefCell<Option<Receiver>> = const { RefCell::new(None) };
}

/// Does `write`, in which fields are sent by `sender`.
pub(super) fn with_sender<R>(sender: &mut Sender, write: impl FnOnce() -> R) -> R {
    let before = SENDER.replace(Some(std::mem::take(sender)));
    let result = write();
    *sender = SENDER.replace(before).unwrap_or_default();
    result
}

/// Does `read`, in which fields are looked up in `receiver`.
pub(super) fn with_receiver<R>(receiver: &mut Receiver, read: impl FnOnce() -> R) -> R {
    let before = RECEIVER.replace(Some(std::mem::take(receiver)));
    let result = read();
    *receiver = RECEIVER.replace(before).unwrap_or_default();
    result
}

/// What `#[serde(with = "super::wire::shared")]` writes.
pub(in crate::task) fn serialize<T, S>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize + Send + Sync + 'static,
    S: Serializer,
{
    if serializer.is_human_readable() {
        return value.as_ref().serialize(serializer);
    }
    let address = Arc::as_ptr(value).addr();
    let id = match SENDER.with_borrow(|sender| sender.as_ref()?.id_at(address)) {
        Some(id) => id,
        None => learn(address, value).map_err(S::Error::custom)?,
    };
    id.serialize(serializer)
}

fn learn<T>(address: usize, value: &Arc<T>) -> Result<Id, String>
where
    T: Serialize + Send + Sync + 'static,
{
    // Before the sender is borrowed: a shared value may have others in it.
    let bytes = pack(value.as_ref()).map_err(|error| error.to_string())?;
    SENDER.with_borrow_mut(|sender| {
        let sender = sender.as_mut().ok_or("a shared value needs a sender")?;
        let known = (content_id::<T>(&bytes), Arc::clone(value) as Shared);
        Ok(sender.learn(address, known, bytes))
    })
}

/// What `#[serde(with = "super::wire::shared")]` reads.
pub(in crate::task) fn deserialize<'de, T, D>(deserializer: D) -> Result<Arc<T>, D::Error>
where
    T: DeserializeOwned + Send + Sync + 'static,
    D: Deserializer<'de>,
{
    if deserializer.is_human_readable() {
        return T::deserialize(deserializer).map(Arc::new);
    }
    let id = Id::deserialize(deserializer)?;
    let found = RECEIVER.with_borrow_mut(|receiver| receiver.as_mut()?.values.remove(&id));
    let value = match found {
        Some(SharedValue::Value(value)) => value.downcast().ok(),
        Some(SharedValue::Bytes(bytes)) => {
            Some(Arc::new(unpack(&bytes).map_err(D::Error::custom)?))
        }
        None => None,
    };
    let value: Arc<T> = value.ok_or_else(|| D::Error::custom("a shared value is missing"))?;
    RECEIVER.with_borrow_mut(|receiver| {
        let receiver = receiver.get_or_insert_default();
        let held = SharedValue::Value(Arc::clone(&value) as Shared);
        receiver.values.insert(id, held)
    });
    Ok(value)
}
