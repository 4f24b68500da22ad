//! Names and API keys for the demonstration market of the server.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_exchange::UserId;

use crate::GatewayError;
use crate::keys::{self, KeyKind, NewKey};

/// The symbols of the demonstration: a lot is 0.00001, a unit of price 0.01.
const SYMBOLS: &str = r#"[assets]
BTC = { currency = 11, decimals = 5 }
ETH = { currency = 12, decimals = 5 }
USDT = { currency = 20, decimals = 7 }

[symbols.BTCUSDT]
symbol = 1
base = "BTC"
quote = "USDT"

[symbols.ETHUSDT]
symbol = 2
base = "ETH"
quote = "USDT"
"#;

/// A demonstration's files, and the keys of this start.
#[derive(Clone)]
pub struct DemoKeys {
    /// The symbols.
    pub symbols: PathBuf,
    /// The API keys.
    pub keys: PathBuf,
    /// Each user with its key.
    pub users: Vec<(UserId, NewKey)>,
}

impl DemoKeys {
    /// Writes both files into a directory, with an HMAC key for each user, in place of those of an
    /// earlier start.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn prepare(directory: &Path, users: &[UserId]) -> Result<Self, GatewayError> {
        let symbols = directory.join("symbols.toml");
        fs::write(&symbols, SYMBOLS).map_err(|source| GatewayError::File {
            path: symbols.clone(),
            source,
        })?;
        let file = directory.join("api-keys.toml");
        if file.exists() {
            fs::remove_file(&file).map_err(|source| GatewayError::File {
                path: file.clone(),
                source,
            })?;
        }
        let made = users.iter().map(|user| {
            let key = keys::create(&file, KeyKind::Hmac, *user, false)?;
            Ok((*user, key))
        });
        let made = made.collect::<Result<_, GatewayError>>()?;
        Ok(Self {
            symbols,
            keys: file,
            users: made,
        })
    }

    /// Returns a message for the person who started the demo: the names, and keys to try.
    #[must_use]
    pub fn message(&self) -> String {
        let mut message =
            "gateway: symbols 1 and 2 are BTCUSDT and ETHUSDT; API keys for you:\n".to_owned();
        for (user, key) in &self.users {
            let NewKey { api_key, secret } = key;
            message.push_str(&format!(
                "  user {user}\n    apiKey {api_key}\n    secret {secret}\n"
            ));
        }
        message
    }
}
