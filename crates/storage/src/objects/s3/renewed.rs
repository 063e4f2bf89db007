//! Credentials that end: kept while they are good, and asked for again before their end.
//!
//! ```text
//!   asked for ─────────────────────────────── 5 minutes left ─────────── end
//!              the same for all                asked again:               asked again:
//!                                              if that fails, the same    if that fails, the job fails
//! ```
//!
//! One thread asks; the others use what there is, or wait for it. All of them look at the end of the jobs meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use object_store::aws::AwsCredential;

use super::program::CredentialProgram;
use super::services::Service;
use super::temporary_credential::none;
use crate::net::http_client::{HttpClient, TransportPolicy};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// Credentials that end sooner than this are asked for again.
const RENEWED_BEFORE: Duration = Duration::from_secs(300);

/// How soon they are asked for again where such were given as end soon, too; ten times that after a failure, which may take its time.
const PAUSE: Duration = Duration::from_secs(1);

/// How soon it is seen that another thread was given some.
const LOOK: Duration = Duration::from_millis(10);

/// Credentials that end.
pub struct Renewed {
    giver: Giver,
    held: Mutex<Option<CachedCredential>>,
    asking: Mutex<()>,
    pause: Duration,
}

/// Who gives them.
enum Giver {
    Program(CredentialProgram),
    Service(Service, TransportPolicy),
}

#[derive(Clone)]
struct CachedCredential {
    credential: Arc<AwsCredential>,
    end: Option<SystemTime>,
    /// Until then nobody asks for others, unless these end.
    kept: Instant,
}

impl fmt::Debug for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewed")
    }
}

impl CachedCredential {
    fn ends_within(&self, time: Duration) -> bool {
        self.end.is_some_and(|end| end <= SystemTime::now() + time)
    }
}

impl Renewed {
    /// Those that a program prints.
    pub fn by_program(program: CredentialProgram) -> Self {
        Renewed::by(Giver::Program(program))
    }

    /// Those that a service gives, which is reached this way.
    pub fn by_service(service: Service, policy: TransportPolicy) -> Self {
        Renewed::by(Giver::Service(service, policy))
    }

    fn by(giver: Giver) -> Self {
        Renewed {
            giver,
            held: Mutex::default(),
            asking: Mutex::default(),
            pause: PAUSE,
        }
    }

    /// Credentials that are good now.
    pub fn get(&self, client: &HttpClient) -> Result<Arc<AwsCredential>> {
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        let _asking = loop {
            match self.asking.try_lock() {
                Ok(asking) => break asking,
                Err(TryLockError::Poisoned(asking)) => break asking.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            if let Some(good) = self.good() {
                return Ok(good);
            }
            if client.stop().sleep(LOOK) {
                return Err(Error::cancelled());
            }
        };
        if let Some(fresh) = self.fresh() {
            return Ok(fresh); // another thread has asked
        }
        let given = match &self.giver {
            Giver::Program(program) => program.ask(client.stop()),
            Giver::Service(service, policy) => service.ask(client, policy),
        };
        let given = given.and_then(|given| {
            let held = CachedCredential {
                credential: Arc::new(given.credential),
                end: given.end,
                kept: Instant::now() + self.pause,
            };
            match held.ends_within(Duration::ZERO) {
                true => Err(none("those that were given have expired already")
                    .advise("check the clock of this machine")),
                false => Ok(held),
            }
        });
        match given {
            Ok(held) => {
                let credential = Arc::clone(&held.credential);
                *lock(&self.held) = Some(held);
                Ok(credential)
            }
            Err(error) => {
                let good = self.good().filter(|_| error.kind() != Kind::Cancelled);
                if let Some(held) = &mut *lock(&self.held) {
                    held.kept = Instant::now() + 10 * self.pause;
                }
                good.ok_or(error)
            }
        }
    }

    /// Such as need not be asked for.
    fn fresh(&self) -> Option<Arc<AwsCredential>> {
        let held = lock(&self.held).clone()?;
        let is_kept = Instant::now() < held.kept && !held.ends_within(Duration::ZERO);
        let is_fresh = is_kept || !held.ends_within(RENEWED_BEFORE);
        is_fresh.then_some(held.credential)
    }

    /// Such as have not ended.
    fn good(&self) -> Option<Arc<AwsCredential>> {
        let held = lock(&self.held).clone()?;
        (!held.ends_within(Duration::ZERO)).then_some(held.credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, TimeDelta, Utc};
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A program that prints credentials that end in so many seconds, counts how often it ran, and fails when it is to.
    fn renewed(folder: &Path, seconds: Option<i64>) -> Renewed {
        let end = seconds.map(|seconds| {
            let end: DateTime<Utc> =
                DateTime::from(SystemTime::now()) + TimeDelta::seconds(seconds);
            format!(r#","Expiration":"{}""#, end.to_rfc3339())
        });
        let json = format!(
            r#"{{"Version":1,"AccessKeyId":"AK","SecretAccessKey":"hush","SessionToken":""{}}}"#,
            end.unwrap_or_default()
        );
        let folder = folder.display();
        let command =
            format!("echo ran >> '{folder}/ran'; test ! -e '{folder}/fail' && echo '{json}'");
        Renewed {
            pause: Duration::ZERO,
            ..Renewed::by_program(CredentialProgram::new(&command))
        }
    }

    fn runs(folder: &Path) -> usize {
        fs::read_to_string(folder.join("ran"))
            .unwrap()
            .lines()
            .count()
    }

    #[test]
    fn they_are_asked_for_again_when_they_are_about_to_end() {
        let client = HttpClient::default();
        for (seconds, wanted) in [(None, 1), (Some(3600), 1), (Some(299), 3)] {
            let folder = tempfile::tempdir().unwrap();
            let renewed = renewed(folder.path(), seconds);
            for _ in 0..3 {
                let found = renewed.get(&client).unwrap();
                assert_eq!((&*found.key_id, &*found.secret_key), ("AK", "hush"));
                assert_eq!(found.token, None);
            }
            assert_eq!(runs(folder.path()), wanted, "{seconds:?}");
            assert!(!format!("{renewed:?}").contains("hush"));
        }
    }

    #[test]
    fn they_are_not_asked_for_with_each_request() {
        let folder = tempfile::tempdir().unwrap();
        let renewed = Renewed {
            pause: PAUSE,
            ..renewed(folder.path(), Some(100))
        };
        for _ in 0..100 {
            renewed.get(&HttpClient::default()).unwrap();
        }
        assert!(runs(folder.path()) < 20);
    }

    #[test]
    fn those_that_are_still_good_are_used_while_nobody_gives_others() {
        let folder = tempfile::tempdir().unwrap();
        let renewed = renewed(folder.path(), Some(2));
        renewed.get(&HttpClient::default()).unwrap();
        fs::write(folder.path().join("fail"), "").unwrap();
        renewed.get(&HttpClient::default()).unwrap();
        assert_eq!(runs(folder.path()), 2);
        std::thread::sleep(Duration::from_millis(2100));
        let error = renewed.get(&HttpClient::default()).unwrap_err().to_string();
        assert!(error.contains("failed (exit status: 1)"), "{error}");
    }

    #[test]
    fn nobody_who_waits_for_them_is_deaf_to_the_end_of_the_jobs() {
        let renewed = Renewed::by_program(CredentialProgram::new("exec sleep 50"));
        let (client, flag) = (HttpClient::default(), Arc::new(AtomicBool::new(false)));
        let _job = client.stop().by(Arc::clone(&flag));
        let began = Instant::now();
        std::thread::scope(|scope| {
            let asked = [(); 2].map(|()| scope.spawn(|| renewed.get(&client).unwrap_err()));
            std::thread::sleep(Duration::from_millis(300));
            flag.store(true, Ordering::Relaxed);
            for asked in asked {
                assert_eq!(asked.join().unwrap().kind(), Kind::Cancelled);
            }
        });
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn those_that_have_ended_are_no_credentials() {
        let folder = tempfile::tempdir().unwrap();
        let error = renewed(folder.path(), Some(-5))
            .get(&HttpClient::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("expired already") && error.contains("clock"),
            "{error}"
        );
    }
}
