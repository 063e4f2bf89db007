//! Which nodes hold the blocks of files: a call to the name node that the client makes, and keeps to itself.
//!
//! ```text
//!   "hrpc" 9 0 0 │ call -3: who asks │ call 0: getBlockLocations of a file │ call 1: of the next ...    ──▶ name node
//!                                     ◀── its blocks, with the data nodes of each │ ...
//!   a call:  length: u32 BE │ header │ method │ what is asked of it      each of these behind its own length (a varint)
//! ```
//!
//! This is Hadoop's RPC, version 9, without a proof of who asks: where Kerberos is configured nobody is asked. What is found
//! out makes tasks run near to their input, and nothing else: whoever asks does without where there is no answer.
//!
//! Source: RpcHeader.proto, IpcConnectionContext.proto, ClientNamenodeProtocol.proto and hdfs.proto of Hadoop 3.

use std::ops::Range;
use std::time::Duration;

use hdfs_native::HdfsError;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A name node that does not answer for so long is not asked any more.
const SILENCE: Duration = Duration::from_secs(5);

/// The longest reply: a hundred bytes for each of three places of half a million blocks.
const REPLY_BYTES_MAX: usize = 256 << 20;

const PREAMBLE: &[u8] = b"hrpc\x09\x00\x00";
const PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
const METHOD: &str = "getBlockLocations";
const CONTEXT_CALL: i32 = -3;
const BY_PROTOBUF: i32 = 2;
const SUCCESS: i32 = 0;

/// A block of a file, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlace {
    /// The bytes of the file that it has.
    pub range: Range<u64>,
    /// The data nodes that hold it: of each its address, and its name.
    pub hosts: Vec<[String; 2]>,
}

#[derive(Clone, PartialEq, Message)]
struct RequestHeader {
    #[prost(int32, tag = "1")]
    kind: i32,
    /// The last packet, which there is one of: not left out, though it is 0.
    #[prost(int32, optional, tag = "2")]
    operation: Option<i32>,
    #[prost(sint32, required, tag = "3")]
    call: i32,
    #[prost(bytes = "vec", required, tag = "4")]
    client: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct User {
    #[prost(string, optional, tag = "1")]
    effective: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct RpcContext {
    #[prost(message, optional, tag = "2")]
    user: Option<User>,
    #[prost(string, optional, tag = "3")]
    protocol: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct MethodHeader {
    #[prost(string, required, tag = "1")]
    method: String,
    #[prost(string, required, tag = "2")]
    protocol: String,
    #[prost(uint64, required, tag = "3")]
    version: u64,
}

#[derive(Clone, PartialEq, Message)]
struct BlockLocationsRequest {
    #[prost(string, required, tag = "1")]
    path: String,
    #[prost(uint64, required, tag = "2")]
    offset: u64,
    #[prost(uint64, required, tag = "3")]
    bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
struct ReplyHeader {
    #[prost(uint32, required, tag = "1")]
    call: u32,
    #[prost(int32, required, tag = "2")]
    status: i32,
    #[prost(string, optional, tag = "4")]
    class: Option<String>,
    #[prost(string, optional, tag = "5")]
    message: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct BlockLocationsReply {
    #[prost(message, optional, tag = "1")]
    located: Option<Located>,
}

#[derive(Clone, PartialEq, Message)]
struct Located {
    #[prost(message, repeated, tag = "2")]
    blocks: Vec<LocatedBlock>,
}

#[derive(Clone, PartialEq, Message)]
struct LocatedBlock {
    #[prost(message, required, tag = "1")]
    of_pool: OfPool,
    #[prost(uint64, required, tag = "2")]
    offset: u64,
    #[prost(message, repeated, tag = "3")]
    nodes: Vec<DataNode>,
}

#[derive(Clone, PartialEq, Message)]
struct OfPool {
    #[prost(uint64, optional, tag = "4")]
    bytes: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct DataNode {
    #[prost(message, required, tag = "1")]
    id: DataNodeId,
}

#[derive(Clone, PartialEq, Message)]
struct DataNodeId {
    #[prost(string, required, tag = "1")]
    address: String,
    #[prost(string, required, tag = "2")]
    name: String,
}

/// Asks a name node, `HOST:PORT`, for the blocks of files, by their paths there. A file that it says nothing of has none.
///
/// # Errors
/// It does not answer, does not let this user ask, or is not the active one.
pub async fn block_places(
    name_node: &str,
    user: &str,
    paths: &[&str],
) -> Result<Vec<Vec<BlockPlace>>, HdfsError> {
    let mut connection = in_time(TcpStream::connect(name_node)).await?;
    let context = RpcContext {
        user: Some(User {
            effective: Some(user.to_owned()),
        }),
        protocol: Some(PROTOCOL.to_owned()),
    };
    let mut begin = PREAMBLE.to_vec();
    begin.extend(frame(&[
        delimited(&header(CONTEXT_CALL)),
        delimited(&context),
    ]));
    connection.write_all(&begin).await?;
    let mut found = Vec::with_capacity(paths.len());
    for (call, path) in (0..).zip(paths) {
        in_time(connection.write_all(&question(call, path))).await?;
        found.push(match in_time(answer(&mut connection, call)).await {
            Err(HdfsError::RPCError(class, _)) if class.ends_with("FileNotFoundException") => {
                Vec::new()
            }
            found => found?,
        });
    }
    Ok(found)
}

async fn in_time<T, E: Into<HdfsError>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, HdfsError> {
    match timeout(SILENCE, work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_late) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    }
}

fn header(call: i32) -> RequestHeader {
    RequestHeader {
        kind: BY_PROTOBUF,
        operation: Some(0),
        call,
        // Names a client to a cache of replies, which reads of a name node do not use.
        client: vec![0; 16],
    }
}

fn delimited(message: &impl Message) -> Vec<u8> {
    message.encode_length_delimited_to_vec()
}

fn frame(parts: &[Vec<u8>]) -> Vec<u8> {
    let parts = parts.concat();
    let mut frame = (parts.len() as u32).to_be_bytes().to_vec();
    frame.extend(parts);
    frame
}

fn question(call: i32, path: &str) -> Vec<u8> {
    let method = MethodHeader {
        method: METHOD.to_owned(),
        protocol: PROTOCOL.to_owned(),
        version: 1,
    };
    let asked = BlockLocationsRequest {
        path: path.to_owned(),
        offset: 0,
        bytes: i64::MAX as u64,
    };
    frame(&[
        delimited(&header(call)),
        delimited(&method),
        delimited(&asked),
    ])
}

async fn answer(connection: &mut TcpStream, call: i32) -> Result<Vec<BlockPlace>, HdfsError> {
    let bytes = connection.read_u32().await? as usize;
    let broken = |what: &str| HdfsError::OperationFailed(format!("the name node's answer {what}"));
    if bytes > REPLY_BYTES_MAX {
        return Err(broken("is too long"));
    }
    let mut reply = vec![0; bytes];
    connection.read_exact(&mut reply).await?;
    let mut rest = &*reply;
    let header = ReplyHeader::decode_length_delimited(&mut rest)?;
    if header.status != SUCCESS {
        let (class, message) = (header.class, header.message);
        return Err(HdfsError::RPCError(
            class.unwrap_or_default(),
            message.unwrap_or_default(),
        ));
    }
    if header.call as i32 != call {
        return Err(broken("is of another call"));
    }
    let reply = BlockLocationsReply::decode_length_delimited(rest)?;
    let blocks = reply.located.unwrap_or_default().blocks.into_iter();
    Ok(blocks.map(placed).collect())
}

fn placed(block: LocatedBlock) -> BlockPlace {
    let bytes = block.of_pool.bytes.unwrap_or(0);
    let nodes = block.nodes.into_iter();
    BlockPlace {
        range: block.offset..block.offset.saturating_add(bytes),
        hosts: nodes.map(|node| [node.id.address, node.id.name]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A frame; nothing where there is no more.
    fn read(connection: &mut impl Read) -> Option<Vec<u8>> {
        let mut bytes = [0; 4];
        connection.read_exact(&mut bytes).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(bytes) as usize];
        connection.read_exact(&mut frame).ok()?;
        Some(frame)
    }

    fn block(offset: u64, bytes: u64, nodes: &[&str]) -> LocatedBlock {
        let node = |name: &&str| DataNode {
            id: DataNodeId {
                address: "10.0.0.7".to_owned(),
                name: (*name).to_owned(),
            },
        };
        LocatedBlock {
            of_pool: OfPool { bytes: Some(bytes) },
            offset,
            nodes: nodes.iter().map(node).collect(),
        }
    }

    /// Answers what it is asked: a file of two blocks, one that is not there, and then that it stands by.
    fn name_node(listener: &TcpListener) {
        let (mut connection, _) = listener.accept().unwrap();
        let mut preamble = [0; 7];
        connection.read_exact(&mut preamble).unwrap();
        assert_eq!(preamble, PREAMBLE);
        let context = read(&mut connection).unwrap();
        let mut rest = &*context;
        let header = RequestHeader::decode_length_delimited(&mut rest).unwrap();
        assert_eq!((header.call, header.operation), (CONTEXT_CALL, Some(0)));
        let context = RpcContext::decode_length_delimited(rest).unwrap();
        assert_eq!(context.user.unwrap().effective.as_deref(), Some("ann"));
        while let Some(asked) = read(&mut connection) {
            let mut rest = &*asked;
            let call = RequestHeader::decode_length_delimited(&mut rest)
                .unwrap()
                .call as u32;
            let method = MethodHeader::decode_length_delimited(&mut rest).unwrap();
            assert_eq!(method.method, METHOD);
            let path = BlockLocationsRequest::decode_length_delimited(rest)
                .unwrap()
                .path;
            let refused = |class: &str| ReplyHeader {
                call,
                status: 1,
                class: Some(class.to_owned()),
                message: Some("no".to_owned()),
            };
            let fine = ReplyHeader {
                call,
                ..ReplyHeader::default()
            };
            let blocks = vec![block(0, 10, &["a", "b"]), block(10, 3, &["b"])];
            let located = BlockLocationsReply {
                located: Some(Located { blocks }),
            };
            let parts = match &*path {
                "/a" => vec![delimited(&fine), delimited(&located)],
                "/none" => vec![delimited(&refused("java.io.FileNotFoundException"))],
                _ => vec![delimited(&refused(
                    "org.apache.hadoop.ipc.StandbyException",
                ))],
            };
            connection.write_all(&frame(&parts)).unwrap();
            if path == "/standby" {
                return;
            }
        }
    }

    #[test]
    fn a_name_node_says_where_blocks_are() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            name_node(&listener);
            name_node(&listener);
        });
        let ask = |paths: &[&str]| runtime.block_on(block_places(&address, "ann", paths));
        let error = ask(&["/standby"]).unwrap_err();
        assert!(
            matches!(error, HdfsError::RPCError(class, _) if class.ends_with("StandbyException"))
        );
        let host = |name: &str| ["10.0.0.7".to_owned(), name.to_owned()];
        let first = BlockPlace {
            range: 0..10,
            hosts: vec![host("a"), host("b")],
        };
        let second = BlockPlace {
            range: 10..13,
            hosts: vec![host("b")],
        };
        let found = ask(&["/none", "/a", "/none"]);
        assert_eq!(found.unwrap(), [vec![], vec![first, second], vec![]]);
        server.join().unwrap();
        assert!(ask(&["/a"]).is_err(), "nobody listens any more");
    }
}
