//! The counterpart of `panics` without `std`, where nothing can catch a panic: one in the drop of
//! an element, while others wait to be dropped, ends the program, as one during another one does.

/// Work that must not panic.
#[derive(Default)]
pub(crate) struct Panics(());

/// Ends the program when a panic drops it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the drop of an element of a ring panicked");
    }
}

impl Panics {
    /// Does a piece of work.
    pub(crate) fn catch<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let bomb = Bomb;
        let result = work();
        core::mem::forget(bomb);
        result
    }

    /// There was no panic.
    pub(crate) fn resume(self) {}
}

/// Drops each element that `take` returns.
pub(crate) fn drop_each<T>(mut take: impl FnMut() -> Option<T>) {
    while let Some(value) = take() {
        Panics::default().catch(|| drop(value));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::process::Command;

    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("seeded panic");
        }
    }

    /// Runs itself as a child, which must not come to its end.
    #[test]
    fn a_panic_in_a_drop_ends_the_program() {
        const CHILD: &str = "THALWEG_FATAL_CHILD";
        if std::env::var_os(CHILD).is_some() {
            let mut elements = Some(Panics).into_iter();
            let drops = || super::drop_each(|| elements.next());
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(drops));
            std::process::exit(0);
        }
        let name = std::thread::current()
            .name()
            .expect("of this test")
            .to_owned();
        let program = std::env::current_exe().expect("it is there");
        let child = Command::new(program)
            .args(["--exact", &name])
            .env(CHILD, "1")
            .output();
        let child = child.expect("it starts");
        assert_eq!(child.status.code(), None, "it has aborted: {child:?}");
    }
}
