//! Endpoints that a failing model leaves alone.

use crate::ring::sync::is_model_over;

/// Something that is forgotten when the model fails: its drop would touch what can't be any more.
pub(crate) struct Kept<E>(Option<E>);

impl<E> Kept<E> {
    pub(crate) fn new(end: E) -> Self {
        Self(Some(end))
    }

    pub(crate) fn take(mut self) -> E {
        self.0.take().expect("taken here only")
    }
}

impl<E> std::ops::Deref for Kept<E> {
    type Target = E;

    fn deref(&self) -> &E {
        self.0.as_ref().expect("not taken yet")
    }
}

impl<E> std::ops::DerefMut for Kept<E> {
    fn deref_mut(&mut self) -> &mut E {
        self.0.as_mut().expect("not taken yet")
    }
}

impl<E> Drop for Kept<E> {
    fn drop(&mut self) {
        if is_model_over() {
            std::mem::forget(self.0.take());
        }
    }
}

pub(crate) fn kept<A, B>((tx, rx): (A, B)) -> (Kept<A>, Kept<B>) {
    (Kept::new(tx), Kept::new(rx))
}
