//! Flows as they took effect, and where conversations stand.

use retoma_core::flow::Standing;
use retoma_core::ids::{FlowName, Tenant};
use retoma_store::PublishedFlow;
use rusqlite::params;

use crate::codec::{ms, name_at, time_at};
use crate::database::Database;
use crate::error::Result;

impl Database {
    /// See [`Store::publish_flows`](retoma_store::Store::publish_flows).
    pub fn publish_flows(&self, flows: &[PublishedFlow]) -> retoma_store::Result<Vec<bool>> {
        flows.iter().map(|flow| Ok(self.publish_flow(flow)?)).collect()
    }

    fn publish_flow(&self, flow: &PublishedFlow) -> Result<bool> {
        let recorded = self
            .connection
            .prepare_cached(
                "INSERT INTO flow_version (tenant, flow, version, text, published_at, published_by)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6
                 WHERE ?4 IS NOT (SELECT text FROM flow_version WHERE tenant = ?1 AND flow = ?2 ORDER BY seq DESC LIMIT 1)",
            )?
            .execute(params![
                flow.tenant.as_str(),
                flow.flow.as_str(),
                flow.version,
                flow.text,
                ms(flow.published_at),
                flow.published_by
            ])?;
        Ok(recorded == 1)
    }

    /// See [`Store::list_flows`](retoma_store::Store::list_flows).
    pub fn list_flows(
        &self,
        tenant: &Tenant,
        flow: Option<&FlowName>,
        limit: usize,
    ) -> retoma_store::Result<Vec<PublishedFlow>> {
        Ok(self.published(tenant, flow, limit)?)
    }

    fn published(&self, tenant: &Tenant, flow: Option<&FlowName>, limit: usize) -> Result<Vec<PublishedFlow>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT tenant, flow, version, text, published_at, published_by FROM flow_version
             WHERE tenant = ?1 AND (?2 IS NULL OR flow = ?2) ORDER BY seq DESC LIMIT ?3",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![tenant.as_str(), flow.map(FlowName::as_str), limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(PublishedFlow {
                tenant: name_at(row, 0)?,
                flow: name_at(row, 1)?,
                version: row.get(2)?,
                text: row.get(3)?,
                published_at: time_at(row, 4)?,
                published_by: row.get(5)?,
            });
        }
        Ok(found)
    }

    /// See [`Store::count_standing`](retoma_store::Store::count_standing).
    pub fn count_standing(&self, tenant: &Tenant) -> retoma_store::Result<Vec<Standing>> {
        Ok(self.standing_of(tenant)?)
    }

    fn standing_of(&self, tenant: &Tenant) -> Result<Vec<Standing>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT flow, state, count(*) FROM conversation WHERE tenant = ?1 AND closed = 0 GROUP BY flow, state",
        )?;
        let mut rows = statement.query([tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let live = row.get::<_, i64>(2)?.unsigned_abs();
            found.push(Standing { flow: name_at(row, 0)?, state: row.get(1)?, live });
        }
        Ok(found)
    }
}
