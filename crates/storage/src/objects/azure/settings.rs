//! Where an account of Azure is and who asks, as Microsoft's programs are told: by `AZURE_...` variables.
//!
//! ```text
//!   1  a connection string    AZURE_STORAGE_CONNECTION_STRING
//!   2  a key of the account   AZURE_STORAGE_KEY, AZURE_STORAGE_ACCOUNT_KEY
//!   3  a signed question      AZURE_STORAGE_SAS_TOKEN
//!   4  a program's identity   AZURE_TENANT_ID, AZURE_CLIENT_ID with AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE
//!   5  the command line `az`  AZURE_USE_AZURE_CLI=true
//!   6  the machine            its managed identity
//! ```
//!
//! The first that is there counts. 4 to 6 are asked by `object_store`, which renews what they give. The rule that must hold: no text
//! shows a secret.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::azure::{
    AzureAccessKey, AzureConfigKey as Key, AzureCredential, MicrosoftAzureBuilder, split_sas,
};

use super::read_right::AccountKey;
use crate::net::http_client::HttpClient;
use crate::objects::identity::{IDENTITY_LIMIT, asked_shortly, is_server, last_cause};
use crate::store_kind::{OptionValues, ReadVariable, StoreOption};
use gristmill_base::error::{Error, Kind, Result};

const CONNECTION: &str = "AZURE_STORAGE_CONNECTION_STRING";
const ACCOUNT: [&str; 2] = ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"];
const KEY: [&str; 2] = ["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"];
const SAS: [&str; 2] = ["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"];
/// What names the address of the store, for errors too.
pub const ENDPOINT: &str = "AZURE_STORAGE_ENDPOINT";

/// What says who asks where no secret is given: what `object_store` calls it, and the variable.
const IDENTITY: [(Key, &str); 6] = [
    (Key::AuthorityId, "AZURE_TENANT_ID"),
    (Key::ClientId, "AZURE_CLIENT_ID"),
    (Key::ClientSecret, "AZURE_CLIENT_SECRET"),
    (Key::FederatedTokenFile, "AZURE_FEDERATED_TOKEN_FILE"),
    (Key::AuthorityHost, "AZURE_AUTHORITY_HOST"),
    (Key::UseAzureCli, "AZURE_USE_AZURE_CLI"),
];

/// How credentials are given, which are no options.
pub const CREDENTIALS: &str = "set AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or \
    AZURE_STORAGE_CONNECTION_STRING, in the environment";

pub const ACCOUNT_OPTION: StoreOption =
    StoreOption::new("azure_account", "the name of a storage account", is_account);
pub const ENDPOINT_OPTION: StoreOption = StoreOption::new(
    "azure_endpoint",
    "http://HOST:PORT or https://HOST:PORT, with the account behind it if the server wants that",
    is_server,
);

fn is_account(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// An account, and who asks it.
#[derive(Debug)]
pub struct AzureAccount {
    pub name: String,
    /// Without a slash at its end.
    pub endpoint: String,
    credentials: AzureCredentials,
    /// The key of the account, where it is given.
    pub(super) key: Option<AccountKey>,
}

/// Where credentials come from.
enum AzureCredentials {
    Fixed(Arc<AzureCredential>),
    Asked(Arc<dyn CredentialProvider<Credential = AzureCredential>>),
}

impl fmt::Debug for AzureCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AzureCredentials::Fixed(_) => "Fixed",
            AzureCredentials::Asked(_) => "Asked",
        })
    }
}

impl AzureAccount {
    /// The account that a location names, or else variables and options.
    ///
    /// # Errors
    /// None is named, or what is said makes no sense.
    pub fn of(named: Option<&str>, variable: ReadVariable, options: &OptionValues) -> Result<Self> {
        let get = |name: &str| variable(name).filter(|value| !value.is_empty());
        let first = |names: [&str; 2]| names.into_iter().find_map(get);
        let connection = get(CONNECTION).map(|text| connection_of(&text));
        let connected = |part: &str| connection.as_ref()?.get(part).cloned();
        let name = named
            .map(str::to_owned)
            .or_else(|| ACCOUNT_OPTION.of(options).map(str::to_owned))
            .or_else(|| connected("AccountName"))
            .or_else(|| first(ACCOUNT));
        let Some(name) = name.filter(|name| is_account(name)) else {
            let message = "no storage account of Azure is named";
            return Err(Error::new(Kind::BadOption, "connect to the store", message)
                .advise("set AZURE_STORAGE_ACCOUNT, or name abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"));
        };
        let usual = || {
            let protocol = connected("DefaultEndpointsProtocol");
            let suffix = connected("EndpointSuffix");
            format!(
                "{}://{name}.blob.{}",
                protocol.as_deref().unwrap_or("https"),
                suffix.as_deref().unwrap_or("core.windows.net")
            )
        };
        let endpoint = ENDPOINT_OPTION.of(options).map(str::to_owned);
        let endpoint = endpoint
            .or_else(|| connected("BlobEndpoint"))
            .or_else(|| get(ENDPOINT))
            .unwrap_or_else(usual);
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        if !is_server(&endpoint) {
            let message = "the endpoint is not of the form http://HOST:PORT or https://HOST:PORT";
            return Err(Error::new(Kind::BadOption, "connect to the store", message)
                .advise("set AZURE_STORAGE_ENDPOINT to such an address, or unset it"));
        }
        let key = connected("AccountKey").or_else(|| first(KEY));
        let signed = connected("SharedAccessSignature").or_else(|| first(SAS));
        let account_key = key.as_deref().map(AccountKey::of);
        let credentials = match (key, signed) {
            (Some(key), _) => {
                let key = AzureAccessKey::try_new(&key)
                    .map_err(|_secret| refused("the key of the account is not base64"))?;
                AzureCredentials::Fixed(Arc::new(AzureCredential::AccessKey(key)))
            }
            (None, Some(signed)) => {
                let pairs = split_sas(&signed).map_err(|_secret| {
                    refused("the SAS token is not of the form NAME=VALUE&NAME=VALUE")
                })?;
                AzureCredentials::Fixed(Arc::new(AzureCredential::SASToken(pairs)))
            }
            (None, None) => AzureCredentials::Asked(identity(&name, &get)?),
        };
        Ok(AzureAccount {
            name,
            endpoint,
            credentials,
            key: account_key,
        })
    }

    /// Credentials that are good now.
    ///
    /// # Errors
    /// Nobody gives any.
    pub fn credentials(&self, client: &HttpClient) -> Result<Arc<AzureCredential>> {
        match &self.credentials {
            AzureCredentials::Fixed(given) => Ok(Arc::clone(given)),
            AzureCredentials::Asked(provider) => {
                let given = client.wait(provider.get_credential())?;
                given.map_err(|error| none_given(&error))
            }
        }
    }
}

/// The parts of a connection string.
fn connection_of(text: &str) -> BTreeMap<String, String> {
    let parts = text.split(';').filter_map(|part| part.split_once('='));
    parts
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Who gives credentials to a program, to whoever has logged in, or to the machine. Nothing is asked yet.
fn identity(
    account: &str,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn CredentialProvider<Credential = AzureCredential>>> {
    let (retries, options) = asked_shortly(IDENTITY_LIMIT);
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_container_name("none") // it must have one, and asks it for nothing
        .with_retry(retries)
        .with_client_options(options);
    for (key, variable) in IDENTITY {
        if let Some(value) = get(variable) {
            builder = builder.with_config(key, value);
        }
    }
    let built = builder.build().map_err(|error| none_given(&error))?;
    Ok(Arc::clone(built.credentials()))
}

fn refused(message: &str) -> Error {
    Error::new(Kind::Permission, "connect to the store", message).advise(CREDENTIALS)
}

fn none_given(error: &object_store::Error) -> Error {
    let cause = last_cause(error);
    refused(&format!("there are no credentials for Azure: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(named: Option<&str>, variable: ReadVariable) -> Result<AzureAccount> {
        AzureAccount::of(named, variable, &OptionValues::new())
    }

    #[test]
    fn an_account_is_where_its_name_says() {
        let found = account(Some("mine"), |name| {
            (name == "AZURE_STORAGE_KEY").then(|| "aHVzaA==".to_owned())
        });
        let found = found.unwrap();
        assert_eq!(found.endpoint, "https://mine.blob.core.windows.net");
        assert!(!format!("{found:?}").contains("aHVzaA"));
    }

    #[test]
    fn a_connection_string_says_all() {
        let found = account(None, |name| {
            (name == CONNECTION).then(|| {
                "DefaultEndpointsProtocol=http;AccountName=dev;AccountKey=aHVzaA==;BlobEndpoint=http://127.0.0.1:1/dev;"
                    .to_owned()
            })
        });
        let found = found.unwrap();
        assert_eq!(
            (&*found.name, &*found.endpoint),
            ("dev", "http://127.0.0.1:1/dev")
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_not_shown() {
        let nameless = account(None, |_| None).unwrap_err();
        assert!(nameless.to_string().contains("AZURE_STORAGE_ACCOUNT"));
        let wrong = account(Some("mine"), |name| {
            (name == "AZURE_STORAGE_KEY").then(|| "%hush%".to_owned())
        });
        let wrong = wrong.unwrap_err().to_string();
        assert!(
            wrong.contains("base64") && !wrong.contains("hush"),
            "{wrong}"
        );
    }
}
