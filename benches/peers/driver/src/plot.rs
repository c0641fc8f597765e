//! A plot of every round: one row for each measurement of each peer, one dot for each round, on a logarithmic axis.

use crate::stats::{Sample, time};
use std::fmt::Write;

/// A row of dots. The group is the peer, which is written once.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) sample: Sample,
}

const LEFT: f64 = 320.0;
const WIDTH: f64 = 400.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 50.0;
const ROW: f64 = 22.0;

/// From 1 ms to 100 s.
const DECADES: u32 = 5;

const STYLE: &str = "text{font:13px sans-serif;fill:#24292f}.s{font-size:11px;fill:#57606a}.g{stroke:#d0d7de}\
.d{fill:#0969da;fill-opacity:.45}.m{stroke:#cf222e;stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.g{stroke:#3d444d}.d{fill:#4493f8}.m{stroke:#f85149}}";

/// Times in milliseconds.
pub(crate) fn plot(title: &str, rows: &[Row]) -> String {
    let bottom = TOP + rows.iter().map(|_| ROW).sum::<f64>();
    let (width, height) = (LEFT + WIDTH + RIGHT, bottom + 30.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n\
         <title>{title}</title>\n<text x=\"10\" y=\"20\">{title}</text>\n"
    );
    for decade in 0..=DECADES {
        let milliseconds = 10_f64.powi(decade.cast_signed());
        let (x, label) = (place(milliseconds), time(milliseconds).replace(".0 ", " "));
        let _ = writeln!(svg, "<path class=\"g\" d=\"M{x:.0} {:.0}V{bottom:.0}\"/>", TOP - 8.0);
        let _ = writeln!(
            svg,
            "<text class=\"s\" x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
            bottom + 16.0
        );
    }
    let (mut y, mut group) = (TOP + ROW / 2.0, "");
    for row in rows {
        if row.group != group {
            group = &row.group;
            let _ = writeln!(svg, "<text x=\"10\" y=\"{:.0}\">{group}</text>", y + 4.0);
        }
        let _ = writeln!(svg, "<text class=\"s\" x=\"155\" y=\"{:.0}\">{}</text>", y + 4.0, row.name);
        for value in row.sample.values() {
            let _ = writeln!(svg, "<circle class=\"d\" cx=\"{:.1}\" cy=\"{y:.0}\" r=\"4\"/>", place(*value));
        }
        if let Some(median) = row.sample.median() {
            let x = place(median);
            let _ = writeln!(svg, "<path class=\"m\" d=\"M{x:.1} {:.0}v16\"/>", y - 8.0);
        }
        y += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

fn place(milliseconds: f64) -> f64 {
    LEFT + WIDTH * (milliseconds.max(1.0).log10() / f64::from(DECADES)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{LEFT, Row, WIDTH, place, plot};

    #[test]
    fn axis_is_logarithmic_and_bounded() {
        assert!((place(0.1) - LEFT).abs() < 1e-9);
        assert!((place(1e7) - LEFT - WIDTH).abs() < 1e-9);
        assert!((place(100.0) - LEFT - WIDTH * 2.0 / 5.0).abs() < 1e-9);
    }

    #[test]
    fn plot_has_a_dot_for_each_round() {
        let row = |name: &str, values: &[f64]| Row {
            group: "peer".into(),
            name: name.into(),
            sample: values.iter().copied().collect(),
        };
        let svg = plot("Title", &[row("a", &[6.0, 7.0, 8.0]), row("b", &[])]);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("class=\"m\"").count(), 1);
        assert_eq!(svg.matches(">peer<").count(), 1);
    }
}
