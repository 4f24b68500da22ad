//! The ticket ring by itself (`singles`), against a queue (`walk`), with elements that count their
//! drops (`drops`) and between threads (`threads`).

mod drops;
mod singles;
mod threads;
mod walk;

use super::Ticket;
use crate::ring::Layout;

const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Slotted];

fn ring<T>(capacity: usize, layout: Layout) -> Ticket<T> {
    Ticket::new(capacity, layout).expect("a capacity in range")
}
