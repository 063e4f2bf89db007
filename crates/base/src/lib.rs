//! What every stage of Gristmill stands on; nothing here knows a store or a job.
//!
//! ```text
//!  names  error  sync  sys            how names are shown, what went wrong, locks, the system
//!  budget  record  order              memory, records, their orders
//!  value  aggregate                   keys and values of user code, reductions
//! ```
//!
//! Nothing here reads the environment.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Gristmill needs a target whose pointers have 64 bits: lengths and offsets of files are `usize` in memory"
);

pub mod aggregate;
pub mod budget;
pub mod error;
pub mod names;
pub mod order;
pub mod record;
pub mod sync;
pub mod sys;
pub mod value;

pub use error::{Error, Kind, Result};
