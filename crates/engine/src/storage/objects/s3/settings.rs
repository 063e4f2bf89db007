//! Where the store is and who asks, as programs for S3 are told: by `AWS_...` variables and by `~/.aws`.
//!
//! The rules that must hold: no text shows a secret, and nothing here is sent or kept. Another process reads the same
//! variables and files again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use object_store::aws::{AmazonS3ConfigKey as Key, AwsCredential};

use super::credentials::{NO_CREDENTIALS, Source};
use super::profiles::{Profile, read_profile};
use crate::error::{Error, Kind, Result};
use crate::storage::options::{self, Addressing, StoreOptions, is_endpoint};

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

/// Variables that name a service that gives credentials, and what `object_store` calls them.
const IDENTITY_TOKEN: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
const OF_IDENTITY: [(&str, Key); 4] = [
    (IDENTITY_TOKEN, Key::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", Key::RoleArn),
    ("AWS_ROLE_SESSION_NAME", Key::RoleSessionName),
    ("AWS_ENDPOINT_URL_STS", Key::StsEndpoint),
];
const OF_MACHINE: [(&str, Key); 4] = [
    (
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        Key::ContainerCredentialsRelativeUri,
    ),
    (
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        Key::ContainerCredentialsFullUri,
    ),
    (
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        Key::ContainerAuthorizationTokenFile,
    ),
    (METADATA, Key::MetadataEndpoint),
];
const METADATA: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const NO_METADATA: &str = "AWS_EC2_METADATA_DISABLED";

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
    addressing: Option<Addressing>,
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
    /// Where the bucket stands; of a server of one's own in the path.
    pub addressing: Addressing,
    pub region: String,
    pub credentials: Source,
}

impl Site {
    /// Where the keys of a bucket are.
    pub fn root_of(&self, bucket: &str) -> String {
        match self.endpoint.split_once("://") {
            // A certificate for all buckets ends at a dot.
            Some((scheme, host))
                if self.addressing == Addressing::Virtual && !bucket.contains(['.', '_']) =>
            {
                format!("{scheme}://{bucket}.{host}")
            }
            _ => format!("{}/{bucket}", self.endpoint),
        }
    }
}

impl Settings {
    /// Asks for the variables that count; the values of all others stay where they are.
    pub fn from_variables(value: impl Fn(&str) -> Option<String>) -> Self {
        let names = [
            KEY_ID,
            SECRET,
            TOKEN,
            CREDENTIALS_FILE,
            CONFIG_FILE,
            HOME,
            NO_METADATA,
        ];
        let services = [OF_IDENTITY, OF_MACHINE].concat();
        let services: Vec<&str> = services.iter().map(|(name, _)| *name).collect();
        let names = [&names[..], &REGION, &ENDPOINT, &PROFILE, &services].concat();
        let given = names
            .into_iter()
            .filter_map(|name| Some((name, value(name)?)));
        Settings {
            variables: given.filter(|(_, value)| !value.is_empty()).collect(),
            addressing: None,
        }
    }

    /// The same with what `options` say, which come first. A profile that they name comes before credentials in variables, as
    /// with AWS's own programs.
    #[must_use]
    pub fn with(&self, options: &StoreOptions) -> Self {
        let mut settings = self.clone();
        for (key, [variable, _]) in [
            (options::ENDPOINT, ENDPOINT),
            (options::REGION, REGION),
            (options::PROFILE, PROFILE),
        ] {
            if let Some(value) = options.get(key) {
                settings.variables.insert(variable, value.to_owned());
            }
        }
        if options.get(options::PROFILE).is_some() {
            for variable in [KEY_ID, SECRET, TOKEN, IDENTITY_TOKEN] {
                settings.variables.remove(variable);
            }
        }
        settings.addressing = options.addressing().or(self.addressing);
        settings
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
        let usual = if own.is_some() {
            Addressing::Path
        } else {
            Addressing::Virtual
        };
        let aws = || format!("https://s3.{region}.amazonaws.com");
        let endpoint = own.unwrap_or_else(aws).trim_end_matches('/').to_owned();
        if !is_endpoint(&endpoint) {
            let message = "the endpoint is not of the form http://HOST:PORT or https://HOST:PORT";
            return Err(
                refuse(message).advise("set AWS_ENDPOINT_URL to such an address, or not at all")
            );
        }
        Ok(Site {
            endpoint,
            addressing: self.addressing.unwrap_or(usual),
            region,
            credentials,
        })
    }

    /// Where credentials come from: the first of the table of [`super::credentials`].
    fn credentials(&self, profile: &Profile) -> Result<Source> {
        let of_variables = (self.get(KEY_ID), self.get(SECRET), self.get(TOKEN));
        if of_variables.0.is_some() || of_variables.1.is_some() {
            return fixed(of_variables);
        }
        if self.get(IDENTITY_TOKEN).is_some() {
            return Ok(self.service(&OF_IDENTITY));
        }
        let of_profile = (
            profile.get("aws_access_key_id"),
            profile.get("aws_secret_access_key"),
            profile.get("aws_session_token"),
        );
        if of_profile.0.is_some() || of_profile.1.is_some() {
            return fixed(of_profile);
        }
        if let Some(command) = profile.get("credential_process") {
            return Ok(Source::Program(command));
        }
        let is_container = OF_MACHINE
            .iter()
            .any(|(name, _)| *name != METADATA && self.get(name).is_some());
        let no_metadata = self.get(NO_METADATA);
        let has_metadata = no_metadata.is_none_or(|value| !value.eq_ignore_ascii_case("true"));
        if is_container || has_metadata {
            return Ok(self.service(&OF_MACHINE));
        }
        Err(no_credentials("neither variables nor ~/.aws have any"))
    }

    fn service(&self, variables: &[(&str, Key)]) -> Source {
        let given = variables.iter();
        let given = given.filter_map(|(name, key)| Some((*key, self.get(name)?)));
        Source::Service(given.collect())
    }
}

/// Credentials as they stand in variables or in a profile.
fn fixed(given: (Option<String>, Option<String>, Option<String>)) -> Result<Source> {
    let (Some(key_id), Some(secret_key), token) = given else {
        return Err(no_credentials("no access key, or no secret key with it"));
    };
    let is_sendable = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
    let texts = [Some(&key_id), Some(&secret_key), token.as_ref()];
    if !texts.into_iter().flatten().all(is_sendable) {
        let message = "the credentials for S3 hold characters that no credentials have";
        return Err(
            Error::new(Kind::Permission, "connect to the store", message)
                .advise("look for spaces and line ends in them"),
        );
    }
    Ok(Source::Fixed(AwsCredential {
        key_id,
        secret_key,
        token,
    }))
}

fn no_credentials(why: &str) -> Error {
    let message = format!("there are no credentials for S3: {why}");
    Error::new(Kind::Permission, "connect to the store", message).advise(NO_CREDENTIALS)
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
        let key_of = |site: &Site| match &site.credentials {
            Source::Fixed(credential) => credential.key_id.clone(),
            other => panic!("{other:?}"),
        };
        let found = site(&[home]).unwrap();
        assert_eq!(key_of(&found), "AD");
        assert_eq!(found.root_of("b"), "https://b.s3.eu-west-1.amazonaws.com");
        assert_eq!(
            found.root_of("a.b"),
            "https://s3.eu-west-1.amazonaws.com/a.b"
        );
        let found = site(&[home, KEYS[0], KEYS[1], ("AWS_PROFILE", "own")]).unwrap();
        assert_eq!((&*key_of(&found), &*found.region), ("AK", "eu-west-2"));
        assert_eq!(found.root_of("b"), "http://h:1/b");
        let found = site(&[home, ("AWS_ENDPOINT_URL", "http://g"), ("AWS_REGION", "r")]).unwrap();
        assert_eq!(
            (found.root_of("b"), &*found.region),
            ("http://g/b".to_owned(), "r")
        );
    }

    #[test]
    fn options_come_before_variables() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        let text =
            "[own]\naws_access_key_id = AO\naws_secret_access_key = quiet\nregion = eu-west-2\n";
        std::fs::write(home.path().join(".aws/credentials"), text).unwrap();
        let home = home.path().to_str().unwrap();
        let variables = [
            KEYS[0],
            KEYS[1],
            (HOME, home),
            ("AWS_ENDPOINT_URL", "http://g"),
        ];
        let value = |name: &str| {
            let found = variables.iter().find(|(given, _)| *given == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let given = r#"["endpoint=http://h:1", "profile=own", "addressing_style=virtual"]"#;
        let given = StoreOptions::from_json(given).unwrap();
        let found = Settings::from_variables(value).with(&given).site().unwrap();
        assert_eq!(found.root_of("b"), "http://b.h:1");
        assert_eq!(found.region, "eu-west-2");
        assert!(matches!(&found.credentials, Source::Fixed(found) if found.key_id == "AO"));
    }

    #[test]
    fn credentials_come_from_the_first_that_has_them() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        let text = "[default]\ncredential_process = /bin/ask --for 'me'\n[empty]\n";
        std::fs::write(home.path().join(".aws/credentials"), text).unwrap();
        let home = (HOME, home.path().to_str().unwrap());
        let token = (IDENTITY_TOKEN, "/token");
        let container = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/of-me");
        let nobody = ("AWS_PROFILE", "empty");
        let off = (NO_METADATA, "True");
        let found = |variables: &[(&str, &str)]| match site(variables).map(|site| site.credentials)
        {
            Ok(Source::Fixed(_)) => "fixed".to_owned(),
            Ok(Source::Program(command)) => command,
            Ok(Source::Service(settings)) => {
                let keys: Vec<&str> = settings.iter().map(|(key, _)| key.as_ref()).collect();
                format!("service {}", keys.join(" "))
            }
            Err(_) => "none".to_owned(),
        };
        let of_token = "service aws_web_identity_token_file";
        assert_eq!(found(&[home, token, container, KEYS[0], KEYS[1]]), "fixed");
        assert_eq!(found(&[home, token, container]), of_token);
        assert_eq!(found(&[home, container]), "/bin/ask --for 'me'");
        let of_container = "service aws_container_credentials_relative_uri";
        assert_eq!(found(&[home, nobody, container, off]), of_container);
        assert_eq!(
            found(&[home, nobody, (METADATA, "http://m")]),
            "service aws_metadata_endpoint"
        );
        assert_eq!(found(&[home, nobody]), "service ");
        assert_eq!(found(&[home, nobody, off]), "none");
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
