//! How bytes come from files and go to them: past the page cache, with threads that read ahead and write behind, as streams.

pub mod at_once;
pub mod crc;
pub mod direct;
pub mod overlap;
pub mod probe;
pub mod read_ahead;
pub mod sequential;
pub mod stream;
pub mod window;
