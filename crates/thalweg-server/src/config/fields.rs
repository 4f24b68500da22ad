//! Options that may be left empty.

/// An address, or `""`.
pub(super) mod address_or_none {
    use std::net::SocketAddr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::ref_option, reason = "serde gives it so")]
    pub(in crate::config) fn serialize<S: Serializer>(
        address: &Option<SocketAddr>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match address {
            Some(address) => to.collect_str(address),
            None => to.serialize_str(""),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SocketAddr>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(D::Error::custom)
    }
}

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
