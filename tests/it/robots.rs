//! The engine: stated cases, and properties that hold for any bytes.

mod cases;
mod engine;
mod holds;
mod model;
mod properties;
