//! Doubly linked lists of `u32` numbers in one array, each closed to a ring by an anchor.

/// The members before and after one in its ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    previous: u32,
    next: u32,
}

/// Rings of members. The first numbers are anchors, one to a ring; an empty ring is an anchor that
/// is linked to itself. So no member needs to know in which ring it is, and a whole ring goes over
/// to another anchor without a look at its members.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
}

impl Links {
    /// Makes `anchors` empty rings.
    pub(crate) fn new(anchors: u32) -> Links {
        let alone = |number| Link {
            previous: number,
            next: number,
        };
        Links {
            links: (0..anchors).map(alone).collect(),
        }
    }

    /// Returns a new member, in no ring yet; `None` when the numbers have run out.
    pub(crate) fn grow(&mut self) -> Option<u32> {
        let number = u32::try_from(self.links.len()).ok()?;
        self.links.push(Link {
            previous: number,
            next: number,
        });
        Some(number)
    }

    /// Returns the first member of a ring, or the anchor itself if it is empty; what follows a
    /// member.
    #[inline]
    pub(crate) fn next(&self, number: u32) -> u32 {
        self.links[number as usize].next
    }

    /// Puts a member that is in no ring at the end of the ring of `anchor`.
    #[inline]
    pub(crate) fn push(&mut self, anchor: u32, member: u32) {
        let last = self.links[anchor as usize].previous;
        self.links[member as usize] = Link {
            previous: last,
            next: anchor,
        };
        self.links[last as usize].next = member;
        self.links[anchor as usize].previous = member;
    }

    /// Takes a member out of its ring, and gives the anchor if that ring is empty now.
    #[inline]
    pub(crate) fn unlink(&mut self, member: u32) -> Option<u32> {
        let Link { previous, next } = self.links[member as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        (previous == next).then_some(next)
    }

    /// Moves all members of the ring of `from`, in their order, to the end of the ring of `to`.
    pub(crate) fn splice(&mut self, from: u32, to: u32) {
        let Link { previous, next } = self.links[from as usize];
        if next == from {
            return;
        }
        let last = self.links[to as usize].previous;
        self.links[last as usize].next = next;
        self.links[next as usize].previous = last;
        self.links[previous as usize].next = to;
        self.links[to as usize].previous = previous;
        self.clear(from);
    }

    /// Makes a ring empty. Its members keep their links until they are put into a ring again, so
    /// that they can still be walked through from the first, up to the anchor.
    #[inline]
    pub(crate) fn clear(&mut self, anchor: u32) {
        self.links[anchor as usize] = Link {
            previous: anchor,
            next: anchor,
        };
    }

    /// A list without anchor and without ways back, for members that wait for another use: `member`
    /// comes before `next`.
    #[inline]
    pub(crate) fn stack(&mut self, member: u32, next: u32) {
        self.links[member as usize].next = next;
    }

    /// Returns how many numbers fit before the array grows.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.links.capacity()
    }
}
