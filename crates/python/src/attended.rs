//! What may wait for a store, and ends when Python has a signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use gristmill_engine::error::Spelling;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::{Error, Result};
use pyo3::prelude::*;

use crate::error::{to_exception, to_python};

/// How often signals are looked at; the end of the work is noticed at once.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work` with `stores` in another thread, while this one looks at signals. A signal's exception ends the work's requests first.
pub fn attended<T: Send>(
    py: Python<'_>,
    stores: &Stores,
    work: impl FnOnce(&Stores) -> Result<T> + Send,
) -> PyResult<T> {
    attended_as(py, stores, Spelling::Python, work)
}

/// The same, whose error names options in this way.
pub fn attended_as<T: Send>(
    py: Python<'_>,
    stores: &Stores,
    spelling: Spelling,
    work: impl FnOnce(&Stores) -> Result<T> + Send,
) -> PyResult<T> {
    let flag = Arc::new(AtomicBool::new(false));
    let _stopping = stores.requests().stop.by(Arc::clone(&flag));
    thread::scope(|scope| {
        let (send, mut over) = channel();
        scope.spawn(move || send.send(work(stores)));
        let mut signal = Ok(());
        let done = loop {
            let over = &mut over; // it is sent to where Python is not
            match py.detach(move || over.recv_timeout(LOOK)) {
                Ok(done) => break done,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(Error::bug("wait for a store", "it panicked"));
                }
            }
            signal = signal.and_then(|()| py.check_signals());
            flag.store(signal.is_err(), Ordering::Relaxed);
        };
        signal?;
        done.map_err(|error| to_exception(&error, spelling))
    })
}

/// The same for what is asked of one location: a disk is not waited for.
pub fn attended_at<T: Send>(
    py: Python<'_>,
    stores: &Stores,
    location: &Location,
    work: impl FnOnce(&Stores) -> Result<T> + Send,
) -> PyResult<T> {
    if location.is_remote() {
        return attended(py, stores, work);
    }
    let done = py.detach(|| work(stores));
    done.map_err(|error| to_python(&error))
}
