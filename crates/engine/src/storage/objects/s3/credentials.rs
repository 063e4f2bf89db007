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
use object_store::{ClientOptions, RetryConfig};

use super::given::none;
use super::program::Program;
use super::renewed::Renewed;
use super::services::Service;
use crate::error::{Error, Result};
use crate::storage::trust::Bundle;
use crate::storage::wire::{Way, Wire, take_ring};

/// The metadata of a machine are near, or not there.
const MACHINE_LIMIT: Duration = Duration::from_secs(5);

/// Where credentials come from.
#[derive(Clone)]
pub enum Source {
    /// From variables or a file.
    Fixed(Arc<AwsCredential>),
    /// From a program: its command line.
    Program(String),
    /// From a service that is told a token.
    Service(Service),
    /// From the metadata of the machine: where they are, unless at their usual place.
    Machine(Option<String>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Fixed(_) => "Fixed",
            Source::Program(_) => "Program",
            Source::Service(_) => "Service",
            Source::Machine(_) => "Machine",
        })
    }
}

/// What gives credentials, whenever they are wanted.
#[derive(Debug)]
pub enum Keys {
    /// Always the same.
    Fixed(Arc<AwsCredential>),
    /// Such as end.
    Renewed(Renewed),
    /// Those of the machine.
    Machine(AwsCredentialProvider),
}

impl Keys {
    /// Those of a source. Nothing is asked yet.
    pub fn of(source: &Source, region: &str, bundle: Option<&Bundle>) -> Result<Self> {
        Ok(match source {
            Source::Fixed(given) => Keys::Fixed(Arc::clone(given)),
            Source::Program(command) => Keys::Renewed(Renewed::by_program(Program::new(command))),
            Source::Service(service) => {
                let way = Way {
                    bundle: bundle.cloned(),
                    ..Way::with_secrets()
                };
                Keys::Renewed(Renewed::by_service(service.clone(), way))
            }
            Source::Machine(endpoint) => Keys::Machine(of_machine(endpoint.as_deref(), region)?),
        })
    }

    /// Credentials that are good now.
    pub fn get(&self, wire: &Wire) -> Result<Arc<AwsCredential>> {
        match self {
            Keys::Fixed(given) => Ok(Arc::clone(given)),
            Keys::Renewed(renewed) => renewed.get(wire),
            Keys::Machine(provider) => {
                let given = wire.wait(provider.get_credential())?;
                given.map_err(|error| of_store(&error))
            }
        }
    }
}

fn of_machine(endpoint: Option<&str>, region: &str) -> Result<AwsCredentialProvider> {
    take_ring();
    let retries = RetryConfig {
        max_retries: 3,
        retry_timeout: MACHINE_LIMIT,
        ..RetryConfig::default()
    };
    let options = ClientOptions::new()
        .with_connect_timeout(MACHINE_LIMIT)
        .with_timeout(MACHINE_LIMIT);
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
    let mut cause: &dyn std::error::Error = error;
    // What says why, and no more: a wrapper's text repeats that of what it wraps.
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    none(&cause.to_string())
}
