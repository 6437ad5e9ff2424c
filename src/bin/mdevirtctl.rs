//! The command line of mdevirtd.

use std::process::ExitCode;

fn main() -> ExitCode {
    mdevirt::cli::main()
}
