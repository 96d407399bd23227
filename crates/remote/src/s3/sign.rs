//! Signs requests of S3 (AWS Signature Version 4). The signature proves the operation, the time and the user,
//! without sending the key.
//!
//! ```text
//! canonical request:  PUT / path / query / headers / names of headers / UNSIGNED-PAYLOAD
//! text to be signed:  AWS4-HMAC-SHA256 / time / day, region, s3 / SHA-256 of the above
//! key:                HMAC of "aws4_request" under HMAC of "s3" under HMAC of region
//!                     under HMAC of day under the secret
//! ```
//!
//! Data are not signed. Only TLS protects them on their way, if it is used.

use std::{fmt::Write, time::SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::settings::S3Keys;
use crate::http::HttpMethod;

/// Stands for the data in the signed text.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The signed parts of a request. The path and the query are in the form that is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignedRequest<'a> {
    pub(super) method: HttpMethod,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
}

/// Returns the headers of a signed request.
pub(super) fn headers(
    request: SignedRequest<'_>,
    keys: &S3Keys,
    region: &str,
    now: SystemTime,
) -> Vec<String> {
    let time = compact_time(now);
    let mut signed = vec![
        format!("host:{}", request.host),
        format!("x-amz-content-sha256:{UNSIGNED}"),
        format!("x-amz-date:{time}"),
    ];
    signed.extend(keys.token.as_ref().map(|token| format!("x-amz-security-token:{token}")));
    let authorization =
        authorization(&signed, UNSIGNED, request, &SigningScope { keys, region, time: &time });
    // libcurl sends the host itself.
    signed.remove(0);
    signed.push(authorization);
    signed
}

/// The user, time and region of a signature.
struct SigningScope<'a> {
    keys: &'a S3Keys,
    region: &'a str,
    time: &'a str,
}

/// Builds the header that proves the user's identity. `signed` are the headers it covers, sorted by name;
/// `payload` stands for the data.
fn authorization(
    signed: &[String],
    payload: &str,
    request: SignedRequest<'_>,
    of: &SigningScope<'_>,
) -> String {
    let SigningScope { keys, region, time } = *of;
    let SignedRequest { method, path, query, .. } = request;
    let day = &time[..8];
    let names: Vec<_> =
        signed.iter().filter_map(|header| header.split_once(':')).map(|(name, _)| name).collect();
    let names = names.join(";");
    let canonical =
        format!("{}\n{path}\n{query}\n{}\n\n{names}\n{payload}", method.name(), signed.join("\n"));
    let scope = format!("{day}/{region}/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let day_key = keyed(format!("AWS4{}", keys.secret).as_bytes(), day);
    let key = keyed(&keyed(&keyed(&day_key, region), "s3"), "aws4_request");
    let signature = hex(&keyed(&key, &text));
    let id = &keys.id;
    format!(
        "Authorization: AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
}

fn keyed(key: &[u8], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

/// Formats a time as `20260125T134501Z`.
fn compact_time(time: SystemTime) -> String {
    Timestamp::try_from(time).unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_dates() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(compact_time(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    /// Appendix of RFC 4231, case 2.
    #[test]
    fn a_known_code_comes_out() {
        let code = hex(&keyed(b"Jefe", "what do ya want for nothing?"));
        assert_eq!(code, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    /// AWS's published "Example: GET Object" of Signature Version 4, with the digest of no data.
    #[test]
    fn the_published_example_has_its_signature() {
        let keys = S3Keys {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: None,
        };
        let payload = hex(&Sha256::digest(""));
        let signed = [
            "host:examplebucket.s3.amazonaws.com".to_owned(),
            "range:bytes=0-9".to_owned(),
            format!("x-amz-content-sha256:{payload}"),
            "x-amz-date:20130524T000000Z".to_owned(),
        ];
        let host = "examplebucket.s3.amazonaws.com";
        let request = SignedRequest { method: HttpMethod::Get, host, path: "/test.txt", query: "" };
        let scope = SigningScope { keys: &keys, region: "us-east-1", time: "20130524T000000Z" };
        let header = authorization(&signed, &payload, request, &scope);
        let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert!(header.ends_with(&format!("Signature={signature}")), "{header}");
        assert!(
            header.contains("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"),
            "{header}"
        );
        assert!(header.contains("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date"), "{header}");
    }
}
