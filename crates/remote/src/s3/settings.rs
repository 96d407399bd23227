//! The address of an object store and the user's keys, from the variables that clients of S3 share. Keys stay
//! in this process: Nilometer neither prints nor records them.

use std::fmt;

use nilometer_model::TargetUrl;
use nilometer_storage::TargetError;

/// The default region of all clients.
const REGION: &str = "us-east-1";
/// Names a file of certificates. The default path of the machine that built libcurl may not exist here.
const CERTIFICATES: &str = "AWS_CA_BUNDLE";

/// The user's keys.
#[derive(Clone)]
pub(super) struct S3Keys {
    pub(super) id: String,
    pub(super) secret: String,
    /// The token of temporary keys, which are valid for some hours.
    pub(super) token: Option<String>,
}

impl fmt::Debug for S3Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S3Keys")
    }
}

/// The way to reach a bucket.
#[derive(Debug, Clone)]
pub(super) struct S3Settings {
    /// `http://` or `https://`, with the host and its port.
    pub(super) endpoint: String,
    pub(super) host: String,
    /// The prefix of a key: the bucket, unless it is in the host's name.
    pub(super) base: String,
    pub(super) region: String,
    pub(super) certificates: Option<String>,
    pub(super) keys: S3Keys,
}

impl S3Settings {
    /// Reads the settings for the bucket in a URL.
    pub(super) fn of(
        url: &TargetUrl,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, TargetError> {
        let wrong = |why: String| TargetError::Client { place: url.to_string(), action: "use", why };
        if let Some(query) = &url.query {
            return Err(wrong(format!("`?{query}`: a URL of S3 takes no query: leave it out")));
        }
        let bucket = &url.authority;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !bucket.bytes().all(plain) {
            return Err(wrong(format!(
                "`{bucket}` is no name of a bucket: name the server in AWS_ENDPOINT_URL"
            )));
        }
        let said =
            |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
        let needed = |name: &str| {
            let why =
                format!("{name} is not set: keys are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
            said(&[name]).ok_or_else(|| wrong(why))
        };
        let keys = S3Keys {
            id: needed("AWS_ACCESS_KEY_ID")?,
            secret: needed("AWS_SECRET_ACCESS_KEY")?,
            token: said(&["AWS_SESSION_TOKEN"]),
        };
        let region = said(&["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| REGION.to_owned());
        let endpoint = said(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
        let certificates = said(&[CERTIFICATES]);
        let (endpoint, base) = match endpoint {
            Some(endpoint) => (endpoint.trim_end_matches('/').to_owned(), format!("/{bucket}")),
            // No certificate matches a host name with a bucket whose name contains a dot.
            None if bucket.contains('.') => {
                (format!("https://s3.{region}.amazonaws.com"), format!("/{bucket}"))
            }
            None => (format!("https://{bucket}.s3.{region}.amazonaws.com"), String::new()),
        };
        let host = host_of(&endpoint).map_err(|why| wrong(format!("AWS_ENDPOINT_URL{why}")))?.to_owned();
        Ok(S3Settings { endpoint, host, base, region, certificates, keys })
    }
}

/// Returns the host of an endpoint, with its port unless that is the default. The signature must have it in the
/// same form as the request.
fn host_of(endpoint: &str) -> Result<&str, &'static str> {
    let (rest, usual) = match endpoint.split_once("://") {
        Some(("http", rest)) => (rest, ":80"),
        Some(("https", rest)) => (rest, ":443"),
        _ => return Err(" has to begin with `http://` or `https://`"),
    };
    if rest.contains('@') {
        return Err(" has a user in it, who would be kept in records: leave that out");
    }
    if rest.is_empty() || rest.contains(['/', '?', '#']) || rest.contains(char::is_whitespace) {
        return Err(" has to name a host, and nothing behind it");
    }
    Ok(rest.strip_suffix(usual).unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, variables: &[(&str, &str)]) -> Result<S3Settings, String> {
        let url: TargetUrl = url.parse().expect("a URL");
        let keys = [("AWS_ACCESS_KEY_ID", "somebody"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
        let find = |name: &str| {
            let found = variables.iter().chain(&keys).find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        S3Settings::of(&url, find).map_err(|error| error.to_string())
    }

    #[test]
    fn a_bucket_is_found_as_other_clients_find_it() {
        let own =
            settings("s3://data/x", &[("AWS_ENDPOINT_URL", "http://10.0.0.1:9000/")]).expect("an endpoint");
        assert_eq!(
            (&*own.endpoint, &*own.host, &*own.base),
            ("http://10.0.0.1:9000", "10.0.0.1:9000", "/data")
        );
        assert_eq!(own.region, REGION);
        let amazon = settings("s3://data", &[("AWS_REGION", "eu-central-1")]).expect("a region");
        assert_eq!((&*amazon.host, &*amazon.base), ("data.s3.eu-central-1.amazonaws.com", ""));
        assert_eq!(settings("s3://a.b", &[]).expect("a bucket").base, "/a.b");
        let usual = settings("s3://data", &[("AWS_ENDPOINT_URL", "https://store:443")]).expect("an endpoint");
        assert_eq!(usual.host, "store");
    }

    #[test]
    fn what_is_missing_or_odd_is_named_and_keys_are_not_shown() {
        for (url, variables, part) in [
            ("s3://data", &[("AWS_ACCESS_KEY_ID", "")][..], "AWS_ACCESS_KEY_ID is not set"),
            ("s3://data", &[("AWS_SECRET_ACCESS_KEY", "")], "AWS_SECRET_ACCESS_KEY is not set"),
            ("s3://data", &[("AWS_ENDPOINT_URL", "store:9000")], "has to begin with `http://`"),
            ("s3://data", &[("AWS_ENDPOINT_URL", "http://me@store")], "has a user in it"),
            ("s3://data", &[("AWS_ENDPOINT_URL", "http://store/path")], "nothing behind it"),
            ("s3://store:9000/data", &[], "no name of a bucket"),
            ("s3://data?x=1", &[], "leave it out"),
        ] {
            let error = settings(url, variables).expect_err("it is refused");
            assert!(error.contains(part) && !error.contains("hidden"), "{error}");
        }
        let shown = format!("{:?}", settings("s3://data", &[]).expect("a bucket"));
        assert!(!shown.contains("hidden") && !shown.contains("somebody"), "{shown}");
    }
}
