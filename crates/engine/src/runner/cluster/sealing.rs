//! Secrets that go through a place that others read: only the process that made the key can open them (RFC 9180, HPKE).
//!
//! ```text
//!   process A: Unsealer ──public key──▶ process B: seal(key, secret) ──sealed──▶ process A: open
//! ```
//!
//! The private key is in the memory of one process, and in nothing else.
//!
//! Decision: docs/decisions/submitted-secrets.md.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, HpkeError, Kem, OpModeR, OpModeS, Serializable};

use gristmill_base::error::{Error, Kind, Result};

/// What a sealed text is for: one that was sealed for something else does not open.
const PURPOSE: &[u8] = b"gristmill: variables of a submitted job";

/// A key of this process, and what it opens.
///
/// ```
/// use gristmill_engine::runner::cluster::sealing::{Unsealer, seal};
/// let unsealer = Unsealer::new();
/// let sealed = seal(&unsealer.public_key(), b"secret")?;
/// assert_eq!(unsealer.open(&sealed)?, b"secret");
/// assert!(Unsealer::new().open(&sealed).is_err());
/// # Ok::<(), gristmill_engine::Error>(())
/// ```
pub struct Unsealer {
    private: <X25519HkdfSha256 as Kem>::PrivateKey,
    public: <X25519HkdfSha256 as Kem>::PublicKey,
}

impl Unsealer {
    /// Makes a key.
    #[expect(clippy::new_without_default, reason = "each key is another one")]
    pub fn new() -> Self {
        let (private, public) = X25519HkdfSha256::gen_keypair();
        Unsealer { private, public }
    }

    /// What others seal by: 32 bytes, which all may know.
    pub fn public_key(&self) -> Vec<u8> {
        self.public.to_bytes().to_vec()
    }

    /// Opens what was sealed by the public key.
    ///
    /// # Errors
    /// It was sealed by another key, or was changed.
    pub fn open(&self, sealed: &[u8]) -> Result<Vec<u8>> {
        let key_bytes = self.public.to_bytes().len(); // of the sender's key, which is of the same kind
        let Some((key, text)) = sealed.split_at_checked(key_bytes) else {
            return Err(refused("it is too short"));
        };
        let key = <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(key).map_err(broken)?;
        hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.private,
            &key,
            PURPOSE,
            text,
            &[],
        )
        .map_err(broken)
    }
}

/// Seals a text for the process that has the private key of a public one.
///
/// # Errors
/// The key is not a key.
pub fn seal(public_key: &[u8], text: &[u8]) -> Result<Vec<u8>> {
    let public = <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(public_key).map_err(broken)?;
    let (key, sealed) = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &public,
        PURPOSE,
        text,
        &[],
    )
    .map_err(broken)?;
    Ok([key.to_bytes().as_slice(), &sealed].concat())
}

fn broken(error: HpkeError) -> Error {
    refused(&error.to_string())
}

fn refused(why: &str) -> Error {
    Error::new(Kind::BadInput, "open a sealed text", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_does_not_open() {
        let unsealer = Unsealer::new();
        let sealed = seal(&unsealer.public_key(), b"secret").unwrap();
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(unsealer.open(&changed).is_err(), "byte {at}");
            assert!(unsealer.open(&sealed[..at]).is_err(), "{at} bytes");
        }
        assert!(seal(b"short", b"secret").is_err());
    }
}
