//! Advice: what a person can do about an error. It may name options of the job, which the command line and the Python
//! functions spell differently: it names them as values, and whoever shows the error spells them.
//!
//! ```text
//!   "give {} to replace it", Overwrite  ──Spelling::CommandLine──▶  give --overwrite to replace it
//!                                       ──Spelling::Python───────▶  give overwrite=True to replace it
//! ```

use serde::{Deserialize, Serialize};

/// Who reads an error, and knows options by these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// As on the command line: `--memory 2G`.
    #[default]
    CommandLine,
    /// As keyword arguments of the Python functions: `memory="2G"`.
    Python,
}

/// An option of a job that advice may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOption {
    /// Most memory of the job.
    Memory,
    /// How many tasks run at once.
    Workers,
    /// Where runs go.
    SpillDir,
    /// Whether an output is replaced.
    Overwrite,
    /// The longest that user code may take for a record.
    Timeout,
    /// Most memory of a process with user code.
    WorkerMemory,
    /// How many rows may be left out that cannot be read.
    SkipBad,
    /// Whether the input is a table with commas.
    Csv,
    /// Whether it is a table with tabs.
    Tsv,
}

impl JobOption {
    /// All of them.
    pub const ALL: [JobOption; 9] = [
        JobOption::Memory,
        JobOption::Workers,
        JobOption::SpillDir,
        JobOption::Overwrite,
        JobOption::Timeout,
        JobOption::WorkerMemory,
        JobOption::SkipBad,
        JobOption::Csv,
        JobOption::Tsv,
    ];

    /// Its name: that of the keyword argument.
    pub fn name(self) -> &'static str {
        match self {
            JobOption::Memory => "memory",
            JobOption::Workers => "workers",
            JobOption::SpillDir => "spill_dir",
            JobOption::Overwrite => "overwrite",
            JobOption::Timeout => "timeout_s",
            JobOption::WorkerMemory => "worker_memory",
            JobOption::SkipBad => "skip_bad",
            JobOption::Csv => "csv",
            JobOption::Tsv => "tsv",
        }
    }

    /// Whether it is given or not, without a value.
    pub fn is_flag(self) -> bool {
        matches!(self, JobOption::Overwrite | JobOption::Csv | JobOption::Tsv)
    }

    /// The option without a value, as in "fewer workers".
    pub fn named(self) -> NamedOption {
        NamedOption {
            option: self,
            value: None,
        }
    }

    /// The option with a count, as `--workers 4`.
    pub fn count(self, count: u64) -> NamedOption {
        NamedOption {
            option: self,
            value: Some(AdvisedAmount::Count(count)),
        }
    }

    /// The option with a size in whole megabytes, at least so many bytes.
    ///
    /// ```
    /// use gristmill_base::error::{JobOption, Spelling};
    /// let given = JobOption::Memory.at_least(1_000_001);
    /// assert_eq!(given.spelled(Spelling::CommandLine), "--memory 2M");
    /// assert_eq!(given.spelled(Spelling::Python), "memory=\"2M\"");
    /// ```
    pub fn at_least(self, bytes: u64) -> NamedOption {
        NamedOption {
            option: self,
            value: Some(AdvisedAmount::Megabytes(bytes.div_ceil(1_000_000))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AdvisedAmount {
    Count(u64),
    Megabytes(u64),
}

/// An option as advice names it, with a value or without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedOption {
    option: JobOption,
    value: Option<AdvisedAmount>,
}

impl NamedOption {
    /// The option as it is to be typed.
    pub fn spelled(&self, spelling: Spelling) -> String {
        let name = self.option.name();
        let dashed = || {
            format!(
                "--{}",
                name.strip_suffix("_s").unwrap_or(name).replace('_', "-")
            )
        };
        match (spelling, &self.value) {
            (Spelling::CommandLine, None) => dashed(),
            (Spelling::CommandLine, Some(AdvisedAmount::Count(count))) => {
                format!("{} {count}", dashed())
            }
            (Spelling::CommandLine, Some(AdvisedAmount::Megabytes(size))) => {
                format!("{} {size}M", dashed())
            }
            (Spelling::Python, None) if self.option.is_flag() => format!("{name}=True"),
            (Spelling::Python, None) => name.to_owned(),
            (Spelling::Python, Some(AdvisedAmount::Count(count))) => format!("{name}={count}"),
            (Spelling::Python, Some(AdvisedAmount::Megabytes(size))) => {
                format!("{name}=\"{size}M\"")
            }
        }
    }
}

/// What to do: a text, in which `{}` stands for each option in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    text: String,
    options: Vec<NamedOption>,
}

impl Advice {
    pub(super) fn new(text: String, options: Vec<NamedOption>) -> Self {
        debug_assert!(options.is_empty() || text.matches(HOLE).count() == options.len());
        Advice { text, options }
    }

    /// The advice as that reader understands it.
    pub fn spelled(&self, spelling: Spelling) -> String {
        let mut options = self.options.iter();
        let mut pieces = self.text.splitn(self.options.len() + 1, HOLE);
        let mut spelled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            spelled.extend(options.next().map(|option| option.spelled(spelling)));
            spelled.push_str(piece);
        }
        spelled
    }
}

const HOLE: &str = "{}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};

    #[test]
    fn options_are_spelled_for_those_who_read() {
        let error = Error::new(Kind::Memory, "sort", "it is too small").advise_options(
            "give {} or {}, or {}, add a {}, {} or {}",
            [
                JobOption::Memory.at_least(64_000_000),
                JobOption::Workers.count(1),
                JobOption::Overwrite.named(),
                JobOption::SpillDir.named(),
                JobOption::Timeout.named(),
                JobOption::WorkerMemory.named(),
            ],
        );
        assert_eq!(
            error.to_string(),
            "cannot sort: it is too small. What to do: give --memory 64M or --workers 1, or --overwrite, add a \
             --spill-dir, --timeout or --worker-memory."
        );
        assert_eq!(
            error.spelled(Spelling::Python),
            "cannot sort: it is too small. What to do: give memory=\"64M\" or workers=1, or overwrite=True, add a \
             spill_dir, timeout_s or worker_memory."
        );
    }

    #[test]
    fn text_without_options_is_left_as_it_is() {
        let error = Error::new(Kind::BadInput, "read", "no").advise("run f --overwrite {}");
        assert!(
            error
                .spelled(Spelling::Python)
                .ends_with("run f --overwrite {}.")
        );
    }
}
