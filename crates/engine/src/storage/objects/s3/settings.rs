//! Where the store is and who asks, as programs for S3 are told: by `AWS_...` variables and by `~/.aws`.
//!
//! The rules that must hold: no text shows a secret, and nothing here is sent or kept. Another process reads the same
//! variables and files again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use object_store::aws::AwsCredential;

use super::profiles::{Profile, read_profile};
use crate::error::{Error, Kind, Result};

/// The variables that count; of two for the same, the first.
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";
const REGION: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
const ENDPOINT: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
const PROFILE: [&str; 2] = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"];
const CREDENTIALS_FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const CONFIG_FILE: &str = "AWS_CONFIG_FILE";
const HOME: &str = "HOME";

/// The region that servers of one's own believe to be in.
const REGION_ELSE: &str = "us-east-1";

/// What the environment says of S3.
///
/// ```
/// use gristmill_engine::storage::objects::s3::Settings;
/// let settings = Settings::from_variables(|name| (name == "AWS_SECRET_ACCESS_KEY").then(|| "hush".into()));
/// assert!(!format!("{settings:?}").contains("hush"));
/// ```
#[derive(Clone, Default)]
pub struct Settings {
    variables: BTreeMap<&'static str, String>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// The store, and who asks it.
#[derive(Debug)]
pub(super) struct Site {
    /// Without a slash at its end.
    pub endpoint: String,
    /// It is no part of AWS: the bucket stands in the path.
    pub is_own: bool,
    pub region: String,
    pub credentials: AwsCredential,
}

impl Site {
    /// Where the keys of a bucket are.
    pub fn root_of(&self, bucket: &str) -> String {
        match self.endpoint.split_once("://") {
            // A certificate for all buckets ends at a dot.
            Some((scheme, host)) if !self.is_own && !bucket.contains(['.', '_']) => {
                format!("{scheme}://{bucket}.{host}")
            }
            _ => format!("{}/{bucket}", self.endpoint),
        }
    }
}

impl Settings {
    /// Asks for the variables that count; the values of all others stay where they are.
    pub fn from_variables(value: impl Fn(&str) -> Option<String>) -> Self {
        let names = [KEY_ID, SECRET, TOKEN, CREDENTIALS_FILE, CONFIG_FILE, HOME];
        let names = [names.as_slice(), &REGION, &ENDPOINT, &PROFILE].concat();
        let given = names
            .into_iter()
            .filter_map(|name| Some((name, value(name)?)));
        Settings {
            variables: given.filter(|(_, value)| !value.is_empty()).collect(),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn first(&self, names: [&str; 2]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    fn file(&self, variable: &str, name: &str) -> Option<PathBuf> {
        let below_home = || Some(PathBuf::from(self.get(HOME)?).join(".aws").join(name));
        self.get(variable).map(PathBuf::from).or_else(below_home)
    }

    /// Puts together what variables and files say.
    ///
    /// # Errors
    /// There are no credentials, or what is said makes no sense.
    pub(super) fn site(&self) -> Result<Site> {
        let chosen = self.first(PROFILE);
        let name = chosen.as_deref().unwrap_or("default");
        let files = [
            self.file(CREDENTIALS_FILE, "credentials"),
            self.file(CONFIG_FILE, "config"),
        ];
        let profile = read_profile(files.each_ref().map(Option::as_deref), name)?;
        if let (None, Some(name)) = (&profile, &chosen) {
            let message = format!("there is no profile {name:?} in ~/.aws");
            return Err(refuse(&message).advise("set AWS_PROFILE to one that there is"));
        }
        let profile = profile.unwrap_or_default();
        let credentials = self.credentials(&profile)?;
        let region = self.first(REGION).or(profile.get("region"));
        let region = region.unwrap_or_else(|| REGION_ELSE.to_owned());
        if !region
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-')
        {
            let message = format!("{region:?} is not the name of a region");
            return Err(refuse(&message).advise("set AWS_REGION to the region of the bucket"));
        }
        let own = self.first(ENDPOINT).or(profile.get("endpoint_url"));
        let is_own = own.is_some();
        let aws = || format!("https://s3.{region}.amazonaws.com");
        let endpoint = own.unwrap_or_else(aws).trim_end_matches('/').to_owned();
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| endpoint.starts_with(scheme));
        if !is_url || endpoint.contains(['@', '?', '#']) {
            let message = "the endpoint is not of the form http://HOST:PORT or https://HOST:PORT";
            return Err(
                refuse(message).advise("set AWS_ENDPOINT_URL to such an address, or not at all")
            );
        }
        Ok(Site {
            endpoint,
            is_own,
            region,
            credentials,
        })
    }

    /// The credentials: of the variables, or else of the profile.
    fn credentials(&self, profile: &Profile) -> Result<AwsCredential> {
        let of_variables = (self.get(KEY_ID), self.get(SECRET), self.get(TOKEN));
        let of_profile = || {
            (
                profile.get("aws_access_key_id"),
                profile.get("aws_secret_access_key"),
                profile.get("aws_session_token"),
            )
        };
        let given = match of_variables {
            (None, None, _) => of_profile(),
            given => given,
        };
        let (Some(key_id), Some(secret_key), token) = given else {
            let message =
                "there are no credentials for S3: no access key, or no secret key with it";
            return Err(Error::new(Kind::Permission, "connect to the store", message).advise(
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws/credentials in AWS_PROFILE",
            ));
        };
        let is_sendable = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
        if ![Some(&key_id), Some(&secret_key), token.as_ref()]
            .into_iter()
            .flatten()
            .all(is_sendable)
        {
            let message = "the credentials for S3 hold characters that no credentials have";
            return Err(
                Error::new(Kind::Permission, "connect to the store", message)
                    .advise("look for spaces and line ends in them"),
            );
        }
        Ok(AwsCredential {
            key_id,
            secret_key,
            token,
        })
    }
}

fn refuse(message: &str) -> Error {
    Error::new(Kind::BadOption, "connect to the store", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(variables: &[(&str, &str)]) -> Result<Site> {
        let value = |name: &str| {
            let found = variables.iter().find(|(given, _)| *given == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::from_variables(value).site()
    }

    const KEYS: [(&str, &str); 2] = [(KEY_ID, "AK"), (SECRET, "hush")];

    #[test]
    fn variables_come_before_files_and_buckets_stand_where_the_store_wants_them() {
        let home = tempfile::tempdir().unwrap();
        let aws = home.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        let text =
            "[default]\naws_access_key_id = AD\naws_secret_access_key=quiet # not a comment\n";
        std::fs::write(
            aws.join("credentials"),
            text.replace(" # not a comment", ""),
        )
        .unwrap();
        let text = "[default]\nregion=eu-west-1\n[profile own]\nregion = eu-west-2\nendpoint_url = http://h:1/\n";
        std::fs::write(aws.join("config"), text).unwrap();
        let home = (HOME, home.path().to_str().unwrap());
        let found = site(&[home]).unwrap();
        assert_eq!(found.credentials.key_id, "AD");
        assert_eq!(found.root_of("b"), "https://b.s3.eu-west-1.amazonaws.com");
        assert_eq!(
            found.root_of("a.b"),
            "https://s3.eu-west-1.amazonaws.com/a.b"
        );
        let found = site(&[home, KEYS[0], KEYS[1], ("AWS_PROFILE", "own")]).unwrap();
        assert_eq!(
            (&*found.credentials.key_id, &*found.region),
            ("AK", "eu-west-2")
        );
        assert_eq!(found.root_of("b"), "http://h:1/b");
        let found = site(&[home, ("AWS_ENDPOINT_URL", "http://g"), ("AWS_REGION", "r")]).unwrap();
        assert_eq!(
            (found.root_of("b"), &*found.region),
            ("http://g/b".to_owned(), "r")
        );
    }

    #[test]
    fn what_makes_no_sense_is_said_without_secrets() {
        let with = |name, value| site(&[KEYS[0], KEYS[1], (name, value)]);
        for (made, says) in [
            (site(&[KEYS[0]]), "no credentials"),
            (site(&[KEYS[0], (SECRET, "hu sh")]), "spaces"),
            (with(TOKEN, "hu\nsh"), "spaces"),
            (with("AWS_ENDPOINT_URL", "h:1"), "endpoint"),
            (with("AWS_ENDPOINT_URL", "http://me:hush@h"), "endpoint"),
            (with("AWS_PROFILE", "gone"), "no profile \"gone\""),
            (with("AWS_REGION", "a b"), "AWS_REGION"),
        ] {
            let error = made.unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("hu"), "{error}");
        }
    }
}
