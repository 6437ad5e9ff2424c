//! An export is read back as it was made.

use super::*;

#[test]
fn what_is_made_is_read_back() {
    let export = Export::of("gpu-01", None, &BTreeMap::new());
    let text = serde_json::to_vec_pretty(&export).unwrap();
    assert_eq!(Export::parse(&text, "gpu-01.json").unwrap(), export);
}
