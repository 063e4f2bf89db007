//! Reads runs that agents keep: from a file, where this process sees it, or else over HTTP.
//!
//! ```text
//!   read_at(buffer, offset) ──▶ GET, Range: bytes=OFFSET-... ──▶ the agent that keeps the run now
//!                                  no answer: find the run again, wait, repeat
//! ```
//!
//! A request is repeated until the agent answers or is known to be lost, for at most [`PATIENCE`].

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use object_store::client::HttpRequest;

use super::{Agents, RunLocation, lost_run};
use crate::net::http_client::{HttpReply, TransportError, bytes_of_range, header};
use crate::run_name::RunName;
use crate::{Caching, FileKind, LocalDisk, ReadFile, Stat};
use gristmill_base::error::{Error, Result};

/// How long a read asks again while an agent does not answer. The driver, if it does not hear from the agent either, says
/// before that time that the agent is lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// The wait between two attempts, at first and at most.
const WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A run that another agent serves. A read that fails finds the run again, since it may have been made again elsewhere.
#[derive(Debug)]
pub(super) struct FetchedRun {
    pub(super) agents: Arc<Agents>,
    pub(super) disk: Arc<dyn LocalDisk>,
    pub(super) name: RunName,
    pub(super) bytes: u64,
}

/// A run in a file that this process sees.
#[derive(Debug)]
pub(super) struct RunAsFile {
    pub(super) file: Box<dyn ReadFile>,
    pub(super) name: RunName,
    pub(super) agents: Arc<Agents>,
    /// The agent that keeps it now.
    pub(super) kept_by: u32,
}

impl ReadFile for RunAsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.file.read_at(buffer, offset);
        let read = read.map_err(|error| of_run(error, &self.name))?;
        self.agents.reads.file(self.kept_by, read);
        Ok(read)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }
}

impl ReadFile for FetchedRun {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = buffer.len().min(self.bytes.saturating_sub(offset) as usize);
        let Some(buffer) = buffer.get_mut(..wanted).filter(|wanted| !wanted.is_empty()) else {
            return Ok(0);
        };
        let (agents, name) = (&self.agents, &self.name);
        agents.patiently(&*self.disk, name, |found| match found {
            RunLocation::File(path) => {
                let file = self.disk.open(&path, Caching::Cached);
                let read = file.and_then(|file| file.read_at(buffer, offset));
                let read = read.map_err(|error| Failed::ForGood(of_run(error, name)))?;
                agents.reads.file(agents.now(name).agent, read);
                Ok(read)
            }
            RunLocation::Remote(url, now) => {
                let range = format!("bytes={offset}-{}", offset + wanted as u64 - 1);
                let request = agents.request(Method::GET, &url, &now, Some(&range))?;
                let reply =
                    agents.send(request, buffer, || agents.has_lost(&*self.disk, now.agent))?;
                check(&reply, StatusCode::PARTIAL_CONTENT, name)?;
                match bytes_of_range(&reply.headers, offset) {
                    Some(sent) if sent == wanted as u64 && reply.read == wanted => {
                        agents.reads.add_remote(now.agent, wanted);
                        Ok(wanted)
                    }
                    _ => Err(Failed::Now("it sent another range".to_owned())),
                }
            }
        })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }
}

/// How an attempt failed.
pub(super) enum Failed {
    /// Another attempt may succeed; the reason.
    Now(String),
    /// No other attempt will succeed.
    ForGood(Error),
}

impl Agents {
    /// Repeats `attempt`, with the run found again each time, until it succeeds, cannot succeed, or [`PATIENCE`] is over.
    fn patiently<T>(
        &self,
        disk: &dyn LocalDisk,
        run: &RunName,
        mut attempt: impl FnMut(RunLocation) -> Result<T, Failed>,
    ) -> Result<T> {
        let began = Instant::now();
        let [mut wait, longest] = WAITS;
        loop {
            match attempt(self.find(disk, run)?) {
                Ok(done) => return Ok(done),
                Err(Failed::ForGood(error)) => return Err(error),
                Err(_) if self.is_cancelled() => return Err(Error::cancelled()),
                Err(Failed::Now(why)) if began.elapsed() > PATIENCE => {
                    return Err(lost_run(run, &format!("its agent does not answer: {why}")));
                }
                Err(Failed::Now(_)) => sleep(wait),
            }
            wait = (wait * 2).min(longest);
            self.refresh(disk);
        }
    }

    /// The length of a run. Of one that another agent serves, the agent tells it.
    pub(super) fn stat_of(&self, disk: &dyn LocalDisk, run: &RunName) -> Result<Option<Stat>> {
        self.refresh(disk);
        self.patiently(disk, run, |found| match found {
            RunLocation::File(path) => match disk.stat(&path) {
                Ok(None) => Err(Failed::ForGood(lost_run(run, "it is gone"))),
                found => found.map_err(|error| Failed::ForGood(of_run(error, run))),
            },
            RunLocation::Remote(url, now) => Ok(Some(Stat {
                kind: FileKind::File,
                bytes: self.length_of(disk, run, &url, &now)?,
                modified_ns: 0,
                identity: (0, 0),
            })),
        })
    }

    /// The length of a run, whose current name is `now`. The agent is asked once: to open a run asks for its length twice.
    fn length_of(
        &self,
        disk: &dyn LocalDisk,
        run: &RunName,
        url: &str,
        now: &RunName,
    ) -> Result<u64, Failed> {
        if let Some(bytes) = self.known().lengths.get(now) {
            return Ok(*bytes);
        }
        let request = self.request(Method::HEAD, url, now, None)?;
        let reply = self.send(request, &mut [], || self.has_lost(disk, now.agent))?;
        check(&reply, StatusCode::OK, run)?;
        let bytes = length_in(&reply.headers)
            .ok_or_else(|| Failed::Now("it does not say how long the run is".into()))?;
        self.known().lengths.insert(now.clone(), bytes);
        Ok(bytes)
    }

    /// Opens a run.
    pub(super) fn open_run(
        self: &Arc<Self>,
        disk: &Arc<dyn LocalDisk>,
        name: RunName,
        caching: Caching,
    ) -> Result<Box<dyn ReadFile>> {
        match self.find(&**disk, &name)? {
            RunLocation::File(path) => {
                let file = disk.open(&path, caching);
                let file = file.map_err(|error| of_run(error, &name))?;
                Ok(Box::new(RunAsFile {
                    file,
                    kept_by: self.now(&name).agent,
                    name,
                    agents: Arc::clone(self),
                }))
            }
            RunLocation::Remote(..) => {
                let stat = self.stat_of(&**disk, &name)?;
                Ok(Box::new(FetchedRun {
                    bytes: stat.map_or(0, |stat| stat.bytes),
                    agents: Arc::clone(self),
                    disk: Arc::clone(disk),
                    name,
                }))
            }
        }
    }

    fn request(
        &self,
        method: Method,
        url: &str,
        run: &RunName,
        range: Option<&str>,
    ) -> Result<HttpRequest, Failed> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{url}/runs/{}/{}", run.folder, run.name))
            .header("authorization", format!("Bearer {}", self.token));
        let request = match range {
            Some(range) => request.header("range", range),
            None => request,
        };
        request
            .body(Bytes::new().into())
            .map_err(|error| Failed::ForGood(lost_run(run, &error.to_string())))
    }

    /// Sends a request and waits for the reply; gives up once the agent `is_lost`, or the job is cancelled.
    fn send(
        &self,
        request: HttpRequest,
        buffer: &mut [u8],
        is_lost: impl Fn() -> bool,
    ) -> Result<HttpReply, Failed> {
        let limit = self.client.limit(buffer.len());
        let reply = self
            .client
            .send_unless(&self.policy, request, buffer, limit, || {
                self.is_cancelled() || is_lost()
            });
        reply.map_err(|broken| match broken {
            TransportError::Here(error) => Failed::ForGood(error),
            TransportError::There(why) => Failed::Now(why),
            TransportError::Untrusted(_) => Failed::Now("it did not prove its name".to_owned()),
            TransportError::Stopped => Failed::ForGood(Error::cancelled()),
        })
    }
}

/// Fails unless a reply has this status.
fn check(reply: &HttpReply, wanted: StatusCode, run: &RunName) -> Result<(), Failed> {
    match reply.status {
        status if status == wanted => Ok(()),
        StatusCode::NOT_FOUND => Err(Failed::ForGood(lost_run(run, "its agent no longer has it"))),
        StatusCode::UNAUTHORIZED => Err(Failed::ForGood(lost_run(
            run,
            "another job has the port of its agent now",
        ))),
        status => Err(Failed::Now(format!("it answered {status}"))),
    }
}

fn length_in(headers: &HeaderMap) -> Option<u64> {
    header(headers, "content-length")?.parse().ok()
}

/// Adds the run to an error of its file, and makes the error retryable: the driver can have the run made again.
fn of_run(error: Error, run: &RunName) -> Error {
    error.with("run", run.path().display()).retryable_error()
}
