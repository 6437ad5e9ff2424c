//! Evacuation: the host is gone, so the VM is spawned elsewhere from its recorded request.

use mdevirt::model::{DisplayWish, OpKind};
use mdevirt::service::api::UseCases;

use crate::bench::{TWO, odd_xml, without_devices};
use crate::world::World;

#[tokio::test]
async fn the_recorded_request_makes_the_same_vm_elsewhere() {
    let (source, target) = (World::new("two-m60").await, World::new("two-m60").await);
    let nothing = source.scan().await;
    let xml = odd_xml("web-01", 1);
    source.spawn_xml(&xml, TWO, DisplayWish::Off).await;
    let record = source.service().instances().await.unwrap().remove(0);
    assert_eq!(record.flavor.as_deref(), Some(TWO), "what an orchestrator keeps for this day");

    target.spawn_xml(&xml, record.flavor.as_deref().unwrap(), DisplayWish::Off).await;
    let there = target.service().instances().await.unwrap().remove(0);
    assert_eq!((there.uuid, &there.name, &there.flavor), (record.uuid, &record.name, &record.flavor));
    let kind = |claims: &[mdevirt::model::ClaimView]| -> Vec<(String, String)> {
        claims.iter().map(|c| (c.type_name.clone(), c.parent.to_string())).collect()
    };
    let (mut ours, mut theirs) = (kind(&there.claims), kind(&record.claims));
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    assert!(
        there.claims.iter().all(|t| record.claims.iter().all(|r| r.uuid != t.uuid)),
        "devices of its own"
    );
    assert_eq!(without_devices(&target.definition("web-01").await), xml);
    assert!(target.runs("web-01").await);

    // The old host is back and cleans up; the VM on the new one is not touched.
    source.go(OpKind::Destroy, "web-01").await;
    source.assert_untouched(&nothing).await;
    assert!(target.runs("web-01").await);
}
