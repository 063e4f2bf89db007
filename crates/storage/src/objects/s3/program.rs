//! Credentials for S3 from a program: `credential_process` of an AWS profile.
//!
//! The shell runs its command line, and the program prints JSON. A program that takes longer than [`LIMIT`] is killed with its
//! children, and so is one that still runs when the jobs are cancelled. (docs.aws.amazon.com: `cli-configure-sourcing-external`.)

use std::fmt;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use chrono::DateTime;
use object_store::aws::AwsCredential;
use serde::Deserialize;

use super::temporary_credential::{TemporaryCredential, none};
use crate::net::stop::Stop;
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::processes::kill_tree;

/// How long the program may take. It may ask a person for a code; AWS's own programs wait as long.
const LIMIT: Duration = Duration::from_secs(60);

/// How often it is checked whether the jobs are cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// A program that prints credentials.
#[derive(Clone)]
pub struct CredentialProgram {
    /// The command line for the shell.
    command: String,
    limit: Duration,
}

/// What such a program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ProgramOutput {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    /// When they expire; without it, never.
    expiration: Option<String>,
}

impl fmt::Debug for CredentialProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl CredentialProgram {
    /// The program that this command line runs.
    pub fn new(command: &str) -> Self {
        CredentialProgram {
            command: command.to_owned(),
            limit: LIMIT,
        }
    }

    /// Runs the program and returns what it prints; the error is a sentence that does not show it.
    fn run(&self, stop: &Stop) -> Result<Vec<u8>, String> {
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
            let read = read.transpose().map(|_| text);
            let _ = send.send(read.map_err(|error| error.to_string())); // nobody waits any more
        };
        let begun = std::thread::Builder::new().spawn(read);
        begun.map_err(|error| said(&format!("cannot be read: {error}")))?;
        let began = Instant::now();
        let printed = loop {
            let printed = printed.recv_timeout(LOOK.min(self.limit));
            let waits = printed == Err(RecvTimeoutError::Timeout) && began.elapsed() < self.limit;
            if !waits || stop.is_set() {
                break printed;
            }
        };
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

    /// Runs the program and returns the credentials that it prints.
    ///
    /// # Errors
    /// The program fails or prints something else; the error never shows what it printed. Or the jobs are cancelled.
    pub fn ask(&self, stop: &Stop) -> Result<TemporaryCredential> {
        self.given(stop).map_err(|why| match stop.is_set() {
            true => Error::cancelled(),
            false => none(&why),
        })
    }

    fn given(&self, stop: &Stop) -> Result<TemporaryCredential, String> {
        let printed = self.run(stop)?;
        let odd = "the program in credential_process did not print credentials as JSON, version 1";
        let printed: ProgramOutput = serde_json::from_slice(&printed).map_err(|_secret| odd)?;
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
        Ok(TemporaryCredential {
            credential,
            end: end.map(SystemTime::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let error = CredentialProgram::new(command)
                .given(&Stop::default())
                .err()
                .unwrap();
            assert!(error.contains(says) && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_what_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let ends = folder.path().join("ends");
        let command = format!("(sleep 1; touch '{}') & wait", ends.display());
        let began = std::time::Instant::now();
        let program = CredentialProgram {
            limit: Duration::from_millis(100),
            ..CredentialProgram::new(&command)
        };
        let error = program.run(&Stop::default()).unwrap_err();
        assert!(error.contains("did not end within 0 s"), "{error}");
        assert!(began.elapsed() < Duration::from_millis(900));
        std::thread::sleep(Duration::from_millis(1200).saturating_sub(began.elapsed()));
        assert!(!ends.exists());
    }
}
