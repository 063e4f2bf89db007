//! What went wrong with a request: one paragraph, with what to do, and whether it helps to try again.

use std::io::ErrorKind;
use std::path::Path;

use hdfs_native::HdfsError;
use http::HeaderMap;

use crate::location::Location;
use crate::objects::retry::throttled;
use gristmill_base::error::{Error, Kind};

/// What stands for the exception where nobody answered.
const SILENCE: &str = "none";

/// Where a name node is looked for, for messages.
fn place(path: &Path) -> String {
    match Location::from(path).authority() {
        "" => "the default file system".to_owned(),
        authority => authority.to_owned(),
    }
}

/// The error of a name node, or a data node, that does not answer.
pub fn silence(operation: &'static str, path: &Path, what: &str) -> Error {
    let message = format!(
        "no answer from {}, or from a data node: {what}",
        place(path)
    );
    Error::new(Kind::Io, operation, message)
        .with_path(path)
        .advise(
            "check the host and the port (those of the name node's RPC, often 8020 or 9000), HADOOP_CONF_DIR, the data \
             nodes (hdfs dfsadmin -report) and the network, then run again",
        )
        .noting(|details| details.hdfs_exception = Some(SILENCE.to_owned()))
        .retryable_error()
}

/// Whether it is the error of a node that does not answer.
pub fn is_silence(error: &Error) -> bool {
    error.details.hdfs_exception.as_deref() == Some(SILENCE)
}

/// The error of a request that failed.
pub fn failure(operation: &'static str, path: &Path, error: HdfsError) -> Error {
    let new = |kind, message: &str| Error::new(kind, operation, message).with_path(path);
    match error {
        HdfsError::RPCError(class, text) | HdfsError::FatalRPCError(class, text) => {
            refusal(operation, path, &class, &text)
        }
        HdfsError::FileNotFound(_) => new(Kind::NotFound, "no such file or directory"),
        HdfsError::AlreadyExists(text) => new(Kind::Exists, first_line(&text))
            .advise("let no other program write to the output, then run again"),
        HdfsError::IsADirectoryError(_) => new(Kind::BadInput, "it is a directory"),
        HdfsError::IOError(error) => {
            let what = match error.kind() {
                ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
                _ => error.to_string(),
            };
            silence(operation, path, &what)
        }
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            let message = format!("{} did not accept the user: {error}", place(path));
            new(Kind::Permission, &message).advise(
                "get a ticket (kinit), install Kerberos's library (libgssapi-krb5-2, krb5-libs), and check \
                 hadoop.security.authentication in core-site.xml (HADOOP_CONF_DIR)",
            )
        }
        HdfsError::ChecksumError => new(
            Kind::Io,
            "a block is damaged: its bytes do not have the checksum that HDFS has of them",
        )
        .advise("check the file (hdfs fsck PATH -files -blocks), then run again")
        .retryable_error(),
        HdfsError::BlocksNotFound(_) | HdfsError::DataTransferError(_) => {
            new(Kind::Io, &format!("no data node gave or took a block: {error}"))
                .advise("check that the data nodes live (hdfs dfsadmin -report), then run again")
                .retryable_error()
        }
        HdfsError::UnsupportedErasureCodingPolicy(_)
        | HdfsError::ErasureCodingError(_)
        | HdfsError::UnsupportedFeature(_) => new(Kind::BadInput, &error.to_string())
            .advise("copy the file to a directory that is neither encrypted nor of that policy"),
        HdfsError::InvalidArgument(_)
        | HdfsError::InvalidPath(_)
        | HdfsError::UrlParseError(_)
        | HdfsError::XmlParseError(_) => new(Kind::BadOption, &error.to_string()).advise(
            "name hdfs://HOST:PORT/PATH, and check core-site.xml and hdfs-site.xml (HADOOP_CONF_DIR)",
        ),
        error => new(Kind::Io, &error.to_string())
            .advise("check the logs of the name node, then run again"),
    }
}

/// The error of a request that the name node refused with an exception of Java's.
fn refusal(operation: &'static str, path: &Path, class: &str, text: &str) -> Error {
    let text = first_line(text);
    let new = |kind, message: &str| Error::new(kind, operation, message).with_path(path);
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    let error = match name {
        "FileNotFoundException" => new(Kind::NotFound, "no such file or directory"),
        // So says the name node of what would lie below a file.
        "AccessControlException" if text.contains("is not a directory") => {
            new(Kind::NotFound, "no such file or directory")
        }
        "AccessControlException" | "AuthorizationException" => {
            new(Kind::Permission, &format!("HDFS does not permit it: {text}")).advise(
                "let the owner of the directory permit it (hdfs dfs -chmod, -setfacl), or run as another user \
                 (HADOOP_USER_NAME, or kinit)",
            )
        }
        "SafeModeException" => new(Kind::Io, "the name node is in safe mode: nothing can be written")
            .advise("wait until it has left safe mode (hdfs dfsadmin -safemode get), then run again")
            .retryable_error(),
        "NSQuotaExceededException" | "DSQuotaExceededException" | "QuotaExceededException"
        | "QuotaByStorageTypeExceededException" => {
            new(Kind::DiskFull, &format!("a quota is used up: {text}")).advise(
                "remove files there, or let an administrator raise it (hdfs dfsadmin -setSpaceQuota, -setQuota), then \
                 resume the job",
            )
        }
        "StandbyException" => new(Kind::Io, "no name node is active")
            .advise("check the name nodes (hdfs haadmin -getAllServiceState), then run again")
            .retryable_error(),
        // The name node has more calls than it can do (ipc.PORT.backoff.enable).
        "RetriableException" if text.contains("too busy") => {
            let busy = new(Kind::Io, "the name node has too many requests")
                .advise("run again later, or with fewer --workers");
            throttled(busy, &HeaderMap::new())
        }
        "RetriableException" => new(Kind::Io, text).retryable_error(),
        // The data nodes are busy, and say late what they hold. Java's client asks again; ours has given the file up by then.
        "NotReplicatedYetException" => {
            new(Kind::Io, "the data nodes have not said in time that they hold the block before")
                .advise("run again, and look at the load of the data nodes")
                .retryable_error()
        }
        "InvalidToken" | "SaslException" | "GSSException" => {
            new(Kind::Permission, &format!("HDFS did not accept the user: {text}"))
                .advise("get a new ticket (kinit), then resume the job")
        }
        "ParentNotDirectoryException" => {
            new(Kind::BadOption, "a part of its path is a file, not a directory")
                .advise("name another output")
        }
        "InvalidPathException" => new(Kind::BadOption, text).advise("name a path without `:`"),
        _ if text.contains("could only be written to") => {
            new(Kind::DiskFull, &format!("no data node takes a block: {text}"))
                .advise("check that the data nodes live and have room (hdfs dfsadmin -report), then run again")
                .retryable_error()
        }
        _ if text.contains("replication factor") || text.contains("block size") => {
            new(Kind::BadOption, text).advise("give a value that the name node permits")
        }
        _ => new(Kind::Io, &format!("the name node answered {name}: {text}"))
            .advise("look for it in the log of the name node"),
    };
    error.noting(|details| details.hdfs_exception = Some(name.to_owned()))
}

/// What an exception of Java's says, without the calls that led to it.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_name_node_says_becomes_a_kind_and_something_to_do() {
        let of = |class: &str, text: &str| {
            let error = HdfsError::RPCError(class.to_owned(), text.to_owned());
            failure("write the output", "hdfs://h/a".as_ref(), error)
        };
        for (class, kind, may_pass) in [
            ("java.io.FileNotFoundException", Kind::NotFound, false),
            (
                "org.apache.hadoop.security.AccessControlException",
                Kind::Permission,
                false,
            ),
            (
                "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
                Kind::Io,
                true,
            ),
            (
                "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
                Kind::DiskFull,
                false,
            ),
            ("org.apache.hadoop.ipc.StandbyException", Kind::Io, true),
            (
                "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException",
                Kind::Io,
                true,
            ),
            ("org.apache.hadoop.ipc.RetriableException", Kind::Io, true),
            ("java.io.IOException", Kind::Io, false),
        ] {
            let error = of(class, "one line\n\tat org.apache.hadoop");
            assert_eq!(
                (error.kind(), error.retryable()),
                (kind, may_pass),
                "{class}"
            );
            assert!(!error.to_string().contains("\tat"), "{error}");
        }
        let error = of("a.SafeModeException", "Cannot create /a");
        assert!(error.to_string().contains("in safe mode"), "{error}");
        let error = of(
            "java.io.IOException",
            "File /a could only be written to 0 of the 1",
        );
        assert_eq!((error.kind(), error.retryable()), (Kind::DiskFull, true));
    }

    #[test]
    fn nothing_is_below_a_file() {
        let class = "org.apache.hadoop.security.AccessControlException".to_owned();
        let error = HdfsError::RPCError(class, "/a/b (is not a directory)".to_owned());
        let error = failure("look at a file", "hdfs://h/a/b/c".as_ref(), error);
        assert_eq!(error.kind(), Kind::NotFound);
    }

    #[test]
    fn who_does_not_answer_is_named() {
        let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
        let error = failure("look at a file", "hdfs://h:1/a".as_ref(), refused.into());
        assert!(error.to_string().contains("no answer from h:1"), "{error}");
        assert!(error.retryable());
    }
}
