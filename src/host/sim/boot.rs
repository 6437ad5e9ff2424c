//! The start of a simulated host: from the scenario file, and from what an earlier daemon left.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{broadcast, watch};

use super::faults::Faults;
use super::state::{SimDomain, State};
use super::{EVENT_BACKLOG, SimHost, SimOptions};
use crate::host::{HostError, Hypervisor, NodeDevices};
use crate::model::{HostScan, ParentAddr};

impl SimHost {
    /// Starts the host on a scenario, given as two readers of it; brings back what the state file remembers.
    ///
    /// # Errors
    /// The scenario or the state cannot be read, another daemon has the state, or libvirt refuses a domain of it.
    pub async fn new(
        base_nodes: Arc<dyn NodeDevices>,
        base_domains: Arc<dyn Hypervisor>,
        options: SimOptions,
    ) -> Result<Arc<Self>, HostError> {
        let scan = base_nodes.scan().await?;
        let mut in_file = Vec::new();
        for domain in &base_domains.domains().await? {
            in_file.push(SimDomain::from_base(domain)?);
        }
        let mut state = State::open(options.state_file.as_deref())?;
        state.seed(scan.mdevs.clone(), in_file.clone())?;
        restore(base_domains.as_ref(), &in_file, &state.table().domains).await?;
        let host = Arc::new(Self {
            cards: cards(&scan),
            file_devices: scan.mdevs,
            base_nodes,
            base_domains,
            state: Mutex::new(state),
            faults: Faults::new(options.script),
            connected: AtomicBool::new(true),
            domain_turn: tokio::sync::Mutex::new(()),
            address: OnceLock::new(),
            platform: Mutex::default(),
            transit: watch::Sender::default(),
            events: broadcast::Sender::new(EVENT_BACKLOG),
        });
        for change in host.faults.due_at_once() {
            host.change_or_log(change).await;
        }
        Ok(host)
    }
}

fn cards(scan: &HostScan) -> BTreeMap<ParentAddr, ParentAddr> {
    scan.parents.iter().map(|p| (p.addr.clone(), p.card())).collect()
}

/// Makes the test driver's domains those of the state.
async fn restore(
    base: &dyn Hypervisor,
    in_file: &[SimDomain],
    wanted: &[SimDomain],
) -> Result<(), HostError> {
    for domain in in_file.iter().filter(|d| !wanted.contains(d)) {
        base.stop(domain.uuid).await?;
        base.undefine(domain.uuid).await?;
    }
    for domain in wanted.iter().filter(|d| !in_file.contains(d)) {
        if let Some(xml) = &domain.live {
            base.define(xml).await?;
            base.start(domain.uuid).await?;
        }
        match &domain.defined {
            Some(xml) => base.define(xml).await?,
            None => base.undefine(domain.uuid).await?,
        }
    }
    Ok(())
}
