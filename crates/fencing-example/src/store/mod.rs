//! A setting in a database, with the token of the term that wrote it. The statements are the same for both databases.

mod postgres;
mod sqlite;

use crate::Failure;

/// The table, with one setting in it.
const CREATE: &str = "\
    CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL, token BIGINT NOT NULL); \
    INSERT INTO setting VALUES ('replicas', 'none', 0) ON CONFLICT (name) DO NOTHING";

/// Writes the value unless a later term has written. It changes one row, or none if the token is too old.
const SET: &str = "UPDATE setting SET value = $1, token = $2 WHERE name = 'replicas' AND token <= $2";

/// The same without the comparison, to see what happens then.
const SET_ANYWAY: &str = "UPDATE setting SET value = $1, token = $2 WHERE name = 'replicas'";

const GET: &str = "SELECT value FROM setting WHERE name = 'replicas'";

/// The setting in one of the databases.
pub enum Store {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Postgres),
}

/// The database refused the statement: a later term has written.
pub struct ErrOldToken;

// === impl Store ===

impl Store {
    /// Connects, and makes the table if it is not there. `compares`: writes compare the token.
    pub async fn open(url: &str, compares: bool) -> Result<Self, Failure> {
        let set = if compares { SET } else { SET_ANYWAY };
        if url.starts_with("postgres") {
            postgres::Postgres::open(url, set).await.map(Self::Postgres)
        } else {
            sqlite::Sqlite::open(url, set).map(Self::Sqlite)
        }
    }

    /// Writes the value in the term of this token. The outer error is no answer, so the outcome is unknown. The inner
    /// error is the database's answer, and says that nothing has changed.
    pub async fn set(&self, value: &str, token: u64) -> Result<Result<(), ErrOldToken>, Failure> {
        // etcd counts revisions in a signed number too, so this fits.
        let token = i64::try_from(token)?;
        let changed = match self {
            Self::Sqlite(sqlite) => sqlite.set(value, token)?,
            Self::Postgres(postgres) => postgres.set(value, token).await?,
        };
        Ok(if changed == 1 { Ok(()) } else { Err(ErrOldToken) })
    }

    /// The value. On this connection, it comes after each earlier statement.
    pub async fn get(&self) -> Result<String, Failure> {
        match self {
            Self::Sqlite(sqlite) => sqlite.query(GET),
            Self::Postgres(postgres) => postgres.query(GET).await,
        }
    }
}
