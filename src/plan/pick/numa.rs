//! NUMA nodes of devices and of a VM's memory.

use std::collections::BTreeSet;

use crate::model::NumaPolicy;
use crate::plan::capacity::ParentCapacity;

/// What is asked of nodes, and what the memory's are.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a> {
    policy: NumaPolicy,
    memory: Option<&'a BTreeSet<u32>>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(policy: NumaPolicy, memory: Option<&'a BTreeSet<u32>>) -> Self {
        Self { policy, memory }
    }

    /// Place in the order of preference: on a node of the memory, on an unknown one, on another.
    pub(super) fn rank(self, cap: &ParentCapacity<'_>) -> u8 {
        match (self.policy, self.memory, cap.numa_node) {
            (NumaPolicy::Ignore, ..) | (_, None, _) => 0,
            (_, Some(nodes), Some(node)) if nodes.contains(&node) => 0,
            (_, Some(_), None) => 1,
            (_, Some(_), Some(_)) => 2,
        }
    }

    /// Why this parent is too far away.
    pub(super) fn obstacle(self, cap: &ParentCapacity<'_>) -> Option<String> {
        match (self.policy, self.memory, cap.numa_node) {
            (NumaPolicy::Preferred | NumaPolicy::Ignore, ..) => None,
            (NumaPolicy::Required, None, _) => {
                Some("numa=required, and the nodes of the VM's memory are not known".to_owned())
            }
            (NumaPolicy::Required, Some(nodes), None) => Some(format!(
                "its NUMA node is not known, and numa=required: the VM's memory is on {}",
                shown(nodes)
            )),
            (NumaPolicy::Required, Some(nodes), Some(node)) => (!nodes.contains(&node)).then(|| {
                format!(
                    "it is on NUMA node {node}, and numa=required: the VM's memory is on {}",
                    shown(nodes)
                )
            }),
        }
    }

    /// Whether nothing can be said of any parent.
    pub(super) fn is_blind(self) -> bool {
        self.policy == NumaPolicy::Required && self.memory.is_none()
    }
}

/// `node 1`, `nodes 0-2,5`.
pub(super) fn shown(nodes: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for node in nodes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *node => *last = *node,
            Some(_) | None => runs.push((*node, *node)),
        }
    }
    let run = |(first, last): (u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let list = runs.into_iter().map(run).collect::<Vec<_>>().join(",");
    if nodes.len() == 1 { format!("node {list}") } else { format!("nodes {list}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_shown_as_libvirt_writes_them() {
        assert_eq!(shown(&[1].into()), "node 1");
        assert_eq!(shown(&[0, 1, 2, 5, 7, 8].into()), "nodes 0-2,5,7-8");
    }
}
