//! What this machine costs.
