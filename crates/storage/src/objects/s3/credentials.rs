//! Who asks: where credentials for S3 come from.
//!
//! ```text
//!   1  variables                   AWS_ACCESS_KEY_ID ...                          fixed
//!   2  a token of a web identity   AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN      renewed
//!   3  the profile in ~/.aws       aws_access_key_id ...                          fixed
//!   4  its program                 credential_process                             renewed
//!   5  the container               AWS_CONTAINER_CREDENTIALS_RELATIVE_URI ...     renewed
//!   6  the machine                 its metadata, unless AWS_EC2_METADATA_DISABLED renewed
//! ```
//!
//! The first that is there counts: the order of AWS's own programs. 2 and 5 are in `services.rs`, 4 in `program.rs`, when they are asked
//! again in `renewed.rs`; 6 is asked by `object_store`. The rule that must hold: no text shows a secret, nor what a program printed or a
//! service answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{
    AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential, AwsCredentialProvider,
};

use super::program::CredentialProgram;
use super::renewed::Renewed;
use super::services::Service;
use super::temporary_credential::none;
use crate::net::http_client::{HttpClient, TransportPolicy};
use crate::net::trust::Bundle;
use crate::objects::identity::{asked_shortly, last_cause};
use gristmill_base::error::{Error, Result};

/// The metadata of a machine are near, or not there.
const MACHINE_LIMIT: Duration = Duration::from_secs(5);

/// Where credentials come from.
#[derive(Clone)]
pub enum CredentialSource {
    /// From variables or a file.
    Fixed(Arc<AwsCredential>),
    /// From a program: its command line.
    Program(String),
    /// From a service that is told a token.
    Service(Service),
    /// From the metadata of the machine: where they are, unless at their usual place.
    Machine(Option<String>),
}

impl fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CredentialSource::Fixed(_) => "Fixed",
            CredentialSource::Program(_) => "Program",
            CredentialSource::Service(_) => "Service",
            CredentialSource::Machine(_) => "Machine",
        })
    }
}

/// What gives credentials, whenever they are wanted.
#[derive(Debug)]
pub enum CredentialProvider {
    /// Always the same.
    Fixed(Arc<AwsCredential>),
    /// Such as end.
    Renewed(Renewed),
    /// Those of the machine.
    Machine(AwsCredentialProvider),
}

impl CredentialProvider {
    /// Those of a source. Nothing is asked yet.
    pub fn of(source: &CredentialSource, region: &str, bundle: Option<&Bundle>) -> Result<Self> {
        Ok(match source {
            CredentialSource::Fixed(given) => CredentialProvider::Fixed(Arc::clone(given)),
            CredentialSource::Program(command) => {
                CredentialProvider::Renewed(Renewed::by_program(CredentialProgram::new(command)))
            }
            CredentialSource::Service(service) => {
                let policy = TransportPolicy {
                    bundle: bundle.cloned(),
                    ..TransportPolicy::with_secrets()
                };
                CredentialProvider::Renewed(Renewed::by_service(service.clone(), policy))
            }
            CredentialSource::Machine(endpoint) => {
                CredentialProvider::Machine(of_machine(endpoint.as_deref(), region)?)
            }
        })
    }

    /// Credentials that are good now.
    pub fn get(&self, client: &HttpClient) -> Result<Arc<AwsCredential>> {
        match self {
            CredentialProvider::Fixed(given) => Ok(Arc::clone(given)),
            CredentialProvider::Renewed(renewed) => renewed.get(client),
            CredentialProvider::Machine(provider) => {
                let given = client.wait(provider.get_credential())?;
                given.map_err(|error| of_store(&error))
            }
        }
    }
}

fn of_machine(endpoint: Option<&str>, region: &str) -> Result<AwsCredentialProvider> {
    let (retries, options) = asked_shortly(MACHINE_LIMIT);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name("none") // it must have one, and asks it for nothing
        .with_region(region)
        .with_retry(retries)
        .with_client_options(options);
    if let Some(endpoint) = endpoint {
        builder = builder.with_config(Key::MetadataEndpoint, endpoint);
    }
    match builder.build() {
        Ok(store) => Ok(store.credentials().clone()),
        Err(error) => Err(of_store(&error)),
    }
}

fn of_store(error: &object_store::Error) -> Error {
    none(&last_cause(error))
}
