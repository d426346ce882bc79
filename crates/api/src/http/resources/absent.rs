//! Parts of Riak's interface that this server does not have. They get a clear answer instead of a
//! bare 404.

use crate::JobClass;
use crate::http::context::HttpContext;
use crate::http::error_status::{self, Asked};
use crate::http::graph::{self, READ_ONLY};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::route::Absent;
use http::StatusCode;
use ombak_types::{Bucket, Error};

/// Answers that the feature does not exist here.
pub async fn answer(ctx: &HttpContext, request: &Request, what: &Absent) -> Reply {
    if let Err(refusal) = graph::admit(request, allow(what)).await {
        return refusal;
    }
    match what {
        Absent::MapReduce => match ctx.jobs.check(JobClass::MapReduce) {
            Err(error) => error_status::reply_for(&error, Asked::Other),
            Ok(()) => missing("MapReduce"),
        },
        Absent::Counter(_) => missing("counters"),
        Absent::DataType(bucket) => data_type(ctx, bucket),
        Absent::Queue => missing("replication"),
        Absent::AaeFold => missing("anti-entropy folds"),
    }
}

fn allow(what: &Absent) -> &'static str {
    match what {
        Absent::AaeFold => READ_ONLY,
        Absent::MapReduce | Absent::DataType(_) => "GET, HEAD, POST",
        Absent::Counter(_) | Absent::Queue => "GET, POST",
    }
}

fn missing(what: &str) -> Reply {
    reply::text(StatusCode::NOT_IMPLEMENTED, format!("Not in this version: {what}\n"))
}

fn data_type(ctx: &HttpContext, bucket: &Bucket) -> Reply {
    if bucket.is_default_type() {
        let text = "Counters in the default bucket-type should use the legacy URL\n";
        return reply::text(StatusCode::MOVED_PERMANENTLY, text);
    }
    match ctx.kv.buckets().props(bucket) {
        Err(Error::NoType(_)) => {
            let name = String::from_utf8_lossy(&bucket.bucket_type);
            reply::text(StatusCode::NOT_FOUND, format!("Unknown bucket type: {name}\n"))
        }
        Err(error) => error_status::reply_for(&error, Asked::Other),
        Ok(props) if props.datatype.is_none() => {
            let text = "Bucket datatype 'undefined' is not a supported type.\n";
            reply::text(StatusCode::FORBIDDEN, text)
        }
        Ok(_) => missing("data types"),
    }
}
