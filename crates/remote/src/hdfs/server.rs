//! The name node's address, the user of its requests, and requests of `WebHDFS`.

use std::{sync::Mutex, time::Duration};

use nilometer_model::{StripeLayout, TargetUrl};
use nilometer_storage::TargetError;

use super::words::{HdfsRefusal, refusal};
use crate::{
    http::{HttpAnswer, HttpBody, HttpClient, HttpMethod, HttpRequest},
    percent::{encoded, query},
};

/// Default port of a name node's HTTP pages.
const PORT: u16 = 9870;
/// The variable that Hadoop's own client reads too.
const USER: &str = "HADOOP_USER_NAME";
/// Longest time to wait for an answer.
const QUESTION: Duration = Duration::from_secs(15);

/// A name node, or an `HttpFS` server in front of it.
#[derive(Debug)]
pub(super) struct HdfsServer {
    /// `http://` with host and port.
    pub(super) endpoint: String,
    pub(super) user: String,
    /// Layout of files made from now on. The server chooses the fields that are `None`.
    pub(super) layout: Mutex<StripeLayout>,
}

impl HdfsServer {
    /// Makes a server from the URL and the environment.
    pub(super) fn of(
        url: &TargetUrl,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, TargetError> {
        let wrong = |why: String| TargetError::Client { place: url.to_string(), action: "use", why };
        if let Some(query) = &url.query {
            return Err(wrong(format!(
                "`?{query}`: leave it out: set copies and the size of blocks in a plan (`replicas`, `stripe_size`)"
            )));
        }
        let (user, host) = url.authority.rsplit_once('@').unwrap_or(("", &url.authority));
        let user = Some(user.to_owned()).filter(|user| !user.is_empty());
        let known = || variable(USER).filter(|user| !user.is_empty()).or_else(user_of_this_process);
        let user = user.or_else(known).ok_or_else(|| {
            wrong(format!("this user has no name: give one as hdfs://USER@{host}/, or in {USER}"))
        })?;
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(wrong(format!("`{host}` has no number as its port: an example is name:{PORT}")));
        }
        let port = if port.is_none() { format!(":{PORT}") } else { String::new() };
        let endpoint = format!("http://{host}{port}");
        Ok(HdfsServer { endpoint, user, layout: Mutex::default() })
    }

    /// Builds a request of `WebHDFS` about a path.
    pub(super) fn request(&self, asked: &HdfsAsked<'_>) -> HttpRequest {
        let HdfsAsked { method, operation, path, more } = *asked;
        let mut pairs = vec![("op", operation), ("user.name", self.user.as_str())];
        pairs.extend_from_slice(more);
        let path = encoded(if path.is_empty() { "/" } else { path }, true);
        let url = format!("{}/webhdfs/v1{path}?{}", self.endpoint, query(&pairs));
        plain(method, url)
    }

    /// Sends a request and waits for the answer.
    pub(super) fn ask(&self, asked: &HdfsAsked<'_>) -> Result<HttpAnswer, HdfsRefusal> {
        answered(self.request(asked))
    }

    /// Fetches a page outside `WebHDFS`, in JSON.
    pub(super) fn page(&self, path: &str) -> Result<HttpAnswer, HdfsRefusal> {
        let mut request = plain(HttpMethod::Get, format!("{}{path}", self.endpoint));
        request.headers.push("Accept: application/json".into());
        answered(request)
    }
}

/// An operation to ask of a name node.
#[derive(Debug, Clone, Copy)]
pub(super) struct HdfsAsked<'a> {
    pub(super) method: HttpMethod,
    pub(super) operation: &'a str,
    pub(super) path: &'a str,
    pub(super) more: &'a [(&'a str, &'a str)],
}

impl<'a> HdfsAsked<'a> {
    /// Makes a request without parameters.
    pub(super) fn of(method: HttpMethod, operation: &'a str, path: &'a str) -> Self {
        HdfsAsked { method, operation, path, more: &[] }
    }
}

/// Makes a request with no body yet. `HttpFS` takes data of this type only.
pub(super) fn plain(method: HttpMethod, url: String) -> HttpRequest {
    let headers = match method {
        HttpMethod::Put | HttpMethod::Post => vec!["Content-Type: application/octet-stream".to_owned()],
        _ => Vec::new(),
    };
    HttpRequest { method, url, headers, body: HttpBody::Empty, flight: None, into_buffer: 0 }
}

fn answered(request: HttpRequest) -> Result<HttpAnswer, HdfsRefusal> {
    let answer = HttpClient::new(None).ask(request, QUESTION);
    let answer = answer.map_err(|fault| HdfsRefusal { errno: fault.errno, why: fault.why })?;
    refusal(&answer).map_or(Ok(answer), Err)
}

/// Returns the user's name from passwd(5), or from the environment if users are kept elsewhere.
fn user_of_this_process() -> Option<String> {
    let number = rustix::process::getuid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.or_else(|| std::env::var("USER").ok()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Result<HdfsServer, String> {
        let url: TargetUrl = url.parse().expect("a URL");
        HdfsServer::of(&url, |name| (name == USER).then(|| "somebody".to_owned()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_node_is_asked_by_its_http_port_and_as_somebody() {
        for (url, endpoint, user) in [
            ("hdfs://name/data", "http://name:9870", "somebody"),
            ("hdfs://me@name:50070/data", "http://name:50070", "me"),
            ("hdfs://[::1]/data", "http://[::1]:9870", "somebody"),
        ] {
            let server = server(url).expect(url);
            assert_eq!((&*server.endpoint, &*server.user), (endpoint, user), "{url}");
        }
        let asked =
            HdfsAsked { more: &[("length", "5")], ..HdfsAsked::of(HttpMethod::Get, "OPEN", "/a b/c") };
        let request = server("hdfs://me@name").expect("a server").request(&asked);
        assert_eq!(request.url, "http://name:9870/webhdfs/v1/a%20b/c?length=5&op=OPEN&user.name=me");
    }

    #[test]
    fn what_can_not_be_said_is_refused() {
        for (url, part) in [
            ("hdfs://name:x/data", "no number as its port"),
            ("hdfs://name/data?replication=1", "`replicas`"),
        ] {
            let error = server(url).expect_err(url);
            assert!(error.contains(part), "{error}");
        }
    }
}
