//! SQLite, in a file.

use super::CREATE;
use crate::Failure;
use rusqlite::Connection;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::block_in_place;

/// Its calls block. They run in place, not in a task of their own, so that the guard around them ends with them.
pub struct Sqlite {
    connection: Mutex<Connection>,
    set: String,
}

impl Sqlite {
    pub fn open(path: &str, set: &str) -> Result<Self, Failure> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.execute_batch(CREATE)?;
        Ok(Self { connection: Mutex::new(connection), set: set.to_owned() })
    }

    pub fn set(&self, value: &str, token: i64) -> Result<u64, Failure> {
        let changed = block_in_place(|| self.connection().execute(&self.set, (value, token)))?;
        Ok(u64::try_from(changed)?)
    }

    pub fn query(&self, statement: &str) -> Result<String, Failure> {
        Ok(block_in_place(|| self.connection().query_row(statement, (), |row| row.get(0)))?)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
