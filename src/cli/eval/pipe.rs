//! Standard input and output, buffered for speed, yet fit for a partner that waits for each
//! answer: what is written is flushed before a read that may block.
//!
//! Never looks at what passes.

use std::{
    cell::RefCell,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
};

/// A source that flushes `output` whenever more input is asked for.
struct Prompt<'a, R, W: Write> {
    input: R,
    output: &'a RefCell<BufWriter<W>>,
}

/// The buffered output, shared with the [`Prompt`].
struct Shared<'a, W: Write>(&'a RefCell<BufWriter<W>>);

/// Runs `work` between `input` and `output`, both buffered.
pub(super) fn between<R: Read, W: Write, T>(
    input: R,
    output: W,
    work: impl FnOnce(&mut dyn BufRead, &mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
    let output = RefCell::new(BufWriter::with_capacity(BUFFER, output));
    let prompt = Prompt { input, output: &output };
    work(&mut BufReader::with_capacity(BUFFER, prompt), &mut Shared(&output))
}

// === impl Prompt ===

impl<R: Read, W: Write> Read for Prompt<'_, R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.borrow_mut().flush()?;
        self.input.read(buffer)
    }
}

// === impl Shared ===

impl<W: Write> Write for Shared<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// Bytes of buffer, each way.
const BUFFER: usize = 256 << 10;
