//! The names in a `PromQL` expression: metrics, their matchers and grouping labels. An expression that Prometheus would
//! refuse has none: reading it panics.

use promql_parser::{
    label::{Labels, Matcher},
    parser::{self, AggregateExpr, BinaryExpr, Expr, LabelModifier, VectorSelector},
    util::{ExprVisitor, walk_expr},
};
use std::{collections::BTreeSet, convert::Infallible};

/// The names in an expression.
#[derive(Debug, Default)]
pub struct Names {
    pub selectors: Vec<Selector>,
    /// Labels of `by`, `without`, `on`, `ignoring`, `group_left` and `group_right`.
    pub grouped: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Selector {
    pub metric: String,
    pub matchers: Vec<Matcher>,
}

impl Names {
    /// Panics on an expression that Prometheus refuses. Grafana's variable for a duration is allowed.
    pub fn of(expression: &str) -> Self {
        let parsed = parser::parse(&expression.replace("$__rate_interval", "5m"));
        let parsed = parsed.unwrap_or_else(|error| panic!("{error} in {expression}"));
        let mut names = Self::default();
        let Ok(_) = walk_expr(&mut names, &parsed);
        names
    }

    fn select(&mut self, selector: &VectorSelector) {
        let metric = selector.name.clone().unwrap_or_else(|| panic!("{selector} names no metric"));
        self.selectors.push(Selector { metric, matchers: selector.matchers.matchers.clone() });
    }

    fn group(&mut self, labels: Option<&Labels>) {
        self.grouped.extend(labels.into_iter().flat_map(|it| &it.labels).cloned());
    }
}

impl ExprVisitor for Names {
    type Error = Infallible;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Infallible> {
        match expression {
            Expr::VectorSelector(selector) => self.select(selector),
            Expr::MatrixSelector(matrix) => self.select(&matrix.vs),
            Expr::Aggregate(AggregateExpr { modifier: Some(modifier), .. }) => {
                self.group(Some(modifier.labels()));
            }
            Expr::Binary(BinaryExpr { modifier: Some(modifier), .. }) => {
                self.group(modifier.matching.as_ref().map(LabelModifier::labels));
                self.group(modifier.card.labels());
            }
            _ => {}
        }
        Ok(true)
    }
}

#[test]
fn names_are_found_in_every_promql_position() {
    let names = Names::of(
        r#"1 - sum by (name, pod) (rate(a_total{x="1", y!~"b|c"}[5m])) / on (name) group_left histogram_quantile(0.9, b_bucket) > bool 3e2
           and max without (instance) (increase(c[$__rate_interval] offset 5m)) == 0 unless d"#,
    );
    let metrics: Vec<_> = names.selectors.iter().map(|selector| selector.metric.as_str()).collect();
    assert_eq!(metrics, ["a_total", "b_bucket", "c", "d"]);
    let matchers: Vec<_> = names.selectors[0].matchers.iter().map(ToString::to_string).collect();
    assert_eq!(matchers, [r#"x="1""#, r#"y!~"b|c""#]);
    assert_eq!(names.grouped, ["instance", "name", "pod"].map(str::to_owned).into());
}

#[test]
#[should_panic(expected = "in sum by name (a_total)")]
fn what_prometheus_would_refuse_is_refused() {
    Names::of("sum by name (a_total)");
}
