//! The daemon's entry point.

use clap::Parser;

fn main() -> std::process::ExitCode {
    let args = mdevirt::daemon::Args::parse();
    match mdevirt::daemon::run(&args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(err) => {
            // The whole chain, once, at the edge.
            eprintln!("mdevirtd: {err:#}");
            mdevirt::daemon::exit_code(&err).into()
        }
    }
}
