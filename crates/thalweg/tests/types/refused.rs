// Code that must not compile, each line for the reason that stands in it. `compiler.rs` tries all
// of them at once, so there is nothing here that would keep the compiler from looking at the rest.

use std::cell::Cell;
use std::rc::Rc;

use thalweg::bus::{self, Message};
use thalweg::channel::{self, Mpmc, Mpsc, OneshotReceiver, OneshotSender, Spsc};
use thalweg::channel::{WeakReceiver, WeakSender};
use thalweg::pipeline::{self, Chunk};
use thalweg::ring::{self, MpmcClaim, MpmcRing, SpscConsumer, SpscProducer, broadcast};
use thalweg::ring::{OneshotConsumer as SlotReceiver, OneshotProducer as SlotSender};

fn send<T: Send>(_: T) {}
fn sync<T: Sync>(_: T) {}

type Long = &'static str;
type Short<'a> = &'a str;

// Types that take elements take none that live shorter than the other end expects.
fn v01<'a>(x: SpscProducer<Long>) -> SpscProducer<Short<'a>> { x } //~ lifetime may not live long
fn v02<'a>(x: SlotSender<Long>) -> SlotSender<Short<'a>> { x } //~ lifetime may not live long
fn v03<'a>(x: MpmcRing<Long>) -> MpmcRing<Short<'a>> { x } //~ lifetime may not live long
fn v04<'a>(x: Take<'a, Long>) -> Take<'a, Short<'a>> { x } //~ lifetime may not live long
fn v05<'a>(x: Claim<'a, Long>) -> Claim<'a, Short<'a>> { x } //~ lifetime may not live long
fn v06<'a>(x: Publisher<Long>) -> Publisher<Short<'a>> { x } //~ lifetime may not live long
fn v07<'a>(x: Publish<'a, Long>) -> Publish<'a, Short<'a>> { x } //~ lifetime may not live long
fn v08<'a>(x: Sender<Long>) -> Sender<Short<'a>> { x } //~ lifetime may not live long
fn v09<'a>(x: Weak<Long>) -> Weak<Short<'a>> { x } //~ lifetime may not live long
fn v10<'a>(x: Room<'a, Long>) -> Room<'a, Short<'a>> { x } //~ lifetime may not live long
fn v11<'a>(x: OneTx<Long>) -> OneTx<Short<'a>> { x } //~ lifetime may not live long
fn v12<'a>(x: Route<Long>) -> Route<Short<'a>> { x } //~ lifetime may not live long
fn v13<'a>(x: Lane<Long>) -> Lane<Short<'a>> { x } //~ lifetime may not live long
fn v14<'a>(x: Events<'a, Long>) -> Events<'a, Short<'a>> { x } //~ lifetime may not live long
// Types that give elements give none that live longer than they do.
fn v20<'a>(x: SpscConsumer<Short<'a>>) -> SpscConsumer<Long> { x } //~ lifetime may not live long
fn v21<'a>(x: SlotReceiver<Short<'a>>) -> SlotReceiver<Long> { x } //~ lifetime may not live long
fn v22<'a>(x: MpmcRing<Short<'a>>) -> MpmcRing<Long> { x } //~ lifetime may not live long
fn v23<'a>(x: Batch<'a, Short<'a>>) -> Batch<'a, Long> { x } //~ lifetime may not live long
fn v24<'a>(x: Reader<Short<'a>>) -> Reader<Long> { x } //~ lifetime may not live long
fn v25<'a>(x: Receiver<Short<'a>>) -> Receiver<Long> { x } //~ lifetime may not live long
fn v26<'a>(x: WeakRx<Short<'a>>) -> WeakRx<Long> { x } //~ lifetime may not live long
fn v27<'a>(x: Got<'a, Short<'a>>) -> Got<'a, Long> { x } //~ lifetime may not live long
fn v28<'a>(x: OneRx<Short<'a>>) -> OneRx<Long> { x } //~ lifetime may not live long
// Types that others use too, or that have a ring in common with them, do neither.
fn v30<'a>(x: SlotReceiver<Long>) -> SlotReceiver<Short<'a>> { x } //~ lifetime may not live long
fn v31<'a>(x: Reader<Long>) -> Reader<Short<'a>> { x } //~ lifetime may not live long
fn v32<'a>(x: Receiver<Long>) -> Receiver<Short<'a>> { x } //~ lifetime may not live long
fn v33<'a>(x: Batch<'a, Long>) -> Batch<'a, Short<'a>> { x } //~ lifetime may not live long
// And of `'static` types, some are more general than others.
fn v40(x: SpscProducer<General>) -> SpscProducer<Special> { x } //~ E0308: mismatched types
fn v41(x: SpscConsumer<Special>) -> SpscConsumer<General> { x } //~ E0308: mismatched types
fn v42(x: SlotSender<General>) -> SlotSender<Special> { x } //~ E0308: mismatched types
fn v43(x: MpmcRing<General>) -> MpmcRing<Special> { x } //~ E0308: mismatched types
fn v44(x: Publisher<General>) -> Publisher<Special> { x } //~ E0308: mismatched types
fn v45(x: Sender<General>) -> Sender<Special> { x } //~ E0308: mismatched types

type General = for<'a> fn(&'a u8);
type Special = fn(&'static u8);
type Claim<'c, T> = ring::SpscClaim<'c, T>;
type Take<'c, T> = MpmcClaim<'c, T>;
type Batch<'c, T> = ring::SpscBatch<'c, T>;
type Publisher<T> = broadcast::RingPublisher<T>;
type Publish<'c, T> = broadcast::SlotClaim<'c, T>;
type Reader<T> = broadcast::Reader<T>;
type Route<T> = broadcast::RingBuilder<T>;
type Sender<T> = channel::Sender<T, Spsc>;
type Receiver<T> = channel::Receiver<T, Spsc>;
type Weak<T> = WeakSender<T, Mpmc>;
type WeakRx<T> = WeakReceiver<T, Mpmc>;
type Room<'c, T> = channel::Claim<'c, T>;
type Got<'c, T> = channel::Batch<'c, T>;
type OneTx<T> = OneshotSender<T>;
type OneRx<T> = OneshotReceiver<T>;
type Lane<T> = pipeline::Producer<T>;
type Events<'c, T> = Chunk<'c, T>;

// Elements that must not move to another thread move in nothing.
type Local = Rc<u8>;
fn s01(x: SpscProducer<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s02(x: SpscConsumer<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s03(x: Claim<'_, Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s04(x: Batch<'_, Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s05(x: MpmcRing<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s06(x: MpmcRing<Local>) { sync(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s07(x: Take<'_, Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s08(x: SlotSender<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s09(x: SlotSender<Local>) { sync(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s10(x: SlotReceiver<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s11(x: SlotReceiver<Local>) { sync(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s12(x: Publisher<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be
fn s13(x: Reader<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be
fn s14(x: Sender<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s15(x: Receiver<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s16(x: Weak<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s17(x: WeakRx<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s18(x: Room<'_, Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s19(x: Got<'_, Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s20(x: OneTx<Local>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s21(x: OneRx<Local>) { sync(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s22() { channel::spsc::<Local>(1); } //~ E0277: `Rc<u8>` cannot be sent
fn s23() { channel::Builder::new(1).mpsc::<Local>(); } //~ E0277: `Rc<u8>` cannot be sent
fn s24() { channel::oneshot::<Local>(); } //~ E0277: `Rc<u8>` cannot be sent
// Events of a pipeline are looked at by several threads at once.
fn s30(x: Publisher<Cell<u8>>) { send(x) } //~ E0277: `Cell<u8>` cannot be shared
fn s31(x: Reader<Cell<u8>>) { send(x) } //~ E0277: `Cell<u8>` cannot be shared
fn s32(x: Reader<Cell<u8>>) { sync(x) } //~ E0277: `Cell<u8>` cannot be shared
fn s33(x: Events<'_, Cell<u8>>) { send(x) } //~ E0277: `Cell<u8>` cannot be shared
fn s34() { pipeline::Pipeline::builder(8, || Cell::new(0_u8)); } //~ E0277: `Cell<u8>` cannot be sh
fn s35(x: Publisher<Locked>) { send(x) } //~ E0277: `std::sync::MutexGuard<'static, u8>` cannot
fn s36(x: Reader<Locked>) { send(x) } //~ E0277: `std::sync::MutexGuard<'static, u8>` cannot
type Locked = std::sync::MutexGuard<'static, u8>;

// An end is for one thread at a time; there is one error, and it says so.
fn e01(x: SpscProducer<u8>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus can't be sha
fn e02(x: SpscConsumer<u8>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus can't be sha
fn e03(x: Claim<'_, u8>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus can't be shar
fn e04(x: Batch<'_, u8>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus can't be shar
fn e05(x: Sender<u8>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus can't be shared
fn e06(x: Receiver<u8>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus can't be shared
fn e07<M: Message>(x: bus::Publisher<M>) { sync(x) } //~ E0277: an end of a ring, a channel or a bus
fn e08<M: Message + Sync>(x: bus::Consumer<M>) { sync(x) } //~ E0277: an end of a ring, a channel or
fn e09(x: Sender<u8>) {
    std::thread::scope(|s| {
        s.spawn(|| x.is_closed()); //~ E0277: an end of a ring, a channel or a bus can't be shared
    });
}
fn e10(x: Take<'_, Cell<u8>>) { sync(x) } //~ E0277

// A value that is lent stays where it is lent to.
type O<'a> = Option<&'a mut u8>;
fn b01(mut c: SpscConsumer<String>) { let r = c.peek().unwrap(); c.try_pop(); r.len(); } //~ E0499
fn b02(mut p: SpscProducer<u8>) { let c = p.claim(1); let d = p.claim(1); drop((c, d)); } //~ E0499
fn b03(mut c: SpscConsumer<u8>) { let b = c.batch(1); c.try_pop(); drop(b); } //~ E0499
fn b04(t: MpmcRing<u8>) { let c = t.claim(1); drop(t); drop(c); } //~ E0505
fn b05(mut s: Sender<u8>) { let c = s.claim(1); s.send(1); drop(c); } //~ E0499
fn b06(mut r: Receiver<u8>) { let b = r.batch(1); r.recv(); drop(b); } //~ E0499
fn b07(mut r: Receiver<u8>) { let f = r.recv_async(); r.try_recv(); drop(f); } //~ E0499
fn b08(mut r: Reader<u8>, mut o: Option<&u8>) { r.visit(1, |_, e| { o = Some(e); true}); } //~ E0521
fn b09(mut r: Reader<u8>, mut o: O<'_>) { r.visit_mut(1, |_, e| { o = Some(e); true }); } //~ E0521
fn b10(c: Chunk<'_, u8>, mut o: O<'_>) { c.for_each(|e, _| o = Some(e)); } //~ E0521

// Sealed traits are not for others to implement or to call.
struct Mine;
impl channel::Shape for Mine {} //~ E0277: the trait bound `Mine:
fn l01(c: SpscConsumer<u8>) { c.clone(); } //~ E0599: no method named `clone`
fn l02(s: Sender<u8>) { s.clone(); } //~ E0599: the method `clone` exists
