//! Compressed data in a stream: streams are not decoded, and lines of such bytes are of no use to anybody.

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::codec::{Codec, SNIFF_BYTES};

/// The first bytes of a stream, which may come one by one.
#[derive(Debug, Default)]
pub struct FirstBytes {
    seen: Vec<u8>,
    looked: bool,
}

impl FirstBytes {
    /// They were looked at by somebody else.
    pub(super) fn pass(&mut self) {
        self.looked = true;
    }

    /// Looks at what comes next of the stream of this name.
    ///
    /// # Errors
    /// It is compressed.
    pub fn look(&mut self, bytes: &[u8], name: &str) -> Result<()> {
        if self.looked || bytes.is_empty() {
            return Ok(());
        }
        let wanted = SNIFF_BYTES - self.seen.len();
        self.seen.extend(bytes.iter().take(wanted));
        self.looked = self.seen.len() == SNIFF_BYTES;
        let Some(codec) = Codec::by_magic(&self.seen) else {
            return Ok(());
        };
        let message = format!("it is compressed ({codec}), and streams are read as they are");
        let error = Error::new(Kind::BadInput, "read the input", message).with("file", name);
        Err(error.advise(match codec {
            Codec::Snappy => "name the file, which is decoded then".to_owned(),
            _ => format!(
                "name the file, which is decoded then, or decode the stream: {codec} -dc | gristmill sort"
            ),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_streams_are_told_however_their_bytes_come() {
        let packed = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4];
        for step in 1..9 {
            let mut first = FirstBytes::default();
            let mut looks = packed.chunks(step).map(|some| first.look(some, "pipe"));
            let error = looks.find_map(Result::err).unwrap().to_string();
            assert!(error.contains("it is compressed (xz)"), "{error}");
        }
        let mut first = FirstBytes::default();
        first.look(b"0123456789abcdef", "pipe").unwrap();
        first.look(&packed, "pipe").unwrap();
    }
}
