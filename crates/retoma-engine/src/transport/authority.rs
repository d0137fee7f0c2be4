//! Certificate authorities of the seller's own, beside those of the public web.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// One of them.
#[derive(Clone, Debug)]
pub struct Authority(pub(super) CertificateDer<'static>);

impl Authority {
    /// Every certificate of a PEM file.
    ///
    /// # Errors
    /// There is none, or one of them cannot be an authority.
    pub fn read(pem: &[u8]) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
            rustls::RootCertStore::empty()
                .add(certificate.clone())
                .map_err(|error| format!("a certificate cannot be an authority: {error}"))?;
            found.push(Self(certificate));
        }
        if found.is_empty() { Err("the file holds no certificate in PEM form".to_owned()) } else { Ok(found) }
    }
}
