//! Answers one request: finds its resource and runs it.

use super::context::HttpContext;
use super::path::{Call, Serve};
use super::registry;
use super::reply::{self, Reply};
use super::request::Request;
use super::resources::object;
use super::wire::client_end::ClientEnd;
use http::StatusCode;
use std::sync::Arc;

/// Answers one request.
pub async fn respond(ctx: &Arc<HttpContext>, client: ClientEnd<'_>, request: &Request) -> Reply {
    let peer = request.session().peer.ip();
    if let Err(why) = ctx.pages.check(peer, request) {
        return reply::text(StatusCode::FORBIDDEN, why);
    }
    let Some((path, parts)) = registry::find(request) else { return reply::page(StatusCode::NOT_FOUND) };
    let running = match path.serve {
        Serve::Object => {
            let (bucket, key) = (path.bucket(&parts), path.key(&parts));
            drop(parts);
            return object::run(ctx, request, bucket, key, path.generation).await;
        }
        Serve::NewObject => {
            let bucket = path.bucket(&parts);
            drop(parts);
            return object::run_new(ctx, request, bucket, path.generation).await;
        }
        Serve::Boxed(run) => run(Call { ctx, request, path, parts }),
    };
    if !path.ends_with_client {
        return running.await;
    }
    // If the client closes the connection, its listing or query is abandoned.
    tokio::select! {
        biased;
        reply = running => reply,
        () = client.reached() => {
            tracing::debug!(%peer, resource = path.resource, "a client has closed its sending side");
            refuse_half_closed()
        }
    }
}

/// The answer to a request whose body was not accepted. The rest of the body is not read, so the
/// connection is closed.
pub fn refuse_body(status: StatusCode, bytes_max: usize) -> Reply {
    let text = match status {
        StatusCode::PAYLOAD_TOO_LARGE => format!("The body is larger than the {bytes_max} bytes that are taken\n"),
        StatusCode::REQUEST_TIMEOUT => "The body came too slowly\n".to_owned(),
        StatusCode::SERVICE_UNAVAILABLE => "overload: the memory for requests in flight is exhausted\n".to_owned(),
        _ => "The body could not be read to its end\n".to_owned(),
    };
    Reply { close_connection: true, ..reply::text(status, text) }
}

fn refuse_half_closed() -> Reply {
    let text = "The connection was closed by the client while the request was being answered\n";
    Reply { close_connection: true, ..reply::text(StatusCode::SERVICE_UNAVAILABLE, text) }
}
