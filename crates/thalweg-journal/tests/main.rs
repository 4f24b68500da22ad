//! A journal from outside: damage, errors, followers, kills, crashes of its disk.

mod allocation;
mod background;
mod damage;
mod errors;
mod files;
mod follow;
mod fuzz;
mod kill;
mod shared;
mod sim_journal;
mod spares;
mod types;
mod unsteady;
