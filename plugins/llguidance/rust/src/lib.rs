// Without this reference the linker drops the engine and the archive is empty.
pub use llguidance::ffi;
