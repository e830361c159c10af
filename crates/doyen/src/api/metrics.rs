//! Metrics for Prometheus, in the `OpenMetrics` text format.
//!
//! Nothing is counted here: every value is read at the moment of the request, leases by the clock. Every sample carries the
//! names of the cluster and the member, so that `sum by (cluster) (doyen_has_lease)` shows whether there are two leases.
//! Each node has a registry of its own, because one process may run several.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

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
use super::audit::Audit;
use super::connections::{Connections, Counts};
use super::observer::Observer;
use super::problem::{Kind, Problem};
use super::watchers::Watchers;
use crate::clock::Moment;
use crate::node::Handle;
use crate::node::status::{Counters, Status};
use crate::node::wire::Rejection;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const ROLES: [Role; 4] = [Role::Follower, Role::Candidate, Role::Leader, Role::Retiring];

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "metrics", responses(
    (status = 200, description = "OpenMetrics text.", body = String,
        content_type = "application/openmetrics-text"),
))]
async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let mut text = String::new();
    text::encode(&mut text, &app.metrics.0)
        .map_err(|error| Kind::Failed.with_detail(format!("cannot write metrics: {error}")))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// The metrics of one node.
#[derive(Debug)]
pub(super) struct Metrics(Registry);

impl Metrics {
    pub(super) fn new(source: Source) -> Self {
        let status = source.handle.status();
        let labels = [("cluster", status.cluster.clone()), ("member", status.name.clone())];
        let labels = labels.map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let mut registry = Registry::with_prefix_and_labels("doyen", labels.into_iter());
        registry.register_collector(Box::new(source));
        Self(registry)
    }
}

/// Reads the values.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) handle: Handle,
    pub(super) observer: Observer,
    pub(super) connections: Connections,
    pub(super) watchers: Watchers,
    pub(super) audit: Arc<Audit>,
}

impl Collector for Source {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.handle.status();
        let mut writer = Writer(encoder);
        writer.info(&status)?;
        self.write_leadership(&mut writer)?;
        self.write_traffic(&mut writer)?;
        self.write_http(&mut writer)?;
        write_peers(&mut writer, &status)
    }
}

impl Source {
    fn write_leadership(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let state = self.handle.leadership().state();
        let leads = u32::from(state.role.is_some_and(Role::leads));
        writer.gauge("is_leader", "Whether this node believes it is the leader", None, &leads)?;
        let leased = u32::from(state.holds_lease());
        writer.gauge("has_lease", "Whether this node holds a valid lease", None, &leased)?;
        let left = state.lease_deadline.map(|deadline| deadline.since(Moment::now()));
        let (left, unit) = (left.unwrap_or_default().as_secs_f64(), Some(&Unit::Seconds));
        writer.gauge("lease_remaining", "Time until the lease ends", unit, &left)?;
        writer.gauge("term", "Current term", None, &state.term.0)?;
        let roles = ROLES.map(|role| (role.to_string(), u32::from(state.role == Some(role))));
        writer.gauges("role", "1 for the current role", None, "role", roles)?;
        let pause = self.handle.status().pause.map_or(0, |pause| pause.remaining_ms);
        let help = "Time until elections are no longer paused";
        writer.gauge("pause_remaining", help, unit, &(pause as f64 / 1e3))?;
        let changes = self.observer.leader_changes();
        writer.counter(
            "leader_changes",
            "Changes of the leader that this node saw",
            None,
            &changes,
        )?;
        let elections = Counters::read(&self.handle.counters().elections);
        writer.counter("elections", "Elections that this node started", None, &elections)
    }

    fn write_traffic(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let counters = self.handle.counters();
        let counts = [
            ("datagrams_sent", "Datagrams sent", None, &counters.sent),
            ("datagrams_received", "Datagrams received", None, &counters.received),
            ("datagrams_unsent", "Datagrams that could not be sent", None, &counters.unsent),
            ("sent", "Bytes sent", Some(Unit::Bytes), &counters.sent_bytes),
            ("received", "Bytes received", Some(Unit::Bytes), &counters.received_bytes),
            ("events", "Events handled", None, &counters.events),
            ("stores", "Writes to the state file", None, &counters.stored),
        ];
        for (name, help, unit, counter) in counts {
            writer.counter(name, help, unit.as_ref(), &Counters::read(counter))?;
        }
        let storing = Counters::read(&counters.stored_us) as f64 / 1e6;
        writer.counter("store", "Time spent on these writes", Some(&Unit::Seconds), &storing)?;
        let rejected = Rejection::ALL.iter().zip(&counters.rejected);
        let rejected = rejected.map(|(reason, count)| (reason.name(), Counters::read(count)));
        let help = "Datagrams rejected, by reason";
        writer.counters("datagrams_rejected", help, "reason", rejected)
    }

    fn write_http(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let Counts { open, evicted, rejected } = self.connections.counts();
        writer.gauge("http_connections", "Open HTTP connections", None, &open)?;
        let help = "Idle HTTP connections closed because there were too many";
        writer.counter("http_connections_evicted", help, None, &evicted)?;
        let help = "HTTP connections and requests rejected because there were too many connections";
        writer.counter("http_connections_rejected", help, None, &rejected)?;
        writer.gauge("http_watchers", "Clients that watch", None, &self.watchers.count())?;
        let calls = self.audit.counts();
        writer.counters("admin_calls", "Admin calls, by result", "result", calls)
    }
}

fn write_peers(writer: &mut Writer<'_>, status: &Status) -> fmt::Result {
    let peers = || status.members.iter().filter(|member| member.id != status.id);
    let reachable = peers().map(|peer| (peer.name.as_str(), u32::from(peer.reachable)));
    writer.gauges("peer_reachable", "Whether a member is reachable", None, "peer", reachable)?;
    let rtts = peers().filter_map(|peer| Some((peer.name.as_str(), peer.rtt_us? as f64 / 1e6)));
    let failures =
        status.members.iter().map(|it| (it.name.as_str(), u32::from(it.recent_failures)));
    let help = "Recent failures of a member as leader, for which it ranks lower";
    writer.gauges("recent_failures", help, None, "of", failures)?;
    let help = "Smoothed round-trip time to a member";
    writer.gauges("peer_rtt", help, Some(&Unit::Seconds), "peer", rtts)
}

struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
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
        let help = "Version and algorithm of this node";
        self.describe("build", help, None, MetricType::Info)?.encode_info(&labels)
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

    /// One gauge for each value of `label`.
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

    /// One counter for each value of `label`.
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
            let mut sample = metric.encode_family(&labels)?;
            sample.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
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
}
