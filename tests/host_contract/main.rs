//! What every host has to do, and what the simulator adds to it.
//!
//! `contract` knows the two traits alone and can be run against any host; `world` and `faults` are the simulator's.
//! Each test runs on both of the simulator's readers of a scenario; another host joins as a variant of `hosts::Base`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

mod contract;
mod faults;
mod hosts;
mod kernel;
mod world;

/// Makes each of the functions a test on each reader of scenarios.
macro_rules! on_each_base {
    ($($test:ident),+ $(,)?) => {
        mod on_file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::hosts::Base::File).await;
            })+
        }
        #[cfg(feature = "libvirt")]
        mod on_libvirt {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::hosts::Base::Libvirt).await;
            })+
        }
    };
}
pub(crate) use on_each_base;
