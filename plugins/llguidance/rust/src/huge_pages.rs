//! Large blocks of memory in huge pages.
//!
//! A mask leaps through the token trie, some megabytes that a forward pass has
//! pushed out of every cache; in pages of 4 KiB much of its time is spent on
//! finding them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_void};

pub struct HugePages;

const PAGE: usize = 2 << 20;
/// Blocks from this size on are rounded up to whole pages. Smaller ones come and
/// go with each grammar, which clearing whole pages would make slower to
/// compile.
const LARGE: usize = PAGE;
/// Of <sys/mman.h> on Linux.
const MADV_HUGEPAGE: c_int = 14;

extern "C" {
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
}

/// The layout that a block is made with; None for one that is left alone.
fn in_pages(layout: Layout) -> Option<Layout> {
    if layout.size() < LARGE {
        return None;
    }
    let size = layout.size().checked_next_multiple_of(PAGE)?;
    Layout::from_size_align(size, layout.align().max(PAGE)).ok()
}

// SAFETY: every block comes from and goes back to the system's allocator with
// one and the same layout, which is at least as large and aligned as asked.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(pages) = in_pages(layout) else {
            return System.alloc(layout);
        };
        let block = System.alloc(pages);
        if !block.is_null() {
            // A hint: where the system knows no huge pages, nothing is lost.
            madvise(block.cast(), pages.size(), MADV_HUGEPAGE);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, in_pages(layout).unwrap_or(layout));
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size() < LARGE && size < LARGE {
            return System.realloc(block, layout, size);
        }
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else {
            return std::ptr::null_mut();
        };
        if in_pages(layout).is_some() && in_pages(layout) == in_pages(wanted) {
            return block;
        }
        let moved = self.alloc(wanted);
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            self.dealloc(block, layout);
        }
        moved
    }
}
