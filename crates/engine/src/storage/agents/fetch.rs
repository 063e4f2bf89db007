//! A run of another agent, read over HTTP: a range for each read, asked for again while the agent may answer.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use object_store::client::HttpRequest;

use super::super::wire::{Broken, Reply, bytes_of_range, header};
use super::super::{Caching, FileKind, LocalDisk, ReadFile, Stat};
use super::{Agents, Found, RunName, lost_run};
use crate::error::{Error, Result};

/// How long a run is asked for of an agent that does not answer. A driver that hears nothing of it either takes it for
/// lost before that, and says so.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two tries, at first and at most.
const WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A run, wherever it is: looked for anew with every read that fails, since it may have moved.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) agents: Arc<Agents>,
    pub(super) disk: Arc<dyn LocalDisk>,
    pub(super) name: RunName,
    pub(super) bytes: u64,
}

/// A run that is read as a file.
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

impl ReadFile for Run {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = buffer.len().min(self.bytes.saturating_sub(offset) as usize);
        let Some(buffer) = buffer.get_mut(..wanted).filter(|wanted| !wanted.is_empty()) else {
            return Ok(0);
        };
        let (agents, name) = (&self.agents, &self.name);
        agents.patiently(&*self.disk, name, |found| match found {
            Found::File(path) => {
                let file = self.disk.open(&path, Caching::Cached);
                let read = file.and_then(|file| file.read_at(buffer, offset));
                let read = read.map_err(|error| Failed::ForGood(of_run(error, name)))?;
                agents.reads.file(agents.now(name).agent, read);
                Ok(read)
            }
            Found::Far(url, now) => {
                let range = format!("bytes={offset}-{}", offset + wanted as u64 - 1);
                let request = agents.request(Method::GET, &url, &now, Some(&range))?;
                let reply =
                    agents.send(request, buffer, || agents.has_lost(&*self.disk, now.agent))?;
                check(&reply, StatusCode::PARTIAL_CONTENT, name)?;
                match bytes_of_range(&reply.headers, offset) {
                    Some(sent) if sent == wanted as u64 && reply.read == wanted => {
                        agents.reads.far(now.agent, wanted);
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

    fn is_far(&self) -> bool {
        true
    }
}

/// How a try failed.
pub(super) enum Failed {
    /// Another one may do.
    Now(String),
    /// No other one will.
    ForGood(Error),
}

impl Agents {
    /// Tries as long as an answer may come.
    fn patiently<T>(
        &self,
        disk: &dyn LocalDisk,
        run: &RunName,
        mut attempt: impl FnMut(Found) -> Result<T, Failed>,
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

    /// What a run is: its length, and where it can be read.
    pub(super) fn stat_of(&self, disk: &dyn LocalDisk, run: &RunName) -> Result<Option<Stat>> {
        self.refresh(disk);
        self.patiently(disk, run, |found| match found {
            Found::File(path) => match disk.stat(&path) {
                Ok(None) => Err(Failed::ForGood(lost_run(run, "it is gone"))),
                found => found.map_err(|error| Failed::ForGood(of_run(error, run))),
            },
            Found::Far(url, now) => Ok(Some(Stat {
                kind: FileKind::File,
                bytes: self.length_of(disk, run, &url, &now)?,
                modified_ns: 0,
                identity: (0, 0),
            })),
        })
    }

    /// How long a run is that is called `now` now. It is asked once: whoever opens it looks twice.
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
            Found::File(path) => {
                let file = disk.open(&path, caching);
                let file = file.map_err(|error| of_run(error, &name))?;
                Ok(Box::new(RunAsFile {
                    file,
                    kept_by: self.now(&name).agent,
                    name,
                    agents: Arc::clone(self),
                }))
            }
            Found::Far(..) => {
                let stat = self.stat_of(&**disk, &name)?;
                Ok(Box::new(Run {
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

    /// Sends a request and waits, but not for an agent that `is_lost`.
    fn send(
        &self,
        request: HttpRequest,
        buffer: &mut [u8],
        is_lost: impl Fn() -> bool,
    ) -> Result<Reply, Failed> {
        let limit = self.wire.limit(buffer.len());
        let reply = self
            .wire
            .send_unless(&self.way, request, buffer, limit, || {
                self.is_cancelled() || is_lost()
            });
        reply.map_err(|broken| match broken {
            Broken::Here(error) => Failed::ForGood(error),
            Broken::There(why) => Failed::Now(why),
            Broken::Untrusted(_) => Failed::Now("it did not prove its name".to_owned()),
            Broken::Stopped => Failed::ForGood(Error::cancelled()),
        })
    }
}

/// Fails unless a reply has this status.
fn check(reply: &Reply, wanted: StatusCode, run: &RunName) -> Result<(), Failed> {
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

/// An error of a file that is a run.
fn of_run(error: Error, run: &RunName) -> Error {
    error.with("run", run.path().display()).retryable_error()
}
