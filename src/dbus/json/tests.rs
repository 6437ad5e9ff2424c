//! The converter alone.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const SMALL: Limits = Limits { depth: 3, bytes: 1000 };

fn there_and_back(value: &Value) -> Value {
    Value::Object(from_record(&to_record(value).unwrap(), ANSWER).unwrap())
}

#[test]
fn a_record_comes_back_without_its_nulls() {
    let value = json!({
        "text": "ä\u{1}", "yes": true, "small": -7, "large": u64::MAX, "half": 0.5,
        "list": [1, "two", {"three": [3]}], "empty": [], "inner": {}, "nothing": null, "holes": [null, 1]
    });
    let mut want = value.clone();
    want.as_object_mut().unwrap().remove("nothing");
    want["holes"] = json!([1]);
    assert_eq!(there_and_back(&value), want);
}

#[test]
fn types_do_not_depend_on_values() {
    let record = to_record(&json!({"empty": [], "texts": ["a"], "zero": 0, "less": -1, "map": {}})).unwrap();
    let signature = |key: &str| record[key].value_signature().to_string();
    assert_eq!(signature("empty"), "av");
    assert_eq!(signature("texts"), "av");
    assert_eq!((signature("zero"), signature("less")), ("x".to_owned(), "x".to_owned()));
    assert_eq!(signature("map"), "a{sv}");
}

#[test]
fn narrower_types_are_understood() {
    let mut record = Record::new();
    record.insert("u".to_owned(), OwnedVariant::from(7u32));
    record.insert("as".to_owned(), OwnedVariant::try_from(Variant::from(vec!["a", "b"])).unwrap());
    record.insert("ss".to_owned(), OwnedVariant::from(HashMap::from([("k".to_owned(), "v".to_owned())])));
    let map = from_record(&record, SMALL).unwrap();
    assert_eq!(Value::Object(map), json!({"u": 7, "as": ["a", "b"], "ss": {"k": "v"}}));
}

#[test]
fn what_json_does_not_have_is_refused_by_key() {
    let numbers = HashMap::from([(1u32, "v".to_owned())]);
    for (value, word) in [
        (OwnedVariant::from(f64::NAN), "finite"),
        (OwnedVariant::from(Signature::Str), "type g"),
        (OwnedVariant::try_from(Variant::from((1u8, 2u8))).unwrap(), "type (yy)"),
        (OwnedVariant::from(numbers), "key is not a string"),
    ] {
        let err = from_record(&Record::from([("wish\n".to_owned(), value)]), SMALL).unwrap_err();
        assert_eq!(err.key, "wish\\n");
        assert!(err.to_string().contains(word), "{err}");
    }
}

#[test]
fn depth_and_size_are_bounded_both_ways() {
    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!({ "x": deep });
    }
    assert!(to_record(&deep).unwrap_err().why.contains("deeper than 16"));
    let fits = to_record(&json!({"a": {"b": {"c": 1}}})).unwrap();
    assert!(from_record(&fits, Limits { depth: 1, bytes: 1000 }).unwrap_err().why.contains("deeper"));
    let long = to_record(&json!({ "text": "x".repeat(2000) })).unwrap();
    let err = from_record(&long, SMALL).unwrap_err();
    assert_eq!(err.to_string(), "text: more than 1000 bytes");
    let many = to_record(&json!({ "list": vec![0; 200] })).unwrap();
    assert!(from_record(&many, SMALL).is_err());
}

#[test]
fn a_nul_never_gets_on_the_bus() {
    let record = to_record(&json!({"a\0": "b\0", "list": ["\0"], "map": {"\0": 1}})).unwrap();
    let back = Value::Object(from_record(&record, ANSWER).unwrap());
    assert!(!back.to_string().contains("\\u0000"), "{back}");
    assert_eq!(back["a\u{fffd}"], "b\u{fffd}");
}

#[test]
fn only_objects_are_records() {
    assert!(to_record(&json!([1])).is_err());
    assert!(to_records(&[json!(1)]).is_err());
    assert!(read::<crate::model::Finding>(&Record::new()).unwrap_err().why.contains("missing field"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[^\0]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[^\0]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn everything_without_nulls_comes_back(value in any_json()) {
        let value = json!({ "v": value });
        prop_assert_eq!(there_and_back(&value), value);
    }
}
