//! The page at `/`: files of the folder `page`, compiled in. It is one more client of the streams
//! and of the WebSocket API; nothing here knows what it does.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Response, StatusCode};
use ring::digest::{SHA256, digest};

use crate::response::{HttpResponse, of_status};

/// The page may load scripts, styles and its icon from here, and connect to here; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
                      form-action 'none'";

struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($path:literal $kind:literal $name:literal;)*) => {
        &[$(File {
            path: $path,
            kind: $kind,
            text: include_str!(concat!("../page/", $name)),
        }),*]
    };
}

static FILES: &[File] = files! {
    "/" "text/html; charset=utf-8" "index.html";
    "/page/page.css" "text/css; charset=utf-8" "page.css";
    "/page/icon.svg" "image/svg+xml" "icon.svg";
    "/page/book.js" "text/javascript; charset=utf-8" "book.js";
    "/page/candles.js" "text/javascript; charset=utf-8" "candles.js";
    "/page/connection.js" "text/javascript; charset=utf-8" "connection.js";
    "/page/decimal.js" "text/javascript; charset=utf-8" "decimal.js";
    "/page/form.js" "text/javascript; charset=utf-8" "form.js";
    "/page/instruments.js" "text/javascript; charset=utf-8" "instruments.js";
    "/page/ladder.js" "text/javascript; charset=utf-8" "ladder.js";
    "/page/main.js" "text/javascript; charset=utf-8" "main.js";
    "/page/orders.js" "text/javascript; charset=utf-8" "orders.js";
    "/page/plot.js" "text/javascript; charset=utf-8" "plot.js";
    "/page/tape.js" "text/javascript; charset=utf-8" "tape.js";
};

/// The entity tag of each file.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |file: &File| {
        let hash = digest(&SHA256, file.text.as_bytes());
        format!("\"{}\"", URL_SAFE_NO_PAD.encode(&hash.as_ref()[..12]))
    };
    FILES.iter().map(tag).collect()
});

/// Answers a request for a file of the page; `None` where the path is none of these.
pub(crate) fn respond(method: &Method, path: &str, headers: &HeaderMap) -> Option<HttpResponse> {
    let at = FILES.iter().position(|file| file.path == path)?;
    if *method == Method::OPTIONS {
        return None;
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = of_status(StatusCode::METHOD_NOT_ALLOWED, String::new());
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return Some(response);
    }
    let (file, tag) = (&FILES[at], &TAGS[at]);
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|list| list.split(',').any(|one| names(one, tag)));
    let body = if is_known { "" } else { file.text };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fixed: [(HeaderName, &'static str); 5] = [
        (CONTENT_TYPE, file.kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // A server that was replaced has another page: it is asked each time.
        (CACHE_CONTROL, "no-cache"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, value);
    }
    Some(response)
}

/// Returns whether an element of `If-None-Match` is a tag, or every one.
fn names(element: &str, tag: &str) -> bool {
    let element = element.trim();
    element == "*" || element.strip_prefix("W/").unwrap_or(element) == tag
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http_body_util::BodyExt;

    use super::*;

    /// Bytes of all files together, at most.
    const BUNDLE_BYTES_MAX: usize = 150_000;

    fn get(path: &str, tag: Option<&HeaderValue>) -> HttpResponse {
        let mut headers = HeaderMap::new();
        if let Some(tag) = tag {
            headers.insert(IF_NONE_MATCH, tag.clone());
        }
        respond(&Method::GET, path, &headers).expect("a file of the page")
    }

    #[test]
    fn the_files_are_all_of_the_folder_and_below_150_kb() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let there: BTreeSet<String> = names.map(|name| name.to_string_lossy().into()).collect();
        let served = FILES.iter().map(|file| match file.path {
            "/" => "index.html".to_owned(),
            path => path.replace("/page/", ""),
        });
        assert_eq!(served.collect::<BTreeSet<_>>(), there);
        let bytes: usize = FILES.iter().map(|file| file.text.len()).sum();
        assert!(bytes < BUNDLE_BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn no_file_names_another_server_or_holds_what_the_policy_refuses() {
        // The name of SVG's vocabulary is no address that is loaded.
        let vocabulary = "http://www.w3.org/2000/svg";
        for file in FILES {
            let text = file.text.replace(vocabulary, "");
            for outside in ["http://", "https://", "url(", "@import", "\"//", "'//"] {
                assert!(!text.contains(outside), "{}: {outside}", file.path);
            }
            for refused in [" style=", "<style", "innerHTML", "onclick=", "eval("] {
                assert!(!text.contains(refused), "{}: {refused}", file.path);
            }
        }
        // Each file that the page names is there.
        let page = FILES[0].text;
        let named = page.split('"').filter(|text| text.starts_with("/page/"));
        for path in named {
            assert!(FILES.iter().any(|file| file.path == path), "{path}");
        }
    }

    #[tokio::test]
    async fn a_file_comes_with_a_strict_policy_and_once() {
        for file in FILES {
            let first = get(file.path, None);
            assert_eq!(first.status(), StatusCode::OK);
            let header = |name: &str| first.headers()[name].to_str().expect("text").to_owned();
            assert!(header("content-security-policy").starts_with("default-src 'none'; "));
            assert!(!header("content-security-policy").contains("unsafe"));
            assert_eq!(header("x-content-type-options"), "nosniff");
            assert_eq!(header("referrer-policy"), "no-referrer");
            assert_eq!(header("content-type"), file.kind);
            let tag = first.headers()[ETAG].clone();
            let again = get(file.path, Some(&tag));
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
            let body = again.into_body().collect().await.expect("a body");
            assert!(body.to_bytes().is_empty());
            let other = HeaderValue::from_static("\"other\"");
            assert_eq!(get(file.path, Some(&other)).status(), StatusCode::OK);
        }
        let none = HeaderMap::new();
        let posted = respond(&Method::POST, "/", &none).expect("the page");
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(respond(&Method::GET, "/page/../page.rs", &none).is_none());
        assert!(respond(&Method::GET, "/page/", &none).is_none());
    }
}
