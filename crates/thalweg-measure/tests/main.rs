//! Recorders, load and tables from outside.

mod allocation;
mod load;
mod recorder;
mod table;
