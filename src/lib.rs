#![forbid(unsafe_code)]
pub mod audit;
pub mod authority;
pub mod bot;
pub mod cache;
pub mod cli;
pub mod config;
pub mod decision;
pub mod egress;
pub mod origin;
pub mod proxy;
pub mod robots;
pub mod service;
pub mod upstream;
