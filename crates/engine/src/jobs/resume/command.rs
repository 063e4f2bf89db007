//! The command `resume`.

use crate::jobs::kind::{Described, JobKind};
use crate::jobs::steps::RunningJob;
use crate::plan::table::{CommandSpec, argument, options};
use gristmill_base::error::{Error, Result};

options! {
    /// What `resume` is given.
    pub(in crate::jobs) struct Resume {
        job_id: String = argument(
            "The job's name, a part of it that no other job has, or last; `gristmill jobs` lists them.",
        ),
    }
}

impl Described for Resume {
    const COMMAND: CommandSpec = CommandSpec {
        name: "resume",
        function: None,
        help: "Resume a job whose process was killed: finished tasks are kept, and the output is the same, byte for byte, as without the interruption.",
        details: "Gristmill reads the job from its history in `$GRISTMILL_HOME`. The job runs with its first options, in its first directory. If it has user code, it runs the code as it was then. A job of a chain is resumed with its chain.",
        example: "gristmill resume last",
        python: r#"
>>> import os, tempfile, gristmill
>>> with tempfile.TemporaryDirectory() as home:
...     os.environ["GRISTMILL_HOME"] = home
...     made = gristmill.teragen("1k", f"{home}/data", history=True)
...     try:
...         gristmill.resume("last")
...     except ValueError as error:
...         print(str(error).partition(". ")[0])
cannot resume a job: no job can be resumed
"#,
        explained: false,
        own: Self::OPTIONS,
        common: &[],
    };
}

impl JobKind for Resume {
    fn run(&self, _job: &mut RunningJob<'_>) -> Result<()> {
        Err(Error::bug("run a job", "a job that resumes itself"))
    }

    fn resumes(&self) -> Option<&str> {
        Some(&self.job_id)
    }
}
