//! Passes requests below `/admin` to the administration interface.

use crate::admin;
use crate::http::path::Part::{Rest, Word};
use crate::http::path::{Call, Path, PathGuard};
use crate::http::reply::{self, Reply};
use futures_util::future::BoxFuture;
use http::StatusCode;

/// The paths of the administration interface.
pub const PATHS: &[Path] =
    &[Path::plain("administration", &[Word(b"admin"), Rest], run).guarded(PathGuard::Administration)];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let Call { ctx, request, .. } = call;
        let Some(admin) = &ctx.admin else { return reply::page(StatusCode::NOT_FOUND) };
        admin::handle(admin, ctx.policy.as_deref(), ctx.memory.status(), request).await
    })
}
