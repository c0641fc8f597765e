//! PostgreSQL, by its URL.

use super::CREATE;
use crate::Failure;
use tokio_postgres::{Client, NoTls, Statement};

/// A connection, and the statement that writes. It is prepared before, so that the write is one message.
pub struct Postgres {
    client: Client,
    set: Statement,
}

impl Postgres {
    pub async fn open(url: &str, set: &str) -> Result<Self, Failure> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // It sends what the client is given, also after a guard has dropped the client's future. So only the database can
        // refuse a statement that comes late.
        tokio::spawn(connection);
        client.batch_execute(CREATE).await?;
        let set = client.prepare(set).await?;
        Ok(Self { client, set })
    }

    pub async fn set(&self, value: &str, token: i64) -> Result<u64, Failure> {
        Ok(self.client.execute(&self.set, &[&value, &token]).await?)
    }

    pub async fn query(&self, statement: &str) -> Result<String, Failure> {
        Ok(self.client.query_one(statement, &[]).await?.get(0))
    }
}
