// Code that must not compile, each line for the reason that stands in it.

use std::cell::Cell;
use std::rc::Rc;

use thalweg_journal::{AppendBuffer, Block, Durable, Journal, Lsn, Reader, Record, Records};
use thalweg_journal::{Shared, SimDisk};

fn send<T: Send>(_: T) {}

// A promise is made by a commit alone, and for what was committed.
fn p01(lsn: Lsn) -> Durable<Lsn> { Durable(lsn) } //~ E0423
fn p02(lsn: Lsn) -> Durable<Lsn> { Durable::promise(lsn) } //~ E0624
fn p03(lsn: Lsn) -> Durable<Lsn> { lsn.into() } //~ E0277
fn p04(lsn: Lsn) -> Durable<Lsn> { lsn } //~ E0308
fn p05() -> Durable<Lsn> { Default::default() } //~ E0277

// A block or iterator that a reader lends must be gone before it reads on.
fn b01(r: &mut Reader) { let b = r.next_block(); r.next_block(); drop(b); } //~ E0499
fn b02(r: &mut Reader) { let b = r.records::<[u64; 2]>(); r.next_block(); drop(b); } //~ E0499
fn b03<'a>(x: Block<'a>) -> Block<'static> { x } //~ lifetime may not live long
fn b04<'a>(x: Block<'a>) -> Option<&'static [[u64; 2]]> { x.records() } //~ lifetime may not live
fn b05<'a>(x: Records<'a, u64, SimDisk>) -> Records<'static, u64, SimDisk> { x } //~ lifetime may
fn b06(j: &mut Journal<u64>, mut o: Option<&mut u64>) { j.append_with(|r| o = Some(r)); } //~ E0521
fn b07(j: &Shared<u64>, mut o: Option<&mut u64>) { j.append_with(|r| o = Some(r)); } //~ E0521
fn b08<F: FnMut(&mut [u8])>(b: &mut AppendBuffer<u8, F>, mut o: Option<&mut u8>) {
    b.append_with(|r| o = Some(r)); //~ E0521
}
fn b09(j: Journal<u64, SimDisk>) { drop(j.share(Default::default())); j.next(); } //~ E0382

// Records are plain: no pointers and no cells, which other bytes would forge.
fn r01() { Journal::<Rc<u8>>::open("", Default::default()).is_ok(); } //~ E0
fn r02() { Journal::<&'static u8>::open("", Default::default()).is_ok(); } //~ E0
fn r03<R: Record>() {}
fn r04() { r03::<Cell<u8>>(); } //~ E0277
fn r05() { r03::<bool>(); } //~ E0277
fn r06(x: AppendBuffer<Rc<u8>, fn(&mut [Rc<u8>])>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
