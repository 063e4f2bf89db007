//! The driver's side of an output that is collected: agents send its files here, and they lie beside the output as those in a
//! shared directory do (`storage/shared.rs`). The agents' side is `storage/collected.rs`.
//!
//! Files are taken while tasks run, below the folder of the output alone, from who has the token. A file that is not finished when
//! that is over is removed.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::{Component, Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use tokio::runtime::Runtime;

use super::links::Links;
use super::server::serve_app;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use gristmill_storage::collected::{CRC_HEADER, CollectorAddress, NewFile, PIECE_BYTES};
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, WriteFile};

/// How long the end waits for what is being written.
const END: Duration = Duration::from_secs(10);

/// Takes files, as long as it is there.
pub(super) struct OutputReceiver {
    /// How agents reach it.
    pub(super) collector: CollectorAddress,
    files: Arc<Files>,
    runtime: Option<Runtime>,
}

impl OutputReceiver {
    /// Begins to take files, if the job collects its output.
    ///
    /// # Errors
    /// The system gives no port, or no threads.
    pub(super) fn of(
        stores: &Arc<Stores>,
        output: Option<&Location>,
        links: &Links,
    ) -> Result<Option<Self>> {
        let collects = stores.shared_outputs().is_some_and(|one| one.collects);
        let folder = output.and_then(|file| Some(file.parent()?.local()?.to_path_buf()));
        let (true, Some(folder)) = (collects, folder) else {
            return Ok(None);
        };
        let failed = |error: std::io::Error| {
            Error::new(Kind::Io, "take the output of the agents", error.to_string())
        };
        let addresses = links.living().map(|agent| agent.link.address());
        let listener = TcpListener::bind((seen_from(addresses), 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?.to_string();
        let token = links.token.clone();
        let files = Arc::new(Files {
            stores: Arc::clone(stores),
            folder,
            taken: Mutex::default(),
        });
        let app = Router::new()
            .route("/files", post(begin))
            .route("/files/{id}", post(finish).delete(remove))
            .route("/files/{id}/{offset}", put(write))
            .layer(DefaultBodyLimit::max(2 * PIECE_BYTES))
            .with_state(Arc::clone(&files));
        let runtime = serve_app(listener, None, &token, app)?;
        Ok(Some(OutputReceiver {
            collector: CollectorAddress { address, token },
            files,
            runtime: Some(runtime),
        }))
    }
}

impl Drop for OutputReceiver {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(END);
        }
        // Before a committer looks at what is there: the agents of these files are lost.
        lock(&self.files.taken).files.clear();
    }
}

/// The address of this machine that agents at these addresses see: best one that is seen from another machine.
fn seen_from<'a>(agents: impl Iterator<Item = &'a str>) -> IpAddr {
    let mut found = None;
    for agent in agents {
        let Ok(here) = way_to(agent) else {
            continue;
        };
        let host = agent.rsplit_once(':').map_or(agent, |(host, _)| host);
        if here.to_string() != host {
            return here;
        }
        found = found.or(Some(here));
    }
    found.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

/// The address of this machine on the way to another one: nothing is sent.
fn way_to(address: &str) -> std::io::Result<IpAddr> {
    let any = if address.starts_with('[') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket.local_addr()?.ip())
}

/// Files that are taken.
struct Files {
    stores: Arc<Stores>,
    folder: PathBuf,
    taken: Mutex<ReceivedFiles>,
}

#[derive(Default)]
struct ReceivedFiles {
    begun: u64,
    files: BTreeMap<u64, Arc<Mutex<File>>>,
}

/// A file under way, or what it has become.
struct File {
    file: Option<Box<dyn WriteFile>>,
    bytes: u64,
    upload: Option<Upload>,
}

impl Files {
    fn begin(&self, body: &[u8]) -> Result<u64> {
        let new: NewFile =
            serde_json::from_slice(body).map_err(|error| wrong(&error.to_string()))?;
        if !new
            .path
            .local()
            .is_some_and(|path| is_below(&self.folder, path))
        {
            return Err(wrong("it is not of the output"));
        }
        self.check_room(new.bytes)?;
        let file = self.stores.create(&new.path, new.bytes, Caching::Cached)?;
        let mut taken = lock(&self.taken);
        taken.begun += 1;
        let id = taken.begun;
        let begun = File {
            file: Some(file),
            bytes: 0,
            upload: None,
        };
        taken.files.insert(id, Arc::new(Mutex::new(begun)));
        Ok(id)
    }

    /// Fails where so many bytes cannot be: before the disk is filled with what nobody needs.
    fn check_room(&self, bytes: u64) -> Result<()> {
        let disk = self.stores.disk();
        let mut folders = self.folder.ancestors();
        let free = folders.find_map(|folder| disk.free_bytes(folder).ok().flatten());
        match free.filter(|free| *free < bytes) {
            None => Ok(()),
            Some(free) => {
                let message =
                    format!("a file of {bytes} bytes is to come, and {free} bytes are free");
                Err(
                    Error::new(Kind::DiskFull, "take the output of an agent", message)
                        .with_path(&self.folder)
                        .advise("make room on the machine where the job was started"),
                )
            }
        }
    }

    fn of(&self, id: u64) -> Result<Arc<Mutex<File>>> {
        let found = lock(&self.taken).files.get(&id).cloned();
        found.ok_or_else(|| wrong("there is no such file"))
    }

    fn write(&self, (id, offset): (u64, u64), body: &[u8], crc: Option<u32>) -> Result<()> {
        let file = self.of(id)?;
        let mut file = lock(&file);
        if crc != Some(crc32fast::hash(body)) {
            return Err(wrong("its bytes were changed on their way").retryable_error());
        }
        let end = offset + body.len() as u64;
        if end <= file.bytes {
            return Ok(()); // it has come before, and the answer was lost
        }
        let open = file.file.as_ref().ok_or_else(|| wrong("it is closed"))?;
        open.write_at(body, offset)?;
        file.bytes = end;
        Ok(())
    }

    fn finish(&self, id: u64) -> Result<Upload> {
        let file = self.of(id)?;
        let mut file = lock(&file);
        if let Some(open) = file.file.take() {
            file.upload = open.finish()?;
        }
        file.upload.clone().ok_or_else(|| wrong("it is closed"))
    }
}

/// Whether a path leads into a folder, by plain names alone.
fn is_below(folder: &FilePath, path: &FilePath) -> bool {
    let rest = path.strip_prefix(folder).unwrap_or(FilePath::new(""));
    let mut names = rest.components();
    let is_plain = |name| matches!(name, Component::Normal(_));
    rest != FilePath::new("") && names.all(is_plain)
}

fn wrong(message: &str) -> Error {
    Error::new(Kind::Io, "take the output of an agent", message)
}

/// Does what waits for a disk on a thread that may; an error goes back as it is.
async fn apart<T: serde::Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Response {
    let failed = StatusCode::INTERNAL_SERVER_ERROR;
    let said = tokio::task::spawn_blocking(work).await;
    let done = said.unwrap_or_else(|_| Err(wrong("the thread that took it has ended")));
    let (status, body) = match &done {
        Ok(done) => (StatusCode::OK, serde_json::to_vec(done)),
        Err(error) => (failed, serde_json::to_vec(error)),
    };
    body.map_or_else(
        |_| failed.into_response(),
        |body| (status, body).into_response(),
    )
}

async fn begin(State(files): State<Arc<Files>>, body: Bytes) -> Response {
    apart(move || files.begin(&body)).await
}

async fn write(
    State(files): State<Arc<Files>>,
    Path(place): Path<(u64, u64)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let crc = headers.get(CRC_HEADER).and_then(|crc| crc.to_str().ok());
    let crc = crc.and_then(|crc| crc.parse().ok());
    apart(move || files.write(place, &body, crc)).await
}

async fn finish(State(files): State<Arc<Files>>, Path(id): Path<u64>) -> Response {
    apart(move || files.finish(id)).await
}

async fn remove(State(files): State<Arc<Files>>, Path(id): Path<u64>) -> Response {
    apart(move || {
        let gone = lock(&files.taken).files.remove(&id);
        drop(gone);
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::memory::Memory;

    fn files() -> Files {
        Files {
            stores: Stores::new(Arc::new(Memory::with_room_for(1000))),
            folder: "/out".into(),
            taken: Mutex::default(),
        }
    }

    fn begin(path: &str, bytes: u64) -> Result<u64> {
        let path = Location::from(FilePath::new(path));
        let new = serde_json::to_vec(&NewFile { path, bytes });
        files().begin(&new.unwrap())
    }

    #[test]
    fn files_are_taken_below_the_folder_alone() {
        begin("/out/part-0", 10).expect("a file of the output");
        begin("/out/a/part-0", 10).expect("a file of the output");
        for wrong in [
            "/out/../x",
            "/out/a/../../x",
            "/out",
            "/outer/x",
            "/x",
            "out/x",
            "/out/a/..",
        ] {
            let error = begin(wrong, 10).unwrap_err().to_string();
            assert!(error.contains("not of the output"), "{wrong}: {error}");
        }
    }

    #[test]
    fn no_more_is_reserved_than_there_is() {
        let error = begin("/out/part-0", 5000).unwrap_err();
        assert_eq!(error.kind(), Kind::DiskFull, "{error}");
        assert!(error.to_string().contains("5000 bytes"), "{error}");
    }
}
