//! `retoma graph FLOW`: the flow as a picture, for Mermaid or Graphviz.

use std::path::Path;

use retoma_core::flow::draw::{self, draw};

use crate::cli::{Graph, GraphFormat};
use crate::fail::DONE;
use crate::output;

use super::load;

pub(crate) fn run(config: &Path, args: &Graph) -> anyhow::Result<u8> {
    let flow = load::flow(config, &args.flow)?;
    let format = match args.format {
        GraphFormat::Mermaid => draw::Format::Mermaid,
        GraphFormat::Dot => draw::Format::Dot,
    };
    output::line(draw(&flow, format).trim_end());
    Ok(DONE)
}
