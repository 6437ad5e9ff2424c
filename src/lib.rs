//! mdevirt: a compute driver for mediated devices and vGPUs on libvirt hosts.

pub mod catalog;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod dbus;
pub mod hook;
pub mod host;
pub mod model;
pub mod ops;
pub mod plan;
pub mod saga;
pub mod service;
pub mod store;
pub mod xml;
