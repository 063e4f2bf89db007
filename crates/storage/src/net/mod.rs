//! Requests over HTTP: sent, counted, trusted, and ended when a job ends.

pub mod http_client;
pub mod per_process;
pub mod requests;
pub mod stop;
pub mod trust;
pub mod waiting;
