//! Signatures of requests.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER_PERMISSIVE;
use ring::signature::{ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use ring::{hmac, signature};

use crate::error::ApiError;

/// The head of a public Ed25519 key (RFC 8410), before its 32 bytes.
const ED25519_HEAD: [u8; 9] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
/// The object identifier of RSA keys and its empty parameters.
const RSA_ALGORITHM: [u8; 13] = [
    0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];
/// The bytes of the modulus of the shortest RSA key; a whole key has more.
const RSA_BYTES_MIN: usize = 256;
/// The window of a request without one, and the longest, in milliseconds.
const WINDOW_MS: i64 = 5_000;
const WINDOW_MS_MAX: i64 = 60_000;
/// How far ahead of the server a request's time may be, in microseconds.
const AHEAD_US: i64 = 1_000_000;
/// From here on a timestamp is in microseconds: the year 2286 in milliseconds.
const MICROSECONDS_FROM: i64 = 10_000_000_000_000;

enum Kind {
    Hmac(hmac::Key),
    Public(UnparsedPublicKey<Vec<u8>>),
}

/// Checks signatures by one key.
pub struct Verifier(Kind);

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Hmac(_) => "Verifier(HMAC)",
            Kind::Public(_) => "Verifier(public key)",
        })
    }
}

impl Verifier {
    /// Returns one for HMAC-SHA256 under a secret.
    #[must_use]
    pub fn hmac(secret: &str) -> Self {
        Self(Kind::Hmac(hmac::Key::new(
            hmac::HMAC_SHA256,
            secret.as_bytes(),
        )))
    }

    /// Returns one for an Ed25519 key, in DER (a SubjectPublicKeyInfo).
    #[must_use]
    pub fn ed25519(der: &[u8]) -> Option<Self> {
        let key = der.strip_prefix(&ED25519_HEAD)?;
        let key = key.strip_prefix(&[0x03, 0x21, 0x00])?;
        (key.len() == 32).then(|| Self::public(&ED25519, key))
    }

    /// Returns one for an RSA key of 2,048 bits and more, in DER (a SubjectPublicKeyInfo).
    #[must_use]
    pub fn rsa(der: &[u8]) -> Option<Self> {
        let at = der
            .windows(RSA_ALGORITHM.len())
            .position(|part| part == RSA_ALGORITHM)?;
        let bits = &der[at + RSA_ALGORITHM.len()..];
        // A bit string: its tag, its length in up to three bytes, no unused bits.
        let key = bits.strip_prefix(&[0x03])?;
        let head = match key.first()? {
            0x82 => 3,
            0x81 => 2,
            _ => 1,
        };
        let key = key.get(head..)?.strip_prefix(&[0])?;
        let is_long = key.len() > RSA_BYTES_MIN;
        is_long.then(|| Self::public(&RSA_PKCS1_2048_8192_SHA256, key))
    }

    fn public(algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]) -> Self {
        Self(Kind::Public(UnparsedPublicKey::new(
            algorithm,
            key.to_vec(),
        )))
    }

    /// Returns whether this is the signature of the payload: HMAC in hexadecimal of any case, the
    /// others in base64. Takes constant time for any signature of the right form.
    #[must_use]
    pub fn verify(&self, payload: &[u8], signature: &str) -> bool {
        match &self.0 {
            Kind::Hmac(key) => {
                let tag = HEXLOWER_PERMISSIVE.decode(signature.as_bytes());
                tag.is_ok_and(|tag| hmac::verify(key, payload, &tag).is_ok())
            }
            Kind::Public(key) => {
                let bytes = STANDARD.decode(signature);
                bytes.is_ok_and(|bytes| key.verify(payload, &bytes).is_ok())
            }
        }
    }
}

/// Returns a time of a request in microseconds: it is in those or in milliseconds.
const fn in_us(timestamp: i64) -> i64 {
    match timestamp {
        ..MICROSECONDS_FROM => timestamp.saturating_mul(1_000),
        us => us,
    }
}

/// Returns until when a request may be executed, in microseconds; its window is in milliseconds
/// with up to three decimals.
///
/// # Errors
/// -1130 for a window that is none.
pub(crate) fn time_limit(timestamp: i64, window: Option<&str>) -> Result<i64, ApiError> {
    let window_us = match window {
        None => WINDOW_MS * 1_000,
        Some(text) => {
            let parsed = crate::decimal::parse(text, 3);
            let within = |us: &i64| *us <= WINDOW_MS_MAX * 1_000;
            parsed
                .ok()
                .filter(within)
                .ok_or_else(|| ApiError::invalid_data("recvWindow"))?
        }
    };
    Ok(in_us(timestamp).saturating_add(window_us))
}

/// Checks the time of a request against the server's.
///
/// # Errors
/// -1021 outside of the window, and those of [`time_limit`].
pub(crate) fn check_time(
    timestamp: i64,
    window: Option<&str>,
    now_us: i64,
) -> Result<(), ApiError> {
    let limit_us = time_limit(timestamp, window)?;
    if in_us(timestamp) >= now_us + AHEAD_US {
        return Err(ApiError::TIMESTAMP_AHEAD);
    }
    match now_us <= limit_us {
        true => Ok(()),
        false => Err(ApiError::TIMESTAMP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;

    /// The secret of the examples of Binance's documents.
    const SECRET: &str = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
    const ORDER: &str = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1\
                         &recvWindow=5000&timestamp=1499827319559";
    const SIGNATURE: &str = "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71";

    fn signed(query: &str, body: &str) -> bool {
        let params = Params::of_request(query, body).expect("they are fine");
        let signature = params.signature().expect("there is one");
        Verifier::hmac(SECRET).verify(params.payload(), signature)
    }

    #[test]
    fn the_examples_of_the_documents_are_signed_right() {
        assert!(signed(&format!("{ORDER}&signature={SIGNATURE}"), ""));
        assert!(signed("", &format!("{ORDER}&signature={SIGNATURE}")));
        assert!(signed(
            "",
            &format!("{ORDER}&signature={}", SIGNATURE.to_uppercase())
        ));
        let fullwidth = "symbol=%EF%BC%91%EF%BC%92%EF%BC%93%EF%BC%94%EF%BC%95%EF%BC%96";
        assert!(signed(
            &format!(
                "{}&signature=e1353ec6b14d888f1164ae9af8228a3dbd508bc82eb867db8ab6046442f33ef3",
                ORDER.replace("symbol=LTCBTC", fullwidth)
            ),
            "",
        ));
    }

    #[test]
    fn query_and_body_are_signed_with_nothing_between_them() {
        let (query, body) = ("symbol=LTCBTC&side=BUY", "quantity=1&price=0.1");
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let tag = hmac::sign(&key, format!("{query}{body}").as_bytes());
        let signature: String = data_encoding::HEXLOWER.encode(tag.as_ref());
        assert!(signed(query, &format!("{body}&signature={signature}")));
        assert!(signed(&format!("{query}&signature={signature}"), body));
        assert!(!signed(
            &format!("{query}&{body}&signature={signature}"),
            ""
        ));
    }

    #[test]
    fn any_change_is_noticed() {
        let other = ORDER.replace("price=0.1", "price=0.2");
        assert!(!signed(&format!("{other}&signature={SIGNATURE}"), ""));
        let escaped = ORDER.replace("LTCBTC", "LTCBT%43");
        assert!(!signed(&format!("{escaped}&signature={SIGNATURE}"), ""));
        let sorted = "price=0.1&quantity=1&recvWindow=5000&side=BUY&symbol=LTCBTC\
                      &timeInForce=GTC&timestamp=1499827319559&type=LIMIT";
        assert!(!signed(&format!("{sorted}&signature={SIGNATURE}"), ""));
        for broken in ["", "c8", "zz", &SIGNATURE[1..], &format!("{SIGNATURE}00")] {
            assert!(
                !signed(&format!("{ORDER}&signature={broken}"), ""),
                "{broken}"
            );
        }
    }

    /// Made by `openssl dgst -sha256 -sign`.
    #[test]
    fn a_signature_of_openssl_is_right_by_its_rsa_key_only() {
        let der = |pem: &str| {
            let lines: Vec<&str> = pem.lines().collect();
            STANDARD
                .decode(lines[1..lines.len() - 1].concat())
                .expect("base64")
        };
        let public = der(include_str!("../tests/rsa/public.pem"));
        let verifier = Verifier::rsa(&public).expect("a key");
        let signature = include_str!("../tests/rsa/signature.txt");
        let payload = "symbol=LTCBTC&side=BUY&timestamp=1499827319559";
        assert!(verifier.verify(payload.as_bytes(), signature));
        assert!(!verifier.verify(&payload.as_bytes()[1..], signature));
        assert!(!verifier.verify(payload.as_bytes(), &signature[4..]));
        assert!(Verifier::rsa(&der(include_str!("../tests/rsa/public-1024.pem"))).is_none());
        assert!(Verifier::rsa(&public[..40]).is_none());
        assert!(Verifier::ed25519(&public).is_none());
    }

    #[test]
    fn times_are_within_their_window_in_either_unit() {
        let now_us = 1_700_000_000_000_000;
        let now = now_us / 1_000;
        for (timestamp, window, expected) in [
            (now, None, Ok(())),
            (now + 999, None, Ok(())),
            (now + 1_000, None, Err(ApiError::TIMESTAMP_AHEAD)),
            (now - 5_000, None, Ok(())),
            (now - 5_001, None, Err(ApiError::TIMESTAMP)),
            (now - 60_000, Some("60000"), Ok(())),
            (
                now,
                Some("60000.001"),
                Err(ApiError::invalid_data("recvWindow")),
            ),
            (now_us - 1, Some("0.001"), Ok(())),
            (now_us - 2, Some("0.001"), Err(ApiError::TIMESTAMP)),
            (now_us - 5_000_000, None, Ok(())),
            (0, None, Err(ApiError::TIMESTAMP)),
            (i64::MAX, None, Err(ApiError::TIMESTAMP_AHEAD)),
        ] {
            assert_eq!(
                check_time(timestamp, window, now_us),
                expected,
                "{timestamp} {window:?}"
            );
        }
    }
}
