//! Every kind of job, and how a job of one of them is read from its options.
//!
//! ```text
//!   {"terasort": {"inputs": [...], "output": "...", "memory": "8G"}}
//!        │               │                              └──▶ Common
//!        └──▶ KINDS ──▶ the kind's own options ──▶ JobSpec ──▶ jobs::run, jobs::explain, resume
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::cp::CpSpec;
use super::distinct::DistinctSpec;
use super::environment::stores_of;
use super::group::GroupSpec;
use super::join::JoinSpec;
use super::kind::{Described, JobKind};
use super::mapreduce::{Mapreduce, NativeDefinition};
use super::matchcount::MatchcountSpec;
use super::resume::command::Resume;
use super::sample::RecordSampleSpec;
use super::shuf::ShufSpec;
use super::sort::SortSpec;
use super::split::SplitSpec;
use super::steps::{JobOutput, JobRequest};
use super::teragen::TeragenSpec;
use super::terasort::TerasortSpec;
use super::teravalidate::TeravalidateSpec;
use super::top::TopSpec;
use super::wordcount::WordcountSpec;
use crate::plan::table::{CommandOptions as _, CommandSpec, Common};
use crate::runner::On;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::spell;
use gristmill_storage::LocalDisk;
use gristmill_storage::location::{Location, parent_of};
use gristmill_storage::stores::Stores;
use gristmill_tasks::commit::{InPlace, default_spill_dir};
use gristmill_tasks::task::UserTaskExecutor;

/// What a file would be called, beside which files lie that go to a stream; there never is one of this name.
const COLLECTED: &str = "gristmill-output";

/// Every kind of job, in the order of the help.
const KINDS: &[Registered] = &[
    Registered::kind::<SortSpec>(),
    Registered::kind::<TeragenSpec>(),
    Registered::kind::<TerasortSpec>(),
    Registered::kind::<TeravalidateSpec>(),
    Registered::kind::<WordcountSpec>(),
    Registered::kind::<MatchcountSpec>(),
    Registered::kind::<DistinctSpec>(),
    Registered::kind::<GroupSpec>(),
    Registered::kind::<TopSpec>(),
    Registered::kind::<JoinSpec>(),
    Registered::kind::<RecordSampleSpec>(),
    Registered::kind::<ShufSpec>(),
    Registered::kind::<SplitSpec>(),
    Registered::kind::<CpSpec>(),
    Registered::kind::<Resume>(),
    Registered::kind::<Mapreduce>(),
];

/// Options as given, but for those of [`Common`].
type Own = Map<String, Value>;

/// A line of the registry.
struct Registered {
    command: CommandSpec,
    read: fn(Own) -> Result<Box<dyn JobKind>>,
}

impl Registered {
    const fn kind<K: Described + 'static>() -> Self {
        Registered {
            command: K::COMMAND,
            read: read::<K>,
        }
    }
}

fn read<K: Described + 'static>(options: Own) -> Result<Box<dyn JobKind>> {
    Ok(Box::new(deserialize::<K>(options)?))
}

/// The commands that are listed, with their options.
///
/// ```
/// let commands = gristmill_engine::jobs::commands();
/// assert!(commands.iter().any(|command| command.name == "terasort"));
/// ```
pub fn commands() -> Vec<&'static CommandSpec> {
    let all = KINDS.iter().map(|kind| &kind.command);
    all.filter(|command| !command.example.is_empty()).collect()
}

/// The command of user code, which is not listed: `gristmill run`, `gristmill streaming` and Python's `gm.Job` have its
/// options, beside their own.
pub fn user_code() -> &'static CommandSpec {
    const COMMAND: &CommandSpec = &Mapreduce::COMMAND;
    COMMAND
}

/// What runs the tasks of the job that `definition` describes, whose code is ours.
///
/// # Errors
/// The job is another one.
pub fn native_work(definition: &str, store: Arc<Stores>) -> Result<Arc<dyn UserTaskExecutor>> {
    let found = NativeDefinition::read(definition)?;
    let job = JobSpec::from_json(found.options.get())?;
    let work = job.kind.work(store, &found.tables, definition)?;
    work.ok_or_else(|| Error::bug("run a task", "the job has no code of its own"))
}

/// A job, as asked for.
#[derive(Debug)]
pub struct JobSpec {
    /// What was asked for, as JSON.
    pub(super) text: String,
    /// Its command, as reports and histories name it.
    pub(super) command: &'static str,
    pub(super) common: Common,
    pub(super) kind: Box<dyn JobKind>,
    /// Where what goes to a stream is put together, if other machines make it.
    collected: Option<Location>,
    spill: SpillChoice,
}

/// Who chose where runs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpillChoice {
    Given,
    /// Beside the output, or where the job was begun.
    Usual,
    /// A directory for what is temporary: no folder can be made in the usual one.
    Temporary,
}

impl JobSpec {
    /// Reads a job from JSON: an object with the command's name as its one key.
    ///
    /// # Errors
    /// There is no such command, an option has a wrong value, is missing, or is not one of the command's.
    ///
    /// ```
    /// use gristmill_engine::jobs::JobSpec;
    /// assert!(JobSpec::from_json(r#"{"terasort": {"inputs": ["a"], "output": "b", "memory": "8G"}}"#).is_ok());
    /// let error = JobSpec::from_json(r#"{"terasort": {"inputs": ["a"], "output": "b", "wings": 2}}"#).unwrap_err();
    /// assert!(error.to_string().contains("wings"));
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let job: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Error::bug("read the options", error.to_string()))?;
        let mut commands = job.into_iter();
        let (Some((name, Value::Object(given))), None) = (commands.next(), commands.next()) else {
            return Err(wrong("a job is one command with its options"));
        };
        let registered = KINDS.iter().find(|kind| kind.command.name == name);
        let registered =
            registered.ok_or_else(|| wrong(&format!("there is no command {name:?}")))?;
        let missing = registered
            .command
            .options()
            .find(|option| option.default.is_empty() && !given.contains_key(option.name));
        if let Some(missing) = missing {
            return Err(
                wrong(&format!("{}: it must be given", missing.name)).of_option(missing.name)
            );
        }
        let (common, own): (Map<_, _>, Map<_, _>) = given
            .into_iter()
            .partition(|(name, _)| registered.command.common.contains(&name.as_str()));
        let mut common: Common = deserialize(common)?;
        let spill = match common.spill_dir.is_empty() {
            true => SpillChoice::Usual,
            false => SpillChoice::Given,
        };
        let kind = (registered.read)(own)?;
        let output = kind.output().map(JobOutput::path);
        let is_remote = output.is_some_and(Location::is_remote);
        if is_remote && common.spill_dir.is_empty() {
            common.spill_dir.push(".".into()); // runs and the job's folder are on a local disk
        }
        Ok(JobSpec {
            text: text.to_owned(),
            command: kind.command().unwrap_or(registered.command.name),
            common,
            kind,
            collected: None,
            spill,
        })
    }

    /// What was asked for, whatever the kind of job.
    pub(super) fn asked(&self) -> JobRequest<'_> {
        JobRequest {
            command: self.command,
            common: &self.common,
            options: &self.text,
            spills_elsewhere: self.spill == SpillChoice::Temporary,
            output: self
                .collected
                .as_ref()
                .map(JobOutput::File)
                .or_else(|| self.kind.output()),
        }
    }

    /// The same job with a place for its runs, where it was begun in `directory`: where its output goes to a mount that several
    /// machines share, and the user has named no place, runs stay on the disk of this machine, if that directory is on one.
    /// Where they would go to that directory, and nothing can be made in it, they go to one for what is temporary.
    /// Where tasks on several machines write the output, its folder is there, too, and all paths are absolute. On a cluster that
    /// is all that is kept here: the places that the user named are those of the nodes.
    #[must_use]
    pub fn placed(mut self, stores: &Stores, directory: &Path) -> Self {
        let disk = &**stores.disk();
        if stores_of(stores, &self.common).shared_outputs().is_some() {
            if self.common.on != On::Local {
                self.common.spill_dir.clear();
            }
            if self.common.spill_dir.is_empty() {
                self.common.spill_dir.push(".".into());
            }
            let place = default_spill_dir(stores, directory);
            if self.common.spill_dir == [Path::new(".")] && place != directory {
                self.common.spill_dir = vec![place.clone()];
            }
            return match std::path::absolute(directory) {
                Ok(directory) => self.collected_in(&directory.join(place)).rooted(&directory),
                Err(_) => self,
            };
        }
        let output = self.kind.output().map(JobOutput::path);
        let parent = output.and_then(Location::local).map(parent_of);
        let is_shared = |path: &Path| disk.shared_mount(path).is_some();
        if self.common.spill_dir.is_empty()
            && parent.is_some_and(is_shared)
            && !is_shared(directory)
            && disk.may_write(directory)
        {
            self.common.spill_dir.push(directory.to_owned());
        }
        let is_remote = output.is_some_and(Location::is_remote);
        let is_in_place = self.writes_in_place(disk);
        if self.spill == SpillChoice::Usual
            && (is_remote || is_in_place || self.kind.writes_stream())
        {
            self.spill_elsewhere(default_spill_dir(stores, directory), directory);
        }
        if is_in_place && self.common.spill_dir.is_empty() {
            self.common.spill_dir.push(directory.to_owned());
        }
        // Scripts are told of it, and run in folders of their own.
        if self.kind.keeps_code()
            && self.common.spill_dir == [Path::new(".")]
            && let Ok(directory) = std::path::absolute(directory)
        {
            self.common.spill_dir = vec![directory];
        }
        self
    }

    /// Whether the output is a file that no new one can take the place of.
    fn writes_in_place(&self, disk: &dyn LocalDisk) -> bool {
        let Some(JobOutput::File(target)) = self.kind.output() else {
            return false;
        };
        let path = target.local();
        path.is_some_and(|path| matches!(InPlace::is_needed(disk, path), Ok(true)))
    }

    /// Has runs go to `place`, unless that is the usual directory; the job's options say so from then on.
    fn spill_elsewhere(&mut self, place: PathBuf, usual: &Path) {
        if place == usual {
            return;
        }
        if let Ok(Value::Object(mut job)) = serde_json::from_str(&self.text)
            && let Some(Value::Object(options)) = job.values_mut().next()
        {
            options.insert("spill_dir".to_owned(), spell(&place).into());
            self.text = Value::Object(job).to_string();
        }
        self.common.spill_dir = vec![place];
        self.spill = SpillChoice::Temporary;
    }

    /// The job's options, as JSON: with the place for its runs, where that is not the usual one.
    pub fn options(&self) -> &str {
        &self.text
    }

    /// The same job, but what would go to a stream is collected in `directory` first, if other machines make it.
    fn collected_in(mut self, directory: &Path) -> Self {
        if self.common.on != On::Local && self.kind.writes_stream() {
            self.collected = Some(directory.join(COLLECTED).into());
            (self.common.collect, self.common.no_sync) = (true, true);
        }
        self
    }

    /// The same job with absolute paths, where `directory` is the one that it was asked for in.
    #[must_use]
    pub fn rooted(mut self, directory: &Path) -> Self {
        self.kind.root(directory);
        self.common.root(directory);
        self
    }
}

fn deserialize<T: DeserializeOwned>(options: Map<String, Value>) -> Result<T> {
    serde_path_to_error::deserialize(Value::Object(options)).map_err(|error| {
        let path = error.path().to_string();
        let option = path.rsplit('.').next().unwrap_or_default();
        wrong(&format!("{option}: {}", error.inner())).of_option(option)
    })
}

fn wrong(message: &str) -> Error {
    Error::new(Kind::BadOption, "read the options", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::table::ValueKind;
    use gristmill_base::error::JobOption;

    /// A value that an option of this kind takes.
    fn value_of(name: &str, kind: ValueKind) -> Value {
        match kind {
            ValueKind::Flag => serde_json::json!(true),
            ValueKind::Count => serde_json::json!(3),
            ValueKind::Bytes => serde_json::json!("1G"),
            ValueKind::Rows => serde_json::json!("5k"),
            ValueKind::Number => serde_json::json!("0.5"),
            ValueKind::Choice(words) => serde_json::json!(words[0]),
            ValueKind::Pairs => serde_json::json!({"region": "x"}),
            ValueKind::Text if name == "format" => serde_json::json!("lines"),
            ValueKind::Text if name == "rounds" => serde_json::json!("4,5,4"),
            ValueKind::Path | ValueKind::Text => serde_json::json!("x"),
            ValueKind::TextList => serde_json::json!(["x"]),
            ValueKind::Paths | ValueKind::PathList => serde_json::json!(["x", "y"]),
        }
    }

    /// Every option of the table is taken by its command, and no other; those without a default must be given.
    #[test]
    fn each_command_takes_the_options_of_the_table_and_no_others() {
        let parse = |name: &str, given: &Map<String, Value>| {
            JobSpec::from_json(&serde_json::json!({ name: given }).to_string())
        };
        for command in commands() {
            let given: Map<String, Value> = command
                .options()
                .map(|option| (option.name.to_owned(), value_of(option.name, option.kind)))
                .collect();
            let spec = parse(command.name, &given).unwrap();
            assert_eq!(spec.command, command.name);
            for option in command.options() {
                let mut without = given.clone();
                without.remove(option.name);
                let refused = parse(command.name, &without).is_err();
                assert_eq!(refused, option.default.is_empty(), "{}", option.name);
            }
            for other in Common::OPTIONS.iter().map(|option| option.name) {
                if command.own.iter().any(|own| own.name == other) {
                    continue; // it means something else there
                }
                let mut more = given.clone();
                more.entry(other).or_insert(Value::Null);
                let refused = parse(command.name, &more).is_err();
                assert_eq!(refused, !command.common.contains(&other), "{other}");
            }
        }
    }

    #[test]
    fn common_options_have_the_names_that_commands_use() {
        for command in KINDS.iter().map(|kind| &kind.command) {
            let found = command.options().count();
            assert_eq!(
                found,
                command.own.len() + command.common.len(),
                "{}",
                command.name
            );
        }
    }

    /// Those of user code alone are not in the table: `gristmill run` defines them.
    #[test]
    fn options_that_errors_advise_are_in_the_table() {
        let ours = [JobOption::Timeout, JobOption::WorkerMemory];
        for advised in JobOption::ALL {
            let commands = commands();
            let mut options = commands.iter().flat_map(|command| command.options());
            let found = options.find(|option| option.name == advised.name());
            let is_flag = found.map(|option| option.kind == ValueKind::Flag);
            let expected = (!ours.contains(&advised)).then_some(advised.is_flag());
            assert_eq!(is_flag, expected, "{advised:?}");
        }
    }
}
