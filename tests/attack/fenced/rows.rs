//! The rows of the tables.

use crate::oracle::Reading;
use http::{
    Request,
    header::{CONNECTION, UPGRADE},
};

/// A row; `tests/data/README.md` describes the columns.
pub struct Row {
    pub line: &'static str,
    columns: Vec<&'static str>,
}

pub fn all() -> impl Iterator<Item = Row> {
    let tables =
        [include_str!("../../data/request-corpus.tsv"), include_str!("../../data/request-spellings.tsv")];
    let lines = tables.into_iter().flat_map(|table| table.split('\n').skip(1));
    lines.filter(|line| !line.is_empty()).map(|line| Row { line, columns: line.split('\t').collect() })
}

impl Row {
    /// Whether a policy sees it: admission is about resources, and about writes and connections.
    pub fn reaches_admission(&self) -> bool {
        let writes = ["POST", "PUT", "PATCH", "DELETE"].contains(&self.columns[0]);
        let connects = ["exec", "attach", "portforward", "proxy"].contains(&self.columns[9])
            && ["GET", "HEAD", "OPTIONS"].contains(&self.columns[0]);
        // The `http` crate removes a fragment, so the request that is sent is not the one in the row.
        let whole = !self.columns[1].contains('#');
        whole && self.columns[2] == "true" && (writes || connects) && self.request().is_some()
    }

    /// Such a row may remove the fence.
    pub fn is_about_policies(&self) -> bool {
        self.columns[5] == "admissionregistration.k8s.io"
    }

    /// `None` when the `http` crate refuses it: then no client can send it.
    pub fn request(&self) -> Option<Request<()>> {
        let mut request = Request::builder().method(self.columns[0]).uri(self.columns[1]);
        for (header, value) in [(CONNECTION, self.columns[13]), (UPGRADE, self.columns[14])] {
            if value != "-" {
                request = request.header(header, value);
            }
        }
        request.body(()).ok()
    }

    /// As the API server reads it.
    pub fn reading(&self) -> Reading {
        let column = |index: usize| self.columns[index].to_owned();
        Reading {
            is_resource: true,
            group: column(5),
            version: column(6),
            namespace: column(7),
            resource: column(8),
            subresource: column(9),
            name: column(10),
            built_in: !column(5).contains("example.com"),
            ..Reading::default()
        }
    }
}
