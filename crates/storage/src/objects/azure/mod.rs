//! Blobs of Azure Storage: `az://CONTAINER/KEY`, and `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY`.
//!
//! ```text
//!   begin      a name, drawn here: nothing is sent
//!   part       Put Block: its name holds that of the upload, its number and its CRC-32; its MD5 is checked there
//!   complete   Put Block List: the blob appears, with its CRC-32 in its metadata; all other blocks of its name go
//!   abort      nothing: Azure removes blocks that no blob has after a week
//!   copy       Copy Blob From URL, or Put Block From URL: the source's URL says who may read it (read_right.rs)
//! ```
//!
//! Each call is one request. Nothing is tried again here. A block of no bytes cannot be sent: an empty part is a block of one byte that no
//! blob gets. What stands for a directory in accounts with hierarchical names is one here, too.
//!
//! Decision: docs/decisions/clouds.md.

mod failures;
mod read_right;
mod replies;
mod settings;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use md5::{Digest, Md5};
use object_store::azure::{AzureAuthorizer, AzureCredential};

use super::call::{Call, encoded};
use super::{
    DIRECTORY, KeptPart, Object, ObjectStore, Objects, Page, Part, SourceRange, StoreCopies,
    Upload, UploadPart,
};
use crate::location::Location;
use crate::net::http_client::{HttpClient, HttpReply, TransportPolicy, header};
use crate::net::per_process::PerProcess;
use crate::private::chance::by_chance;
use crate::store_kind::{
    CONNECT_TIMEOUT, OptionValues, REQUEST_TIMEOUT, REQUESTS_AT_ONCE, ReadVariable, StoreKind,
    StoreSetup,
};
use crate::version::ReadVersion;
use failures::{failure, is_no_blob};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use replies::{BlobPage, BlockList, time_ns, unquoted};
use settings::{ACCOUNT_OPTION, AzureAccount, ENDPOINT, ENDPOINT_OPTION};

/// This kind of store.
pub static KIND: StoreKind = StoreKind {
    name: "Azure",
    schemes: &["az", "abfs", "abfss"],
    has_authority: true,
    has_patterns: true,
    advised: Some("az://CONTAINER/KEY"),
    variables: &["AZURE_", "SSL_CERT_"],
    options: &[
        ACCOUNT_OPTION,
        ENDPOINT_OPTION,
        CONNECT_TIMEOUT,
        REQUEST_TIMEOUT,
        REQUESTS_AT_ONCE,
    ],
    credentials: Some(settings::CREDENTIALS),
    is_durable: Some(true), // what it has answered
    sends_parts: true,
    open: |setup| ObjectStore::open(Azure::new(setup), setup),
};

/// The metadata of a blob that have the CRC-32 of its bytes.
const CRC: &str = "x-ms-meta-crc32";

const COPY: &str = "copy a file";

/// The longest blob that is copied by one request.
const COPIED_WHOLE_BYTES: u64 = 256 << 20;

/// What is sent for a part without bytes.
const NOTHING: &[u8] = b"0";

type Accounts = BTreeMap<String, Result<Arc<AzureAccount>>>;

/// Blobs in Azure.
#[derive(Debug)]
struct Azure {
    variable: ReadVariable,
    options: Arc<OptionValues>,
    /// By their names; that of none is the one that variables name. They ask by connections, which a fork must not share.
    accounts: PerProcess<Mutex<Accounts>>,
    client: Arc<HttpClient>,
}

impl Azure {
    fn new(setup: &StoreSetup) -> Self {
        Azure {
            variable: setup.variable,
            options: Arc::clone(&setup.options),
            accounts: PerProcess::default(),
            client: Arc::clone(&setup.client),
        }
    }

    /// The account that a location names by `CONTAINER@ACCOUNT.dfs.core.windows.net`, or else variables.
    fn account(&self, path: &Path) -> Result<Arc<AzureAccount>> {
        let location = Location::from(path);
        let host = location.authority().split_once('@').map(|(_, host)| host);
        let named = host.and_then(|host| host.split('.').next());
        let mut accounts = lock(self.accounts.get(Mutex::default));
        let made = accounts
            .entry(named.unwrap_or_default().to_owned())
            .or_insert_with(|| AzureAccount::of(named, self.variable, &self.options).map(Arc::new));
        made.clone()
    }

    /// Sends a request, and waits. What a successful reply to a question with a `buffer` has goes there.
    fn send(&self, call: &Call<'_>, buffer: &mut [u8]) -> Result<HttpReply> {
        let account = self.account(call.path).map_err(|error| call.here(error))?;
        let endpoint = &account.endpoint;
        let credentials = account.credentials(&self.client);
        let credentials = credentials.map_err(|error| call.here(error))?;
        let mut request = call
            .request(&format!("{endpoint}/{}", call.bucket))
            .map_err(|error| Error::bug(call.operation, error.to_string()))?;
        let length = call.body.len();
        if length > 0 || call.method() == Method::PUT {
            // It is a part of what is signed.
            let headers = request.headers_mut();
            headers.insert("content-length", HeaderValue::from(length));
        }
        AzureAuthorizer::new(&credentials, &account.name)
            .try_authorize(&mut request)
            .map_err(|error| Error::bug(call.operation, error.to_string()))?;
        let limit = self.client.limit(length.max(buffer.len()));
        let policy = TransportPolicy::default();
        let sent = self.client.send(&policy, request, buffer, limit);
        sent.map_err(|broken| {
            call.unanswered(broken, (endpoint, ENDPOINT), (None, "SSL_CERT_FILE"))
        })
    }

    fn failed(&self, call: &Call<'_>, reply: &HttpReply) -> Error {
        let account = self.account(call.path);
        let endpoint = account.map_or_else(|_| String::new(), |found| found.endpoint.clone());
        failure(&endpoint, call, reply)
    }

    fn done(&self, call: &Call<'_>) -> Result<HttpReply> {
        let reply = self.send(call, &mut [])?;
        match reply.status.is_success() {
            true => Ok(reply),
            false => Err(self.failed(call, &reply)),
        }
    }

    /// Makes the blob of an upload, with the CRC-32 of its bytes, if that is known.
    fn publish(&self, upload: &Upload, crc: Option<u32>) -> Result<()> {
        let mut call = call("publish the output", Method::PUT, upload.path.as_typed())?
            .ask("comp", "blocklist")
            .with("content-type", "application/xml")
            .with("x-ms-blob-content-type", "application/octet-stream");
        if let Some(crc) = crc {
            call = call.with(CRC, &format!("{crc:08x}"));
        }
        let mut text = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>".to_owned();
        for part in upload.parts.iter().filter(|part| part.bytes > 0) {
            // Writing to a string cannot fail; base64 needs no escapes.
            let _ = write!(text, "<Uncommitted>{}</Uncommitted>", part.etag);
        }
        call.body = (text + "</BlockList>").into();
        let reply = self.send(&call, &mut [])?;
        match reply.status.is_success() {
            true => Ok(()),
            false => Err(self.failed(&call, &reply).with("upload", &upload.id)),
        }
    }

    /// The same call, which names a blob of the account as its source, as long as that is this one. The store asks for it anew, by what
    /// the call says of who may read it.
    fn of_source<'c>(&self, to: Call<'c>, path: &Path, source: &Object) -> Result<Call<'c>> {
        let from = call(to.operation, Method::GET, path)?;
        let account = self.account(path).map_err(|error| from.here(error))?;
        let credentials = account.credentials(&self.client);
        let credentials = credentials.map_err(|error| from.here(error))?;
        let key = encoded(&from.key, true);
        let mut url = format!("{}/{}/{key}", account.endpoint, from.bucket);
        let mut to = to.with("x-ms-source-if-match", &format!("\"{}\"", source.version));
        match &*credentials {
            AzureCredential::BearerToken(token) => {
                to = to.with("x-ms-copy-source-authorization", &format!("Bearer {token}"));
            }
            AzureCredential::SASToken(pairs) => url += &query_of(pairs),
            AzureCredential::AccessKey(_) => {
                let blob = (&*account.name, &*from.bucket, &*from.key);
                let pairs = account.key.as_ref().map(|key| key.may_read(blob));
                url += &query_of(&pairs.unwrap_or_default());
            }
        }
        Ok(to.with("x-ms-copy-source", &url))
    }

    /// The reply; none where the store says that the blob is not there.
    fn found(&self, call: &Call<'_>) -> Result<Option<HttpReply>> {
        let reply = self.send(call, &mut [])?;
        match reply.status {
            status if status.is_success() => Ok(Some(reply)),
            _ if is_no_blob(&reply) => Ok(None),
            _ => Err(self.failed(call, &reply)),
        }
    }
}

/// What makes a URL one that its reader may read.
fn query_of(pairs: &[(String, String)]) -> String {
    let pairs = pairs.iter().enumerate();
    let pairs = pairs.map(|(at, (name, value))| {
        let mark = if at == 0 { '?' } else { '&' };
        format!("{mark}{name}={}", encoded(value, false))
    });
    pairs.collect()
}

/// A request to a blob.
fn call<'p>(operation: &'static str, method: Method, path: &'p Path) -> Result<Call<'p>> {
    let location = Location::from(path);
    let container = location.authority().split('@').next().unwrap_or_default();
    Call::in_bucket(&KIND, operation, method, (path, container.to_owned()))
}

impl Objects for Azure {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        let call = call("look at a file", Method::HEAD, path)?;
        if call.key.is_empty() {
            return Ok(None);
        }
        let Some(reply) = self.found(&call)? else {
            return Ok(None);
        };
        match header(&reply.headers, "x-ms-meta-hdi_isfolder") {
            Some("true") => Ok(None),
            _ => object_of(&call, &reply.headers).map(Some),
        }
    }

    fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page> {
        let call = call("list a directory", Method::GET, directory)?.of_bucket();
        let prefix = call.prefix();
        let mut call = call
            .ask("restype", "container")
            .ask("comp", "list")
            .ask("include", "metadata")
            .ask("delimiter", "/")
            .ask("prefix", &prefix);
        if let Some(marker) = from {
            call = call.ask("marker", marker);
        }
        let mut page: BlobPage = replies::read(&call, &self.done(&call)?.body)?;
        let next = page.next();
        let blobs = page.blobs.blobs.iter();
        let blobs = blobs.map(|blob| match blob.is_directory() {
            true => (blob.name.plain(), Some(DIRECTORY)),
            false => (blob.name.plain(), blob.stat()),
        });
        let prefixes = page.blobs.prefixes.iter();
        let prefixes = prefixes.map(|prefix| (prefix.name.plain(), Some(DIRECTORY)));
        let mut named: Vec<_> = blobs.chain(prefixes).collect();
        named.sort_by(|one, other| one.0.cmp(&other.0)); // each kind comes in order
        let found = call.entries(directory, named.into_iter())?;
        Ok(Page { found, next })
    }

    fn get(
        &self,
        path: &Path,
        version: &ReadVersion,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize> {
        let Some(last) = (buffer.len() as u64).checked_sub(1) else {
            return Ok(0);
        };
        let mut call = call("read the input", Method::GET, path)?
            .with("range", &format!("bytes={offset}-{}", offset + last));
        if let Some(etag) = version.text() {
            call = call.with("if-match", &format!("\"{etag}\""));
        }
        let reply = self.send(&call, buffer)?;
        let etag = header(&reply.headers, "etag").map(unquoted);
        let read = call.read_of(&reply, (version, etag), (offset, last + 1))?;
        read.ok_or_else(|| self.failed(&call, &reply).with("offset", offset))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        self.found(&call("remove", Method::DELETE, path)?).map(drop)
    }

    fn begin(&self, path: &Path) -> Result<String> {
        call("create the output", Method::PUT, path)?;
        Ok(format!("{:016x}", by_chance()))
    }

    fn put(&self, path: &Path, object: &Part) -> Result<()> {
        let digest = BASE64.encode(Md5::digest(&object.data));
        let mut call = call("write the output", Method::PUT, path)?
            .with("content-type", "application/octet-stream")
            .with("content-md5", &digest)
            .with("x-ms-blob-type", "BlockBlob")
            .with(CRC, &format!("{:08x}", object.crc));
        call.body = object.data.clone();
        self.done(&call).map(drop)
    }

    fn copies(&self, from: &Path, to: &Path) -> Option<StoreCopies> {
        let [from, to] = [from, to].map(|path| self.account(path).ok());
        let is_one = from?.name == to?.name;
        is_one.then_some(StoreCopies {
            whole_bytes: COPIED_WHOLE_BYTES,
            takes_sums: false, // but of what is sent
        })
    }

    /// With its metadata.
    fn copy(
        &self,
        from: &Path,
        source: &Object,
        to: &Path,
        _token: Option<&str>,
    ) -> Result<Option<String>> {
        let call = call(COPY, Method::PUT, to)?.with("x-ms-requires-sync", "true");
        let call = self.of_source(call, from, source)?;
        let reply = self.done(&call)?;
        match header(&reply.headers, "x-ms-copy-status") {
            Some("success") => Ok(None),
            _ => Err(call.not_kept()),
        }
    }

    fn copy_part(
        &self,
        to: &Path,
        id: &str,
        number: u32,
        of: SourceRange<'_>,
    ) -> Result<UploadPart> {
        let crc = 0; // nobody says it
        let etag = BlockId { id, number, crc }.text(false);
        let call = call(COPY, Method::PUT, to)?
            .ask("comp", "block")
            .ask("blockid", &etag)
            .with("x-ms-source-range", &of.text());
        self.done(&self.of_source(call, of.path, of.object)?)?;
        let bytes = of.bytes();
        Ok(UploadPart { bytes, crc, etag })
    }

    fn complete_copy(&self, upload: &Upload, source: &Object) -> Result<()> {
        self.publish(upload, source.crc)
    }

    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        let (crc, bytes) = (part.crc, part.data.len() as u64);
        let etag = BlockId { id, number, crc }.text(bytes == 0);
        let mut call = call("write the output", Method::PUT, path)?
            .ask("comp", "block")
            .ask("blockid", &etag);
        call.body = match bytes {
            0 => Bytes::from_static(NOTHING),
            _ => part.data.clone(),
        };
        let digest = BASE64.encode(Md5::digest(&call.body));
        self.done(&call.with("content-md5", &digest))?;
        Ok(UploadPart { bytes, crc, etag })
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        let call = call("look at an upload", Method::GET, path)?
            .ask("comp", "blocklist")
            .ask("blocklisttype", "uncommitted");
        let Some(reply) = self.found(&call)? else {
            return Ok(None);
        };
        let list: BlockList = replies::read(&call, &reply.body)?;
        let mut parts = list.uncommitted_blocks.blocks;
        parts.retain(|block| BlockId::is_of(&block.name, id));
        parts.sort_by_key(|block| BASE64.decode(&block.name).unwrap_or_default());
        let kept = |block: &replies::Block| KeptPart {
            bytes: if BlockId::is_empty(&block.name) {
                0
            } else {
                block.size
            },
            etag: block.name.clone(),
        };
        Ok((!parts.is_empty()).then(|| parts.iter().map(kept).collect()))
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        self.publish(upload, Some(upload.crc()))
    }

    fn abort(&self, _path: &Path, _id: &str) -> Result<()> {
        Ok(())
    }

    /// None: their blocks go by themselves.
    fn uploads(&self, _path: &Path) -> Result<Vec<(PathBuf, String)>> {
        Ok(Vec::new())
    }
}

/// What a block is called: names of all blocks of a blob are equally long.
struct BlockId<'u> {
    id: &'u str,
    number: u32,
    crc: u32,
}

impl BlockId<'_> {
    fn text(&self, is_empty: bool) -> String {
        let BlockId { id, number, crc } = self;
        let kind = if is_empty { '0' } else { '1' };
        BASE64.encode(format!("{id}-{number:05}-{crc:08x}-{kind}"))
    }

    /// Whether a block is one of an upload.
    fn is_of(block: &str, id: &str) -> bool {
        let name = BASE64.decode(block).unwrap_or_default();
        let rest = name.strip_prefix(id.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"-"))
    }

    fn is_empty(block: &str) -> bool {
        BASE64.decode(block).unwrap_or_default().ends_with(b"-0")
    }
}

fn object_of(call: &Call<'_>, headers: &HeaderMap) -> Result<Object> {
    let bytes = header(headers, "content-length").and_then(|length| length.parse().ok());
    let etag = header(headers, "etag").map(unquoted);
    let (Some(bytes), Some(etag)) = (bytes, etag) else {
        let message = "the store says neither how long it is nor of which version";
        return Err(Error::new(Kind::Io, call.operation, message).with_path(call.path));
    };
    let crc = header(headers, CRC).and_then(|crc| u32::from_str_radix(crc, 16).ok());
    Ok(Object {
        bytes,
        modified_ns: header(headers, "last-modified").map_or(0, time_ns),
        version: etag.to_owned(),
        crc,
        sum: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_name_of_their_upload() {
        let id = |number| BlockId {
            id: "0123456789abcdef",
            number,
            crc: 7,
        };
        let (first, none) = (id(1).text(false), id(2).text(true));
        assert_eq!(first.len(), none.len());
        assert!(BlockId::is_of(&first, "0123456789abcdef") && !BlockId::is_of(&first, "0123"));
        assert!(BlockId::is_empty(&none) && !BlockId::is_empty(&first));
    }
}
