//! What a server says of itself, for the report: Riak and Ombak answer `GET /stats`.

use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long the question may take.
const LIMIT: Duration = Duration::from_secs(3);

/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// The version and the backend of the server at this address, such as `Ombak 0.1.0 (as Riak KV
/// 3.2.3), bitcask`. `None` if it does not say.
pub(super) async fn server_facts(address: &str) -> Option<String> {
    let answer = tokio::time::timeout(LIMIT, ask(address)).await.ok()??;
    let body = answer.split_once("\r\n\r\n")?.1;
    // The answer may come in chunks. What is between the outermost braces is the document, unless a
    // chunk ends inside it, and then it cannot be read.
    let document = body.get(body.find('{')?..=body.rfind('}')?)?;
    described(&serde_json::from_str(document).ok()?)
}

async fn ask(address: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).await.ok()?;
    let request = format!("GET /stats HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n");
    connection.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    connection.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await.ok()?;
    String::from_utf8(answer).ok()
}

fn described(stats: &Value) -> Option<String> {
    let text = |name: &str| stats.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let riak = text("riak_kv_version");
    let version = match (text("ombak_version"), riak) {
        (Some(ombak), Some(riak)) => format!("Ombak {ombak} (as Riak KV {riak})"),
        (Some(ombak), None) => format!("Ombak {ombak}"),
        (None, riak) => format!("Riak KV {}", riak?),
    };
    let Some(backend) = text("storage_backend") else { return Some(version) };
    let backend = backend.strip_prefix("riak_kv_").unwrap_or(backend);
    Some(format!("{version}, {}", backend.strip_suffix("_backend").unwrap_or(backend)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::net::TcpListener;

    #[test]
    fn servers_are_named_with_their_backend() {
        let riak = json!({"riak_kv_version": "3.0.9", "storage_backend": "riak_kv_eleveldb_backend"});
        assert_eq!(described(&riak).as_deref(), Some("Riak KV 3.0.9, eleveldb"));
        let ombak =
            json!({"ombak_version": "0.1.0", "riak_kv_version": "3.2.3", "storage_backend": "riak_kv_bitcask_backend"});
        assert_eq!(described(&ombak).as_deref(), Some("Ombak 0.1.0 (as Riak KV 3.2.3), bitcask"));
        assert_eq!(described(&json!({"other": 1})), None);
    }

    #[tokio::test]
    async fn an_answer_is_read_and_a_silent_address_is_no_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut request = [0; 512];
            let length = peer.read(&mut request).await.unwrap();
            assert!(request[..length].starts_with(b"GET /stats "));
            peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"riak_kv_version\":\"3.2.3\"}")
                .await
                .unwrap();
        });
        assert_eq!(server_facts(&address).await.as_deref(), Some("Riak KV 3.2.3"));
        answer.await.unwrap();
        assert_eq!(server_facts(&address).await, None, "nobody listens there any more");
    }
}
