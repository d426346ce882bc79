//! Tells a node that was paused whether this node holds something for it.

use crate::replica::failure::MALFORMED;
use crate::service_numbers::HOLDINGS;
use crate::wire::{decode_holdings_question, encode_holdings};
use bytes::Bytes;
use ombak_kv::Kv;
use ombak_peer::connection::TwoServices;
use ombak_peer::{Incoming, RefusalCode, Responder, Services};
use ombak_runtime::Runtime;
use std::sync::Arc;

/// Registers the service.
pub(crate) fn register(services: &mut Services, kv: Kv, runtime: Arc<dyn Runtime>) -> Result<(), TwoServices> {
    let serve = move |request: Incoming, answer: Responder| {
        if decode_holdings_question(request.body()).is_err() {
            return answer.refuse(MALFORMED, Bytes::new());
        }
        let (kv, node) = (kv.clone(), request.peer().identity.node);
        runtime.spawn(Box::pin(async move {
            let there = kv.clone();
            match kv.offload(move || there.has_something_for(node)).await {
                Ok(has_something) => answer.answer(encode_holdings(has_something)),
                Err(_) => answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new()),
            }
        }));
    };
    services.register(HOLDINGS, "what is held for others", Arc::new(serve))
}
