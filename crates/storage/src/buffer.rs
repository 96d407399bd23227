//! Aligned memory for operations: one [`Arena`], divided into disjoint [`Buffer`]s that move with their
//! operations.

use std::{
    alloc::{Layout, handle_alloc_error},
    ffi::c_void,
    fmt,
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
    sync::Arc,
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The alignment of buffers: enough for `O_DIRECT` on any device in use.
pub const ALIGNMENT: usize = 4096;

/// The alignment of buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// A page: for `O_DIRECT`.
    Page,
    /// A cache line: for small buffers that the kernel copies from or into.
    CacheLine,
}

impl Alignment {
    const fn bytes(self) -> usize {
        match self {
            Alignment::Page => ALIGNMENT,
            Alignment::CacheLine => 64,
        }
    }
}

/// One block of zeroed memory. It lives until its last buffer and its last registration are gone.
pub struct Arena {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an arena only gives out addresses; memory is reached through `Buffer`s, which are disjoint.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({} B)", self.layout.size())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped in `shared_out` with this size; no buffer is left, since each holds the arena.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.layout.size()) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
    }
}

impl Arena {
    /// Allocates `count` buffers of `size` bytes each. Two buffers are `size` apart, rounded up to
    /// [`ALIGNMENT`]. The memory is not touched yet: fill it before you start a clock.
    pub fn shared_out(count: usize, size: usize) -> (Arc<Arena>, Vec<Buffer>) {
        Arena::aligned(count, size, Alignment::Page)
    }

    /// Returns the bytes from the start of a buffer of this size to the start of the next.
    pub const fn distance(size: usize, alignment: Alignment) -> usize {
        size.next_multiple_of(alignment.bytes())
    }

    /// Does the same as [`Arena::shared_out`], with buffers of this alignment.
    pub fn aligned(count: usize, size: usize, alignment: Alignment) -> (Arc<Arena>, Vec<Buffer>) {
        assert!(
            count > 0 && size > 0 && u32::try_from(size).is_ok(),
            "limits are checked where they are configured"
        );
        let stride = Arena::distance(size, alignment);
        let bytes = stride.checked_mul(count).expect("memory limits are checked where they are configured");
        let layout = Layout::from_size_align(bytes.next_multiple_of(ALIGNMENT), ALIGNMENT)
            .expect("a power of two below isize::MAX");
        let base = map(layout);
        let arena = Arc::new(Arena { base, layout });
        let share = |index: usize| {
            // SAFETY: index < count, so the offset lies inside the allocation.
            let start = unsafe { base.add(index * stride) };
            Buffer { start, length: size as u32, number: index as u32, arena: Some(arena.clone()) }
        };
        let buffers = (0..count).map(share).collect();
        (arena, buffers)
    }

    /// Returns the first address and the bytes, for registration with the kernel.
    pub fn region(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.layout.size())
    }
}

/// Maps zeroed pages that the kernel allocates on first touch, huge ones if it can.
fn map(layout: Layout) -> NonNull<u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let private = MapFlags::PRIVATE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice.
    let mapped: Result<*mut c_void, _> =
        unsafe { mmap_anonymous(ptr::null_mut(), layout.size(), access, private) };
    let base: NonNull<u8> =
        mapped.ok().and_then(|base| NonNull::new(base.cast())).unwrap_or_else(|| handle_alloc_error(layout));
    // SAFETY: advice on the mapping made above; it changes no contents. Kernels without huge pages refuse it,
    // without harm.
    unsafe { madvise(base.as_ptr().cast(), layout.size(), Advice::LinuxHugepage) }.ok();
    base
}

/// Memory that one operation owns.
pub struct Buffer {
    start: NonNull<u8>,
    length: u32,
    /// Its position among the buffers that the arena gave out. Parts of a buffer have the same.
    number: u32,
    arena: Option<Arc<Arena>>,
}

// SAFETY: a buffer is the only way to its part of the arena.
unsafe impl Send for Buffer {}
// SAFETY: shared references only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns a buffer without memory, for operations that carry none.
    pub const fn empty() -> Self {
        Buffer { start: NonNull::dangling(), length: 0, number: 0, arena: None }
    }

    /// Returns a zeroed buffer in an arena of its own.
    pub fn alone(size: usize) -> Self {
        Arena::shared_out(1, size).1.remove(0)
    }

    /// Divides the buffer: keeps the bytes before `at` and returns the others. [`Buffer::join`] reverses it.
    ///
    /// # Panics
    /// `at` is greater than its length.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Buffer {
        assert!(at <= self.len(), "a buffer of {} B has no part from {at} on", self.len());
        // SAFETY: `at` is at most the length, so the address lies in the buffer or at its end. From now on
        // this buffer ends there, so that the two are disjoint.
        let start = unsafe { self.start.add(at) };
        let length = self.length - at as u32;
        self.length = at as u32;
        Buffer { start, length, number: self.number, arena: self.arena.clone() }
    }

    /// Appends the part that begins where this one ends.
    ///
    /// # Errors
    /// Returns the part if it is not the next one of the same buffer. Neighbouring buffers of an arena do not
    /// become one either.
    pub fn join(&mut self, next: Buffer) -> Result<(), Buffer> {
        let is_of_same = match (&self.arena, &next.arena) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other) && self.number == next.number,
            _ => false,
        };
        if !is_of_same || self.as_ptr_range().end != next.start.as_ptr().cast_const() {
            return Err(next);
        }
        // The bytes of both are a part of the arena that only these two could reach, and `next` ends here.
        self.length += next.length;
        Ok(())
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer::empty()
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` and `length` are a part of the arena that only this buffer can reach, or length is
        // 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length as usize) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length as usize) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} B, {})", self.length, if self.arena.is_some() { "arena" } else { "empty" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_disjoint_and_outlive_their_arena_handle() {
        let (arena, mut buffers) = Arena::shared_out(3, 5000);
        let (base, bytes) = arena.region();
        assert_eq!(bytes, 3 * 8192);
        drop(arena);
        for (index, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!((buffer.as_ptr() as usize - base as usize, buffer.len()), (index * 8192, 5000));
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            buffer.fill(index as u8 + 1);
        }
        let last = buffers.pop().expect("three buffers");
        drop(buffers);
        assert!(last.iter().all(|&byte| byte == 3));
        assert!(Buffer::empty().is_empty());
    }

    #[test]
    fn parts_of_a_buffer_become_the_whole_again_in_their_order_only() {
        let mut buffers = Arena::shared_out(2, ALIGNMENT).1;
        let mut second = buffers.pop().expect("two buffers");
        let mut first = buffers.pop().expect("two buffers");
        let start = first.as_ptr();
        let mut behind = first.split_off(1000);
        let last = behind.split_off(96);
        assert_eq!([first.len(), behind.len(), last.len()], [1000, 96, 3000]);
        for (byte, part) in [(1, &mut first), (2, &mut behind)] {
            part.fill(byte);
        }
        let last = first.join(last).expect_err("a part is missing between them");
        first.join(behind).expect("it is the next part");
        first.join(last).expect("it is the next part");
        assert_eq!((first.as_ptr(), first.len()), (start, ALIGNMENT));
        assert_eq!((first[999], first[1000], first[1095], first[1096]), (1, 2, 2, 0));
        assert_eq!(first.as_ptr_range().end, second.as_ptr(), "they are neighbours");
        let end = second.split_off(ALIGNMENT);
        let second = first.join(second).expect_err("it is another buffer");
        assert!(first.join(end).is_err() && second.len() == ALIGNMENT);
        assert!(Buffer::empty().join(Buffer::empty()).is_err(), "they are parts of nothing");
    }

    #[test]
    fn small_buffers_can_lie_side_by_side() {
        let (arena, mut buffers) = Arena::aligned(5, 1000, Alignment::CacheLine);
        let (base, bytes) = arena.region();
        assert_eq!(bytes, 2 * ALIGNMENT, "five times 1024 bytes, in whole pages");
        for (index, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!((buffer.as_ptr() as usize - base as usize, buffer.len()), (index * 1024, 1000));
            buffer.fill(index as u8);
        }
        assert!(buffers.iter().enumerate().all(|(index, buffer)| buffer.iter().all(|&b| b == index as u8)));
    }
}
