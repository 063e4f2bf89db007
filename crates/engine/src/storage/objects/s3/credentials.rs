//! Who asks: where credentials for S3 come from, and how they are renewed.
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
//! The first that is there counts: the order of AWS's own programs. `object_store` asks the services (2, 5, 6); a program
//! is ours to run. Credentials are asked for once, and again when less than five minutes of them are left. The rule that must hold: no text
//! shows a secret, nor what a program printed.

use std::fmt;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use chrono::DateTime;
use object_store::aws::{
    AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential, AwsCredentialProvider,
};
use object_store::{ClientOptions, CredentialProvider, RetryConfig, StaticCredentialProvider};
use serde::Deserialize;

use crate::error::{Error, Kind, Result};
use crate::storage::wire::take_ring;
use crate::sys::processes::kill_tree;

/// Credentials that end sooner than this are asked for again (as `object_store` does with those of services).
const RENEWED_BEFORE: Duration = Duration::from_secs(300);

/// A service that gives credentials is near, or not there.
const SERVICE_LIMIT: Duration = Duration::from_secs(5);

/// A program that gives credentials may ask a person something; AWS's own programs wait so long, too.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// What to do where there are none.
pub const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws in \
    AWS_PROFILE";

/// Where credentials come from.
pub enum Source {
    /// From variables or a file.
    Fixed(AwsCredential),
    /// From a program: its command line.
    Program(String),
    /// From a service: what `object_store` has to know of it.
    Service(Vec<(Key, String)>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Fixed(_) => "Fixed",
            Source::Program(_) => "Program",
            Source::Service(_) => "Service",
        })
    }
}

impl Source {
    /// What gives the credentials, whenever they are wanted. Nothing is asked yet.
    pub fn provider(&self, region: &str) -> Result<AwsCredentialProvider> {
        match self {
            Source::Fixed(given) => Ok(Arc::new(StaticCredentialProvider::new(AwsCredential {
                key_id: given.key_id.clone(),
                secret_key: given.secret_key.clone(),
                token: given.token.clone(),
            }))),
            Source::Program(command) => {
                let command = command.clone();
                Ok(Arc::new(Program::new(command, PROGRAM_LIMIT)))
            }
            Source::Service(settings) => of_service(settings, region),
        }
    }
}

fn of_service(settings: &[(Key, String)], region: &str) -> Result<AwsCredentialProvider> {
    take_ring();
    let retries = RetryConfig {
        max_retries: 3,
        retry_timeout: SERVICE_LIMIT,
        ..RetryConfig::default()
    };
    let options = ClientOptions::new()
        .with_connect_timeout(SERVICE_LIMIT)
        .with_timeout(SERVICE_LIMIT);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name("none") // it must have one, and asks it for nothing
        .with_region(region)
        .with_retry(retries)
        .with_client_options(options);
    for (key, value) in settings {
        builder = builder.with_config(*key, value);
    }
    match builder.build() {
        Ok(store) => Ok(store.credentials().clone()),
        Err(error) => Err(none(&error)),
    }
}

/// The error of credentials that are not to be had.
pub fn none(error: &object_store::Error) -> Error {
    let mut cause: &dyn std::error::Error = error;
    // What says why, and no more: a wrapper's text repeats that of what it wraps.
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let message = format!("there are no credentials for S3: {cause}");
    let error = Error::new(Kind::Permission, "connect to the store", message);
    error.advise(NO_CREDENTIALS)
}

/// A program that prints credentials (`credential_process`).
struct Program {
    /// For the shell.
    command: String,
    limit: Duration,
    last: Mutex<Option<(Arc<AwsCredential>, Option<SystemTime>)>>,
}

/// What such a program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    /// When they end; they never do where it is not said.
    expiration: Option<String>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

#[async_trait]
impl CredentialProvider for Program {
    type Credential = AwsCredential;

    /// Those of last time while they last; else the program runs. Others wait for it.
    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let soon = SystemTime::now() + RENEWED_BEFORE;
        match &*last {
            Some((credential, end)) if end.is_none_or(|end| end > soon) => Ok(credential.clone()),
            _ => {
                let asked = self.ask().map_err(|message| object_store::Error::Generic {
                    store: "S3",
                    source: message.into(),
                })?;
                let credential = asked.0.clone();
                *last = Some(asked);
                Ok(credential)
            }
        }
    }
}

impl Program {
    fn new(command: String, limit: Duration) -> Self {
        Program {
            command,
            limit,
            last: Mutex::default(),
        }
    }

    /// What the program prints. One that takes too long is killed, and what it began.
    fn run(&self) -> Result<Vec<u8>, String> {
        let said = |what: &str| format!("the program in credential_process {what}");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.command).stdin(Stdio::null());
        // It may ask a person something, and say what is wrong: its standard error is ours.
        shell.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let begun = shell.spawn();
        let mut child = begun.map_err(|error| said(&format!("does not start: {error}")))?;
        let (send, printed) = channel();
        let mut stdout = child.stdout.take();
        let read = move || {
            let mut text = Vec::new();
            let read = stdout.as_mut().map(|stdout| stdout.read_to_end(&mut text));
            let _ = send.send(read.transpose().map(|_| text)); // nobody waits any more
        };
        let begun = std::thread::Builder::new().spawn(read);
        begun.map_err(|error| said(&format!("cannot be read: {error}")))?;
        let printed = printed.recv_timeout(self.limit);
        if printed.is_err() {
            kill_tree(child.id());
        }
        let status = child.wait();
        let Ok(printed) = printed else {
            return Err(said(&format!(
                "did not end within {} s",
                self.limit.as_secs()
            )));
        };
        let status = status.map_err(|error| said(&format!("is lost: {error}")))?;
        if !status.success() {
            return Err(said(&format!("failed ({status})")));
        }
        printed.map_err(|error| said(&format!("cannot be read: {error}")))
    }

    fn ask(&self) -> Result<(Arc<AwsCredential>, Option<SystemTime>), String> {
        let printed = self.run()?;
        let odd = "the program in credential_process did not print credentials as JSON, version 1";
        let printed: Printed = serde_json::from_slice(&printed).map_err(|_secret| odd)?;
        if printed.version != 1 {
            return Err(odd.to_owned());
        }
        let end = printed
            .expiration
            .as_deref()
            .map(DateTime::parse_from_rfc3339);
        let end = end.transpose().map_err(|error| {
            format!("the program in credential_process printed an Expiration that is not a time: {error}")
        })?;
        let credential = AwsCredential {
            key_id: printed.access_key_id,
            secret_key: printed.secret_access_key,
            token: printed.session_token.filter(|token| !token.is_empty()),
        };
        Ok((Arc::new(credential), end.map(SystemTime::from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(provider: &AwsCredentialProvider) -> object_store::Result<Arc<AwsCredential>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(provider.get_credential())
    }

    /// A program that prints credentials that end in so many seconds, and counts how often it ran.
    fn program(folder: &std::path::Path, seconds: Option<i64>) -> AwsCredentialProvider {
        let end = seconds.map(|seconds| {
            let end =
                chrono::DateTime::from(SystemTime::now()) + chrono::TimeDelta::seconds(seconds);
            let end: DateTime<chrono::Utc> = end;
            format!(r#","Expiration":"{}""#, end.to_rfc3339())
        });
        let json = format!(
            r#"{{"Version":1,"AccessKeyId":"AK","SecretAccessKey":"hush","SessionToken":""{}}}"#,
            end.unwrap_or_default()
        );
        let command = format!("echo ran >> '{}/ran'; echo '{json}'", folder.display());
        Source::Program(command).provider("r").unwrap()
    }

    #[test]
    fn a_program_runs_again_when_its_credentials_are_about_to_end() {
        for (seconds, runs) in [(None, 1), (Some(3600), 1), (Some(299), 3), (Some(-5), 3)] {
            let folder = tempfile::tempdir().unwrap();
            let provider = program(folder.path(), seconds);
            for _ in 0..3 {
                let found = ask(&provider).unwrap();
                assert_eq!((&*found.key_id, &*found.secret_key), ("AK", "hush"));
                assert_eq!(found.token, None);
            }
            let ran = std::fs::read_to_string(folder.path().join("ran")).unwrap();
            assert_eq!(ran.lines().count(), runs, "{seconds:?}");
            assert!(!format!("{provider:?}").contains("hush"));
        }
    }

    #[test]
    fn a_program_that_fails_is_named_without_what_it_printed() {
        for (command, says) in [
            ("echo hush; exit 3", "failed (exit status: 3)"),
            ("echo hush", "did not print"),
            (
                r#"echo '{"Version":2,"AccessKeyId":"hush","SecretAccessKey":"hush"}'"#,
                "version 1",
            ),
            (
                r#"echo '{"Version":1,"AccessKeyId":"a","SecretAccessKey":"hush","Expiration":"soon"}'"#,
                "not a time",
            ),
            ("/no/such/program", "failed (exit status: 127)"),
        ] {
            let provider = Source::Program(command.to_owned()).provider("r").unwrap();
            let error = none(&ask(&provider).unwrap_err()).to_string();
            assert!(error.contains(says) && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_what_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let ends = folder.path().join("ends");
        let command = format!("(sleep 1; touch '{}') & wait", ends.display());
        let began = std::time::Instant::now();
        let program = Program::new(command, Duration::from_millis(100));
        let error = program.run().unwrap_err();
        assert!(error.contains("did not end within 0 s"), "{error}");
        assert!(began.elapsed() < Duration::from_millis(900));
        std::thread::sleep(Duration::from_millis(1200).saturating_sub(began.elapsed()));
        assert!(!ends.exists());
    }
}
