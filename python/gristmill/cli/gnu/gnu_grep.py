"""Options of GNU grep and ripgrep in `gristmill grep`: spellings, and what to do without some.

    --colour        ──▶ --color=auto
    -2              ──▶ -C 2
    --line-n        ──▶ --line-number: a long name may be cut short, as GNU has it
    -P, --replace   ──▶ refused, with what to do instead

Each option that is here names its differential test in docs/guide/gnu-options.md.
"""

from collections.abc import Iterable

__all__ = ["GNU_WORDS", "INSTEAD", "spelled"]

GNU_WORDS = (
    *("extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "regexp", "file"),
    *("ignore-case", "no-ignore-case", "word-regexp", "line-regexp", "null-data", "no-messages"),
    *("invert-match", "version", "help", "max-count", "byte-offset", "line-number"),
    *("line-buffered", "with-filename", "no-filename", "label", "only-matching", "quiet"),
    *("silent", "binary-files", "text", "directories", "devices", "recursive", "include"),
    *("dereference-recursive", "exclude", "exclude-from", "exclude-dir", "files-without-match"),
    *("files-with-matches", "count", "initial-tab", "null", "before-context", "after-context"),
    *("context", "group-separator", "no-group-separator", "color", "colour", "binary"),
)
"""The long names of GNU grep 3.8."""

_LEAVE_OUT = "leave it out"
_NO_IGNORE = "leave it out: no .gitignore is read here"
_DEPTH = "write --glob '!*/**' for a depth of 1, '!*/*/**' for 2, and so on"
_OWN_MEMORY = "leave it out: memory is bounded by the blocks that workers hold"

INSTEAD = {
    # GNU grep
    **dict.fromkeys(("-P", "--perl-regexp"), "leave it out: \\d, \\w and \\b are known without it"),
    **dict.fromkeys(("-G", "--basic-regexp"), "write the pattern as for grep -E"),
    "--exclude-from": "write --exclude GLOB for each line of the file",
    **dict.fromkeys(("-D", "--devices"), "name the files: in directories no devices are read"),
    **dict.fromkeys(("-u", "--unix-byte-offsets"), _LEAVE_OUT),
    **dict.fromkeys(("-T", "--initial-tab"), "align the lines with column -t"),
    "-X": "choose patterns with -F or -E",
    # ripgrep
    **dict.fromkeys(("-S", "--smart-case"), "write -i, or leave it out"),
    "--case-sensitive": "leave it out: case matters without -i",
    **dict.fromkeys(("-j", "--threads"), "write --workers N"),
    **dict.fromkeys(("-t", "--type", "--type-add", "--type-list"), "write --glob '*.EXT'"),
    "--type-not": "write --glob '!*.EXT'",
    "--iglob": "write --glob with both cases, as in '*.[jJ][pP][gG]'",
    **dict.fromkeys(
        ("--no-ignore", "--no-ignore-vcs", "--ignore-file", "--no-ignore-parent"), _NO_IGNORE
    ),
    "--unrestricted": "write --hidden, and -a for binary files",
    "-.": "write --hidden",
    **dict.fromkeys(("-p", "--pretty"), "write --color=always -n"),
    **dict.fromkeys(("-N", "--no-line-number"), "leave it out: numbers come with -n alone"),
    **dict.fromkeys(("--heading", "--no-heading"), "leave it out: names stand before lines"),
    "--vimgrep": "write -n -H",
    "--column": "write -o -b for the offset of each match",
    "--replace": "pipe the lines through sed",
    "--passthru": "write -e PATTERN -e '' --color=always",
    "--trim": "pipe the lines through sed 's/^ *//'",
    **dict.fromkeys(("-M", "--max-columns"), "pipe the lines through cut -c -N"),
    **dict.fromkeys(
        ("--multiline", "--multiline-dotall"), "write -z: `.` then matches a line feed"
    ),
    **dict.fromkeys(("--pcre2", "--engine", "--auto-hybrid-regex"), _LEAVE_OUT),
    **dict.fromkeys(("--max-depth", "--maxdepth"), _DEPTH),
    "--max-filesize": "choose the files with find -size",
    "--follow": "name what the links lead to",
    **dict.fromkeys(("--sort", "--sortr"), "leave it out: files come in the order of their names"),
    "--files": "list the files with find",
    "--stats": "write --json",
    "--count-matches": "write -o and pipe it to wc -l; --counts counts each different match",
    "--include-zero": "leave it out: -c counts files without a match, too",
    "--search-zip": "leave it out: compressed files are decoded",
    **dict.fromkeys(("--pre", "--pre-glob"), "pipe the files through the program"),
    "--encoding": "pipe the files through iconv",
    "--context-separator": "write --group-separator SEP",
    "--no-context-separator": "write --no-group-separator",
    "--colors": "leave it out: colours are those of GNU grep",
    **dict.fromkeys(("--mmap", "--no-mmap", "--block-buffered", "--no-config"), _LEAVE_OUT),
    **dict.fromkeys(("--dfa-size-limit", "--regex-size-limit"), _OWN_MEMORY),
    **dict.fromkeys(("--unicode", "--no-unicode"), "write (?-u:...) in the pattern"),
    "--one-file-system": "name the directories",
    "--path-separator": "pipe the names through tr",
    **dict.fromkeys(("--debug", "--trace"), _LEAVE_OUT),
}
"""What to do without options of GNU grep, and of ripgrep."""


def spelled(words: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return words of a command line with GNU grep's spellings as click takes them.

    Args:
        words: Words that are no values of options, and stand before `--`.
        known: The long names of our own, which are never cut-off ones of GNU's.

    Example:
        >>> spelled(["--colour", "-2", "--line-n", "--count", "--color=never"], ["--counts"])
        ['--colour=auto', '-C2', '--line-number', '--count', '--color=never']
    """
    ours = set(known)
    return [_spelled(word, ours) for word in words]


def _spelled(word: str, known: set[str]) -> str:
    if word[:1] == "-" and word[1:].isascii() and word[1:].isdigit():
        return f"-C{word[1:]}"
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    if name not in known and name not in INSTEAD and name[2:] not in GNU_WORDS:
        begun = [full for full in GNU_WORDS if full.startswith(name[2:])]
        if len({"color" if full == "colour" else full for full in begun}) == 1:
            name = f"--{begun[0]}"
    if name in ("--color", "--colour") and not equals:
        return f"{name}=auto"
    return f"{name}{equals}{value}"
