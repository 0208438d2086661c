//! The robots.txt engine: the cases in `tests/cases`, and properties that hold for all inputs.

mod cases;
mod engine;
mod explain;
mod invariants;
mod model;
mod properties;
mod rfc9309;
mod usage;
mod usage_model;
