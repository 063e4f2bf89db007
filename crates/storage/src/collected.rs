//! Files of an output that go to the machine of the driver while they are written: the other machines need not see its folder.
//!
//! ```text
//!   agent: create ──POST /files────────────▶ driver: a staged file beside the output (shared.rs)
//!          write  ──PUT /files/ID/OFFSET───▶         the next bytes of it, proved by their CRC
//!          finish ──POST /files/ID─────────▶         closed, durable if the job waits for that ──Upload──▶ the task's report
//! ```
//!
//! The driver's side is `runner/cluster/collector.rs`. What a task reports is what it would report of a shared directory: the
//! committer sees no difference. A request is sent again while there may be an answer; bytes that have come are not written twice.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use serde::{Deserialize, Serialize};

use super::WriteFile;
use super::location::Location;
use super::net::http_client::{HttpClient, TransportError, TransportPolicy};
use super::net::stop::LAST;
use super::objects::Upload;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// The header with the CRC-32 of a body.
pub const CRC_HEADER: &str = "gristmill-crc";

/// The most bytes of a request.
pub const PIECE_BYTES: usize = 8 << 20;

/// How long a connection may take to be there, and a request without bytes.
const LIMITS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];

/// How long a driver that does not answer is asked: an agent that it does not ask for a minute ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Before the next try.
const WAIT: Duration = Duration::from_millis(200);

/// Who takes files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectorAddress {
    /// `HOST:PORT`, on the machine of the driver.
    pub address: String,
    /// What is known to the agents of the job alone.
    pub token: String,
}

/// A file that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFile {
    /// What it will be.
    pub path: Location,
    /// How long it will be, if that is known.
    pub bytes: u64,
}

/// Sends files to who takes them.
#[derive(Debug)]
pub(super) struct Collecting {
    to: CollectorAddress,
    client: HttpClient,
}

impl Collecting {
    pub(super) fn new(to: CollectorAddress) -> Self {
        let [connect, request] = LIMITS;
        Collecting {
            to,
            client: HttpClient::with_limits(connect, request, None),
        }
    }

    /// Begins a file there.
    pub(super) fn create(self: &Arc<Self>, path: &Path, bytes: u64) -> Result<Box<dyn WriteFile>> {
        let path = Location::from(path);
        let new = serde_json::to_vec(&NewFile { path, bytes }).map_err(|error| unread(&error))?;
        let id = self.ask(&Method::POST, "files", &Bytes::from(new))?;
        let id = serde_json::from_slice(&id).map_err(|error| unread(&error))?;
        Ok(Box::new(CollectedFile {
            to: Arc::clone(self),
            id,
            state: Mutex::new(CollectedState::default()),
        }))
    }

    /// What is answered to a request.
    fn ask(&self, method: &Method, path: &str, body: &Bytes) -> Result<Bytes> {
        self.ask_for(PATIENCE, method, path, body)
    }

    /// The same, for so long where nobody answers.
    fn ask_for(
        &self,
        patience: Duration,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<Bytes> {
        let (began, url) = (Instant::now(), format!("http://{}/{path}", self.to.address));
        loop {
            let request = Request::builder()
                .method(method.clone())
                .uri(&url)
                .header("authorization", format!("Bearer {}", self.to.token))
                .header(CRC_HEADER, crc32fast::hash(body).to_string())
                .body(body.clone().into())
                .map_err(|error| Error::bug("send the output", error.to_string()))?;
            let limit = self.client.limit(body.len());
            let limit = if patience < PATIENCE {
                limit.min(patience)
            } else {
                limit
            };
            let why =
                match self
                    .client
                    .send(&TransportPolicy::with_secrets(), request, &mut [], limit)
                {
                    Ok(reply) if reply.status.is_success() => return Ok(reply.body),
                    Ok(reply) => {
                        let said = serde_json::from_slice::<Error>(&reply.body);
                        let silent = |_| self.silent(&format!("it says {}", reply.status));
                        return Err(said.unwrap_or_else(silent));
                    }
                    Err(TransportError::Here(error)) => return Err(error),
                    Err(TransportError::Stopped) => return Err(Error::cancelled()),
                    Err(TransportError::There(why)) => why,
                    Err(TransportError::Untrusted(_)) => "it did not prove its name".to_owned(),
                };
            if began.elapsed() >= patience {
                return Err(self.silent(&why));
            }
            sleep(WAIT);
        }
    }

    fn silent(&self, why: &str) -> Error {
        let message = format!(
            "{}, where the job was started, does not take it: {why}",
            self.to.address
        );
        Error::new(Kind::Io, "send the output", message)
            .advise(
                "let the nodes reach that address, or name an output in a place that all nodes see",
            )
            .retryable_error()
    }
}

fn unread(error: &serde_json::Error) -> Error {
    Error::bug("send the output", error.to_string())
}

/// A file on its way.
#[derive(Debug)]
struct CollectedFile {
    to: Arc<Collecting>,
    id: u64,
    state: Mutex<CollectedState>,
}

#[derive(Debug, Default)]
struct CollectedState {
    bytes: u64,
    finished: bool,
}

impl CollectedFile {
    fn state(&self) -> MutexGuard<'_, CollectedState> {
        lock(&self.state)
    }
}

impl WriteFile for CollectedFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = self.state();
        if offset != state.bytes {
            let message = format!("the file stands at {}, not at {offset}", state.bytes);
            return Err(Error::bug("send the output", message));
        }
        for piece in data.chunks(PIECE_BYTES) {
            let path = format!("files/{}/{}", self.id, state.bytes);
            let sent = Bytes::copy_from_slice(piece);
            self.to.ask(&Method::PUT, &path, &sent)?;
            state.bytes += piece.len() as u64;
        }
        Ok(())
    }

    /// The driver makes it durable, when it is whole.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<Option<Upload>> {
        let path = format!("files/{}", self.id);
        let said = self.to.ask(&Method::POST, &path, &Bytes::new())?;
        let upload: Upload = serde_json::from_slice(&said).map_err(|error| unread(&error))?;
        let mut state = self.state();
        state.finished = true;
        if upload.bytes() == state.bytes {
            Ok(Some(upload))
        } else {
            Err(self.to.silent("it has another number of bytes"))
        }
    }
}

impl Drop for CollectedFile {
    fn drop(&mut self) {
        if !self.state().finished {
            // The attempt's own error is what counts; the driver ends what stays.
            let path = format!("files/{}", self.id);
            let _ = self.to.ask_for(LAST, &Method::DELETE, &path, &Bytes::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_file_that_is_given_up_waits_little_for_a_driver_that_does_not_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap(); // it takes connections, and says nothing
        let collector = CollectorAddress {
            address: listener.local_addr().unwrap().to_string(),
            token: String::new(),
        };
        let file = CollectedFile {
            to: Arc::new(Collecting::new(collector)),
            id: 1,
            state: Mutex::default(),
        };
        let began = Instant::now();
        drop(file);
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
}
