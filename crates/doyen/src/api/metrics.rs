//! Metrics for Prometheus, in the `OpenMetrics` text format.
//!
//! Nothing is counted here: whatever is asked for is read at the moment of asking, leases by the clock. Every sample
//! carries the cluster's and the member's name, so that `sum by (cluster) (doyen_has_lease)` says whether there are two.
//! One registry for each node, for one process may run many.

use std::borrow::Cow;
use std::fmt;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use doyen_core::protocol::Role;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::observer::Observer;
use super::problem::{Kind, Problem};
use crate::node::Handle;
use crate::node::clock::Moment;
use crate::node::status::{Counters, Status};
use crate::node::wire::Rejection;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const ROLES: [Role; 4] = [Role::Follower, Role::Candidate, Role::Leader, Role::Retiring];

/// The routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "machines", responses(
    (status = 200, description = "As OpenMetrics text.", body = String,
        content_type = "application/openmetrics-text"),
))]
async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let mut text = String::new();
    text::encode(&mut text, &app.metrics.0)
        .map_err(|error| Kind::Failed.because(format!("metrics cannot be written: {error}")))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// The metrics of one node.
#[derive(Debug)]
pub(super) struct Metrics(Registry);

impl Metrics {
    pub(super) fn new(handle: &Handle, observer: &Observer) -> Self {
        let status = handle.status();
        let labels = [("cluster", status.cluster.clone()), ("member", status.name.clone())];
        let labels = labels.map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let mut registry = Registry::with_prefix_and_labels("doyen", labels.into_iter());
        let source = Source { handle: handle.clone(), observer: observer.clone() };
        registry.register_collector(Box::new(source));
        Self(registry)
    }
}

/// Where the values come from.
#[derive(Debug)]
struct Source {
    handle: Handle,
    observer: Observer,
}

impl Collector for Source {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.handle.status();
        let mut sheet = Sheet(encoder);
        sheet.info(&status)?;
        self.write_leadership(&mut sheet)?;
        self.write_traffic(&mut sheet)?;
        write_peers(&mut sheet, &status)
    }
}

impl Source {
    fn write_leadership(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let (leadership, counters) = (self.handle.leadership(), self.handle.counters());
        let reign = leadership.reign();
        let leads = reign.role.is_some_and(Role::leads);
        let left = reign.until.map(|until| until.since(Moment::now())).unwrap_or_default();
        sheet.gauge(
            "is_leader",
            "Whether this node believes that it leads",
            None,
            &u32::from(leads),
        )?;
        let leased = u32::from(leadership.holds_lease());
        sheet.gauge("has_lease", "Whether this node holds a lease that runs now", None, &leased)?;
        let unit = Some(&Unit::Seconds);
        sheet.gauge("lease_remaining", "What is left of the lease", unit, &left.as_secs_f64())?;
        sheet.gauge("term", "The term; later leaders have higher ones", None, &reign.term.0)?;
        let roles = ROLES.map(|role| (role.to_string(), u32::from(reign.role == Some(role))));
        sheet.gauges("role", "What this node does: 1 for its role", None, "role", roles)?;
        let changes = self.observer.leader_changes();
        sheet.counter(
            "leader_changes",
            "Changes of the leader that this node saw",
            None,
            &changes,
        )?;
        let elections = Counters::read(&counters.elections);
        sheet.counter("elections", "Elections that this node began", None, &elections)
    }

    fn write_traffic(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let counters = self.handle.counters();
        let counts = [
            ("datagrams_sent", "Datagrams sent", None, &counters.sent),
            ("datagrams_received", "Datagrams received", None, &counters.received),
            ("datagrams_unsent", "Datagrams that could not be sent", None, &counters.unsent),
            ("sent", "Bytes sent", Some(Unit::Bytes), &counters.sent_bytes),
            ("received", "Bytes received", Some(Unit::Bytes), &counters.received_bytes),
            ("events", "Events handled", None, &counters.events),
            ("stores", "Times that something was stored", None, &counters.stored),
        ];
        for (name, help, unit, counter) in counts {
            sheet.counter(name, help, unit.as_ref(), &Counters::read(counter))?;
        }
        let storing = Counters::read(&counters.stored_us) as f64 / 1e6;
        sheet.counter("store", "How long storing took", Some(&Unit::Seconds), &storing)?;
        let rejected = Rejection::ALL.iter().zip(&counters.rejected);
        let rejected = rejected.map(|(reason, count)| (reason.name(), Counters::read(count)));
        sheet.counters("datagrams_rejected", "Datagrams dropped, by reason", "reason", rejected)
    }
}

fn write_peers(sheet: &mut Sheet<'_>, status: &Status) -> fmt::Result {
    let peers = || status.members.iter().filter(|member| member.id != status.id);
    let heard = peers().map(|peer| (peer.name.as_str(), u32::from(peer.heard)));
    sheet.gauges("peer_heard", "Whether a member is heard", None, "peer", heard)?;
    let rtts = peers().filter_map(|peer| Some((peer.name.as_str(), peer.rtt_us? as f64 / 1e6)));
    let help = "The round-trip time to a member, smoothed";
    sheet.gauges("peer_rtt", help, Some(&Unit::Seconds), "peer", rtts)
}

/// Writes metrics.
struct Sheet<'a>(DescriptorEncoder<'a>);

impl Sheet<'_> {
    fn describe<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    fn info(&mut self, status: &Status) -> fmt::Result {
        let labels = [("version", &*status.version), ("algorithm", &*status.algorithm)];
        let mut metric = self.describe("build", "What runs here", None, MetricType::Info)?;
        metric.encode_info(&labels)
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: &impl EncodeGaugeValue,
    ) -> fmt::Result {
        self.describe(name, help, unit, MetricType::Gauge)?.encode_gauge(value)
    }

    /// One for each value of `label`.
    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        label: &str,
        values: impl IntoIterator<Item = (impl AsRef<str>, impl EncodeGaugeValue)>,
    ) -> fmt::Result {
        let mut metric = self.describe(name, help, unit, MetricType::Gauge)?;
        for (of, value) in values {
            metric.encode_family(&[(label, of.as_ref())])?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counter(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: &impl EncodeCounterValue,
    ) -> fmt::Result {
        let mut metric = self.describe(name, help, unit, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(value, None)
    }

    /// One for each value of `label`.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (impl AsRef<str>, u64)>,
    ) -> fmt::Result {
        let mut metric = self.describe(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let labels = [(label, of.as_ref())];
            let mut one = metric.encode_family(&labels)?;
            one.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }
}
