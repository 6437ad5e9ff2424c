//! What was in the books before, brought there as the service does it.

use std::collections::BTreeSet;

use mdevirt::model::{
    Claim, ClaimEvent, ClaimId, ClaimRole, ClaimState, DeviceApi, DomainOwner, Ids, Instance, InstanceUuid,
    JobId, MdevUuid, OpKind, OwnDevice, ResourceClass, SagaRow, SagaState, StepEvent,
};
use mdevirt::ops::VERSION;
use mdevirt::store::{Begin, Change, Entry, Store};

use crate::world::Random;

/// One line of `remembered.tsv`.
pub(crate) struct Remembered {
    pub(crate) uuid: MdevUuid,
    pub(crate) parent: String,
    pub(crate) type_id: String,
    pub(crate) type_name: String,
    pub(crate) vm: Option<InstanceUuid>,
}

impl Remembered {
    pub(crate) fn read(line: &str) -> Self {
        let [uuid, parent, type_id, type_name, vm] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        Self {
            uuid: uuid.parse().unwrap(),
            parent: parent.to_owned(),
            type_id: type_id.to_owned(),
            type_name: type_name.to_owned(),
            vm: vm.parse().ok(),
        }
    }
}

/// Books a device the way the service does: an operation that has ended. An idle one is only recorded.
pub(crate) fn remember(store: &Store, line: &Remembered, domain: Option<(String, bool)>) {
    let device = OwnDevice {
        uuid: line.uuid,
        parent: line.parent.parse().unwrap(),
        type_id: line.type_id.parse().unwrap(),
        type_name: line.type_name.clone(),
    };
    let Some(vm) = line.vm else {
        return store.observe(vec![Change::DeviceRecorded(device)]).unwrap();
    };
    let owner = if domain.is_some() { DomainOwner::Mdevirt } else { DomainOwner::Caller };
    let (name, running) = domain.unwrap_or_default();
    let saga = past_operation(vm, owner);
    let claim = past_claim(vm, &device);
    let (job, step) = (saga.id, "make_device.0");
    let mut begin = Begin::new(saga, step);
    begin.instance = Some(Instance {
        uuid: vm,
        name,
        owner,
        request_digest: String::new(),
        flavor: None,
        created_usec: 0,
    });
    let last = if running { ClaimEvent::Started } else { ClaimEvent::Stopped };
    let events = [ClaimEvent::Created, last].map(|event| Change::Claim { claim: claim.id, event });
    begin.devices.push(device);
    begin.claims.push(claim);
    store.begin(begin).unwrap();
    let entry = Entry::new().line(0, step, StepEvent::Done, Some("null".into())).changes(events);
    store.advance(job, entry.turn(SagaState::Done, Some("null".into()))).unwrap();
}

fn past_operation(instance: InstanceUuid, owner: DomainOwner) -> SagaRow {
    SagaRow {
        id: JobId(Random.fresh()),
        op: if owner == DomainOwner::Mdevirt { OpKind::Spawn } else { OpKind::Claim },
        version: VERSION,
        instance,
        state: SagaState::Running,
        operation_id: None,
        request_digest: String::new(),
        params: serde_json::Value::Null,
        result: None,
        created_usec: 0,
    }
}

fn past_claim(instance: InstanceUuid, device: &OwnDevice) -> Claim {
    Claim {
        id: ClaimId(Random.fresh()),
        instance,
        uuid: device.uuid,
        parent: device.parent.clone(),
        mdev_type: device.type_id.clone(),
        type_name: device.type_name.clone(),
        identity: None,
        card: None,
        device_api: DeviceApi::VfioPci,
        resource_class: ResourceClass::vgpu(),
        group: String::new(),
        traits: BTreeSet::new(),
        state: ClaimState::Reserved,
        was_parked: false,
        role: ClaimRole::Primary,
        created_usec: 0,
    }
}
