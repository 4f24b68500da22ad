//! The endpoints of market data.
