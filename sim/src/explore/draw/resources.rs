//! Draws the resources that the clients of a plan lock.

use lock_judge::scenario::FaultKind;

use super::Sketch;

/// Share of the plans with several resources in which processes have further tasks: only these hold
/// several locks over the same connections.
const TASKS_PERCENT: u64 = 80;

impl Sketch {
    /// Adds tasks and up to `most` resources, and draws which one each client locks and each fault is
    /// about. A plan for a subject with one lock stays as it is.
    pub(super) fn resources(&mut self, most: usize) {
        self.tasks(TASKS_PERCENT);
        if !self.is_ours || self.dice.percent(5) {
            return;
        }
        let count = self.dice.between(2, most as u64);
        let further: Vec<String> = (2..=count).map(|number| format!("r{number}")).collect();
        let mut names = vec![None];
        names.extend(further.iter().cloned().map(Some));
        self.plan.lock.further_resources = further;
        for client in &mut self.plan.clients {
            client.resource = self.dice.pick(&names);
        }
        for fault in &mut self.plan.faults {
            if let FaultKind::Delete(key) | FaultKind::Evict(key) | FaultKind::SpuriousPush(key) =
                &mut fault.kind
            {
                key.resource = self.dice.pick(&names);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, plan};
    use lock_judge::scenario::{Rights, Scenario};

    fn plans(resources: usize) -> impl Iterator<Item = Scenario> {
        let frame = Frame { resources, ..Frame::default() };
        (0..300).map(move |number| plan(&frame, 3, number))
    }

    #[test]
    fn a_process_holds_several_locks() {
        let holds_several = |plan: &Scenario| {
            plan.client_ids().any(|client| {
                let process = plan.process(client);
                process != client && plan.resource_of(client) != plan.resource_of(process)
            })
        };
        assert!(plans(2).filter(holds_several).count() > 100);
        assert!(plans(3).any(|plan| plan.resource_ids().len() == 3));
        assert!(plans(3).all(|plan| plan.resource_ids().len() <= 3));
    }

    #[test]
    fn faults_strike_every_key() {
        let strikes = |plan: Scenario| {
            plan.faults
                .into_iter()
                .any(|fault| fault.kind.key().is_some_and(|key| key.resource.is_some()))
        };
        assert!(plans(2).any(strikes));
    }

    #[test]
    fn without_further_resources_plans_are_as_before() {
        assert!(plans(1).all(|plan| plan.lock.further_resources.is_empty()));
        let unchanged = plans(2).zip(plans(1)).all(|(several, one)| {
            // Rights are drawn even later, and so are faults of the nodes of leases that are kept for long.
            let cluster = |plan: &Scenario| {
                let mut cluster = plan.cluster.clone();
                cluster.rights = Rights::All;
                cluster.node.values_mut().for_each(|it| it.rights = None);
                cluster.node.retain(|_, it| it.persistence.is_some());
                cluster
            };
            let ids = |plan: &Scenario| {
                let ids = plan.faults.iter().map(|fault| fault.id.clone());
                ids.filter(|id| !id.starts_with("strike")).collect::<Vec<_>>()
            };
            let both = (ids(&several), ids(&one));
            cluster(&several) == cluster(&one)
                && both.0.iter().zip(&both.1).all(|(id, other)| id == other)
        });
        assert!(unchanged, "resources are drawn last");
    }
}
