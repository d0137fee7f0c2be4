//! Why no connection came about, in words that say what to repair (FC-69). All of it is "surely not sent": certificates and names
//! are usually repaired within hours, so the message is tried again.

use std::io;

use rustls::{CertificateError, Error};

/// Why a name has no address.
pub(super) fn of_dns(error: &io::Error) -> &'static str {
    // The resolver's words differ between systems; only that it may answer later is told apart.
    let passing = error.to_string().to_lowercase();
    if passing.contains("temporary") || passing.contains("try again") {
        "dns: the resolver does not answer now"
    } else {
        "dns: the host name does not resolve"
    }
}

/// Why two sides could not agree on a secret.
pub(super) fn of_tls(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let what = match inner {
        Some(Error::InvalidCertificate(certificate)) => of_certificate(certificate),
        Some(Error::PeerIncompatible(_)) => {
            "tls: the server speaks only versions or ciphers that are not safe any more"
        }
        Some(Error::AlertReceived(_)) => "tls: the server broke off the handshake",
        Some(Error::InvalidMessage(_)) => "tls: the server does not speak TLS on this port",
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "tls: the server closed the connection in the handshake",
        Some(_) | None => return format!("tls: {error}"),
    };
    what.to_owned()
}

const UNTRUSTED: &str = "tls: nobody whom we trust signed the server's certificate (self-signed, an authority of its own, or a missing \
     intermediate); [outbound] ca names further authorities";

fn of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "tls: the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "tls: the server's certificate is not valid yet; or our clock is wrong"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "tls: the server's certificate is for another host"
        }
        // A certificate that signed itself is often marked as an authority's, which a server must not show.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => UNTRUSTED,
        CertificateError::UnknownIssuer => UNTRUSTED,
        CertificateError::Revoked => "tls: the server's certificate was revoked",
        _ => "tls: the server's certificate is not valid",
    }
}
