//! Runs a function on several cores, for commands that read large logs.

/// Calls `map` for each item, in at most `cores` threads. Returns the results in the order of the items.
pub(crate) fn in_parallel<'i, I: Sync, O: Send>(
    cores: usize,
    items: &'i [I],
    map: impl Fn(&'i I) -> O + Sync,
) -> Vec<O> {
    let part = items.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks(part)
            .map(|part| scope.spawn(|| part.iter().map(&map).collect::<Vec<_>>()))
            .collect();
        let parts = threads.into_iter().map(|thread| match thread.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        parts.flatten().collect()
    })
}
