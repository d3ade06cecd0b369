//! The engine's C interface, and memory in pages that suit it.

// Without this reference the linker drops the engine and the archive is empty.
pub use llguidance::ffi;

mod huge_pages;

#[global_allocator]
static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;
