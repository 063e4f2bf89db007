//! A worker in Python for the tests, and what they ask of it.

mod faults;
mod pool;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;

/// A worker in Python whose tasks are Python: the protocol as this side sees it, with `definition` (bytes) and
/// `pulse(record, bytes_done, offset, file, beats)` at hand; `result` is sent back.
const WORKER: &str = r#"
import json, mmap, os, signal, struct, subprocess, sys, time
shared = mmap.mmap(int(sys.argv[-1]), 4096)
def pulse(*fields): shared[:40] = struct.pack("<5Q", *fields)
def frame(kind, payload): 
    data = kind + struct.pack("<I", len(payload)) + payload
    while data: data = data[os.write(1, data):]
def read(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more: sys.exit()
        data += more
    return data
definitions, received = {}, 0
if "silent" not in sys.argv: frame(b"H", b"test")
while True:
    kind, n = struct.unpack("<cI", read(5))
    payload = read(n)
    if kind == b"D":
        definitions[payload[:32]] = payload[32:]
        received += 1
    else:
        definition = definitions[payload[:32]]
        result = None
        exec(payload[32:].decode())
        frame(b"R", json.dumps(result).encode())
"#;

fn python() -> WorkerCommand {
    WorkerCommand::new("python3", "/tmp")
        .argument("-u")
        .argument("-c")
        .argument(WORKER)
}

fn definition(name: u8) -> WorkerDefinition {
    WorkerDefinition {
        key: [name; 32],
        bytes: vec![name; 3].into(),
    }
}

fn run_with(
    worker: &mut Leased,
    limits: WorkerLimits,
    stop: &AtomicBool,
    code: &str,
) -> Result<String, WorkerError> {
    let report = worker.run(&definition(1), code.as_bytes(), limits, stop, &mut |_| ())?;
    Ok(String::from_utf8(report).unwrap())
}

fn run(worker: &mut Leased, code: &str) -> Result<String, WorkerError> {
    run_with(
        worker,
        WorkerLimits::default(),
        &AtomicBool::new(false),
        code,
    )
}

fn lease(pool: &ProcessPool) -> Leased {
    pool.lease(&python(), &definition(1).key).unwrap()
}

/// Runs one task in a worker of its own.
fn try_task(limits: WorkerLimits, code: &str) -> Result<String, WorkerError> {
    let pool = ProcessPool::new(1);
    run_with(&mut lease(&pool), limits, &AtomicBool::new(false), code)
}

fn is_alive(pid: u32) -> bool {
    // A zombie is as good as gone for everybody but its parent, which looks for it elsewhere.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn is_there(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

fn within(longest: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < longest {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    holds()
}

const SOON: Duration = Duration::from_secs(10);
