//! Calls of libvirt's C library that the virt crate does not wrap. The only file with `unsafe`.
//!
//! 1. Nothing newer than libvirt 9.0.0 is named here: virt-sys declares symbols that an older library does not have, and the
//!    program would not link there.
//! 2. Every pointer handed to libvirt lives through the call: it is borrowed from a virt object or from a `CString` of the
//!    same scope.
//! 3. libvirt's last error belongs to the thread, so each function reads it before it returns.
//! 4. Callbacks run on the event thread; what they use is shared ([`Wakes`]), and they neither block nor panic.
#![expect(unsafe_code, reason = "libvirt is a C library and the virt crate does not wrap these calls")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use uuid::Uuid;
use virt::connect::Connect;
use virt::domain::Domain;
use virt::error::Error;
use virt::nodedev::NodeDevice;
use virt_sys as sys;

use super::events::Wakes;
use super::lanes::Lanes;

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// Prepares libvirt's library; everything else comes after this. Its own functions do so too, but for those of the event loop
/// and of the last error, which then use a thread-local slot that belongs to somebody else.
pub(super) fn initialise() -> bool {
    // SAFETY: it may be called at any time, from any thread, more than once.
    unsafe { sys::virInitialize() == 0 }
}

/// The names of all node devices with a capability. Unlike `list_all_node_devices` it makes libvirtd read no sysfs.
///
/// # Source
/// libvirt `virnodedeviceobj.c`: the export refreshes the capabilities of every device, the list of names does not.
pub(super) fn node_device_names(conn: &Connect, capability: &CStr) -> Result<Vec<String>, Error> {
    // SAFETY: `conn` is an open connection for as long as it is borrowed; `capability` outlives both calls.
    let (conn, capability) = (unsafe { conn.as_ptr() }, capability.as_ptr());
    // SAFETY: as above.
    let count = checked(unsafe { sys::virNodeNumOfDevices(conn, capability, 0) })?;
    // Room for devices that appear between the two calls; those beyond are seen at the next event.
    let mut names: Vec<*mut c_char> = vec![null_mut(); usize::try_from(count).unwrap_or(0) + 64];
    let room = c_int::try_from(names.len()).unwrap_or(c_int::MAX);
    // SAFETY: `names` has `room` slots, and libvirt fills at most as many.
    let filled = checked(unsafe { sys::virNodeListDevices(conn, capability, names.as_mut_ptr(), room, 0) })?;
    names.truncate(usize::try_from(filled).unwrap_or(0));
    let take = |name: *mut c_char| {
        // SAFETY: each filled slot is a NUL-terminated string that libvirt allocated with malloc and left to us.
        let text = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        // SAFETY: as above; it is not used again.
        unsafe { free(name.cast()) };
        text
    };
    Ok(names.into_iter().filter(|name| !name.is_null()).map(take).collect())
}

/// Stores a persistent definition. Returns before libvirt's list has it for good.
pub(super) fn define(conn: &Connect, xml: &str) -> Result<NodeDevice, Error> {
    let xml = CString::new(xml)?;
    // SAFETY: `conn` is open and borrowed, `xml` outlives the call.
    let device = unsafe { sys::virNodeDeviceDefineXML(conn.as_ptr(), xml.as_ptr(), 0) };
    if device.is_null() {
        return Err(Error::last_error());
    }
    // SAFETY: a non-null return is a reference that belongs to the caller.
    Ok(unsafe { NodeDevice::from_ptr(device) })
}

/// Removes the persistent definition; of every parent that has this UUID, for mdevctl gets no parent.
pub(super) fn undefine(device: &NodeDevice) -> Result<(), Error> {
    // SAFETY: `device` holds a reference while it is borrowed.
    checked(unsafe { sys::virNodeDeviceUndefine(device.as_ptr(), 0) }).map(|_| ())
}

/// Makes a defined device active.
pub(super) fn start(device: &NodeDevice) -> Result<(), Error> {
    // SAFETY: `device` holds a reference while it is borrowed.
    checked(unsafe { sys::virNodeDeviceCreate(device.as_ptr(), 0) }).map(|_| ())
}

/// Has the definition started when its parent appears.
pub(super) fn autostart(device: &NodeDevice) -> Result<(), Error> {
    // SAFETY: `device` holds a reference while it is borrowed.
    checked(unsafe { sys::virNodeDeviceSetAutostart(device.as_ptr(), 1) }).map(|_| ())
}

/// Whether the device exists in the kernel.
pub(super) fn is_active(device: &NodeDevice) -> Result<bool, Error> {
    // SAFETY: `device` holds a reference while it is borrowed.
    checked(unsafe { sys::virNodeDeviceIsActive(device.as_ptr()) }).map(|answer| answer == 1)
}

/// Whether the device has a persistent definition.
pub(super) fn is_persistent(device: &NodeDevice) -> Result<bool, Error> {
    // SAFETY: `device` holds a reference while it is borrowed.
    checked(unsafe { sys::virNodeDeviceIsPersistent(device.as_ptr()) }).map(|answer| answer == 1)
}

/// Breaks off what libvirt is at with the guest.
pub(super) fn abort_job(domain: &Domain) -> Result<(), Error> {
    // SAFETY: `domain` holds a reference while it is borrowed.
    checked(unsafe { sys::virDomainAbortJob(domain.as_ptr()) }).map(|_| ())
}

/// The longest time, in ms, for which the guest may stand still at the end of a migration.
pub(super) fn max_downtime(domain: &Domain) -> Result<u64, Error> {
    let mut ms = 0;
    // SAFETY: `domain` holds a reference while it is borrowed; `ms` outlives the call.
    checked(unsafe { sys::virDomainMigrateGetMaxDowntime(domain.as_ptr(), &raw mut ms, 0) })?;
    Ok(ms)
}

fn checked(answer: c_int) -> Result<c_int, Error> {
    if answer < 0 { Err(Error::last_error()) } else { Ok(answer) }
}

/// A connection whose events reach a [`Wakes`]. Everything registered is taken back when it is dropped, which may ask libvirtd
/// and so belongs on a thread that may block.
#[derive(Debug)]
pub(super) struct Watched {
    /// The connection.
    pub(super) conn: Connect,
    /// Bounds the calls in flight.
    pub(super) lanes: Lanes,
    /// The driver was found unable to tell whether a node device is active.
    pub(super) stateless: AtomicBool,
    node_ids: Vec<c_int>,
    domain_ids: Vec<c_int>,
}

impl Watched {
    /// Registers for the end of the connection and for node-device and domain events. A driver without events is no error:
    /// nothing changes there but through this connection.
    pub(super) fn new(conn: Connect, wakes: &Arc<Wakes>) -> Result<Self, Error> {
        let stateless = AtomicBool::new(false);
        let mut watched =
            Self { conn, lanes: Lanes::new(), stateless, node_ids: Vec::new(), domain_ids: Vec::new() };
        watched.on_close(wakes)?;
        watched.on_node_devices(wakes)?;
        watched.on_domains(wakes)?;
        Ok(watched)
    }

    fn on_close(&self, wakes: &Arc<Wakes>) -> Result<(), Error> {
        register(wakes, |opaque| {
            // SAFETY: the connection is open; `opaque` is one count of an Arc<Wakes>, which `closed` borrows and
            // `release` gives back when libvirt drops the registration.
            unsafe {
                sys::virConnectRegisterCloseCallback(self.conn.as_ptr(), Some(closed), opaque, Some(release))
            }
        })
        .map(|_| ())
    }

    fn on_node_devices(&mut self, wakes: &Arc<Wakes>) -> Result<(), Error> {
        // SAFETY: libvirt calls it with the five arguments of a lifecycle callback, because of the event id below;
        // the generic type is only the one in which it passes through the registration.
        let lifecycle: sys::virConnectNodeDeviceEventGenericCallback =
            Some(unsafe { std::mem::transmute::<NodeLifecycle, NodeGeneric>(node_lifecycle) });
        for (event, callback) in [
            (sys::VIR_NODE_DEVICE_EVENT_ID_LIFECYCLE, lifecycle),
            (sys::VIR_NODE_DEVICE_EVENT_ID_UPDATE, Some(node_update as NodeGeneric)),
        ] {
            let id = register(wakes, |opaque| {
                // SAFETY: as in `on_close`; a null device asks for the events of all.
                unsafe {
                    sys::virConnectNodeDeviceEventRegisterAny(
                        self.conn.as_ptr(),
                        null_mut(),
                        event as c_int,
                        callback,
                        opaque,
                        Some(release),
                    )
                }
            });
            self.node_ids.extend(unless_unsupported(id)?);
        }
        Ok(())
    }

    fn on_domains(&mut self, wakes: &Arc<Wakes>) -> Result<(), Error> {
        // SAFETY: as for the node-device lifecycle; a domain lifecycle callback has five arguments and returns an int.
        let lifecycle = unsafe { std::mem::transmute::<DomainLifecycle, DomainGeneric>(domain_lifecycle) };
        // SAFETY: as above; the callbacks of both device events have the connection, the domain, an alias and the pointer.
        let let_go = unsafe { std::mem::transmute::<DomainDevice, DomainGeneric>(device_let_go) };
        for (event, callback) in [
            (sys::VIR_DOMAIN_EVENT_ID_LIFECYCLE, lifecycle),
            (sys::VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, let_go),
            (sys::VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, let_go),
        ] {
            let id = register(wakes, |opaque| {
                // SAFETY: as in `on_close`; a null domain asks for the events of all.
                unsafe {
                    sys::virConnectDomainEventRegisterAny(
                        self.conn.as_ptr(),
                        null_mut(),
                        event as c_int,
                        Some(callback),
                        opaque,
                        Some(release),
                    )
                }
            });
            self.domain_ids.extend(unless_unsupported(id)?);
        }
        Ok(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Each registration holds a reference on the connection, so without this it would never be closed. On a broken
        // connection the calls fail after the local part is undone, which is the part that matters.
        for id in self.node_ids.drain(..) {
            // SAFETY: the connection is open or broken but valid, the id comes from its registration.
            let _ = unsafe { sys::virConnectNodeDeviceEventDeregisterAny(self.conn.as_ptr(), id) };
        }
        for id in self.domain_ids.drain(..) {
            // SAFETY: as above.
            let _ = unsafe { sys::virConnectDomainEventDeregisterAny(self.conn.as_ptr(), id) };
        }
        // SAFETY: as above; without a registration it only returns an error.
        let _ = unsafe { sys::virConnectUnregisterCloseCallback(self.conn.as_ptr(), Some(closed)) };
    }
}

fn unless_unsupported(id: Result<c_int, Error>) -> Result<Option<c_int>, Error> {
    match id {
        Ok(id) => Ok(Some(id)),
        Err(err) if super::error::is_unsupported(&err) => Ok(None),
        Err(err) => Err(err),
    }
}

/// Makes a registration with one count of `wakes` as its opaque pointer, and takes the count back if it failed: libvirt calls
/// `release` for successful ones only.
fn register(wakes: &Arc<Wakes>, call: impl FnOnce(*mut c_void) -> c_int) -> Result<c_int, Error> {
    let opaque = Arc::into_raw(Arc::clone(wakes)).cast_mut().cast::<c_void>();
    let id = checked(call(opaque));
    if id.is_err() {
        // SAFETY: the registration failed, so nobody else has this count.
        unsafe { release(opaque) };
    }
    id
}

type NodeGeneric = unsafe extern "C" fn(sys::virConnectPtr, sys::virNodeDevicePtr, *mut c_void);
type NodeLifecycle =
    unsafe extern "C" fn(sys::virConnectPtr, sys::virNodeDevicePtr, c_int, c_int, *mut c_void);
type DomainGeneric = unsafe extern "C" fn(sys::virConnectPtr, sys::virDomainPtr, *mut c_void);
type DomainLifecycle =
    unsafe extern "C" fn(sys::virConnectPtr, sys::virDomainPtr, c_int, c_int, *mut c_void) -> c_int;

type DomainDevice = unsafe extern "C" fn(sys::virConnectPtr, sys::virDomainPtr, *const c_char, *mut c_void);

unsafe extern "C" fn release(opaque: *mut c_void) {
    // SAFETY: `opaque` is the count that `register` made, given back once.
    drop(unsafe { Arc::from_raw(opaque.cast::<Wakes>()) });
}

/// # Safety
/// `opaque` is what `register` made, and its registration lasts.
unsafe fn wakes<'a>(opaque: *mut c_void) -> &'a Wakes {
    // SAFETY: the count behind `opaque` is held until `release`, which libvirt calls after the last callback.
    unsafe { &*opaque.cast::<Wakes>() }
}

unsafe extern "C" fn closed(_conn: sys::virConnectPtr, _reason: c_int, opaque: *mut c_void) {
    // SAFETY: libvirt calls it with the pointer it was registered with.
    unsafe { wakes(opaque) }.connection_lost();
}

unsafe extern "C" fn node_lifecycle(
    _conn: sys::virConnectPtr,
    _device: sys::virNodeDevicePtr,
    _event: c_int,
    _detail: c_int,
    opaque: *mut c_void,
) {
    // SAFETY: as in `closed`.
    unsafe { wakes(opaque) }.node_devices_changed();
}

unsafe extern "C" fn node_update(
    _conn: sys::virConnectPtr,
    _device: sys::virNodeDevicePtr,
    opaque: *mut c_void,
) {
    // SAFETY: as in `closed`.
    unsafe { wakes(opaque) }.node_devices_changed();
}

unsafe extern "C" fn domain_lifecycle(
    _conn: sys::virConnectPtr,
    domain: sys::virDomainPtr,
    _event: c_int,
    _detail: c_int,
    opaque: *mut c_void,
) -> c_int {
    let mut bytes = [0_u8; 16];
    // SAFETY: `domain` is valid during the callback and the buffer has VIR_UUID_BUFLEN bytes.
    if unsafe { sys::virDomainGetUUID(domain, bytes.as_mut_ptr()) } == 0 {
        // SAFETY: as in `closed`.
        unsafe { wakes(opaque) }.domain_changed(Uuid::from_bytes(bytes));
    }
    0
}

unsafe extern "C" fn device_let_go(
    _conn: sys::virConnectPtr,
    _domain: sys::virDomainPtr,
    _alias: *const c_char,
    opaque: *mut c_void,
) {
    // SAFETY: as in `closed`.
    unsafe { wakes(opaque) }.device_let_go();
}
