//! TLS: whose certificates count, and what is wrong with those of a server.
//!
//! ```text
//!   no bundle   the certificates of the system; SSL_CERT_FILE and SSL_CERT_DIR name others (the TLS library reads them)
//!   bundle      those in a PEM file, and no others: what AWS_CA_BUNDLE means to AWS's own programs
//! ```
//!
//! The rule that must hold: a server that cannot prove its name is sent nothing, and is not asked again.

use std::error::Error as StdError;
use std::fs;
use std::io;
use std::path::PathBuf;

use reqwest::Certificate;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, InvalidMessage, RootCertStore};

use gristmill_base::error::{Error, Kind, Result};

/// A file with certificates of authorities.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bundle {
    /// What names it.
    pub named_by: &'static str,
    /// The file.
    pub file: PathBuf,
}

/// What is wrong with a server's certificate.
#[derive(Debug, PartialEq, Eq)]
pub enum Distrust {
    /// Nobody who is trusted has signed it.
    Issuer,
    /// It is for other names: these.
    Name(String),
    /// It has ended, or has not begun.
    Time,
    /// There is none: the server does not speak TLS.
    NoTls,
    /// Something else, in the words of the TLS library.
    Other(String),
}

impl Bundle {
    /// The authorities in it. A certificate that is not understood is passed over, as long as there are others.
    pub fn read(&self) -> Result<Vec<Certificate>> {
        let refuse = |what: &str| {
            let (variable, file) = (self.named_by, self.file.display());
            let message = format!("{variable} names {file}, which {what}");
            let advice = "name a PEM file with the certificates of the authorities (CAs) to trust";
            Error::new(
                Kind::BadOption,
                "check the certificate of a server",
                message,
            )
            .advise(format!("{advice}, or unset {variable}"))
        };
        let text =
            fs::read(&self.file).map_err(|error| refuse(&format!("cannot be read: {error}")))?;
        let mut understood = RootCertStore::empty();
        let mut found = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let broken = |error| refuse(&format!("is not a PEM file: {error}"));
            let certificate = certificate.map_err(broken)?;
            if understood.add(certificate.clone()).is_ok() {
                let certificate = Certificate::from_der(&certificate);
                found.push(certificate.map_err(|error| refuse(&error.to_string()))?);
            }
        }
        match found.is_empty() {
            true => Err(refuse("holds no certificate")),
            false => Ok(found),
        }
    }
}

impl Distrust {
    /// What is wrong with the certificate of a server, if that is why there is no connection.
    pub fn of(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return of_tls(found);
            }
            let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
            cause = match wrapped {
                Some(wrapped) => Some(wrapped),
                None => error.source(),
            };
        }
        None
    }

    /// What is wrong, and what to do, where these certificates are trusted; `variable` can name others.
    pub fn says(&self, bundle: Option<&Bundle>, variable: &str) -> (String, String) {
        let wrong = |what: &str| format!("the server's certificate is not trusted: {what}");
        match self {
            Distrust::Issuer => match bundle {
                None => (
                    wrong("no authority that this system trusts has signed it"),
                    format!(
                        "set {variable} to a PEM file with the certificate of the authority (CA) that signed it"
                    ),
                ),
                Some(bundle) => (
                    wrong(&format!(
                        "no authority in {} has signed it",
                        bundle.file.display()
                    )),
                    format!(
                        "let {} name a PEM file with the certificate of the authority (CA) that signed it",
                        bundle.named_by
                    ),
                ),
            },
            Distrust::Name(names) => (
                wrong(&format!("it is for {names}")),
                "name the server as its certificate does".to_owned(),
            ),
            Distrust::Time => (
                wrong("it has ended, or is not valid yet"),
                "check the clock of this machine, or have the server's certificate renewed"
                    .to_owned(),
            ),
            Distrust::NoTls => (
                "the server does not speak TLS".to_owned(),
                "name it with http:// if that is meant".to_owned(),
            ),
            Distrust::Other(what) => (
                wrong(what),
                "have the certificate of the server renewed".to_owned(),
            ),
        }
    }
}

fn of_tls(error: &rustls::Error) -> Option<Distrust> {
    use CertificateError as Wrong;
    Some(match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Distrust::NoTls,
        rustls::Error::InvalidCertificate(wrong) => match wrong {
            // The second is of an authority of the same name, with another key.
            Wrong::UnknownIssuer | Wrong::BadSignature => Distrust::Issuer,
            Wrong::NotValidForNameContext { presented, .. } => Distrust::Name(names(presented)),
            Wrong::NotValidForName => Distrust::Name("another name".to_owned()),
            Wrong::Expired
            | Wrong::ExpiredContext { .. }
            | Wrong::NotValidYet
            | Wrong::NotValidYetContext { .. } => Distrust::Time,
            other => Distrust::Other(other.to_string()),
        },
        _ => return None,
    })
}

/// The names in a certificate, as the TLS library lists them: `DnsName("localhost")`.
fn names(presented: &[String]) -> String {
    let plain = presented.iter().map(|name| {
        let inner = name.split_once('(').map_or(&**name, |(_, rest)| rest);
        inner.trim_end_matches(')').trim_matches('"')
    });
    let names: Vec<&str> = plain.collect();
    match names.is_empty() {
        true => "no name".to_owned(),
        false => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_found_below_what_wraps_it() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::other(tls));
        assert_eq!(Distrust::of(&wrapped), Some(Distrust::Issuer));
        assert_eq!(Distrust::of(&io::Error::other("reset")), None);
    }

    #[test]
    fn names_stand_as_people_write_them() {
        let presented = [
            "DnsName(\"localhost\")".to_owned(),
            "IpAddress(::1)".to_owned(),
        ];
        assert_eq!(names(&presented), "localhost, ::1");
        assert_eq!(names(&[]), "no name");
    }

    #[test]
    fn a_bundle_without_certificates_is_named_with_its_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let bundle = Bundle {
            named_by: "AWS_CA_BUNDLE",
            file: file.clone(),
        };
        for (text, says) in [
            (None, "cannot be read"),
            (Some(""), "holds no certificate"),
            (
                Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
                "holds no certificate",
            ),
            (
                Some("-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n"),
                "is not a PEM file",
            ),
        ] {
            if let Some(text) = text {
                fs::write(&file, text).unwrap();
            }
            let error = bundle.read().unwrap_err().to_string();
            assert!(
                error.contains(says) && error.contains("AWS_CA_BUNDLE names /"),
                "{error}"
            );
        }
    }
}
