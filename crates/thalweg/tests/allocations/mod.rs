//! Nothing allocates after construction: rings here, pipelines and waits in modules of their own. A
//! binary of its own, for its allocator.

mod pipeline;
mod waits;

use thalweg::ring::{Layout, PopError, spsc};
use thalweg_testkit::counting::calls;

#[test]
fn a_one_to_one_ring_does_not_allocate() {
    for layout in [Layout::Packed, Layout::Slotted] {
        let (mut tx, mut rx) = spsc::<[u64; 3]>(100, layout).unwrap();
        let mut out = Vec::with_capacity(100);
        let calls = calls(|| {
            for round in 0..1000 {
                tx.try_push([round; 3]).unwrap();
                tx.push_slice(&[[1; 3]; 20]);
                tx.push_iter((0..20).map(|n| [n; 3]));
                let mut claim = tx.claim(30).unwrap();
                claim.push([7; 3]).unwrap();
                match round % 2 {
                    0 => drop(claim),
                    _ => assert_eq!(claim.commit(), 1),
                }
                while tx.try_push([9; 3]).is_ok() {}
                assert_eq!((tx.len(), rx.len(), rx.is_empty()), (100, 100, false));
                assert_eq!(rx.peek(), Ok(&[round; 3]));
                assert_eq!(rx.try_pop(), Ok([round; 3]));
                assert_eq!(rx.batch(30).count(), 30);
                assert_eq!(rx.pop_into(&mut out, 100), 69);
                out.clear();
                assert_eq!(rx.try_pop(), Err(PopError::Empty));
            }
            tx.close();
        });
        assert_eq!(calls, 0, "{layout:?}");
    }
}
