//! Answers one request: finds its resource and runs it.

use super::context::HttpContext;
use super::graph;
use super::reply::{self, Reply};
use super::request::Request;
use super::resources::{self, object};
use super::route::Route;
use super::wire::client_end::ClientEnd;
use crate::admin;
use http::StatusCode;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Answers one request.
pub async fn respond(ctx: &Arc<HttpContext>, peer: IpAddr, client: ClientEnd<'_>, request: &Request) -> Reply {
    if let Err(why) = ctx.pages.check(peer, request) {
        return reply::text(StatusCode::FORBIDDEN, why);
    }
    let route = Route::of(request);
    let may_take_long = matches!(route, Route::Buckets(..) | Route::Keys(..) | Route::Index(..) | Route::LinkWalk(..));
    if !may_take_long {
        return answer(ctx, peer, request, route).await;
    }
    // If the client closes the connection, its listing or query is abandoned.
    tokio::select! {
        biased;
        reply = answer(ctx, peer, request, route) => reply,
        () = client.reached() => refuse_half_closed(ctx.limits.half_closed_timeout),
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
    Reply { closes: true, ..reply::text(status, text) }
}

fn refuse_half_closed(patience: Duration) -> Reply {
    let text = format!("A client that sends no more is taken to have gone after {} s\n", patience.as_secs_f64());
    Reply { closes: true, ..reply::text(StatusCode::SERVICE_UNAVAILABLE, text) }
}

async fn answer(ctx: &Arc<HttpContext>, peer: IpAddr, request: &Request, route: Route) -> Reply {
    match route {
        Route::NewObject(bucket, generation) => {
            graph::run(&mut object::write::Write::new(ctx, request, bucket, None, generation), request).await
        }
        Route::Object(bucket, key, generation) => object::run(ctx, request, bucket, key, generation).await,
        // This future is boxed, so that its size does not enlarge every connection.
        other => Box::pin(answer_other(ctx, peer, request, other)).await,
    }
}

/// The answer of a resource other than an object.
async fn answer_other(ctx: &Arc<HttpContext>, peer: IpAddr, request: &Request, route: Route) -> Reply {
    use resources::*;
    match route {
        Route::Root => graph::run(&mut root::Root, request).await,
        Route::Ping => graph::run(&mut ping::Ping, request).await,
        Route::Stats => graph::run(&mut stats::Stats::new(ctx), request).await,
        Route::Metrics => graph::run(&mut metrics::Metrics::new(ctx), request).await,
        Route::Live => graph::run(&mut health::Live, request).await,
        Route::Ready => graph::run(&mut health::Ready::new(ctx), request).await,
        Route::Listeners => graph::run(&mut health::Listeners::new(ctx), request).await,
        Route::Admin => administer(ctx, peer, request).await,
        Route::Buckets(bucket_type) => graph::run(&mut buckets::Buckets::new(ctx, request, bucket_type), request).await,
        Route::TypeProps(bucket_type) => {
            graph::run(&mut type_props::TypeProps::new(ctx, request, bucket_type), request).await
        }
        Route::Props(bucket, generation) => {
            graph::run(&mut props::Props::new(ctx, request, bucket, generation), request).await
        }
        Route::Keys(bucket, generation) => {
            graph::run(&mut keys::Keys::new(ctx, request, bucket, generation), request).await
        }
        Route::LinkWalk(bucket, key, steps, generation) => {
            graph::run(&mut link_walk::LinkWalk::new(ctx, request, bucket, key, steps, generation), request).await
        }
        Route::Index(bucket, path) => graph::run(&mut index::Index::new(ctx, request, bucket, path), request).await,
        Route::Absent(what) => absent::answer(ctx, request, &what).await,
        Route::Nowhere | Route::NewObject(..) | Route::Object(..) => reply::page(StatusCode::NOT_FOUND),
    }
}

async fn administer(ctx: &Arc<HttpContext>, peer: IpAddr, request: &Request) -> Reply {
    let Some(admin) = &ctx.admin else { return reply::page(StatusCode::NOT_FOUND) };
    admin::handle(admin, ctx.memory.status(), peer, request).await
}
