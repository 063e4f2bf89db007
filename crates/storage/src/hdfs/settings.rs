//! What Hadoop's configuration says of new files, and of the default file system; all else its client reads by itself.
//!
//! ```text
//!   FOLDER/core-site.xml ─▶ FOLDER/hdfs-site.xml     a property of the second one counts
//!   option of the job ─▶ dfs.replication, dfs.blocksize ─▶ what the name node says
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use roxmltree::{Document, ParsingOptions};
use serde::{Deserialize, Serialize};

use crate::store_kind::ReadVariable;
use gristmill_base::error::{Error, Kind, Result};

/// The files; those that come later count.
const FILES: [&str; 2] = ["core-site.xml", "hdfs-site.xml"];

const DEFAULT_FILE_SYSTEM: &str = "fs.defaultFS";
const REPLICATION: &str = "dfs.replication";
const BLOCK_BYTES: &str = "dfs.blocksize";

/// Blocks have checksums of so many bytes.
const OF_CHECKSUM: u64 = 512;

/// The port of a name node where none is named.
pub(super) const PORT: u16 = 8020;

/// Names of one file system and another: `dfs.blocksize` takes what `K` and `m` are to Hadoop.
const UNITS: [(char, u32); 6] = [
    ('k', 10),
    ('m', 20),
    ('g', 30),
    ('t', 40),
    ('p', 50),
    ('e', 60),
];

/// How new files are cut and kept. What is not given is as configured, or else as the name node has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSettings {
    /// Copies of each block.
    pub replication: Option<u32>,
    /// The length of a block.
    pub bytes: Option<u64>,
}

impl BlockSettings {
    /// Fails where no file can have such blocks; the name node has limits of its own.
    ///
    /// # Errors
    /// What has one checksum does not divide their length.
    ///
    /// ```
    /// use gristmill_storage::hdfs::BlockSettings;
    /// let of = |bytes| BlockSettings { bytes: Some(bytes), ..BlockSettings::default() };
    /// assert!(of(128 << 20).check().is_ok() && of(1_000_000).check().is_err());
    /// ```
    pub fn check(self) -> Result<()> {
        match self.bytes {
            Some(bytes) if bytes == 0 || bytes % OF_CHECKSUM != 0 => {
                let message =
                    format!("block_size is {bytes} bytes, which {OF_CHECKSUM} does not divide");
                Err(Error::new(Kind::BadOption, "read the options", message)
                    .of_option("block_size")
                    .advise("give a size such as 128MiB or 1GiB"))
            }
            _ => Ok(()),
        }
    }
}

/// Where Hadoop is configured, and what is said there.
#[derive(Debug, Default)]
pub struct HdfsSettings {
    folder: Option<PathBuf>,
    /// Who asks, where the environment says so.
    user: Option<String>,
    read: OnceLock<BTreeMap<String, String>>,
}

impl HdfsSettings {
    /// What `core-site.xml` and `hdfs-site.xml` in the folder of Hadoop's configuration say. They are read when they are first
    /// asked.
    pub fn from_variables(variable: ReadVariable) -> Self {
        let folder = variable("HADOOP_CONF_DIR").map(PathBuf::from);
        let below_home = || Some(PathBuf::from(variable("HADOOP_HOME")?).join("etc/hadoop"));
        HdfsSettings {
            folder: folder.or_else(below_home),
            user: variable("HADOOP_USER_NAME").filter(|name| !name.is_empty()),
            read: OnceLock::new(),
        }
    }

    /// Who asks: that user, or else the system's.
    pub(super) fn user(&self) -> Option<String> {
        self.user.clone().or_else(|| whoami::username().ok())
    }

    /// Whether servers ask for authentication (Kerberos).
    pub(super) fn requires_authentication(&self) -> bool {
        let said = self.value("hadoop.security.authentication");
        said.is_some_and(|how| how.eq_ignore_ascii_case("kerberos"))
    }

    /// The addresses of the name nodes of a file system, by what stands between `hdfs://` and the path.
    pub(super) fn name_nodes(&self, authority: &str) -> Vec<String> {
        let default = || self.default_file_system()?.strip_prefix("hdfs://");
        let authority = match authority {
            "" => default().unwrap_or_default().trim_end_matches('/'),
            named => named,
        };
        if authority.is_empty() || authority.contains(':') {
            return [authority]
                .map(str::to_owned)
                .into_iter()
                .filter(|name| !name.is_empty())
                .collect();
        }
        let address = |id: &str| {
            let name = format!("dfs.namenode.rpc-address.{authority}.{}", id.trim());
            self.value(&name).map(str::to_owned)
        };
        match self.value(&format!("dfs.ha.namenodes.{authority}")) {
            Some(ids) => ids.split(',').filter_map(address).collect(),
            None => vec![format!("{authority}:{PORT}")],
        }
    }

    /// The folder.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The default file system, where it is one of HDFS.
    pub fn default_file_system(&self) -> Option<&str> {
        let named = self.value(DEFAULT_FILE_SYSTEM)?;
        named.starts_with("hdfs://").then_some(named)
    }

    /// The blocks that a job wants, and what is configured of others.
    ///
    /// # Errors
    /// What is configured is not a number.
    pub fn blocks(&self, wanted: BlockSettings) -> Result<BlockSettings> {
        let (replication, bytes) = (self.value(REPLICATION), self.value(BLOCK_BYTES));
        let replication = replication.filter(|_| wanted.replication.is_none());
        let bytes = bytes.filter(|_| wanted.bytes.is_none());
        let count = |text: &str| text.parse().ok().filter(|copies| *copies > 0);
        let configured = BlockSettings {
            replication: replication
                .map(|text| count(text).ok_or_else(|| self.wrong(REPLICATION, text)))
                .transpose()?,
            bytes: bytes
                .map(|text| bytes_of(text).ok_or_else(|| self.wrong(BLOCK_BYTES, text)))
                .transpose()?,
        };
        Ok(BlockSettings {
            replication: wanted.replication.or(configured.replication),
            bytes: wanted.bytes.or(configured.bytes),
        })
    }

    fn wrong(&self, name: &str, text: &str) -> Error {
        let message = format!("{name} is {text:?} in Hadoop's configuration");
        let error = Error::new(Kind::BadOption, "create the output", message)
            .advise("write a number there, such as 2, or 128m for a size");
        match self.folder() {
            Some(folder) => error.with_path(folder),
            None => error,
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let read = self.read.get_or_init(|| {
            let folder = self.folder.iter();
            let files = folder.flat_map(|folder| FILES.map(|name| folder.join(name)));
            files.flat_map(|file| properties(&file)).collect()
        });
        read.get(name).map(String::as_str)
    }
}

/// The properties of a file; none of one that cannot be read, which the client says when it reads it itself.
fn properties(file: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let Ok(document) = Document::parse_with_options(&text, options) else {
        return Vec::new();
    };
    let given = document.root_element().children();
    let pairs = given.filter_map(|property| {
        let of = |name| {
            let child = property.children().find(|child| child.has_tag_name(name))?;
            Some(child.text()?.trim().to_owned())
        };
        Some((of("name")?, of("value")?))
    });
    pairs.collect()
}

/// A number of bytes as Hadoop reads it: 134217728, or 128m.
fn bytes_of(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let unit = UNITS.iter().find(|(letter, _)| lower.ends_with(*letter));
    let digits = match unit {
        Some(_) => &lower[..lower.len() - 1],
        None => &lower[..],
    };
    let number: u64 = digits.trim().parse().ok()?;
    let bytes = number.checked_mul(1 << unit.map_or(0, |(_, power)| *power))?;
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: Option<PathBuf>) -> HdfsSettings {
        HdfsSettings {
            folder,
            ..HdfsSettings::default()
        }
    }

    fn configured(core: &str, hdfs: &str) -> (tempfile::TempDir, HdfsSettings) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILES[0]), core).unwrap();
        fs::write(folder.path().join(FILES[1]), hdfs).unwrap();
        let settings = of(Some(folder.path().to_owned()));
        (folder, settings)
    }

    fn property(name: &str, value: &str) -> String {
        format!("<property><name> {name} </name><value>{value}</value></property>")
    }

    #[test]
    fn options_count_before_what_is_configured() {
        let core = [
            property(DEFAULT_FILE_SYSTEM, "hdfs://h:1"),
            property(REPLICATION, "3"),
        ];
        let (_folder, settings) = configured(
            &format!(
                "<?xml version=\"1.0\"?><!-- a --><configuration>{}</configuration>",
                core.concat()
            ),
            &format!(
                "<configuration>{}{}</configuration>",
                property(REPLICATION, "1"),
                property(BLOCK_BYTES, "128m")
            ),
        );
        assert_eq!(settings.default_file_system(), Some("hdfs://h:1"));
        let mut blocks = BlockSettings {
            replication: Some(1),
            bytes: Some(128 << 20),
        };
        assert_eq!(settings.blocks(BlockSettings::default()), Ok(blocks));
        blocks.bytes = Some(1 << 20);
        let wanted = BlockSettings {
            replication: None,
            ..blocks
        };
        assert_eq!(settings.blocks(wanted), Ok(blocks));
    }

    #[test]
    fn a_file_system_has_one_name_node_or_two() {
        let core = property(DEFAULT_FILE_SYSTEM, "hdfs://both/");
        let hdfs = [
            property("dfs.ha.namenodes.both", "a, b"),
            property("dfs.namenode.rpc-address.both.a", "h1:1"),
            property("dfs.namenode.rpc-address.both.b", "h2:2"),
        ];
        let of = |text: &str| format!("<configuration>{text}</configuration>");
        let (_folder, settings) = configured(&of(&core), &of(&hdfs.concat()));
        for (authority, wanted) in [
            ("", &["h1:1", "h2:2"][..]),
            ("both", &["h1:1", "h2:2"]),
            ("h:9", &["h:9"]),
            ("h", &["h:8020"]),
        ] {
            assert_eq!(settings.name_nodes(authority), wanted, "{authority}");
        }
        assert_eq!(HdfsSettings::default().name_nodes(""), [""; 0]);
        assert!(!settings.requires_authentication());
    }

    #[test]
    fn what_is_not_there_or_makes_no_sense() {
        let nothing = of(None);
        assert_eq!(
            nothing.blocks(BlockSettings::default()),
            Ok(BlockSettings::default())
        );
        assert_eq!(nothing.default_file_system(), None);
        let text = property(REPLICATION, "many");
        let (_folder, settings) = configured(
            &property(DEFAULT_FILE_SYSTEM, "file:///"),
            &format!("<configuration>{text}</configuration>"),
        );
        assert_eq!(settings.default_file_system(), None);
        let error = settings.blocks(BlockSettings::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::BadOption);
        let given = BlockSettings {
            replication: Some(2),
            bytes: None,
        };
        assert_eq!(settings.blocks(given), Ok(given));
        assert_eq!(
            (bytes_of("1G"), bytes_of("x"), bytes_of("0")),
            (Some(1 << 30), None, None)
        );
    }
}
