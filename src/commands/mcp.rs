//! `roctop mcp`: questions of a language model.

use crate::cli;
use crate::mcp::{Sources, serve};
use crate::settings::Config;
use anyhow::Result;

/// `roctop mcp`.
pub fn mcp(options: &cli::Mcp) -> Result<u8> {
    let presets = Config::load()?.presets;
    serve(Sources::new(&options.directories)?, presets)?;
    Ok(0)
}
