//! Where a log is: `etcd://host:port,host:port,…/prefix`.

use std::str::FromStr;
use std::{error, fmt};

/// The endpoints of an etcd cluster, and the prefix of the keys of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host and port of each member.
    pub endpoints: Vec<String>,
    /// The prefix of its keys; not empty.
    pub prefix: String,
}

/// Why a text is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; such as etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/exchange",
            self.0
        )
    }
}

impl error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |what: &str| Err(AddressError(format!("`{text}` {what}")));
        let Some(rest) = text.strip_prefix("etcd://") else {
            return error("does not begin with etcd://");
        };
        if rest.starts_with("http://") || rest.starts_with("https://") {
            return error("names a protocol: gRPC without TLS is spoken");
        }
        let Some((hosts, prefix)) = rest
            .split_once('/')
            .filter(|(_, prefix)| !prefix.is_empty())
        else {
            return error("has no prefix behind the endpoints");
        };
        let is_part = |part: &str| {
            !part.is_empty() && part != "log" && part.chars().all(|one| one.is_ascii_graphic())
        };
        if !prefix.split('/').all(is_part) {
            return error("has a prefix with an empty part, a part `log`, or a blank");
        }
        let has_port = |host: &str| {
            let port = host
                .rsplit_once(':')
                .map(|(name, port)| (name, port.parse::<u16>()));
            let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
            matches!(port, Some((name, Ok(_))) if is_name(name))
        };
        let endpoints: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        if let Some(host) = endpoints.iter().find(|host| !has_port(host)) {
            return error(&format!("has an endpoint without a port: `{host}`"));
        }
        Ok(Self {
            endpoints,
            prefix: prefix.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_endpoints_and_a_prefix() {
        let address: Address = "etcd://a:1,[::1]:2/x/y".parse().expect("it is one");
        assert_eq!(address.endpoints, ["a:1", "[::1]:2"]);
        assert_eq!(address.prefix, "x/y");
    }

    #[test]
    fn other_texts_are_refused_and_say_why() {
        let example = "; such as etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/exchange";
        let wrong = "has a prefix with an empty part, a part `log`, or a blank";
        for (text, why) in [
            ("http://a:1/x", "does not begin with etcd://"),
            (
                "etcd://https://a:1/x",
                "names a protocol: gRPC without TLS is spoken",
            ),
            ("etcd://a:1", "has no prefix behind the endpoints"),
            ("etcd://a:1/", "has no prefix behind the endpoints"),
            ("etcd://a:1,b/x", "has an endpoint without a port: `b`"),
            ("etcd://a:1/x/", wrong),
            ("etcd://a:1//x", wrong),
            ("etcd://a:1/x/log", wrong),
            ("etcd://a:1/log/x", wrong),
            ("etcd://a:1/x y", wrong),
            ("etcd://a:1/x/ ", wrong),
            ("etcd://a :1/x", "has an endpoint without a port: `a :1`"),
            ("etcd://:1/x", "has an endpoint without a port: `:1`"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert_eq!(error, format!("`{text}` {why}{example}"));
        }
    }
}
