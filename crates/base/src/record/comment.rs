//! What lines of a table begin with that are comments: `#`, `//`, `§`.
//!
//! The rule that must hold: it has no quote, no end of a line and no delimiter of the table in it. So it lies in the first field of a
//! row, as it stands there.

use serde::{Deserialize, Serialize};

use super::BYTE_ORDER_MARK;

/// Bytes that a mark may have.
pub const COMMENT_BYTES_MAX: usize = 15;

/// What a comment begins with: one byte or some more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentMark {
    bytes: [u8; COMMENT_BYTES_MAX],
    length: u8,
}

impl CommentMark {
    /// These bytes; `None` where there are none, or too many.
    ///
    /// ```
    /// use gristmill_base::record::comment::CommentMark;
    /// assert_eq!(CommentMark::new(b"//").unwrap().as_bytes(), b"//");
    /// assert_eq!((CommentMark::new(b""), CommentMark::new(&[b'#'; 16])), (None, None));
    /// ```
    pub fn new(mark: &[u8]) -> Option<Self> {
        let mut bytes = [0; COMMENT_BYTES_MAX];
        bytes.get_mut(..mark.len())?.copy_from_slice(mark);
        (!mark.is_empty()).then_some(CommentMark {
            bytes,
            length: mark.len() as u8,
        })
    }

    /// Its bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        let length = usize::from(self.length);
        self.bytes.get(..length).unwrap_or_default()
    }
}

/// Whether a row is a comment: it begins with the mark, if it is first behind a byte order mark.
///
/// ```
/// use gristmill_base::record::comment::{CommentMark, is_comment};
/// let mark = CommentMark::new(b"#");
/// assert!(is_comment(b"\xef\xbb\xbf# a\n", mark, true));
/// assert!(!is_comment(b"\"#\",1\n", mark, false) && !is_comment(b"#\n", None, false));
/// ```
#[inline]
pub fn is_comment(row: &[u8], comment: Option<CommentMark>, is_first: bool) -> bool {
    let Some(comment) = comment else { return false };
    let marked = row.strip_prefix(BYTE_ORDER_MARK);
    let row = marked.filter(|_| is_first).unwrap_or(row);
    row.starts_with(comment.as_bytes())
}
