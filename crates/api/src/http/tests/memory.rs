//! Clients that make the node hold much memory and then stall.

use super::*;

const CLIENTS: usize = 50;
/// The number of clients that never read. The node makes an answer for one of them at a time.
const SILENT_CLIENTS: usize = 12;
const BUDGET_BYTES: u64 = 64 << 20;
/// The memory that each client tries to use. All clients together exceed the budget several times.
const CLIENT_BYTES: usize = 12 << 20;

async fn limited(bytes_max: u64) -> Server {
    let memory = MemoryLimits { bytes_max, stalled_after: Duration::from_secs(1), wait_max: DEADLINE };
    Server::within(memory, HttpLimits::default(), JobSwitches::default(), Arc::new(TokioRuntime)).await
}

pub(super) async fn until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let waited = timeout(DEADLINE, async {
        while !reached().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never reached: {what}"));
}

pub(super) async fn all_is_given_back(server: &Server) {
    until("all memory is given back", async || server.memory.status().bytes_used == 0).await;
}

async fn write_and_read(server: &Server, bytes: usize) {
    assert_eq!(server.put("/buckets/b/keys/honest", "", &"x".repeat(bytes)).await.status, 204);
    let found = server.get("/buckets/b/keys/honest").await;
    assert_eq!((found.status, found.body.len()), (200, bytes));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stall_within_large_requests_do_not_keep_others_from_writing() {
    let server = limited(BUDGET_BYTES).await;
    let mut stalled = Vec::new();
    for n in 0..CLIENTS {
        let mut stream = server.connect().await;
        stalled.push(tokio::spawn(async move {
            let framing = if n % 2 == 0 { "Content-Length: 50000000" } else { "Transfer-Encoding: chunked" };
            let chunk = if n % 2 == 0 { "" } else { "2faf080\r\n" };
            let head =
                format!("PUT /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\n{framing}\r\n\r\n{chunk}");
            // The server may close the connection at any point.
            drop(stream.write_all(head.as_bytes()).await);
            drop(stream.write_all(&vec![b'x'; CLIENT_BYTES]).await);
            stream
        }));
    }
    until("the budget is exhausted", async || server.memory.status().evicted_total > 0).await;
    write_and_read(&server, 1 << 10).await;
    let mut streams = Vec::new();
    for client in stalled {
        streams.push(client.await.expect("no panic"));
    }
    // The remaining clients have sent everything that they will send.
    write_and_read(&server, 20 << 20).await;
    let status = server.memory.status();
    assert!(status.bytes_used <= BUDGET_BYTES, "{status:?}");
    drop(streams);
    all_is_given_back(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_large_answers_do_not_keep_others_from_reading() {
    let server = limited(BUDGET_BYTES).await;
    write_and_read(&server, CLIENT_BYTES).await;
    let mut silent = Vec::new();
    for _ in 0..SILENT_CLIENTS {
        let mut stream = server.connect().await;
        let get = b"GET /buckets/b/keys/honest HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(get).await.expect("sent");
        silent.push(stream);
    }
    until("the budget is exhausted", async || server.memory.status().evicted_total > 0).await;
    assert_eq!(server.get("/buckets/b/keys/honest").await.body.len(), CLIENT_BYTES);
    write_and_read(&server, 1 << 20).await;
    let status = server.memory.status();
    assert!(status.bytes_used <= BUDGET_BYTES, "{status:?}");
    drop(silent);
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn what_can_never_have_its_memory_is_refused() {
    let server = limited(1 << 20).await;
    assert_eq!(server.put("/buckets/b/keys/k", "", &"x".repeat(4 << 20)).await.status, 503);
    for _ in 0..2 {
        assert_eq!(server.put("/buckets/b/keys/k", "", &"x".repeat(100_000)).await.status, 204);
    }
    all_is_given_back(&server).await;
    assert_eq!(server.memory.status().refused_total, 1);
    let metrics = String::from_utf8(server.get("/metrics").await.body).expect("text");
    assert!(metrics.contains("\nombak_request_memory_refusals_total 1\n"), "{metrics}");
}

/// How many inputs a job has whose results fit into no buffer of a socket.
const INPUTS: usize = 1_500_000;

/// A job that gives its inputs.
fn large_job() -> String {
    let keys = "[\"b\",\"k\"],".repeat(INPUTS - 1);
    format!("{{\"inputs\":[{keys}[\"b\",\"k\"]],\"query\":[]}}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_holds_its_inputs_until_its_client_leaves() {
    let server = limited(BUDGET_BYTES).await;
    let job = large_job();
    let mut stream = server.connect().await;
    let head = format!(
        "POST /mapred?chunked=true HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        job.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(job.as_bytes()).await.expect("sent");
    // The answer has begun, so the body is not needed any more. The client reads no further, so
    // the job cannot end.
    stream.read_exact(&mut [0]).await.expect("an answer");
    let inputs = 3 * INPUTS as u64..job.len() as u64;
    until("the job holds its inputs", async || inputs.contains(&server.memory.status().bytes_used)).await;
    drop(stream);
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn a_job_that_finds_no_memory_is_refused() {
    // Each of these small values takes many times its text.
    let many = "[],".repeat(1_000_000);
    let job = format!("{{\"inputs\":[[\"b\",\"k\",[{many}1]]],\"query\":[]}}");
    let server = limited(4 * job.len() as u64).await;
    let answer = server.request("POST", "/mapred", "Content-Type: application/json\r\n", &job).await;
    assert_eq!((answer.status, server.memory.status().refused_total), (500, 1), "{}", answer.text());
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn values_that_would_take_too_much_are_refused_with_a_reason() {
    let server = limited(BUDGET_BYTES).await;
    let many = "[],".repeat(100_000);
    let props = format!("{{\"props\":{{\"a\":[{many}1]}}}}");
    let job = format!("{{\"inputs\":[[\"b\",\"k\",[{many}1]]],\"query\":[]}}");
    for (method, path, body) in [("PUT", "/buckets/b/props", &props), ("POST", "/mapred", &job)] {
        let answer = server.request(method, path, "Content-Type: application/json\r\n", body).await;
        let reason = format!("more than {} bytes", 10 * body.len());
        assert!(answer.status == 413 && answer.text().contains(&reason), "{path}: {}", answer.text());
    }
    all_is_given_back(&server).await;
}
