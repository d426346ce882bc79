//! The requests for values of one kind.

use crate::feature::{Figure, Number};
use crate::histogram::Histogram;
use crate::spiral::Spiral;

/// Counts the requests for values of one kind. They are among the requests that
/// [`crate::Stats`] counts.
#[derive(Debug, Default)]
pub struct KindCounts {
    gets: Spiral,
    get_time: Histogram,
    get_siblings: Histogram,
    get_objsize: Histogram,
    puts: Spiral,
    put_time: Histogram,
    read_repairs: Spiral,
}

impl KindCounts {
    /// Records a get that was answered, with the number of siblings and the size of the value; both
    /// are 0 when the key was not found.
    pub fn get(&self, duration_us: u64, siblings: u64, objsize_bytes: u64) {
        self.gets.add(1);
        self.get_time.record(duration_us);
        if siblings > 0 {
            self.get_siblings.record(siblings);
            self.get_objsize.record(objsize_bytes);
        }
    }

    /// Records a put that was answered.
    pub fn put(&self, duration_us: u64) {
        self.puts.add(1);
        self.put_time.record(duration_us);
    }

    /// Records that a copy was repaired after a read.
    pub fn read_repair(&self) {
        self.read_repairs.add(1);
    }

    /// The numbers under Riak's names for this kind. At `/metrics` the kind is a label.
    pub fn figures(&self, kind: &'static str) -> Vec<Figure<'_>> {
        let figure =
            |name: String, metric, help, number| Figure { name, metric, label: Some(("type", kind)), help, number };
        let (gets, puts) = ("Fetches of values of data types answered.", "Updates of values of data types answered.");
        let repairs = "Copies of values of data types repaired after reads.";
        vec![
            figure(format!("node_gets_{kind}"), "data_type_gets_total", gets, Number::Spiral(&self.gets)),
            figure(
                format!("node_get_fsm_{kind}_time"),
                "data_type_get_duration_seconds",
                "Time to answer a fetch of a data type.",
                Number::Times(&self.get_time),
            ),
            figure(
                format!("node_get_fsm_{kind}_siblings"),
                "data_type_get_siblings",
                "Siblings of the objects that fetches of data types found.",
                Number::Counts(&self.get_siblings),
            ),
            figure(
                format!("node_get_fsm_{kind}_objsize"),
                "data_type_get_object_size_bytes",
                "Size of the values that fetches of data types found.",
                Number::Bytes(&self.get_objsize),
            ),
            figure(format!("node_puts_{kind}"), "data_type_puts_total", puts, Number::Spiral(&self.puts)),
            figure(
                format!("node_put_fsm_{kind}_time"),
                "data_type_put_duration_seconds",
                "Time to answer an update of a data type.",
                Number::Times(&self.put_time),
            ),
            figure(
                format!("read_repairs_{kind}"),
                "data_type_read_repairs_total",
                repairs,
                Number::Spiral(&self.read_repairs),
            ),
        ]
    }
}
