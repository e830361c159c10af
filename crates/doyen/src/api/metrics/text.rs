//! The text format of Prometheus, version 0.0.4, from `OpenMetrics`.
//!
//! Samples are the same in both. What describes them differs: here a counter is described by the name of its sample, with
//! `_total`, there is no type `info`, and there are neither units nor an end.

/// The content type of the format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Rewrites the descriptions in a text of `OpenMetrics` as `prometheus_client` writes it: for each metric first its help,
/// then its type.
pub(super) fn of_openmetrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match [words.next(), words.next()] {
            [Some("#"), Some("HELP")] => help = line,
            [Some("#"), Some("TYPE")] => {
                let (name, kind) = (words.next().unwrap_or_default(), words.next());
                let (suffix, kind) = match kind.unwrap_or_default() {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    kind => ("", kind),
                };
                let help = help.splitn(4, ' ').nth(3).unwrap_or_default();
                let described =
                    format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
                out.push_str(&described);
            }
            [Some("#"), _] => {}
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_information_are_described_by_the_names_of_their_samples() {
        let text = "# HELP a_seconds How long it took.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                    a_seconds_total{of=\"# TYPE x info\"} 1\n\
                    # HELP b Which.\n# TYPE b info\nb_info{of=\"x\"} 1\n\
                    # HELP c How many.\n# TYPE c gauge\nc 3\n# EOF\n";
        let expected = "# HELP a_seconds_total How long it took.\n# TYPE a_seconds_total counter\n\
                        a_seconds_total{of=\"# TYPE x info\"} 1\n\
                        # HELP b_info Which.\n# TYPE b_info gauge\nb_info{of=\"x\"} 1\n\
                        # HELP c How many.\n# TYPE c gauge\nc 3\n";
        assert_eq!(of_openmetrics(text), expected);
    }
}
