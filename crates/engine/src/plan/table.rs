//! The table of commands: each option defined once, with its help, its default and its name in the environment. The
//! command line, its help, the Python functions and the names in the environment follow from [`COMMANDS`]; what was
//! given comes back as a [`JobSpec`](super::JobSpec).

use serde::Serialize;

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Given or not.
    Flag,
    /// A whole number from 1 on.
    Count,
    /// A size, such as 8G.
    Bytes,
    /// A number of rows, such as 10m.
    Rows,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A path.
    Path,
    /// One or more paths.
    Paths,
    /// A path, as often as wanted.
    PathList,
    /// Any text.
    Text,
}

/// An argument or option of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OptionSpec {
    /// Its name, as in [`JobSpec`](super::JobSpec); on the command line with dashes.
    pub name: &'static str,
    /// What it takes.
    pub kind: ValueKind,
    /// Whether it stands by its place, without a name.
    pub positional: bool,
    /// A letter that stands for the name on the command line; empty where none does.
    pub short: &'static str,
    /// What holds when it is not given, in words; empty where it must be given.
    pub default: &'static str,
    /// The variable that gives it where the command line does not; empty where none does. Only what belongs to a
    /// machine rather than to a job has one.
    pub environment: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// A command: its name, what it does, and its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CommandSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// A command line that works.
    pub example: &'static str,
    /// Its options, in the order of the help.
    pub options: &'static [OptionSpec],
}

const fn argument(name: &'static str, kind: ValueKind, help: &'static str) -> OptionSpec {
    OptionSpec {
        name,
        kind,
        positional: true,
        short: "",
        default: "",
        environment: "",
        help,
    }
}

const fn option(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    help: &'static str,
) -> OptionSpec {
    OptionSpec {
        name,
        kind,
        positional: false,
        short: "",
        default,
        environment: "",
        help,
    }
}

/// The option, with a letter of its own.
const fn short(letter: &'static str, option: OptionSpec) -> OptionSpec {
    OptionSpec {
        short: letter,
        ..option
    }
}

const MEMORY: OptionSpec = OptionSpec {
    environment: "GRISTMILL_MEMORY",
    ..option(
        "memory",
        ValueKind::Bytes,
        "60 % of what is available",
        "Most memory that the job may use, such as 512M, 8G or 1GiB.",
    )
};
const WORKERS: OptionSpec = OptionSpec {
    environment: "GRISTMILL_WORKERS",
    ..option(
        "workers",
        ValueKind::Count,
        "one for each core",
        "How many tasks run at once. The output does not depend on it.",
    )
};
const SPILL_DIR: OptionSpec = option(
    "spill_dir",
    ValueKind::PathList,
    "beside the output",
    "Where sorted runs go when the input is larger than memory; may be given again, the first with room is used.",
);
const OVERWRITE: OptionSpec = option(
    "overwrite",
    ValueKind::Flag,
    "off",
    "Replace OUTPUT if it exists, in one exchange of names.",
);
const NO_SYNC: OptionSpec = option(
    "no_sync",
    ValueKind::Flag,
    "off",
    "Do not wait until the output is durable. Faster; a power failure can lose it.",
);

/// All commands that run jobs.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "sort",
        help: "Sort lines, or records of one length, as LC_ALL=C sort does; files of any size.",
        example: "gristmill sort big.txt -o sorted.txt --memory 4G",
        options: &[
            OptionSpec {
                default: "standard input",
                ..argument(
                    "inputs",
                    ValueKind::Paths,
                    "Files, or directories whose files are read; - is standard input.",
                )
            },
            short(
                "o",
                option(
                    "output",
                    ValueKind::Path,
                    "standard output",
                    "The file to write; replaced at once if it exists, also if it is an input.",
                ),
            ),
            option(
                "format",
                ValueKind::Text,
                "lines",
                "What a record is: lines, fixed:LEN or fixed:LEN:KEYLEN (bytes).",
            ),
            short(
                "r",
                option("reverse", ValueKind::Flag, "off", "Larger keys first."),
            ),
            short(
                "u",
                option(
                    "unique",
                    ValueKind::Flag,
                    "off",
                    "Of records with equal keys, only the first.",
                ),
            ),
            short(
                "s",
                option(
                    "stable",
                    ValueKind::Flag,
                    "off",
                    "Leave records with equal keys in input order; else all their bytes decide.",
                ),
            ),
            short(
                "c",
                option(
                    "check",
                    ValueKind::Flag,
                    "off",
                    "Sort nothing: say whether the input is in order, by the exit code.",
                ),
            ),
            MEMORY,
            WORKERS,
            SPILL_DIR,
            NO_SYNC,
        ],
    },
    CommandSpec {
        name: "teragen",
        help: "Make records of the sort benchmark: 100 bytes each, the first ten the key.",
        example: "gristmill teragen 10m data/",
        options: &[
            argument(
                "rows",
                ValueKind::Rows,
                "How many records; k, m, b, t stand for 10^3, 10^6, 10^9, 10^12.",
            ),
            argument("output", ValueKind::Path, "The directory to make."),
            option(
                "layout",
                ValueKind::Choice(&["hadoop", "gensort", "ascii"]),
                "hadoop",
                "Bytes after the key: as Hadoop's TeraGen, as gensort 1.5 (incompressible), or as gensort -a (text).",
            ),
            option(
                "skew",
                ValueKind::Flag,
                "off",
                "Let keys share prefixes, as gensort -s does.",
            ),
            option(
                "start",
                ValueKind::Rows,
                "0",
                "The number of the first record.",
            ),
            option(
                "files",
                ValueKind::Count,
                "one for each 256 MB",
                "How many part files.",
            ),
            MEMORY,
            WORKERS,
            OVERWRITE,
            NO_SYNC,
        ],
    },
    CommandSpec {
        name: "terasort",
        help: "Sort 100-byte records by their first ten bytes, and prove the result.",
        example: "gristmill terasort data/ sorted/ --memory 8G",
        options: &[
            argument(
                "inputs",
                ValueKind::Paths,
                "Files, or directories whose files are read (not those whose names begin with _ or .).",
            ),
            argument("output", ValueKind::Path, "The directory to make."),
            option(
                "partitions",
                ValueKind::Count,
                "one for each 256 MB",
                "How many part files the output is cut into.",
            ),
            MEMORY,
            WORKERS,
            SPILL_DIR,
            OVERWRITE,
            NO_SYNC,
        ],
    },
    CommandSpec {
        name: "teravalidate",
        help: "Check that the files of a directory are in order, and sum the checksums of their records.",
        example: "gristmill teravalidate sorted/ --against data/",
        options: &[
            argument("input", ValueKind::Path, "The directory to check."),
            option(
                "against",
                ValueKind::Text,
                "nothing",
                "What it must be a permutation of: a file, a directory, or a checksum in hexadecimal.",
            ),
            MEMORY,
            WORKERS,
        ],
    },
    CommandSpec {
        name: "resume",
        help: "Go on with a job whose process was killed, from what it had done; the output is the same.",
        example: "gristmill resume last",
        options: &[argument(
            "job_id",
            ValueKind::Text,
            "The job's name, a part of it that no other job has, or last; `gristmill jobs` lists them.",
        )],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::JobOption;

    /// Those of people's own code alone are not in the table: `gristmill run` defines them.
    #[test]
    fn options_that_errors_advise_are_in_the_table() {
        let ours = [JobOption::Timeout, JobOption::WorkerMemory];
        for advised in JobOption::ALL {
            let mut options = COMMANDS.iter().flat_map(|command| command.options);
            let found = options.find(|option| option.name == advised.name());
            let is_flag = found.map(|option| option.kind == ValueKind::Flag);
            let expected = (!ours.contains(&advised)).then_some(advised.is_flag());
            assert_eq!(is_flag, expected, "{advised:?}");
        }
    }
}
