//! Options that may be left empty.

/// Makes a module for options of a type that is written as text, or `""`.
macro_rules! text_or_none {
    ($name:ident, $type:ty) => {
        pub(super) mod $name {
            use serde::de::Error;
            use serde::{Deserialize, Deserializer, Serializer};

            #[allow(clippy::ref_option, reason = "serde gives it so")]
            pub(in crate::config) fn serialize<S: Serializer>(
                value: &Option<$type>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => to.collect_str(value),
                    None => to.serialize_str(""),
                }
            }

            pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<Option<$type>, D::Error> {
                let text = String::deserialize(from)?;
                if text.is_empty() {
                    return Ok(None);
                }
                text.parse().map(Some).map_err(D::Error::custom)
            }
        }
    };
}

text_or_none!(address_or_none, std::net::SocketAddr);
text_or_none!(ip_or_none, std::net::IpAddr);

/// A path, or `""`.
pub(super) mod path_or_none {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::ref_option, reason = "serde gives it so")]
    pub(in crate::config) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(path.as_ref().and_then(|path| path.to_str()).unwrap_or(""))
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let text = String::deserialize(from)?;
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }
}
