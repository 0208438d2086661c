//! What operators and their programs get of the admin listener of a gate that runs.

mod access;
mod listener;
