//! Where the store is and who asks, as programs for S3 are told: by `AWS_...` variables and by `~/.aws`.
//!
//! The rules that must hold: no text shows a secret, and nothing here is sent or kept. Another process reads the same
//! variables and files again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::AwsCredential;

use super::credentials::CredentialSource;
use super::profiles::{Profile, read_profile};
use super::services::{Container, ContainerToken, Identity, Service};
use super::temporary_credential::NO_CREDENTIALS;
use crate::net::trust::Bundle;
use crate::objects::identity::is_server;
use crate::store_kind::{
    CONNECT_TIMEOUT, OptionValues, REQUEST_TIMEOUT, REQUESTS_AT_ONCE, ReadVariable, StoreOption,
};
use gristmill_base::error::{Error, Kind, Result};

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

/// Variables that name a service that gives credentials.
const IDENTITY_TOKEN: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
const ROLE: &str = "AWS_ROLE_ARN";
const SESSION: &str = "AWS_ROLE_SESSION_NAME";
const STS: [&str; 2] = ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"];
const CONTAINER: [&str; 2] = [
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];
const CONTAINER_TOKEN: [&str; 2] = [
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
];
const METADATA: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const NO_METADATA: &str = "AWS_EC2_METADATA_DISABLED";

/// Whose certificates are trusted; in a profile `ca_bundle`.
const BUNDLE: &str = "AWS_CA_BUNDLE";

/// What a session is called where the user gives no name.
const SESSION_ELSE: &str = "gristmill";

/// The region that self-hosted servers believe to be in.
const REGION_ELSE: &str = "us-east-1";

/// The options, in the order of the help.
pub const OPTIONS: [StoreOption; 7] = [
    ENDPOINT_OPTION,
    REGION_OPTION,
    PROFILE_OPTION,
    ADDRESSING_OPTION,
    CONNECT_TIMEOUT,
    REQUEST_TIMEOUT,
    REQUESTS_AT_ONCE,
];
const ENDPOINT_OPTION: StoreOption = StoreOption::new(
    "endpoint",
    "http://HOST:PORT or https://HOST:PORT",
    is_server,
);
const REGION_OPTION: StoreOption = StoreOption::new(
    "region",
    "the name of a region, such as eu-west-1",
    |text| !text.is_empty() && is_region(text),
);
const PROFILE_OPTION: StoreOption =
    StoreOption::new("profile", "the name of a profile of ~/.aws", |text| {
        !text.is_empty()
    });
const ADDRESSING_OPTION: StoreOption =
    StoreOption::new("addressing_style", "path or virtual", |text| {
        addressing(text).is_some()
    });

/// How credentials are given, which are no options.
pub const CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or name a profile of \
    ~/.aws (profile=NAME)";

/// Where the name of a bucket stands in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/key`
    Path,
    /// `https://bucket.host/key`
    Virtual,
}

fn addressing(text: &str) -> Option<Addressing> {
    match text {
        "path" => Some(Addressing::Path),
        "virtual" => Some(Addressing::Virtual),
        _ => None,
    }
}

fn is_region(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// What the environment says of S3, and the options of a job.
#[derive(Debug, Clone)]
pub struct S3Settings {
    variable: ReadVariable,
    /// What options say in the place of variables: another value, or none.
    instead: BTreeMap<&'static str, Option<String>>,
    addressing: Option<Addressing>,
}

/// The store, and who asks it.
#[derive(Debug)]
pub(super) struct Site {
    /// Without a slash at its end.
    pub endpoint: String,
    /// Where the bucket stands; of a self-hosted server in the path.
    pub addressing: Addressing,
    pub region: String,
    pub credentials: CredentialSource,
    pub bundle: Option<Bundle>,
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

impl S3Settings {
    /// What variables say, and `options`, which come first. A profile that they name comes before credentials in variables, as
    /// with AWS's own programs.
    pub fn new(variable: ReadVariable, options: &OptionValues) -> Self {
        let mut instead = BTreeMap::new();
        for (option, [variable, _]) in [
            (ENDPOINT_OPTION, ENDPOINT),
            (REGION_OPTION, REGION),
            (PROFILE_OPTION, PROFILE),
        ] {
            if let Some(value) = option.of(options) {
                instead.insert(variable, Some(value.to_owned()));
            }
        }
        if PROFILE_OPTION.of(options).is_some() {
            instead.extend([KEY_ID, SECRET, TOKEN, IDENTITY_TOKEN].map(|name| (name, None)));
        }
        S3Settings {
            variable,
            instead,
            addressing: ADDRESSING_OPTION.of(options).and_then(addressing),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        let value = match self.instead.get(name) {
            Some(value) => value.clone(),
            None => (self.variable)(name),
        };
        value.filter(|value| !value.is_empty())
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
            return Err(refuse(&message).advise("set AWS_PROFILE to a profile that exists"));
        }
        let profile = profile.unwrap_or_default();
        let region = self.first(REGION).or(profile.get("region"));
        let region = region.unwrap_or_else(|| REGION_ELSE.to_owned());
        if !is_region(&region) {
            let message = format!("{region:?} is not the name of a region");
            return Err(refuse(&message).advise("set AWS_REGION to the region of the bucket"));
        }
        let credentials = self.credentials(&profile, &region)?;
        let own = self.first(ENDPOINT).or(profile.get("endpoint_url"));
        let usual = if own.is_some() {
            Addressing::Path
        } else {
            Addressing::Virtual
        };
        let aws = || format!("https://s3.{region}.amazonaws.com");
        let endpoint = own.unwrap_or_else(aws).trim_end_matches('/').to_owned();
        if !is_server(&endpoint) {
            let message = "the endpoint is not of the form http://HOST:PORT or https://HOST:PORT";
            return Err(
                refuse(message).advise("set AWS_ENDPOINT_URL to such an address, or unset it")
            );
        }
        Ok(Site {
            endpoint,
            addressing: self.addressing.unwrap_or(usual),
            region,
            credentials,
            bundle: self.bundle(&profile),
        })
    }

    /// Where credentials come from: the first of the table of [`super::credentials`].
    fn credentials(&self, profile: &Profile, region: &str) -> Result<CredentialSource> {
        let of_variables = (self.get(KEY_ID), self.get(SECRET), self.get(TOKEN));
        if of_variables.0.is_some() || of_variables.1.is_some() {
            return fixed(of_variables);
        }
        if let Some(token_file) = self.get(IDENTITY_TOKEN) {
            let identity = self.identity(token_file, region)?;
            return Ok(CredentialSource::Service(Service::Identity(identity)));
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
            return Ok(CredentialSource::Program(command));
        }
        let [relative, full] = CONTAINER.map(|name| self.get(name));
        if relative.is_some() || full.is_some() {
            let [in_file, given] = CONTAINER_TOKEN.map(|name| self.get(name));
            let token = in_file
                .map(ContainerToken::InFile)
                .or(given.map(ContainerToken::Given));
            let container = Container::new(relative, full, token)?;
            return Ok(CredentialSource::Service(Service::Container(container)));
        }
        let no_metadata = self.get(NO_METADATA);
        if no_metadata.is_none_or(|value| !value.eq_ignore_ascii_case("true")) {
            return Ok(CredentialSource::Machine(self.get(METADATA)));
        }
        Err(no_credentials("neither variables nor ~/.aws have any"))
    }

    fn identity(&self, token_file: String, region: &str) -> Result<Identity> {
        let Some(role) = self.get(ROLE) else {
            let what = "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not";
            return Err(no_credentials(what).advise("set AWS_ROLE_ARN to the role to take"));
        };
        let aws = || format!("https://sts.{region}.amazonaws.com");
        let endpoint = self.first(STS).unwrap_or_else(aws);
        if !is_server(&endpoint) {
            let message =
                "the endpoint of STS is not of the form http://HOST:PORT or https://HOST:PORT";
            let advice = "set AWS_ENDPOINT_URL_STS to such an address, or unset it";
            return Err(refuse(message).advise(advice));
        }
        Ok(Identity {
            token_file,
            role,
            session: self.get(SESSION).unwrap_or_else(|| SESSION_ELSE.to_owned()),
            endpoint,
        })
    }

    fn bundle(&self, profile: &Profile) -> Option<Bundle> {
        let found = self.get(BUNDLE).map(|file| (BUNDLE, file));
        let found = found.or_else(|| Some(("ca_bundle", profile.get("ca_bundle")?)));
        found.map(|(named_by, file)| Bundle {
            named_by,
            file: file.into(),
        })
    }
}

/// Credentials as they stand in variables or in a profile.
fn fixed(given: (Option<String>, Option<String>, Option<String>)) -> Result<CredentialSource> {
    let (Some(key_id), Some(secret_key), token) = given else {
        return Err(no_credentials("no access key, or no secret key with it"));
    };
    let is_sendable = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
    let texts = [Some(&key_id), Some(&secret_key), token.as_ref()];
    if !texts.into_iter().flatten().all(is_sendable) {
        let message = "the credentials for S3 hold characters that credentials cannot have";
        return Err(
            Error::new(Kind::Permission, "connect to the store", message)
                .advise("look for spaces and line ends in them"),
        );
    }
    Ok(CredentialSource::Fixed(Arc::new(AwsCredential {
        key_id,
        secret_key,
        token,
    })))
}

fn no_credentials(why: &str) -> Error {
    let message = format!("there are no credentials for S3: {why}");
    Error::new(Kind::Permission, "connect to the store", message).advise(NO_CREDENTIALS)
}

fn refuse(message: &str) -> Error {
    Error::new(Kind::BadOption, "connect to the store", message)
}

#[cfg(test)]
mod tests;
