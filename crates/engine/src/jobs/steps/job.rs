//! A job under way: what it was given, what it may use, what is kept and reported of it.

use std::cell::OnceCell;
use std::time::Instant;

use super::job_request::{JobOutput, JobRequest};
use super::replayed::ReplayedHistory;
use crate::history::event::Event;
use crate::jobs::environment::Environment;
use crate::jobs::monitor::JobMonitor;
use crate::jobs::report::JobReport;
use crate::plan;
use crate::plan::amount::check_count;
use crate::plan::files::{RUNS_MAX, fewer_workers, runs_at_once, workers_within};
use crate::plan::shuffle::JobShuffle;
use crate::plan::table::Common;
use crate::runner::nodes::Nodes;
use crate::runner::phases::PhaseClock;
use crate::runner::threads::Threads;
use crate::runner::tree::ResourceUsage;
use crate::runner::usage::PeakMemory;
use crate::runner::{Cluster, Control, On, Runner, StageProgress};
use gristmill_base::budget::{Budget, JobMemory, ProcessOwner, available_bytes};
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::sys::available::{MapLimit, tightest_limit};
use gristmill_base::sys::descriptors::open_files;
use gristmill_base::sys::memory::resident_bytes;
use gristmill_base::sys::usage::counts_device_bytes;
use gristmill_storage::hdfs::BlockSettings;
use gristmill_storage::input::InputFile;
use gristmill_storage::location::Location;
use gristmill_storage::net::requests::RequestCounts;
use gristmill_storage::objects::part_bytes;
use gristmill_storage::objects::part_uploader::PARTS_AT_ONCE;
use gristmill_storage::stores::Stores;
use gristmill_tasks::commit::Ownership;

/// What a process that resumes the job may hold beside: it plans with what the first one held. So little that 15 MB
/// still are enough for two workers.
const RESUMED_BYTES: u64 = 128 << 10;

/// Most copies of a block: HDFS counts them so.
const COPIES_MAX: usize = i16::MAX as usize;

/// A job under way.
pub(in crate::jobs) struct RunningJob<'a> {
    pub(in crate::jobs) environment: &'a Environment,
    pub(in crate::jobs) asked: JobRequest<'a>,
    pub(in crate::jobs) common: &'a Common,
    pub(in crate::jobs) control: &'a Control,
    pub(in crate::jobs) runner: Box<dyn Runner>,
    pub(in crate::jobs) workers: usize,
    /// The nodes that the plan is made for; 1 on one machine.
    pub(in crate::jobs) nodes: usize,
    pub(in crate::jobs) memory_bytes: u64,
    /// What the process held when the job began.
    began_bytes: u64,
    /// What the runner's processes hold.
    pub(in crate::jobs) runner_bytes: u64,
    /// The memory to plan with, once it is asked for.
    room: OnceCell<JobMemory>,
    /// How many runs each worker may read at once.
    pub(in crate::jobs) runs_at_once: usize,
    began: Instant,
    used_before: ResourceUsage,
    requests_before: RequestCounts,
    pub(in crate::jobs) clock: PhaseClock<'a>,
    pub(super) peak: PeakMemory,
    pub(in crate::jobs) watched: &'a JobMonitor,
    /// The limit of the process that the budget follows from, if none was given.
    limit: Option<MapLimit>,
    /// What is known of the job, if another process began it.
    pub(in crate::jobs) resumed: Option<&'a ReplayedHistory>,
    /// Whether what is there goes with the job.
    pub(super) ownership: Ownership,
    /// How often tasks have begun to run.
    pub(super) rounds: u32,
    /// A file that tasks write to, where the job publishes no output: nodes are to see its directory.
    pub(in crate::jobs) writes_to: Option<Location>,
    pub(in crate::jobs) report: JobReport,
}

impl<'a> RunningJob<'a> {
    pub(in crate::jobs) fn new(
        environment: &'a Environment,
        asked: JobRequest<'a>,
        control: &'a Control,
        watched: &'a JobMonitor,
        resumed: Option<&'a ReplayedHistory>,
    ) -> Self {
        RunningJob {
            environment,
            asked,
            common: asked.common,
            control,
            runner: Box::new(Threads),
            workers: 0,
            nodes: 1,
            memory_bytes: 0,
            began_bytes: resident_bytes().0,
            runner_bytes: 0,
            room: OnceCell::new(),
            runs_at_once: RUNS_MAX,
            began: Instant::now(),
            used_before: watched.tree().used(),
            requests_before: environment.store.requests().counts(),
            clock: PhaseClock::new(watched.tree(), watched.recorder()),
            peak: PeakMemory::of_job(watched.has_processes()),
            watched,
            limit: None,
            resumed,
            ownership: match resumed {
                Some(_) => Ownership::of_resumed_job(&environment.job_id),
                None => Ownership::of_new_job(&environment.job_id),
            },
            rounds: 0,
            writes_to: None,
            report: JobReport::new(&environment.job_id, asked.command),
        }
    }

    /// Whether what is there goes with the job.
    pub(in crate::jobs) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Takes over what a dead job left, if it resumes one.
    pub(in crate::jobs) fn takes_over(&self) {
        self.ownership.take_over();
        self.watched.recorder().take_over();
    }

    /// The report of the job, which ended so.
    pub(in crate::jobs) fn over(mut self, outcome: Result<()>) -> JobReport {
        self.clock.end();
        self.peak.look();
        self.count_requests();
        let nodes = self.runner.nodes();
        if let Some(nodes) = &nodes {
            self.count_nodes(nodes);
            let loss = nodes.loss().filter(|_| outcome.is_ok()); // else the error says it
            self.report.warnings.extend(loss);
        }
        let (mut report, before) = (self.report, self.used_before);
        let of_nodes = nodes.as_ref().map(|nodes| nodes.used()).unwrap_or_default();
        let used = self.watched.tree().used();
        report.finish(outcome);
        report.phases = self.clock.phases().to_vec();
        report.wall_s = self.began.elapsed().as_secs_f64();
        let moved = report.input_bytes.max(report.output_bytes) as f64;
        report.bytes_per_s = moved / report.wall_s.max(1e-9);
        report.user_s = used.user_s - before.user_s + of_nodes.user_s;
        report.sys_s = used.sys_s - before.sys_s + of_nodes.sys_s;
        report.peak_anon_bytes = if nodes.is_some() {
            self.runner.peak_bytes() // the budget is the agents'
        } else {
            self.peak.anonymous_bytes()
        };
        report.peak_mapped_bytes = self.peak.mapped_bytes();
        if counts_device_bytes() {
            let read_bytes = used.read_bytes - before.read_bytes + of_nodes.read_bytes;
            report.count("DEVICE_BYTES_READ", read_bytes);
        }
        let cpu_ms = ((report.user_s + report.sys_s) * 1000.0) as u64;
        report.count("CPU_MILLISECONDS", cpu_ms);
        report
    }

    /// Counts what stores were asked, by the names that Hadoop has for it. Of a store that had too many requests the user hears.
    fn count_requests(&mut self) {
        let counts = self.store().requests().counts();
        let counts = counts.since(self.requests_before);
        for (name, count) in [
            ("STORE_IO_REQUEST", counts.sent),
            ("STORE_IO_RETRY", counts.retried),
            ("STORE_IO_THROTTLED", counts.throttled),
        ] {
            if count > 0 {
                self.report.count(name, count);
            }
        }
        if counts.throttled > 0 {
            self.report.warnings.push(format!(
                "the store had too many requests: it refused {} of {} for a while (503, 429, or a busy name node), and they were sent again \
                 later",
                counts.throttled, counts.sent
            ));
        }
    }

    /// Counts what was done on the nodes of a cluster, and records which of them read from which.
    fn count_nodes(&mut self, nodes: &Nodes) {
        for (name, count) in nodes.counters() {
            self.report.count(name, count);
        }
        let read = nodes.reads();
        if !read.is_empty() {
            self.watched.recorder().record(Event::RunsRead { read });
        }
    }

    pub(in crate::jobs) fn store(&self) -> &'a Stores {
        &self.environment.store
    }

    /// Resolves what was given about the runner, workers and memory.
    pub(in crate::jobs) fn resolve(&mut self) -> Result<()> {
        self.check_blocks()?;
        self.common.shuffle_options().check()?;
        self.runner = self.environment.runner(self.common, &self.ownership)?;
        let cluster = self.cluster();
        let (workers, memory) = (self.common.workers, self.common.memory);
        match self.resumed.and_then(|replayed| replayed.began.as_ref()) {
            // As the first time: the plan follows from them.
            Some(began) => {
                self.workers = plan::sort::workers(Some(began.workers))?;
                self.nodes = began.nodes.unwrap_or(1);
                self.memory_bytes = began.memory_bytes;
                self.runs_at_once = began.runs_at_once.unwrap_or(RUNS_MAX);
                self.room = OnceCell::from(JobMemory {
                    budget_bytes: began.memory_bytes,
                    held_bytes: began.held_bytes,
                });
            }
            None if cluster.is_some() => {
                self.workers = cluster.map_or(0, Cluster::workers);
                self.nodes = cluster.map_or(1, |cluster| cluster.agents.len().max(1));
                let available = cluster.map(Cluster::available_bytes);
                self.memory_bytes = plan::sort::memory(memory, available);
                self.runner_bytes = self.runner.held_bytes(self.workers)?;
            }
            None => {
                self.workers = self.workers_within(plan::sort::workers(workers)?)?;
                let available = available_bytes();
                self.memory_bytes = plan::sort::memory(memory, available);
                self.limit = tightest_limit().filter(|limit| {
                    memory.is_none()
                        && available.is_some_and(|bytes| bytes >= limit.free_bytes() / 10 * 9)
                });
                self.runner_bytes = self.runner.held_bytes(self.workers)?;
            }
        }
        self.report.workers = self.workers;
        self.report.memory_bytes = self.memory_bytes;
        Ok(())
    }

    /// What is said of its shuffle, and where it runs.
    pub(in crate::jobs) fn shuffle(&self) -> JobShuffle {
        JobShuffle {
            options: self.common.shuffle_options(),
            nodes: self.nodes,
            workers: self.workers,
        }
    }

    /// Whether runs that fit may stay in the memory of nodes: a round of a shuffle would hold them twice.
    pub(in crate::jobs) fn keeps_runs_on_nodes(&self) -> bool {
        self.cluster().is_some() && !self.common.shuffle_options().has_rounds()
    }

    /// Whether what fits may be sorted in memory: tasks share it, and nobody asks for rounds of a shuffle.
    pub(in crate::jobs) fn sorts_in_memory(&self) -> bool {
        self.runner.shares_memory() && !self.common.shuffle_options().has_rounds()
    }

    /// As many of the workers as the limit of open files leaves room for; what of it each may use for runs is noted.
    fn workers_within(&mut self, wanted: usize) -> Result<usize> {
        let limit = open_files();
        let workers = workers_within(limit, wanted)?;
        if let Some(limit) = limit.filter(|_| workers < wanted) {
            let said = fewer_workers(limit, wanted, workers);
            self.report.warnings.push(said);
        }
        self.runs_at_once = runs_at_once(limit, workers);
        Ok(workers)
    }

    /// The same error, which names the limit of the process that left too little memory.
    pub(in crate::jobs) fn under_limit(&self, error: Error) -> Error {
        let (Some(limit), Some(needed)) = (self.limit, error.details.needed_bytes) else {
            return error;
        };
        let raised = limit.raised_by(plan::sort::available_for(needed));
        let command = limit.command;
        error
            .with("limit", format!("{command} {}", limit.bytes / 1024))
            .advise_options(
                format!("raise the limit: `{raised}` or more; or give fewer {{}}"),
                [JobOption::Workers.named()],
            )
    }

    /// The agents that tasks run in, if they do.
    pub(in crate::jobs) fn cluster(&self) -> Option<&'a Cluster> {
        let cluster = self.environment.cluster.as_deref();
        cluster.filter(|_| self.common.on != On::Local)
    }

    /// Fails where blocks of the output are asked for that it cannot have.
    fn check_blocks(&self) -> Result<()> {
        let blocks = self.common.blocks();
        check_count("replication", self.common.replication, COPIES_MAX)?;
        let given = match blocks {
            BlockSettings {
                replication: Some(_),
                ..
            } => "replication",
            BlockSettings { bytes: Some(_), .. } => "block_size",
            _ => return Ok(()),
        };
        let output = self.asked.output.map(JobOutput::path);
        if output.is_some_and(|path| self.store().has_blocks(path)) {
            return blocks.check();
        }
        let message = format!("{given} is of outputs in HDFS, and this output is not there");
        Err(Error::new(Kind::BadOption, "read the options", message)
            .of_option(given)
            .advise("leave it out, or name an output such as hdfs://HOST:PORT/PATH"))
    }

    /// The budget, and what the process holds of it when this is first asked, which is once the input is known: the names
    /// of many files are memory, too, and are written to the history.
    pub(in crate::jobs) fn room_for(&self, files: &[InputFile]) -> JobMemory {
        *self.room.get_or_init(|| {
            let process = self.environment.process;
            let held_bytes = match process {
                _ if self.cluster().is_some() => self.runner_bytes + self.lists_bytes(files),
                ProcessOwner::Shared => 0,
                _ => {
                    process.held_bytes(self.began_bytes)
                        + RESUMED_BYTES
                        + self.runner_bytes
                        + self.lists_bytes(files)
                }
            };
            JobMemory {
                budget_bytes: self.memory_bytes,
                held_bytes: held_bytes + self.upload_bytes(files) + self.compression_bytes(),
            }
        })
    }

    /// The same of a job without files, or whose files are known.
    pub(in crate::jobs) fn room(&self) -> JobMemory {
        self.room_for(&[])
    }

    pub(in crate::jobs) fn budget(&self) -> Budget {
        Budget::of(self.room())
    }

    /// What workers hold to compress runs, and to read them.
    pub(super) fn compression_bytes(&self) -> u64 {
        self.workers as u64 * self.common.compress_runs.worker_bytes()
    }

    /// What workers hold of parts that they upload to another place than a directory: each the one that it fills, and those
    /// on their way.
    fn upload_bytes(&self, files: &[InputFile]) -> u64 {
        let output = self.asked.output.map(JobOutput::path);
        if !output.is_some_and(|path| path.is_remote() && self.store().publisher(path).is_some()) {
            return 0;
        }
        self.workers as u64 * (part_of(files) + self.parts_bytes(files))
    }

    /// What a worker has for parts on their way: of all workers together, at most a sixteenth of the memory, in whole parts. So
    /// the plan knows of it, and no task takes memory that another one needs.
    pub(in crate::jobs) fn parts_bytes(&self, files: &[InputFile]) -> u64 {
        let output = self.asked.output.map(JobOutput::path);
        if !output.is_some_and(|path| self.store().sends_parts(path)) {
            return 0;
        }
        let part = part_of(files);
        let parts = self.memory_bytes / 16 / (self.workers as u64 * part);
        parts.min(PARTS_AT_ONCE) * part
    }

    /// What each worker has beside `worker_bytes`, where all have those.
    pub(in crate::jobs) fn bytes_beside(&self, worker_bytes: u64, files: &[InputFile]) -> u64 {
        let share = self.room_for(files).free_bytes() / self.workers as u64;
        share.saturating_sub(worker_bytes)
    }

    /// What the driver and each worker process make of a list of files while the job runs: the history's line of them,
    /// splits, a second list to try again. 100,000 files with names of 17 bytes took 340 bytes each.
    fn lists_bytes(&self, files: &[InputFile]) -> u64 {
        let processes = if self.runner.shares_memory() {
            1
        } else {
            1 + self.workers as u64
        };
        let of_file = |file: &InputFile| 320 + 4 * file.path.as_typed().as_os_str().len() as u64;
        processes * files.iter().map(of_file).sum::<u64>()
    }

    /// Fails with the numbers if so much memory for each worker is more than the budget.
    pub(in crate::jobs) fn check_worker_memory(&self, worker_bytes: u64) -> Result<()> {
        let needed = self.room().held_bytes + worker_bytes * self.workers as u64;
        if needed <= self.memory_bytes {
            return Ok(());
        }
        let message = format!(
            "{} workers need {} each, and the memory budget is {}",
            self.workers,
            show_bytes(worker_bytes),
            show_bytes(self.memory_bytes)
        );
        Err(Error::new(Kind::Memory, "start the job", message)
            .advise_options("give {} or more", [JobOption::Memory.at_least(needed)]))
    }

    /// Begins a phase that is no stage of tasks.
    pub(in crate::jobs) fn begin_phase(&mut self, name: &'static str) {
        self.clock.begin(name, 0, 1);
        self.watched.recorder().record(Event::PhaseStarted {
            name: name.to_owned(),
            tasks: 0,
            bytes: 0,
            kept: 0,
        });
        let index = self.control.progress().index + 1;
        self.control.set_progress(StageProgress {
            name,
            index,
            ..StageProgress::default()
        });
    }

    /// Begins the phase in which the output gets its name: from here on the job does not wait for tasks.
    pub(in crate::jobs) fn begin_commit(&mut self) -> Result<()> {
        if !self.clock.is_in("commit") {
            self.begin_phase("commit");
        }
        self.check_cancelled()
    }

    /// Fails if the user has asked the job to end: for the stretches between tasks.
    pub(in crate::jobs) fn check_cancelled(&self) -> Result<()> {
        if self.control.is_cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }
}

/// Bytes of a part of an output that is as long as the input.
fn part_of(files: &[InputFile]) -> u64 {
    part_bytes(files.iter().map(|file| file.stat.bytes).sum())
}
