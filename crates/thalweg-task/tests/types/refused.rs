// Code that must not compile, each line for the reason that stands in it. `compiler.rs` tries all
// of them at once, so there is nothing here that would keep the compiler from looking at the rest.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::task::Waker;

use thalweg_task::fiber::{Fiber, FiberContext, Generator, GeneratorContext, StackPool};
use thalweg_task::slot::{Many, One, SlotReceiver, SlotSender};
use thalweg_task::{LocalExecutor, Family, Handle, Local, Shared, Sleep, Task, slot};

fn send<T: Send>(_: T) {}
fn sync<T: Sync>(_: T) {}

type Long = &'static str;
type Short<'a> = &'a str;
type Tx<T, F> = SlotSender<T, F>;
type Rx<T, F> = SlotReceiver<T, F>;
type Clones<T, F> = SlotReceiver<T, F, Many<F>>;

// The two ends of a slot have one value in common.
fn v01<'a>(x: Tx<Long, Local>) -> Tx<Short<'a>, Local> { x } //~ lifetime may not live long
fn v02<'a>(x: Tx<Long, Shared>) -> Tx<Short<'a>, Shared> { x } //~ lifetime may not live long
fn v03<'a>(x: Rx<Short<'a>, Local>) -> Rx<Long, Local> { x } //~ lifetime may not live long
fn v04<'a>(x: Rx<Short<'a>, Shared>) -> Rx<Long, Shared> { x } //~ lifetime may not live long
fn v05<'a>(x: Rx<fn(Short<'a>), Local>) -> Rx<fn(Long), Local> { x } //~ lifetime may not live
fn v06<'a>(x: Clones<Short<'a>, Local>) -> Clones<Long, Local> { x } //~ lifetime may not live
fn v07<'a>(x: Task<Short<'a>>) -> Task<Long> { x } //~ lifetime may not live long
// Some `'static` types are more general than others: inputs may not become less so, nor outputs
// more.
type General = for<'a> fn(&'a u8);
type Special = fn(&'static u8);
type In<T> = Generator<T, u8, u8>;
type Out<T> = Generator<u8, T, u8>;
type End<T> = Generator<u8, u8, T>;
type InOf<'g, T> = GeneratorContext<'g, T, u8>;
type OutOf<'g, T> = GeneratorContext<'g, u8, T>;
fn v10(x: In<General>) -> In<Special> { x } //~ E0308: mismatched types
fn v11(x: Out<Special>) -> Out<General> { x } //~ E0308: mismatched types
fn v12(x: End<Special>) -> End<General> { x } //~ E0308: mismatched types
fn v13<'g>(x: InOf<'g, Special>) -> InOf<'g, General> { x } //~ E0308: mismatched types
fn v14<'g>(x: OutOf<'g, General>) -> OutOf<'g, Special> { x } //~ E0308: mismatched types
fn v15(x: Fiber<Special>) -> Fiber<General> { x } //~ E0308: mismatched types
fn v16(x: Task<Special>) -> Task<General> { x } //~ E0308: mismatched types
fn v17(x: Tx<General, Local>) -> Tx<Special, Local> { x } //~ E0308: mismatched types
fn v18(x: Rx<Special, Shared>) -> Rx<General, Shared> { x } //~ E0308: mismatched types
fn v19<'f>(x: FiberContext<'f>) -> FiberContext<'static> { x } //~ lifetime may not live long

// Values of one thread stay there.
fn s01(x: Tx<u8, Local>) { send(x) } //~ E0277: `Rc<
fn s02(x: Rx<u8, Local>) { send(x) } //~ E0277: `Rc<
fn s03(x: Tx<u8, Local>) { sync(x) } //~ E0277: `Rc<
fn s04(x: &mut Rx<u8, Local>) { send(x.recv()) } //~ E0277: `Rc<
fn s05(x: One<Local>) { send(x) } //~ E0277: `NonNull<
fn s06(x: Many<Local>) { send(x) } //~ E0277: `NonNull<
fn s07(x: Task<u8>) { send(x) } //~ E0277: `NonNull<
fn s08(x: Task<u8>) { sync(x) } //~ E0277: `NonNull<
fn s09(x: LocalExecutor) { send(x) } //~ E0277: `Rc<
fn s10(x: Handle) { send(x) } //~ E0277: `Rc<
fn s11(x: Handle) { sync(x) } //~ E0277: `Rc<
fn s12(x: Sleep) { send(x) } //~ E0277: `Rc<
fn s13(x: StackPool) { send(x) } //~ E0277: `Rc<
// So do values whose content is not known.
fn s20(x: Fiber<u8>) { send(x) } //~ E0277
fn s21(x: Generator<u8, u8, u8>) { send(x) } //~ E0277
fn s22(x: &mut FiberContext<'_>) { send(x) } //~ E0277
fn s23(x: &FiberContext<'_>) { send(x) } //~ E0277
fn s24(x: GeneratorContext<'_, u8, u8>) { send(x) } //~ E0277
fn s25(x: &mut FiberContext<'_>) {
    std::thread::scope(|s| {
        s.spawn(|| x.suspend()); //~ E0277
    });
}
// And values that must not move to another thread.
fn s30(x: Tx<Rc<u8>, Shared>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s31(x: Tx<Rc<u8>, Shared>) { sync(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s32(x: Rx<Rc<u8>, Shared>) { send(x) } //~ E0277: `Rc<u8>` cannot be sent
fn s33(x: &mut Rx<Rc<u8>, Shared>) { send(x.recv()) } //~ E0277: `Rc<u8>` cannot be sent

// A context stays in its body, and what it lends goes before it suspends.
fn b01(p: StackPool) {
    let mut o: Option<&mut FiberContext<'_>> = None;
    let _ = p.fiber(move |ctx| o = Some(ctx)); //~ E0521
}
fn b02(p: StackPool, q: StackPool) {
    let _ = p.fiber(move |a| { let _ = q.fiber(move |b| std::mem::swap(a, b)); }); //~ E0521
}
fn b03(p: StackPool, q: StackPool) {
    let _ = p.fiber(move |a| q.fiber(|_| a.suspend()).is_ok()); //~ E0
}
fn b04(p: StackPool, q: StackPool) {
    let _ = p.fiber(move |a| q.generator(|g, ()| g.suspend(&mut *a)).is_ok()); //~ E0521
}
fn b05(p: StackPool) {
    let _ = p.fiber(|ctx| { let w = ctx.waker(); ctx.suspend(); w.wake_by_ref(); }); //~ E0502
}
fn b06(p: StackPool) { let _ = p.fiber(|ctx| ctx.waker()); } //~ lifetime may not live long
fn b07(mut x: Rx<u8, Local>) { let f = x.recv(); x.try_recv(); drop(f); } //~ E0499

// Sealed traits are not for others to implement or to call.
#[derive(Debug)]
enum Mine {}
impl Family for Mine { //~ E0277: the trait bound `Mine:
    type Strong<T> = Rc<T>;
    type Weak<T> = Weak<T>;
    type Guarded<S> = RefCell<S>; //~ E0277: the trait bound `RefCell<S>:
    fn strong<T>(_: T) -> Rc<T> { loop {} }
    fn strong_default<T: Default>() -> Rc<T> { loop {} }
    fn downgrade<T>(_: &Rc<T>) -> Weak<T> { loop {} }
    fn upgrade<T>(_: &Weak<T>) -> Option<Rc<T>> { loop {} }
}
fn l01<F: Family>(g: &F::Guarded<u8>) { g.with(loop {}, |one: &mut u8| *one += 1); } //~ E0599
fn l02<F: Family>(kept: &mut Option<F::Waiter>) { F::Waiter::lend(kept); } //~ E0599
fn l03<F: Family>(waker: &Waker) { F::Waiter::of(waker); } //~ E0599
fn l04(waits: &mut One<Local>) { waits.next(); } //~ E0599
fn l05() { slot::<u8, Mine>(); } //~ E0277: the trait bound `Mine:
