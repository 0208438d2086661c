//! The heap, counted: what a value keeps, and how often some work asks for memory.
//!
//! The program's own allocator lies under the counters, so that times are the program's; they count the bytes asked
//! for, not what the allocator rounds them up to. Counting costs each allocation some nanoseconds, in every engine.

use heapster::Heapster;
use mimalloc::MiMalloc;

#[global_allocator]
static HEAP: Heapster<MiMalloc> = Heapster::new(MiMalloc);

/// What `make` makes and the bytes that it keeps on the heap. Nothing else may run meanwhile.
pub fn kept<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let live = || HEAP.total_alloc_sum() - HEAP.total_dealloc_sum();
    let before = live();
    let made = make();
    (made, live() - before)
}

/// How often `work` asks for memory. Nothing else may run meanwhile.
pub fn requests(work: impl FnOnce()) -> u64 {
    let count = || HEAP.alloc_count() + HEAP.realloc_growth_count() + HEAP.realloc_shrink_count();
    let before = count();
    work();
    count() - before
}
