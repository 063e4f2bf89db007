//! Order: entries (what is sorted instead of records), cut points (where output is divided), and the kernels
//! that distribute and sort entries.

pub mod borders;
pub mod check;
pub mod compact;
mod counted;
pub mod cuts;
pub mod entry;
pub mod lines;
pub mod packed;
pub mod placed;
pub mod refine;
pub mod scatter;
pub mod sort;

pub use cuts::{Classifier, CutPoints};
pub use entry::Entry;
