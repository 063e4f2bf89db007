//! What asks name nodes and data nodes: one request at a time, waited for, with a time limit.
//!
//! ```text
//!   any thread ── ask ──▶ the client of the location's file system ──▶ name node, data nodes
//!                         the threads of one runtime keep the connections of the process
//! ```
//!
//! The runtime starts with the first request of the process that makes it; a fork of that process starts its own. The
//! client reads `core-site.xml` and `hdfs-site.xml` itself, and knows name nodes that stand in for each other.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hdfs_native::{Client, ClientBuilder, HdfsError};
use tokio::net::UnixDatagram;
use tokio::runtime::Runtime;

use super::SCHEME;
use super::failures::{failure, is_silence, silence};
use super::settings::{HdfsSettings, PORT};
use crate::io::window::WindowMemory;
use crate::location::Location;
use crate::net::per_process::PerProcess;
use crate::net::requests::Requests;
use crate::net::stop::Waited;
use crate::objects::retry::retry;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::inherited::cut_off;

/// A request may take so long, and longer by its bytes at [`SLOWEST`] of them a second. A name node that fails over takes
/// some 30 s, and a data node that is given up 60 s (`dfs.client.socket-timeout`).
const REQUEST_LIMIT: Duration = Duration::from_secs(150);
const SLOWEST: usize = 256 << 10;

/// Threads that drive connections; data are checked and copied there.
const THREADS: usize = 2;

/// How often the client asks a name node that does not answer. It waits longer each time, up to 15 s.
const TRIES: &str = "dfs.client.failover.max.attempts";
const TRIES_OF_HOST: &str = "2";

/// The client keeps idle connections to data nodes for 3 s where a fork finds them: it must not use them. It waits so long
/// where it cannot make them nothing.
const KEPT_BY_PARENT: Duration = Duration::from_millis(3_200);

/// A socket of each runtime, by the process that made it: a fork finds by them what it has inherited.
static MARKS: Mutex<Vec<(u32, RawFd)>> = Mutex::new(Vec::new());

/// The clients of this process.
#[derive(Debug, Default)]
pub struct Clients {
    settings: HdfsSettings,
    requests: Arc<Requests>,
    open: PerProcess<Result<Connected>>,
}

#[derive(Debug)]
struct Connected {
    runtime: Runtime,
    /// In [`MARKS`].
    _mark: UnixDatagram,
    /// By what stands between `hdfs://` and the path.
    clients: Mutex<HashMap<String, Client>>,
}

/// A location, and who asks for it.
pub struct There<'c> {
    runtime: &'c Runtime,
    requests: &'c Arc<Requests>,
    client: Client,
    operation: &'static str,
    location: Location,
    /// Below the root of its file system.
    path: String,
}

impl Clients {
    /// Clients as Hadoop is configured.
    pub fn new(settings: HdfsSettings, requests: Arc<Requests>) -> Self {
        Clients {
            settings,
            requests,
            open: PerProcess::default(),
        }
    }

    /// What is configured.
    pub fn settings(&self) -> &HdfsSettings {
        &self.settings
    }

    /// What readers may hold of answers that they do not want yet.
    pub fn memory(&self) -> &Arc<WindowMemory> {
        &self.requests.memory
    }

    /// The client of a location, and its path there.
    ///
    /// # Errors
    /// It names no file system, or what is configured makes no sense.
    pub fn there(&self, operation: &'static str, path: &Path) -> Result<There<'_>> {
        let location = Location::from(path);
        let open = self.open.get(Connected::begin).as_ref();
        let open = open.map_err(|error| error.clone().during(operation).with_path(path))?;
        let below = location.path().to_str().ok_or_else(|| {
            Error::new(Kind::BadOption, operation, "names in HDFS are UTF-8")
                .with_path(path)
                .advise("name a path of UTF-8")
        })?;
        if below.split('/').any(|name| matches!(name, "." | "..")) {
            let message = "a path in HDFS has neither `.` nor `..` in it";
            return Err(Error::new(Kind::BadOption, operation, message)
                .with_path(path)
                .advise("name hdfs://HOST:PORT/PATH"));
        }
        Ok(There {
            runtime: &open.runtime,
            requests: &self.requests,
            client: open.client(operation, &location, &self.settings)?,
            operation,
            path: match below.trim_end_matches('/') {
                "" => "/".to_owned(),
                path => path.to_owned(),
            },
            location,
        })
    }
}

impl Connected {
    fn begin() -> Result<Self> {
        let process = std::process::id();
        let mut marks = lock(&MARKS);
        for (_, mark) in marks.extract_if(.., |(owner, _)| *owner != process) {
            if cut_off(mark).is_err() {
                thread::sleep(KEPT_BY_PARENT);
            }
        }
        let failed =
            |error: io::Error| Error::new(Kind::Io, "connect to the store", error.to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("gristmill-hdfs")
            .enable_io()
            .enable_time()
            .build();
        let runtime = runtime.map_err(failed)?;
        let mark = {
            let _runtime = runtime.enter();
            UnixDatagram::unbound().map_err(failed)?
        };
        marks.push((process, mark.as_raw_fd()));
        Ok(Connected {
            runtime,
            _mark: mark,
            clients: Mutex::default(),
        })
    }

    fn client(
        &self,
        operation: &'static str,
        location: &Location,
        settings: &HdfsSettings,
    ) -> Result<Client> {
        let place = location.authority();
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(place) {
            return Ok(client.clone());
        }
        let build = |place: &str| {
            // A host of its own has no other to fail over to: what is configured is for those that have.
            let tries = place.contains(':').then_some((TRIES, TRIES_OF_HOST));
            let mut client = ClientBuilder::new()
                .with_url(format!("{SCHEME}://{place}"))
                .with_config(tries)
                .with_io_runtime(self.runtime.handle().clone());
            if let Some(folder) = settings.folder() {
                client = client.with_config_dir(folder.to_string_lossy());
            }
            client.build()
        };
        let built = match build(place) {
            // It is no name service, so it is a host.
            Err(HdfsError::InvalidArgument(_)) if !place.is_empty() && !place.contains(':') => {
                build(&format!("{place}:{PORT}"))
            }
            built => built,
        };
        let client = built.map_err(|error| match error {
            HdfsError::InvalidArgument(_) | HdfsError::UrlParseError(_) if place.is_empty() => {
                let message = "it names no name node, and no default file system is configured";
                Error::new(Kind::BadOption, operation, message)
                    .with_path(location.as_typed())
                    .advise(
                        "name hdfs://HOST:PORT/PATH, or set HADOOP_CONF_DIR to a directory whose core-site.xml has an \
                         fs.defaultFS of hdfs://",
                    )
            }
            error => failure(operation, location.as_typed(), error),
        })?;
        clients.insert(place.to_owned(), client.clone());
        Ok(client)
    }
}

impl There<'_> {
    /// Its path below the root of its file system.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Says when requests are to end.
    pub fn requests(&self) -> &Arc<Requests> {
        self.requests
    }

    /// Makes a request that may be repeated, until it is done, fails for good, or has failed too often. It counts as one, though
    /// the client may ask the name node several times for it: for each thousand names of a listing, and for who is active.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a closure is given as it is written"
    )]
    pub fn ask<T>(
        &self,
        request: impl AsyncFn(&Client, &str) -> Result<T, HdfsError>,
    ) -> Result<T> {
        let (mut was_silent, mut is_again) = (false, false);
        retry(self.requests, self.location.as_typed(), || {
            self.requests.count(mem::replace(&mut is_again, true));
            let done = self.once(0, request(&self.client, &self.path));
            done.map_err(|error| match is_silence(&error) {
                // The client has tried to connect for as long as is configured; once more, for a reply that was lost.
                true if mem::replace(&mut was_silent, true) => error.final_error(),
                _ => error,
            })
        })
    }

    /// The same where nothing at the path is an answer.
    pub fn find<T>(
        &self,
        request: impl AsyncFn(&Client, &str) -> Result<T, HdfsError>,
    ) -> Result<Option<T>> {
        match self.ask(request) {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            done => done.map(Some),
        }
    }

    /// Makes a request once, and counts it.
    pub fn count_once<T>(&self, request: impl Future<Output = Result<T, HdfsError>>) -> Result<T> {
        self.requests.count(false);
        self.once(0, request)
    }

    /// Makes a request once. `bytes` are moved by it. Nobody counts it.
    pub fn once<T>(
        &self,
        bytes: usize,
        request: impl Future<Output = Result<T, HdfsError>>,
    ) -> Result<T> {
        let limit = REQUEST_LIMIT + Duration::from_secs((bytes / SLOWEST) as u64);
        let limited = self.requests.stop.limited(limit, request);
        match self.runtime.block_on(limited) {
            Waited::Done(Ok(done)) => Ok(done),
            Waited::Done(Err(error)) => {
                Err(failure(self.operation, self.location.as_typed(), error))
            }
            Waited::Stopped => Err(Error::cancelled()),
            Waited::Late(limit) => {
                let message = format!("it did not answer within {} s", limit.as_secs());
                Err(silence(self.operation, self.location.as_typed(), &message))
            }
        }
    }
}
