//! The budget in the text format that Prometheus reads.

use super::MemoryStatus;
use ombak_monitoring::Exposition;

impl MemoryStatus {
    /// The metrics of the budget in the answer to `GET /metrics`.
    pub fn to_prometheus(&self) -> String {
        let metrics = [
            ("limit_bytes", "gauge", "Memory that requests and answers in flight may take.", self.bytes_max),
            ("used_bytes", "gauge", "Memory that requests and answers in flight take.", self.bytes_used),
            ("waiting_connections", "gauge", "Connections that wait for such memory.", self.waiting),
            ("evictions_total", "counter", "Connections ended because others needed their memory.", self.evicted_total),
            ("refusals_total", "counter", "Requests refused for want of memory.", self.refused_total),
        ];
        let mut out = Exposition::default();
        for (name, kind, help, value) in metrics {
            out.single(&format!("request_memory_{name}"), kind, help, value);
        }
        out.into_text()
    }
}
