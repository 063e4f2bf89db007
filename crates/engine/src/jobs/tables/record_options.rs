//! The options that all jobs over records have, beside their own: what a record is, and where the output goes.

use crate::plan::table::{OptionSpec, argument, option};

/// The argument of a command over records that says what is read.
pub(in crate::jobs) const fn record_inputs() -> OptionSpec {
    argument(
        "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too, and \
         tables of Parquet, if their names end in .parquet; - is standard input, which is also read without INPUT.",
    )
    .or("standard input")
}

/// The option of a command that also reads JSON objects.
pub(in crate::jobs) const fn json_lines() -> OptionSpec {
    option(
        "off",
        "Each line is a JSON object, and columns are paths into it: user.id. A value that is null or not there is empty. Lines are \
         written as they stood.",
    )
}

/// The option that says what comments of a table begin with.
pub(in crate::jobs) const fn comment_option() -> OptionSpec {
    option(
        "none",
        "Lines of a table that begin with this, such as # or //, are comments, and are left out.",
    )
}

/// The option that says that NUL ends lines.
pub(in crate::jobs) const fn zero_option() -> OptionSpec {
    option("off", "Lines end with NUL, in the input and in the output.").short("z")
}

/// A struct of options, as [`options!`](crate::plan::table::options) makes it, with those that say what a record is behind its own;
/// `asked()` gives them. With `output` in front also where the output goes; with `keyed output` also how it is parted, by keys.
macro_rules! record_options {
    (keyed output, $(#[$meta:meta])* $visible:vis struct $spec:ident { $($own:tt)* }) => {
        record_options! { output, $(#[$meta])* $visible struct $spec { $($own)*
            sorted: bool = $crate::plan::table::option(
                "off",
                "Put the whole output in the order of the keys; one task writes it. Without it, only each part is in order, and there is a \
                 part for each 256 MB of input.",
            ),
            parts: Option<usize> = $crate::plan::table::option(
                "one file",
                "Write the output as N files, part-r-00000 and so on, in a directory. The hash of a key decides its part.",
            ),
        } }
    };
    (output, $(#[$meta:meta])* $visible:vis struct $spec:ident { $($own:tt)* }) => {
        record_options! { $(#[$meta])* $visible struct $spec { $($own)*
            output: Option<gristmill_storage::location::Location> = $crate::plan::table::option(
                "standard output",
                "The file to write; Parquet, if its name ends in .parquet. If it exists, the finished output replaces it in one step, also if it is an input. With \
                 --parts, where the command has it: a new directory.",
            ).short("o"),
        } }
    };
    ($(#[$meta:meta])* $visible:vis struct $spec:ident { $($own:tt)* }) => {
        $crate::plan::table::options! { $(#[$meta])* $visible struct $spec { $($own)*
            csv: bool = $crate::plan::table::option(
                "off",
                "The input is a table with commas, quotes and a header; so is the output.",
            ),
            tsv: bool = $crate::plan::table::option(
                "off",
                "The same with tabs. With another separator: --csv -t ';'.",
            ),
            no_header: bool = $crate::plan::table::option(
                "off",
                "The table has no header: columns have numbers, from 1 on.",
            ),
            skip_bad: Option<usize> = $crate::plan::table::option(
                "none",
                "How many rows of a table may be left out because their number of fields is not that of the header, or of the first row \
                 without a header.",
            ),
            ragged: $crate::jobs::tables::Ragged = $crate::jobs::tables::Ragged::option(),
            comment: Option<String> = $crate::jobs::tables::comment_option(),
            field_separator: Option<String> = $crate::plan::table::option(
                "blanks; of a table the comma, or with --tsv the tab",
                "The byte between fields; \\t is a tab, \\0 is NUL.",
            ).short("t"),
            zero_terminated: bool = $crate::jobs::tables::zero_option(),
        } }

        impl $spec {
            /// What a record is.
            fn asked(&self) -> $crate::jobs::tables::FieldsAsked<'_> {
                $crate::jobs::tables::FieldsAsked {
                    rows: $crate::jobs::tables::rows_of!(self),
                    objects: None,
                }
            }
        }
    };
}
pub(in crate::jobs) use record_options;

/// How the options of a command say that rows are read.
macro_rules! rows_of {
    ($spec:expr) => {
        $crate::jobs::tables::RowsAsked {
            csv: $spec.csv,
            tsv: $spec.tsv,
            separator: $spec.field_separator.as_deref(),
            no_header: $spec.no_header,
            skip_bad: $spec.skip_bad,
            ragged: $spec.ragged,
            comment: $spec.comment.as_deref(),
            zero_terminated: $spec.zero_terminated,
        }
    };
}
pub(in crate::jobs) use rows_of;
