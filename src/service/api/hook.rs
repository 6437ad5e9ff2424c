//! What libvirt's qemu hook asks, and what it is answered.

/// A call of the hook: libvirt waits for the answer, so libvirt itself must not be asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    /// The domain's name, as libvirt gives it.
    pub name: String,
    /// `prepare`, `migrate`, `restore`, ...
    pub operation: String,
    /// `begin` or `end`.
    pub sub_operation: String,
    /// `-`, or why the guest went (libvirt 10.5 and later).
    pub extra: String,
    /// The domain as it is about to run, or ran.
    pub domain_xml: String,
}
