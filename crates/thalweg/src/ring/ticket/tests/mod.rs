//! The ticket ring by itself (`singles`), against a queue (`walk`), with elements that count their
//! drops (`drops`), between threads (`threads`), and below a limit (`within`).

mod drops;
mod singles;
mod threads;
mod walk;
mod within;

use super::Ticket;
use crate::ring::Layout;

const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Slotted];

fn ring<T>(capacity: usize, layout: Layout) -> Ticket<T> {
    Ticket::new(capacity, layout).expect("a capacity in range")
}
