"""environment.md: the variables that Gristmill reads."""

from gristmill.options import commands
from reference.markdown import code, document, plain, table

__all__ = ["OF_OTHERS", "OURS", "page"]

OURS = {
    "GRISTMILL_HOME": "Where Gristmill keeps its data; histories are in the directory `jobs` below "
    "it. By default `~/.local/share/gristmill`, or `$XDG_DATA_HOME/gristmill` if that is set.",
}
"""Variables of ours that are not defaults of options."""

OF_OTHERS = {
    "AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME": "The storage account of Azure.",
    "AZURE_STORAGE_CONNECTION_STRING": "The same with its address and a credential.",
    "AZURE_STORAGE_KEY, AZURE_STORAGE_ACCOUNT_KEY": "A key of the account.",
    "AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_SAS_KEY": "A SAS token.",
    "AZURE_STORAGE_ENDPOINT": "An Azure server of your own.",
    "AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, AZURE_FEDERATED_TOKEN_FILE, "
    "AZURE_AUTHORITY_HOST": "A program's identity.",
    "AZURE_USE_AZURE_CLI": "`true`: the user of `az login`.",
    "GOOGLE_APPLICATION_CREDENTIALS": "A file of credentials for Google's storage.",
    "STORAGE_EMULATOR_HOST": "A test server instead of Google's storage.",
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN": "Credentials for S3.",
    "AWS_PROFILE, AWS_DEFAULT_PROFILE": "The profile in AWS's files.",
    "AWS_REGION, AWS_DEFAULT_REGION": "The region.",
    "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL": "An S3 server of your own.",
    "AWS_ENDPOINT_URL_STS": "Another STS.",
    "AWS_CA_BUNDLE": "Certificates to trust for S3 and STS: a PEM file.",
    "AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE": "AWS's files, where they are elsewhere.",
    "AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME": "A web identity.",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI, "
    "AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "The container's "
    "credentials.",
    "AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT": "The machine's credentials.",
    "HADOOP_CONF_DIR, HADOOP_HOME": "Where `core-site.xml` and `hdfs-site.xml` are.",
    "HADOOP_USER_NAME": "As whom HDFS is asked, without Kerberos.",
    "KRB5_CLIENT_KTNAME": "A keytab for HDFS with Kerberos.",
    "RAY_ADDRESS": "The Ray cluster of `--on ray`; by default the one of this machine.",
    "RAY_AUTH_MODE, RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH": "With `token`: the token that the "
    "dashboard of `--on http://HOST:8265` is sent, or the file that has it.",
    "RAY_JOB_HEADERS": "HTTP headers that this dashboard is sent, as a JSON object.",
    "RAY_USE_TLS, RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY, RAY_TLS_CA_CERT": "Ray's own TLS; with "
    "it, agents speak TLS among each other, too.",
    "SSL_CERT_FILE": "Certificates to trust for HTTPS, in place of the system's.",
    "TMPDIR": "Where small temporary files go, and runs on nodes of a cluster.",
    "NO_COLOR, TERM": "If NO_COLOR is set, or TERM is `dumb`: no colours. TERM=dumb: no "
    "progress bars either.",
    "COLUMNS": "The width of help and of tables, where it is not the terminal's.",
}
"""Variables that other programs know, too."""

_INTRODUCTION = """\
An option on the command line overrides its variable. An error that comes from a variable names
the variable."""


def page() -> str:
    """Return the page."""
    defaults: dict[str, tuple[str, str]] = {}
    for command in commands().values():
        for option in command.options:
            if option.environment:
                defaults[option.environment] = (f"--{option.dashed}", option.help)
    ours = {
        **{name: f"The default of `{option}`. {text}" for name, (option, text) in defaults.items()},
        **OURS,
    }
    return document(
        "Environment",
        _INTRODUCTION,
        "## Gristmill's own",
        _table(ours),
        "## Those of others",
        _table(OF_OTHERS),
        "How S3's are used is in [where data live](../guide/places.md).",
    )


def _table(rows: dict[str, str]) -> str:
    return table(
        ["variable", "what it does"],
        [[", ".join(map(code, names.split(", "))), plain(text)] for names, text in rows.items()],
    )
