//! Memory for frames: a list of free ones for each class of sizes, last in first out.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use super::hub::{Chunk, Hub};

/// Bytes of the frames of each class. A larger frame has an allocation of its own.
const CLASSES: [usize; 12] = [
    192, 256, 320, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192,
];
/// Frames are aligned as lines of the cache are.
const ALIGN: usize = 64;
/// Bytes of a chunk: as many frames as fit.
const CHUNK: usize = 64 << 10;

/// Where a frame's memory comes from, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Class(usize),
    Own(Layout),
}

impl Place {
    pub(super) const fn of<T>() -> Self {
        let layout = Layout::new::<T>();
        let mut class = 0;
        while class < CLASSES.len() {
            if layout.size() <= CLASSES[class] && layout.align() <= ALIGN {
                return Self::Class(class);
            }
            class += 1;
        }
        Self::Own(layout)
    }

    /// Returns the layout, where it is the frame's own.
    pub(super) const fn own(self) -> Option<Layout> {
        match self {
            Self::Own(layout) => Some(layout),
            Self::Class(_) => None,
        }
    }
}

/// Free frames. The owner's.
pub(super) struct Pool {
    free: [Cell<Option<NonNull<Free>>>; CLASSES.len()],
}

/// The content of a frame while it is free.
struct Free {
    next: Option<NonNull<Free>>,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            free: [const { Cell::new(None) }; CLASSES.len()],
        }
    }

    /// Returns memory for a frame, uninitialised. `hub` keeps it.
    #[inline]
    pub(super) fn take(&self, place: Place, hub: &Hub) -> NonNull<u8> {
        let class = match place {
            Place::Class(class) => class,
            Place::Own(layout) => return allocate(layout),
        };
        if self.free[class].get().is_none() {
            self.grow(class, hub);
        }
        let frame = self.free[class].get().expect("the pool has just grown");
        // SAFETY: a frame in the list is free, and its link was written when it came.
        self.free[class].set(unsafe { frame.as_ref() }.next);
        frame.cast()
    }

    /// Takes the memory of a frame back.
    ///
    /// # Safety
    /// It came from this pool, for this place, and is not used any more.
    #[inline]
    pub(super) unsafe fn put(&self, place: Place, frame: NonNull<u8>) {
        match place {
            Place::Class(class) => {
                let free = frame.cast::<Free>();
                let next = self.free[class].get();
                // SAFETY: the memory is the caller's, of a frame's size and alignment.
                unsafe { free.write(Free { next }) };
                self.free[class].set(Some(free));
            }
            // SAFETY: allocated with this layout in `take`.
            Place::Own(layout) => unsafe { dealloc(frame.as_ptr(), layout) },
        }
    }

    #[cold]
    fn grow(&self, class: usize, hub: &Hub) {
        let (bytes, frames) = (CLASSES[class], CHUNK / CLASSES[class]);
        let layout = Layout::from_size_align(bytes * frames, ALIGN).expect("both are constants");
        let memory = allocate(layout);
        hub.keep(Chunk { memory, layout });
        // From the last, so that the first is taken first.
        for frame in (0..frames).rev() {
            // SAFETY: inside the chunk, and not in use yet.
            unsafe { self.put(Place::Class(class), memory.add(frame * bytes)) };
        }
    }
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: a header is in every frame, so none has a size of 0.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}
