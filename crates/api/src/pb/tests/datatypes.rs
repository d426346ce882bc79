//! Data types and the counters of Riak 1.4.

use super::*;
use bytes::Bytes;
use ombak_proto::messages::map_field::MapFieldType;
use ombak_proto::messages::map_update::FlagOp;
use ombak_proto::messages::{
    CounterOp, DtFetchReq, DtFetchResp, DtOp, DtUpdateReq, DtUpdateResp, GSetOp, HllOp, MapField, MapOp, MapUpdate,
    RpbBucketProps, RpbContent, RpbCounterGetReq, RpbCounterGetResp, RpbCounterUpdateReq, RpbCounterUpdateResp,
    RpbDelReq, RpbGetReq, RpbGetResp, RpbPutReq, RpbSetBucketReq, SetOp,
};
use serde_json::json;

fn adds(members: &[&'static str]) -> Vec<Bytes> {
    members.iter().map(|member| Bytes::from(*member)).collect()
}

fn counter(amount: i64) -> DtOp {
    DtOp { counter_op: Some(CounterOp { increment: Some(amount) }), ..DtOp::default() }
}

fn set(add: &[&'static str], remove: &[&'static str]) -> DtOp {
    DtOp { set_op: Some(SetOp { adds: adds(add), removes: adds(remove) }), ..DtOp::default() }
}

fn update(bucket_type: &'static str, key: &'static str, op: DtOp) -> DtUpdateReq {
    DtUpdateReq {
        bucket: "b".into(),
        key: Some(key.into()),
        r#type: bucket_type.into(),
        op,
        return_body: Some(true),
        ..DtUpdateReq::default()
    }
}

async fn node() -> (Node, Wire) {
    let node = Node::start().await;
    for kind in ["counter", "set", "gset", "map", "hll"] {
        node.bucket_type(kind, json!({"datatype": kind})).await;
    }
    node.bucket_type("sibs", json!({})).await;
    let wire = node.connect().await;
    (node, wire)
}

impl Wire {
    async fn fetch_data_type(&mut self, bucket_type: &'static str, key: &'static str) -> DtFetchResp {
        let request =
            DtFetchReq { bucket: "b".into(), key: key.into(), r#type: bucket_type.into(), ..DtFetchReq::default() };
        self.ask(code::DT_FETCH_REQ, &request, code::DT_FETCH_RESP).await
    }

    async fn update_data_type(&mut self, request: &DtUpdateReq) -> DtUpdateResp {
        self.ask(code::DT_UPDATE_REQ, request, code::DT_UPDATE_RESP).await
    }

    async fn read(&mut self, bucket_type: Option<&'static str>, key: &'static str) -> RpbGetResp {
        let r#type = bucket_type.map(Bytes::from);
        let request = RpbGetReq { bucket: Some("b".into()), key: Some(key.into()), r#type, ..RpbGetReq::default() };
        self.ask(code::GET_REQ, &request, code::GET_RESP).await
    }

    async fn store(&mut self, bucket_type: &'static str, key: &'static str, value: Bytes) {
        let content = Some(RpbContent { value, ..RpbContent::default() });
        let (bucket, key, r#type) = (Some("b".into()), Some(key.into()), Some(bucket_type.into()));
        self.send(code::PUT_REQ, &RpbPutReq { bucket, key, content, r#type, ..RpbPutReq::default() }).await;
        self.expect_empty(code::PUT_RESP).await;
    }
}

#[tokio::test]
async fn each_data_type_is_updated_and_fetched() {
    let (_node, mut wire) = node().await;
    assert_eq!(wire.update_data_type(&update("counter", "c", counter(7))).await.counter_value, Some(7));
    assert_eq!(wire.update_data_type(&update("counter", "c", counter(-9))).await.counter_value, Some(-2));
    assert_eq!(wire.fetch_data_type("counter", "c").await.value.unwrap().counter_value, Some(-2));

    let answer = wire.update_data_type(&update("set", "s", set(&["b", "a"], &[]))).await;
    assert_eq!(answer.set_value, adds(&["a", "b"]));
    let fetched = wire.fetch_data_type("set", "s").await;
    let removal = DtUpdateReq { context: fetched.context.clone(), ..update("set", "s", set(&["c"], &["a"])) };
    assert_eq!(wire.update_data_type(&removal).await.set_value, adds(&["b", "c"]));

    let grown = DtOp { gset_op: Some(GSetOp { adds: adds(&["x"]) }), ..DtOp::default() };
    assert_eq!(wire.update_data_type(&update("gset", "g", grown)).await.gset_value, adds(&["x"]));
    let counted = DtOp { hll_op: Some(HllOp { adds: adds(&["x", "y", "x"]) }), ..DtOp::default() };
    assert_eq!(wire.update_data_type(&update("hll", "h", counted)).await.hll_value, Some(2));

    let field = |name: &'static str, kind: MapFieldType| MapField { name: name.into(), r#type: kind as i32 };
    let updates = vec![
        MapUpdate {
            field: field("n", MapFieldType::Counter),
            counter_op: Some(CounterOp { increment: None }),
            ..MapUpdate::default()
        },
        MapUpdate { field: field("r", MapFieldType::Register), register_op: Some("v".into()), ..MapUpdate::default() },
        MapUpdate {
            field: field("f", MapFieldType::Flag),
            flag_op: Some(FlagOp::Enable as i32),
            ..MapUpdate::default()
        },
    ];
    let op = DtOp { map_op: Some(MapOp { removes: vec![], updates }), ..DtOp::default() };
    let fields = wire.update_data_type(&update("map", "m", op)).await.map_value;
    let shown: Vec<_> = fields.iter().map(|f| (&f.field.name[..], f.counter_value, f.flag_value)).collect();
    assert_eq!(shown, [(&b"f"[..], None, Some(true)), (b"n", Some(1), None), (b"r", None, None)]);
    let removes = vec![field("n", MapFieldType::Counter)];
    let context = wire.fetch_data_type("map", "m").await.context;
    let op = DtOp { map_op: Some(MapOp { removes, updates: vec![] }), ..DtOp::default() };
    let removed = wire.update_data_type(&DtUpdateReq { context, ..update("map", "m", op) }).await;
    assert_eq!(removed.map_value.len(), 2);
}

#[tokio::test]
async fn answers_have_what_was_asked_for() {
    let (_node, mut wire) = node().await;
    let missing = wire.fetch_data_type("set", "s").await;
    assert_eq!((missing.r#type, missing.value, missing.context), (2, None, None));
    let silent = DtUpdateReq { return_body: None, ..update("set", "s", set(&["a"], &[])) };
    assert_eq!(wire.update_data_type(&silent).await, DtUpdateResp::default());
    let made = DtUpdateReq { key: None, ..silent.clone() };
    let key = wire.update_data_type(&made).await.key.expect("a key");
    assert!(!key.is_empty());
    let bare = DtUpdateReq { include_context: Some(false), ..update("set", "s", set(&["b"], &[])) };
    let answer = wire.update_data_type(&bare).await;
    assert_eq!((answer.context, answer.set_value), (None, adds(&["a", "b"])));
    assert!(wire.update_data_type(&update("set", "s", set(&["b"], &[]))).await.context.is_some());
    assert_eq!(wire.fetch_data_type("counter", "none").await.context, None);
}

#[tokio::test]
async fn refusals_have_riaks_words_and_change_nothing() {
    let (_node, mut wire) = node().await;
    wire.update_data_type(&update("set", "s", set(&["a"], &[]))).await;
    let absent = update("set", "s", set(&["b"], &["zork"]));
    for (request, text) in [
        (absent, r#"{precondition,{not_present,<<"zork">>}}"#),
        (update("counter", "c", set(&["a"], &[])), "Operation type is `set` but  bucket type is `counter`."),
        (update("sibs", "c", counter(1)), "`undefined` is not a supported type"),
        (update("nonesuch", "c", counter(1)), "Error no bucket type `<<\"nonesuch\">>`"),
        (update("default", "c", set(&["a"], &[])), "non-counter operation on default bucket"),
    ] {
        assert_eq!(wire.ask_refused(code::DT_UPDATE_REQ, &request).await, text);
    }
    let forged = DtUpdateReq { context: Some("zork".into()), ..update("set", "s", set(&[], &["a"])) };
    let text = wire.ask_refused(code::DT_UPDATE_REQ, &forged).await;
    assert!(text.starts_with("The context does not decode"), "{text}");
    assert_eq!(wire.fetch_data_type("set", "s").await.value.unwrap().set_value, adds(&["a"]));
}

#[tokio::test]
async fn the_object_interface_shows_riaks_bytes_and_merges_them() {
    let (_node, mut wire) = node().await;
    wire.update_data_type(&update("set", "s", set(&["a", "b"], &[]))).await;
    let answer = wire.read(Some("set"), "s").await;
    let content = &answer.content[0];
    assert_eq!(content.content_type.as_deref(), Some(&b"application/riak_set"[..]));
    assert!(content.value.starts_with(b"E\x02\0\0\0\x0eriak_dt_orswot"), "{:?}", content.value);
    // The same bytes under another key are the same value, and a put of old bytes undoes nothing.
    wire.store("set", "t", content.value.clone()).await;
    assert_eq!(wire.fetch_data_type("set", "t").await.value.unwrap().set_value, adds(&["a", "b"]));
    wire.update_data_type(&update("set", "s", set(&["c"], &[]))).await;
    wire.store("set", "s", content.value.clone()).await;
    assert_eq!(wire.fetch_data_type("set", "s").await.value.unwrap().set_value, adds(&["a", "b", "c"]));
    assert_eq!(wire.read(Some("set"), "s").await.content.len(), 1);
    // Other bytes stay a plain value, and do not count.
    wire.store("counter", "plain", "zork".into()).await;
    assert_eq!(wire.fetch_data_type("counter", "plain").await.value.unwrap().counter_value, Some(0));
    let read = wire.read(Some("counter"), "plain").await;
    assert_eq!(&read.content[0].value[..], b"zork");
    assert_eq!(wire.update_data_type(&update("counter", "plain", counter(2))).await.counter_value, Some(2));
    assert_eq!(wire.read(Some("counter"), "plain").await.content.len(), 2);
}

#[tokio::test]
async fn a_deleted_value_begins_anew() {
    let (_node, mut wire) = node().await;
    wire.update_data_type(&update("counter", "c", counter(5))).await;
    let (bucket, key, r#type) = (Some("b".into()), Some("c".into()), Some("counter".into()));
    wire.send(code::DEL_REQ, &RpbDelReq { bucket, key, r#type, ..RpbDelReq::default() }).await;
    wire.expect_empty(code::DEL_RESP).await;
    assert_eq!(wire.fetch_data_type("counter", "c").await.value, None);
    assert_eq!(wire.update_data_type(&update("counter", "c", counter(2))).await.counter_value, Some(2));
}

#[tokio::test]
async fn counters_of_riak_1_4_need_siblings_and_lie_as_riaks_bytes() {
    let (_node, mut wire) = node().await;
    let count = |amount, returnvalue| RpbCounterUpdateReq {
        bucket: "b".into(),
        key: "k".into(),
        amount,
        returnvalue,
        ..RpbCounterUpdateReq::default()
    };
    let text = wire.ask_refused(code::COUNTER_UPDATE_REQ, &count(1, None)).await;
    assert_eq!(text, "\"Counters require bucket property 'allow_mult=true'\"");
    let props = RpbBucketProps { allow_mult: Some(true), ..RpbBucketProps::default() };
    wire.send(code::SET_BUCKET_REQ, &RpbSetBucketReq { bucket: "b".into(), props, r#type: None }).await;
    wire.expect_empty(code::SET_BUCKET_RESP).await;

    let get = RpbCounterGetReq { bucket: "b".into(), key: "k".into(), ..RpbCounterGetReq::default() };
    let got: RpbCounterGetResp = wire.ask(code::COUNTER_GET_REQ, &get, code::COUNTER_GET_RESP).await;
    assert_eq!(got.value, None);
    wire.send(code::COUNTER_UPDATE_REQ, &count(10, None)).await;
    wire.expect_empty(code::COUNTER_UPDATE_RESP).await;
    let counted: RpbCounterUpdateResp =
        wire.ask(code::COUNTER_UPDATE_REQ, &count(-3, Some(true)), code::COUNTER_UPDATE_RESP).await;
    assert_eq!(counted.value, Some(7));
    let fetched = wire.fetch_data_type("default", "k").await;
    assert_eq!((fetched.r#type, fetched.value.unwrap().counter_value), (1, Some(7)));
    assert_eq!(wire.update_data_type(&update("default", "k", counter(1))).await.counter_value, Some(8));
    let read = wire.read(None, "k").await;
    assert_eq!(read.content[0].content_type.as_deref(), Some(&b"application/riak_counter"[..]));
    assert!(read.content[0].value.starts_with(b"E\x01"), "{read:?}");
    // A value without a clock stays as it is beside a counter.
    let content = Some(RpbContent { value: "plain".into(), ..RpbContent::default() });
    let (bucket, key) = (Some("b".into()), Some("l".into()));
    let plain = RpbPutReq { bucket, key, content, asis: Some(true), ..RpbPutReq::default() };
    wire.send(code::PUT_REQ, &plain).await;
    wire.expect_empty(code::PUT_RESP).await;
    assert_eq!(wire.update_data_type(&update("default", "l", counter(4))).await.counter_value, Some(4));
    let values: Vec<Bytes> = wire.read(None, "l").await.content.into_iter().map(|content| content.value).collect();
    assert!(values.len() == 2 && values.contains(&Bytes::from("plain")), "{values:?}");
}
