//! The options of `sort`: GNU sort's, those of tables, and where the output goes.

use std::path::Path;

use crate::jobs::kind::Described;
use crate::jobs::tables::{Ragged, comment_option, zero_option};
use crate::plan::compression::OutputCompression;
use crate::plan::format::RecordFormat;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use gristmill_storage::io::stream::is_special;
use gristmill_storage::location::{DASH, Location};

options! {
    /// Options of `sort`, as given.
    pub(in crate::jobs) struct SortSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read; tables of Parquet, if their names end in .parquet; - is standard input, which is \
             also read without INPUT.",
        )
        .or("standard input"),
        output: Option<Location> = option(
            "standard output",
            "The file to write; Parquet, if its name ends in .parquet. If it exists, the finished output replaces it in one step, also if \
             it is an input. With --parts: a new directory.",
        ).short("o"),
        format: RecordFormat = option(
            "lines",
            "What a record is: lines, fixed:LEN or fixed:LEN:KEYLEN (bytes).",
        ),
        reverse: bool = option("off", "Larger keys first.").short("r"),
        unique: bool = option("off", "Write only the first of records with equal keys.").short("u"),
        stable: bool = option(
            "off",
            "Keep records with equal keys in input order; without it, all their bytes decide.",
        ).short("s"),
        key: Vec<String> = option(
            "the whole line",
            "A key, as F[.C][OPTS][,F[.C][OPTS]]: from field F, character C, to the end of the line or of the second field. OPTS \
             are letters of the options -b, -d, -f, -g, -h, -i, -M, -n, -r and -V, for this key alone. Repeatable: a later key \
             decides if the earlier ones are equal. With --csv or --tsv, columns with commas between them, by name or number: \
             price:num:desc,name. If a column is named 3, 3 is that column, else the third; #3 is always the third.",
        ).short("k"),
        field_separator: Option<String> = option(
            "a field begins at the first blank after a byte that is not a blank",
            "The byte between fields; \\t is a tab, \\0 is NUL.",
        ).short("t"),
        csv: bool = option(
            "off",
            "The input is a table with commas, quotes and a header, which stays first; equal rows keep their order. Keys \
             (-k) are columns. Add :desc, :num, :nocase, :version, :human, :month, :asc or :text to a column.",
        ),
        tsv: bool = option("off", "The same with tabs. With another separator: --csv -t ';'."),
        no_header: bool = option(
            "off",
            "The table has no header: its first row is sorted like all others, and columns have numbers, from 1 on.",
        ),
        skip_bad: Option<usize> = option(
            "none",
            "How many rows of a table may be left out because their number of fields is not that of the header, or of the first row without a header.",
        ),
        ragged: Ragged = Ragged::option(),
        comment: Option<String> = comment_option(),
        numeric_sort: bool = option("off", "Compare numbers: -1.5, 2, 10.").short("n"),
        general_numeric_sort: bool = option(
            "off",
            "Compare numbers as C reads them: 1e3, 0x10, inf.",
        ).short("g"),
        human_numeric_sort: bool = option("off", "Compare numbers with units: 2K, 1G.").short("h"),
        version_sort: bool = option("off", "Compare names with versions in them: a-1.9, a-1.10.").short("V"),
        month_sort: bool = option("off", "Compare names of months: JAN, Feb, dec.").short("M"),
        ignore_case: bool = option("off", "Take a to z as A to Z.").short("f"),
        dictionary_order: bool = option("off", "Compare letters, digits and blanks only.").short("d"),
        ignore_nonprinting: bool = option("off", "Compare printable ASCII characters only.").short("i"),
        ignore_leading_blanks: bool = option("off", "Skip blanks at the beginning of keys.").short("b"),
        sort: Option<String> = option(
            "byte order",
            "The order of keys, as a word: general-numeric, human-numeric, month, numeric or version. The same as -g, -h, -M, \
             -n or -V.",
        ),
        zero_terminated: bool = zero_option(),
        merge: bool = option("off", "Accepted, as in GNU sort; the inputs are sorted again.").short("m"),
        parts: Option<usize> = option(
            "one file",
            "Write the output as N files, part-r-00000 and so on, in a directory. Concatenated in this order, they are the output.",
        ),
        compress: OutputCompression = option(
            "none",
            "How the output is compressed, each part for itself. Compressed input is read without an option.",
        ),
        check: bool = option(
            "off",
            "Sort nothing: exit with 0 if the input is in order, with 1 if it is not.",
        ).short("c"),
    }
}

impl Described for SortSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "sort",
        function: None,
        help: "Sort lines as LC_ALL=C sort does, tables by their columns, or records; files of any size.",
        details: "",
        example: "gristmill sort big.txt -o sorted.txt --memory 4G",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "words")
...     _ = path.write_text("pear\nfig\napple\nfig\n")
...     report = gristmill.sort(path, output=path, unique=True)
...     path.read_text().split(), report.records, report.duplicate_keys
(['apple', 'fig', 'pear'], 3, 1)
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl SortSpec {
    /// What is written, where that is not standard output.
    pub(super) fn target(&self) -> Option<&Location> {
        let given = self.output.as_ref();
        given.filter(|given| given.as_typed() != Path::new(DASH))
    }

    /// The stream that is written, where that is neither standard output nor a file.
    pub(super) fn stream(&self) -> Option<&Path> {
        let path = self.target().and_then(Location::local);
        path.filter(|path| is_special(path))
    }

    /// Whether the input is a table.
    pub(super) fn is_table(&self) -> bool {
        self.csv || self.tsv
    }

    /// Whether the output is a file, and not a stream.
    pub(super) fn writes_file(&self) -> bool {
        self.target().is_some() && self.stream().is_none()
    }
}
