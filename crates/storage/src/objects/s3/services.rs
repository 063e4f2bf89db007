//! Services that give credentials for a token: AWS's STS for that of a web identity, and the agent of a container.
//!
//! ```text
//!   STS        POST  Action=AssumeRoleWithWebIdentity, the role, the token of a file    ──▶ XML
//!   container  GET   of its address, the token in `Authorization`                       ──▶ JSON
//! ```
//!
//! Files of tokens are read at each time: others write new ones. (docs.aws.amazon.com: `API_AssumeRoleWithWebIdentity`,
//! `feature-container-credentials`.) The rules that must hold: no text shows a token or what a service answered, but for the code of an
//! error; and no token goes over a network without TLS, unless STS was named with `http://`.

use std::fs;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use chrono::DateTime;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use object_store::aws::AwsCredential;
use object_store::client::HttpRequest;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::temporary_credential::{TemporaryCredential, none};
use crate::net::http_client::{HttpClient, HttpReply, TransportError, TransportPolicy};
use gristmill_base::error::{Error, Result};

/// What STS has to answer; the agent of a container is near.
const LIMIT: Duration = Duration::from_secs(5);
const NEAR_LIMIT: Duration = Duration::from_secs(2);

/// How often a service is asked that does not answer, or says that it failed.
const TRIES_MAX: u32 = 3;

/// Where the agent of containers is: <https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html>.
const AGENT: &str = "http://169.254.170.2";

/// The hosts that AWS's programs send the token of a container to without TLS: of ECS and EKS. And this machine.
const NEAR: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// A service that gives credentials. It may hold a token, and so has no `Debug`.
#[derive(Clone)]
pub enum Service {
    /// STS.
    Identity(Identity),
    /// The agent of a container.
    Container(Container),
}

/// A web identity, and the role that it takes.
#[derive(Clone)]
pub struct Identity {
    /// The file of its token.
    pub token_file: String,
    pub role: String,
    pub session: String,
    /// Where STS is.
    pub endpoint: String,
}

/// Where a container asks.
#[derive(Clone)]
pub struct Container {
    pub address: String,
    pub token: Option<ContainerToken>,
}

/// The token of a container.
#[derive(Clone)]
pub enum ContainerToken {
    Given(String),
    InFile(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OfSts {
    assume_role_with_web_identity_result: OfRole,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OfRole {
    credentials: Credentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "SessionToken")]
    token: Option<String>,
    expiration: Option<String>,
}

/// Why STS refuses.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    error: Code,
}

/// Why a container is refused.
#[derive(Deserialize)]
struct Code {
    #[serde(alias = "Code")]
    code: String,
}

impl Container {
    /// At `relative`, below the agent's address, or at `full`.
    ///
    /// # Errors
    /// The token would go over a network without TLS.
    pub fn new(
        relative: Option<String>,
        full: Option<String>,
        token: Option<ContainerToken>,
    ) -> Result<Self> {
        let address = match (relative, full) {
            (Some(relative), _) if relative.starts_with('/') => format!("{AGENT}{relative}"),
            (Some(_), _) => {
                let why = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with a slash";
                return Err(none(why).advise("let it begin with one"));
            }
            (None, full) => full.unwrap_or_default(),
        };
        let refuse = |what: &str| {
            let why = format!("AWS_CONTAINER_CREDENTIALS_FULL_URI {what}");
            let advice = "let it be https://..., or http:// of this machine";
            Err(none(&why).advise(advice))
        };
        let Ok(uri) = address.parse::<Uri>() else {
            return refuse("is not an address");
        };
        let host = uri.host().unwrap_or_default();
        let is_near = NEAR.contains(&host) || is_this_machine(host);
        match uri.scheme_str() {
            _ if address.contains('@') => refuse("has a user in it"),
            Some("https") => Ok(Container { address, token }),
            Some("http") if is_near => Ok(Container { address, token }),
            Some("http") => {
                refuse("is http:// of another machine: others could read the token on the way")
            }
            _ => refuse("is not an address of http:// or https://"),
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

impl Service {
    /// What messages call it: with its host, and no more of its address.
    fn name(&self) -> String {
        let (what, address) = match self {
            Service::Identity(identity) => ("STS", &identity.endpoint),
            Service::Container(container) => ("the agent of the container", &container.address),
        };
        let uri: Uri = address.parse().unwrap_or_default();
        let (scheme, authority) = (uri.scheme_str(), uri.authority());
        let host = authority.map_or("", |authority| authority.as_str());
        format!("{what} at {}://{host}", scheme.unwrap_or_default())
    }

    /// What to do where it gives nothing.
    fn advice(&self) -> String {
        match self {
            Service::Identity(identity) => format!(
                "check AWS_ROLE_ARN, that the role trusts the identity whose token is in {} (AWS_WEB_IDENTITY_TOKEN_FILE), and AWS_ENDPOINT_URL_STS",
                identity.token_file
            ),
            Service::Container(_) => {
                "check AWS_CONTAINER_CREDENTIALS_FULL_URI or AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, and the token in \
                 AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN"
                    .to_owned()
            }
        }
    }

    fn failed(&self, what: &str) -> Error {
        none(&format!("{} {what}", self.name())).advise(self.advice())
    }

    /// Asks for credentials.
    ///
    /// # Errors
    /// There are none: one paragraph without secrets. Or the job is to end.
    pub fn ask(
        &self,
        client: &HttpClient,
        policy: &TransportPolicy,
    ) -> Result<TemporaryCredential> {
        let limit = match self {
            Service::Identity(_) => LIMIT,
            Service::Container(_) => NEAR_LIMIT,
        };
        for tries in 1.. {
            let sent = client.send(policy, self.request()?, &mut [], limit);
            let may_pass = match &sent {
                Ok(reply) => may_pass(reply.status),
                Err(broken) => matches!(broken, TransportError::There(_)),
            };
            if !may_pass || tries == TRIES_MAX {
                return self.given(sent, policy);
            }
            if client.stop().sleep(Duration::from_millis(100 << tries)) {
                return Err(Error::cancelled());
            }
        }
        Err(Error::bug(
            "connect to the store",
            "the service was never asked",
        ))
    }

    fn request(&self) -> Result<HttpRequest> {
        let (method, address) = match self {
            Service::Identity(identity) => (Method::POST, &identity.endpoint),
            Service::Container(container) => (Method::GET, &container.address),
        };
        let request = Request::builder().method(method).uri(address);
        let request = match self {
            Service::Identity(identity) => {
                let token = token_of(&identity.token_file)?;
                let form = [
                    ("Action", "AssumeRoleWithWebIdentity"),
                    ("Version", "2011-06-15"),
                    ("RoleArn", &identity.role),
                    ("RoleSessionName", &identity.session),
                    ("WebIdentityToken", &token),
                ];
                request
                    .header("content-type", "application/x-www-form-urlencoded")
                    .header("accept", "text/xml")
                    .body(Bytes::from(form_of(&form)).into())
            }
            Service::Container(container) => {
                let token = match &container.token {
                    Some(ContainerToken::InFile(file)) => Some(token_of(file)?),
                    Some(ContainerToken::Given(token)) => Some(token.clone()),
                    None => None,
                };
                let mut request = request.header("accept", "application/json");
                if let Some(token) = token {
                    let mut value = HeaderValue::from_str(&token).map_err(|_secret| {
                        self.failed(
                            "was not asked: the token holds characters that a token cannot have",
                        )
                    })?;
                    value.set_sensitive(true);
                    request = request.header(AUTHORIZATION, value);
                }
                request.body(Bytes::new().into())
            }
        };
        request.map_err(|_secret| self.failed("was not asked: its address is not understood"))
    }

    fn given(
        &self,
        sent: Result<HttpReply, TransportError>,
        policy: &TransportPolicy,
    ) -> Result<TemporaryCredential> {
        let reply = match sent {
            Ok(reply) => reply,
            Err(TransportError::Here(error)) => return Err(error),
            Err(TransportError::Stopped) => return Err(Error::cancelled()),
            Err(TransportError::There(what)) => {
                return Err(self.failed(&format!("gave no answer: {what}")));
            }
            Err(TransportError::Untrusted(distrust)) => {
                let (what, advice) = distrust.says(policy.bundle.as_ref(), "AWS_CA_BUNDLE");
                return Err(self
                    .failed(&format!("was told nothing: {what}"))
                    .advise(advice));
            }
        };
        if !reply.status.is_success() {
            return Err(self.refused(&reply));
        }
        let found: Option<Credentials> = match self {
            Service::Identity(_) => {
                let found: Option<OfSts> = quick_xml::de::from_reader(&*reply.body).ok();
                found.map(|found| found.assume_role_with_web_identity_result.credentials)
            }
            Service::Container(_) => serde_json::from_slice(&reply.body).ok(),
        };
        found
            .and_then(Credentials::given)
            .ok_or_else(|| self.failed("answered with something else than credentials"))
    }

    fn refused(&self, reply: &HttpReply) -> Error {
        let code = match self {
            Service::Identity(_) => {
                let refused: Option<Refused> = quick_xml::de::from_reader(&*reply.body).ok();
                refused.map(|refused| refused.error.code)
            }
            Service::Container(_) => {
                let code: Option<Code> = serde_json::from_slice(&reply.body).ok();
                code.map(|code| code.code)
            }
        };
        // A code is a word; what is something else is nothing to show.
        let is_code =
            |code: &String| code.len() < 50 && code.chars().all(|c| c.is_ascii_alphabetic());
        let code = code.filter(is_code).unwrap_or_default();
        let status = reply.status.as_u16();
        match (self, &*code) {
            (Service::Identity(identity), "ExpiredToken" | "ExpiredTokenException") => {
                let file = &identity.token_file;
                let what = format!("refused: the token in {file} has expired ({status} {code})");
                self.failed(&what)
                    .advise("put a new token there, then resume the job")
            }
            (_, "") => self.failed(&format!("refused: it answered {status}")),
            _ => self.failed(&format!("refused: it answered {status} {code}")),
        }
    }
}

impl Credentials {
    fn given(self) -> Option<TemporaryCredential> {
        let is_sendable = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
        let token = self.token.filter(|token| !token.is_empty());
        let texts = [
            Some(&self.access_key_id),
            Some(&self.secret_access_key),
            token.as_ref(),
        ];
        if self.access_key_id.is_empty() || !texts.into_iter().flatten().all(is_sendable) {
            return None;
        }
        let end = match self.expiration {
            Some(text) => Some(SystemTime::from(DateTime::parse_from_rfc3339(&text).ok()?)),
            None => None,
        };
        Some(TemporaryCredential {
            credential: AwsCredential {
                key_id: self.access_key_id,
                secret_key: self.secret_access_key,
                token,
            },
            end,
        })
    }
}

fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

fn token_of(file: &str) -> Result<String> {
    match fs::read_to_string(file) {
        Ok(token) if token.trim().is_empty() => {
            Err(none(&format!("the token file {file} is empty")))
        }
        Ok(token) => Ok(token.trim().to_owned()),
        Err(error) => Err(none(&format!(
            "the token file {file} cannot be read: {error}"
        ))),
    }
    .map_err(|error| {
        error.advise("check AWS_WEB_IDENTITY_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    })
}

fn form_of(pairs: &[(&str, &str)]) -> String {
    let encoded = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    encoded.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(relative: &str, full: &str) -> Result<Container> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Container::new(some(relative), some(full), None)
    }

    #[test]
    fn tokens_of_containers_stay_near_or_are_encrypted() {
        for (relative, full, wanted) in [
            (
                "/v2/credentials/a",
                "",
                Some("http://169.254.170.2/v2/credentials/a"),
            ),
            ("/a", "https://far/b", Some("http://169.254.170.2/a")),
            ("a", "", None),
            (
                "",
                "http://127.0.0.9:80/a?b=c",
                Some("http://127.0.0.9:80/a?b=c"),
            ),
            ("", "http://[::1]/a", Some("http://[::1]/a")),
            (
                "",
                "http://[fd00:ec2::23]/a",
                Some("http://[fd00:ec2::23]/a"),
            ),
            ("", "http://localhost:1/a", Some("http://localhost:1/a")),
            ("", "https://far/a", Some("https://far/a")),
            ("", "http://far/a", None),
            ("", "http://localhost.far/a", None),
            ("", "http://me@localhost/a", None),
            ("", "ftp://localhost/a", None),
            ("", "no address", None),
        ] {
            let made = container(relative, full).map(|container| container.address);
            assert_eq!(made.ok().as_deref(), wanted, "{relative} {full}");
        }
    }

    #[test]
    fn what_is_sent_as_a_form_is_encoded() {
        assert_eq!(form_of(&[("a", "x=y&z"), ("b", "1")]), "a=x%3Dy%26z&b=1");
    }

    #[test]
    fn an_error_shows_the_code_and_nothing_else() {
        let identity = Service::Identity(Identity {
            token_file: "/token".to_owned(),
            role: "r".to_owned(),
            session: "s".to_owned(),
            endpoint: "https://sts/hush?hush".to_owned(),
        });
        for (body, says) in [
            (
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>hush</Message></Error></ErrorResponse>",
                "403 AccessDenied",
            ),
            (
                "<E><Error><Code>ExpiredTokenException</Code></Error></E>",
                "the token in /token has expired",
            ),
            (
                "<E><Error><Code>hush hush</Code></Error></E>",
                "it answered 403",
            ),
            ("hush", "it answered 403"),
        ] {
            let reply = HttpReply {
                status: StatusCode::FORBIDDEN,
                headers: http::HeaderMap::new(),
                body: Bytes::from(body),
                read: 0,
            };
            let error = identity.refused(&reply).to_string();
            assert!(
                error.contains(says) && error.contains("https://sts"),
                "{error}"
            );
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
