//! `gristmill._core`: the engine as Python sees it.
//!
//! One file per operation; each converts its arguments, detaches from the interpreter, calls the
//! engine and wraps the result. The stubs, with the docstrings, are `python/gristmill/_core.pyi`.

mod attended;
mod cluster;
mod error;
mod files;
mod grep;
mod history;
mod job;
mod output;
mod probe;
mod pulse;
mod sealing;
mod stores;
mod tasks;
mod waits;
mod work;

use pyo3::prelude::*;

/// The native part of Gristmill.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::cluster::PyCluster;
    #[pymodule_export]
    use crate::files::{
        Listing, as_location, has_blocks, has_store, make_directory, matching, put_file,
        remove_object, remove_whole, rename, stat, store_kinds,
    };
    #[pymodule_export]
    use crate::grep::{Search, check_search, grep};
    #[pymodule_export]
    use crate::history::{History, clear_left, is_code_gone};
    #[pymodule_export]
    use crate::job::{
        Job, commands, explain, function_names, resumed_agents, user_code, why_not_resumed,
    };
    #[pymodule_export]
    use crate::output::check_output;
    #[pymodule_export]
    use crate::probe::{
        available_memory, default_memory, default_workers, device_floor, device_rates, shared_mount,
    };
    #[pymodule_export]
    use crate::pulse::{beat, pulse, pulse_open};
    #[pymodule_export]
    use crate::sealing::{PyUnsealer, seal};
    #[pymodule_export]
    use crate::stores::{
        RangeReader, block_places, default_file_system, default_spill_dir, exists, find_files,
        is_remote, set_ahead_bytes, store_options, use_store_options,
    };
    #[pymodule_export]
    use crate::tasks::{run_agent, run_tasks};
    #[pymodule_export]
    use crate::waits::{files_awaited, kill_children};
    #[pymodule_export]
    use crate::work::{
        CompressedReader, CompressedWriter, Emitter, Executor, Groups, LineReader, LineWriter,
        Values, check_outside, decode, decode_key, dismiss_workers, encode, encode_key,
        encode_order, plan_streaming, plan_text, prepare_worker, retry_scripts,
    };

    /// The version of the engine, which is that of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Whether this is an unoptimised build, which no measurement should be taken with.
    #[pymodule_export]
    const DEBUG_BUILD: bool = cfg!(debug_assertions);

    /// The commit that was built, with `+changes` if its sources differ; empty where it is not known.
    #[pymodule_export]
    const COMMIT: &str = env!("GRISTMILL_COMMIT");

    /// The profile of the build: release or debug.
    #[pymodule_export]
    const PROFILE: &str = env!("GRISTMILL_PROFILE");

    /// The platform that it was built for, as Rust names it.
    #[pymodule_export]
    const TARGET: &str = env!("GRISTMILL_TARGET");
}
