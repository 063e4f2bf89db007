//! Where Google's storage is and who asks, as Google's programs are told.
//!
//! ```text
//!   1  a server for tests       STORAGE_EMULATOR_HOST, which asks nobody who he is
//!   2  a file                   GOOGLE_APPLICATION_CREDENTIALS: of a service account, or of a user
//!   3  the user of `gcloud`     ~/.config/gcloud/application_default_credentials.json
//!   4  the machine              its metadata
//! ```
//!
//! The first that is there counts. 2 to 4 are read and renewed by `object_store`. The rule that must hold: no text shows a secret.

use std::fmt;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};

use crate::net::http_client::HttpClient;
use crate::objects::identity::{IDENTITY_LIMIT, asked_shortly, is_server, last_cause};
use crate::store_kind::{OptionValues, ReadVariable, StoreOption};
use gristmill_base::error::{Error, Kind, Result};

/// What names another server, for errors too.
pub const EMULATOR: &str = "STORAGE_EMULATOR_HOST";
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
const GOOGLE: &str = "https://storage.googleapis.com";

/// How credentials are given, which are no options.
pub const CREDENTIALS: &str = "set GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, or run `gcloud auth \
    application-default login`";

pub const ENDPOINT_OPTION: StoreOption = StoreOption::new(
    "gcs_endpoint",
    "http://HOST:PORT or https://HOST:PORT",
    is_server,
);

type Provider = Arc<dyn CredentialProvider<Credential = GcpCredential>>;

/// Where the store is, and who asks it.
pub struct GcsSite {
    /// Without a slash at its end.
    pub endpoint: String,
    /// Nobody, of a server for tests.
    credentials: Option<Provider>,
}

impl fmt::Debug for GcsSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcsSite")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl GcsSite {
    /// What variables and options say.
    ///
    /// # Errors
    /// It makes no sense, or a file of credentials cannot be read.
    pub fn of(variable: ReadVariable, options: &OptionValues) -> Result<Self> {
        let get = |name: &str| variable(name).filter(|value| !value.is_empty());
        let emulator = get(EMULATOR).map(|host| match host.contains("://") {
            true => host,
            false => format!("http://{host}"),
        });
        let given = ENDPOINT_OPTION.of(options).map(str::to_owned);
        let credentials = match emulator {
            Some(_) => None,
            None => Some(identity(get(FILE).as_deref())?),
        };
        let endpoint = given.or(emulator).unwrap_or_else(|| GOOGLE.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        if !is_server(&endpoint) {
            let message = "the endpoint is not of the form http://HOST:PORT or https://HOST:PORT";
            return Err(Error::new(Kind::BadOption, "connect to the store", message)
                .advise("set STORAGE_EMULATOR_HOST to such an address, or unset it"));
        }
        Ok(GcsSite {
            endpoint,
            credentials,
        })
    }

    /// What a request has in its head to say who asks; nothing for a server that does not care.
    ///
    /// # Errors
    /// Nobody gives any credentials.
    pub fn authorization(&self, client: &HttpClient) -> Result<Option<String>> {
        let Some(provider) = &self.credentials else {
            return Ok(None);
        };
        let given = client.wait(provider.get_credential())?;
        let given = given.map_err(|error| none_given(&error))?;
        Ok(Some(format!("Bearer {}", given.bearer)))
    }
}

/// Who gives credentials. Nothing is asked yet.
fn identity(file: Option<&str>) -> Result<Provider> {
    let (retries, options) = asked_shortly(IDENTITY_LIMIT);
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name("none") // it must have one, and asks it for nothing
        .with_retry(retries)
        .with_client_options(options);
    if let Some(file) = file {
        builder = builder.with_application_credentials(file);
    }
    let built = builder.build().map_err(|error| none_given(&error))?;
    Ok(Arc::clone(built.credentials()))
}

fn none_given(error: &object_store::Error) -> Error {
    let cause = last_cause(error);
    let message = format!("there are no credentials for Google's storage: {cause}");
    Error::new(Kind::Permission, "connect to the store", message).advise(CREDENTIALS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_for_tests_is_told_nothing() {
        let site = GcsSite::of(
            |name| (name == EMULATOR).then(|| "127.0.0.1:1/".to_owned()),
            &OptionValues::new(),
        );
        let site = site.unwrap();
        assert_eq!(site.endpoint, "http://127.0.0.1:1");
        assert_eq!(site.authorization(&HttpClient::default()).unwrap(), None);
        let wrong = GcsSite::of(
            |name| (name == EMULATOR).then(|| "http://me:hush@host".to_owned()),
            &OptionValues::new(),
        );
        let wrong = wrong.unwrap_err().to_string();
        assert!(
            wrong.contains(EMULATOR) && !wrong.contains("hush"),
            "{wrong}"
        );
    }

    #[test]
    fn a_file_of_credentials_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.json");
        std::fs::write(&file, r#"{"type": "hush"}"#).unwrap();
        let wrong = identity(file.to_str()).map(drop).unwrap_err();
        assert_eq!(wrong.kind(), Kind::Permission);
        assert!(identity(Some("/no/such/file")).is_err());
    }
}
