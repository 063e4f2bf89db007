"""Certificates of servers, signed by an authority of the test's own."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Identity:
    """A server's certificate and its key: PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Somebody who signs certificates, and is trusted by who has `file`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("An authority of a test")
        made = _begun(self._name, self._name, self._key, timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = folder / "ca.pem"
        self.file.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def identity(self, *names: str, lasts: timedelta = timedelta(days=1)) -> Identity:
        """A certificate for hosts, by name or by address."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _begun(_name(names[0]), self._name, key, lasts)
        hosts = x509.SubjectAlternativeName([_host(name) for name in names])
        made = made.add_extension(hosts, critical=False)
        stem = f"{names[0]}-{lasts.days}"
        found = Identity(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        found.certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        found.key.write_bytes(text)
        return found


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + lasts)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
