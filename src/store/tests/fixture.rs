//! Values to book, and a store in a directory of its own.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, RwLock};

use rusqlite::{Connection, OpenFlags};
use uuid::Uuid;

use crate::model::{
    Claim, ClaimId, ClaimRole, ClaimState, Clock, DeviceApi, DomainOwner, Instance, InstanceUuid, JobId,
    MdevUuid, OpKind, OwnDevice, ResourceClass, SagaRow, SagaState, TypeIdentity, Usec,
};
use crate::store::{Begin, Store, StoreError};

/// Time that moves by one microsecond whenever somebody looks.
#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now_usec(&self) -> Usec {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Written while a test starts a process: until its exec, the child has the lock files of all stores open, so that a
/// store that was closed meanwhile could not be opened again.
pub(crate) static STARTING: RwLock<()> = RwLock::new(());

pub(crate) fn try_open(dir: &Path) -> Result<Store, StoreError> {
    let _nobody_starts = STARTING.read();
    Store::open(dir, Arc::new(TestClock::default()))
}

pub(crate) fn open(dir: &Path) -> Store {
    try_open(dir).unwrap()
}

pub(crate) fn instance_uuid(n: u32) -> InstanceUuid {
    InstanceUuid(Uuid::from_u128(0x1000_0000 + u128::from(n)))
}

pub(crate) fn job_id(n: u32) -> JobId {
    JobId(Uuid::from_u128(0x2000_0000 + u128::from(n)))
}

pub(crate) fn instance(n: u32) -> Instance {
    Instance {
        uuid: instance_uuid(n),
        name: format!("vm-{n}"),
        owner: DomainOwner::Mdevirt,
        request_digest: format!("digest-{n}"),
        flavor: Some("resources:VGPU=1".into()),
        created_usec: i64::from(n),
    }
}

pub(crate) fn device(n: u32) -> OwnDevice {
    OwnDevice {
        uuid: MdevUuid(Uuid::from_u128(0x3000_0000 + u128::from(n))),
        parent: format!("0000:{:02x}:00.0", n % 256).parse().unwrap(),
        type_id: "nvidia-746".parse().unwrap(),
        type_name: "NVIDIA A2-4Q".into(),
    }
}

/// What stays of the type of every [`device`].
pub(crate) fn identity() -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some("NVIDIA A2-4Q".into()),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(4096),
        heads: Some(4),
        max_resolution: Some("7680x4320".into()),
    }
}

/// A claim of instance `of` on device `n`.
pub(crate) fn claim(of: u32, n: u32) -> Claim {
    let device = device(n);
    Claim {
        id: ClaimId(Uuid::from_u128(0x4000_0000 + u128::from(n))),
        instance: instance_uuid(of),
        uuid: device.uuid,
        parent: device.parent,
        mdev_type: device.type_id,
        type_name: device.type_name,
        identity: Some(identity()),
        card: Some("0000:00:01.0".parse().unwrap()),
        device_api: DeviceApi::VfioPci,
        resource_class: ResourceClass::vgpu(),
        group: "1".into(),
        traits: ["CUSTOM_A".parse().unwrap(), "HW_GPU_B".parse().unwrap()].into(),
        state: ClaimState::Reserved,
        was_parked: false,
        role: ClaimRole::Primary,
        created_usec: i64::from(n),
    }
}

/// Saga `job` of instance `of`.
pub(crate) fn saga(op: OpKind, of: u32, job: u32) -> SagaRow {
    SagaRow {
        id: job_id(job),
        op,
        version: 1,
        instance: instance_uuid(of),
        state: SagaState::Running,
        operation_id: None,
        request_digest: format!("digest-{of}"),
        params: serde_json::json!({ "domain": "<domain/>" }),
        result: None,
        created_usec: i64::from(job),
    }
}

/// A spawn of instance `n` with device `n`, by saga `n`.
pub(crate) fn spawn(n: u32) -> Begin {
    Begin {
        instance: Some(instance(n)),
        devices: vec![device(n)],
        claims: vec![claim(n, n)],
        ..Begin::new(saga(OpKind::Spawn, n, n), "create_device")
    }
}

/// Runs SQL behind the store's back; CHECK lists are off, as in a damaged file.
pub(crate) fn sql(store: &Store, text: &str) {
    let conn = store.writer.connection();
    conn.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    conn.execute_batch(text).unwrap();
}

/// From now on the disk takes nothing.
pub(crate) fn write_protect(store: &Store) {
    sql(store, "PRAGMA query_only = ON");
}

/// Makes a state directory from a dump.
pub(crate) fn restore(dir: &Path, dump: &str) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let conn = Connection::open_with_flags(dir.join("state.db"), flags).unwrap();
    conn.execute_batch(dump).unwrap();
}
