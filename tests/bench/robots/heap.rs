//! Counts heap memory: how much a value keeps, and how often some work allocates.
//!
//! The counters wrap the program's own allocator, so that times are realistic. They count the requested bytes, before
//! the allocator rounds them up.

use heapster::Heapster;
use mimalloc::MiMalloc;

#[global_allocator]
static HEAP: Heapster<MiMalloc> = Heapster::new(MiMalloc);

/// Returns the result of `make` and the number of bytes that it keeps on the heap. No other thread may allocate
/// meanwhile.
pub fn kept<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let live = || HEAP.total_alloc_sum() - HEAP.total_dealloc_sum();
    let before = live();
    let made = make();
    (made, live() - before)
}

/// Returns how often `work` allocates memory. No other thread may allocate meanwhile.
pub fn requests(work: impl FnOnce()) -> u64 {
    let count = || HEAP.alloc_count() + HEAP.realloc_growth_count() + HEAP.realloc_shrink_count();
    let before = count();
    work();
    count() - before
}
