//! Items in function bodies, in modules under one name, behind traits, and functions that call each other.

#![deny(warnings)]

use std::sync::Arc;

use mcp_runtime::prelude::*;

trait Store: Send + Sync {
    fn size(&self) -> u32;
}

impl Store for u32 {
    fn size(&self) -> u32 {
        *self
    }
}

mod eu {
    use super::*;

    #[mcp_tool]
    pub(super) fn size(store: &dyn Store, maybe: Option<&dyn Store>) -> u32 {
        store.size() + maybe.map_or(0, Store::size)
    }
}

mod us {
    use super::*;

    #[mcp_tool(name = "us.size")]
    pub(in super::us) fn size(store: &(dyn Store + 'static)) -> u32 {
        super::eu::size(store, None)
    }

    pub(super) fn add(server: mcp_runtime::ServerBuilder) -> mcp_runtime::ServerBuilder {
        server.tool::<size>()
    }
}

#[mcp_tool]
async fn outer(#[mcp(range(1..))] mut value: u32, store: &dyn Store) -> u32 {
    value += eu::size(store, Some(store));
    value
}

pub(crate) fn main() {
    #[mcp_tool]
    fn inner(values: Vec<[u8; 2]>, pair: (u32, Option<String>)) -> Json<usize> {
        Json(values.len() + pair.1.map_or(0, |text| text.len()))
    }

    assert_eq!(inner(vec![[1, 2]], (1, Some("a".into()))).0, 2);
    assert_eq!(eu::size(&1, Some(&2)), 3);
    let server = mcp_runtime::server!().tool::<eu::size>().tool::<outer>().tool::<inner>();
    us::add(server).state(Arc::new(1_u32) as Arc<dyn Store>).build().expect("a server");
}
