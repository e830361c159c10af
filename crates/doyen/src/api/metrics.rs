//! Metrics for Prometheus, in the `OpenMetrics` text format or, for clients that do not ask for it, in the text format of
//! Prometheus, 0.0.4.
//!
//! Nothing is counted here: every value is read at the moment of the request, leases by the clock. Every sample carries the
//! names of the cluster and the member, so that `sum by (cluster) (doyen_has_lease)` shows whether there are two leases.
//! Each node has a registry of its own, because one process may run several.

mod process;
mod text;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use doyen_core::protocol::Role;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
    text as openmetrics,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::accept::prefers_openmetrics;
use super::audit::Audit;
use super::connections::{Connections, Counts};
use super::problem::{Kind, Problem};
use super::requests::Requests;
use super::watchers::Watchers;
use crate::clock::Moment;
use crate::node::Handle;
use crate::node::counters::{Counters, Histogram, LOST_LOG_LINES};
use crate::node::status::{MemberStatus, Status};
use crate::node::wire::Rejection;
use process::ProcessSource;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const ROLES: [Role; 4] = [Role::Follower, Role::Candidate, Role::Leader, Role::Retiring];

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "metrics", responses(
    (status = 200, description = "In the format that `Accept` prefers.", content(
        (String = "text/plain"), (String = "application/openmetrics-text"),
    )),
))]
async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let mut text = String::new();
    openmetrics::encode(&mut text, &app.metrics.0)
        .map_err(|error| Kind::Failed.with_detail(format!("cannot write metrics: {error}")))?;
    let (kind, text) = match prefers_openmetrics(&headers) {
        true => (OPENMETRICS, text),
        false => (text::CONTENT_TYPE, text::of_openmetrics(&text)),
    };
    Ok(([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], text).into_response())
}

/// The metrics of one node.
#[derive(Debug)]
pub(super) struct Metrics(Registry);

impl Metrics {
    pub(super) fn new(source: Source) -> Self {
        let status = source.handle.status();
        let labels = [("cluster", status.cluster.clone()), ("member", status.name.clone())];
        let labels = labels.map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let mut registry = Registry::with_labels(labels.into_iter());
        registry.register_collector(Box::new(ProcessSource::new()));
        registry.sub_registry_with_prefix("doyen").register_collector(Box::new(source));
        Self(registry)
    }
}

/// Reads the values.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) handle: Handle,
    /// Those over TCP, and those at the admin socket.
    pub(super) connections: [Connections; 2],
    pub(super) watchers: Watchers,
    pub(super) audit: Arc<Audit>,
    pub(super) requests: Arc<Requests>,
}

impl Collector for Source {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.handle.status();
        let mut writer = Writer(encoder);
        write_identity(&mut writer, &status)?;
        self.write_leadership(&mut writer)?;
        self.write_groups(&mut writer)?;
        self.write_traffic(&mut writer)?;
        self.write_service(&mut writer)?;
        write_members(&mut writer, &status)
    }
}

impl Source {
    fn write_leadership(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let state = self.handle.leadership().state();
        let follows = u32::from(state.leader.is_some());
        writer.gauge("has_leader", "Whether this node knows a leader", None, &follows)?;
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
        let counters = self.handle.counters();
        let help = "Changes of the leader that this node saw";
        let changes = Counters::read(&counters.leader_changes);
        writer.counter("leader_changes", help, None, &changes)?;
        let elections = Counters::read(&counters.elections);
        writer.counter("elections", "Elections that this node started", None, &elections)?;
        let help = "Time without a lease before one of this node began";
        writer.histogram("downtime", help, &counters.downtime)
    }

    fn write_groups(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let groups = self.handle.groups();
        writer.gauge("groups", "Groups with leaders of their own", None, &(groups.len() as u64))?;
        let led = self.handle.groups_led() as u64;
        writer.gauge("groups_led", "Groups that this node leads now", None, &led)?;
        let unled = groups.iter().filter(|group| group.leader.is_none()).count() as u64;
        let help = "Groups without a leader, as far as this node knows";
        writer.gauge("groups_without_leader", help, None, &unled)?;
        let help = "How often this node began or ceased to lead a group";
        writer.counter("group_changes", help, None, &self.handle.group_changes())
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
        ];
        for (name, help, unit, counter) in counts {
            writer.counter(name, help, unit.as_ref(), &Counters::read(counter))?;
        }
        writer.histogram("store", "Time of a write to the state file", &counters.store_time)?;
        writer.histogram("round_trip", "Time until a member answered", &counters.round_trip)?;
        let rejected = Rejection::ALL.iter().zip(&counters.rejected);
        let rejected = rejected.map(|(reason, count)| (reason.name(), Counters::read(count)));
        let help = "Datagrams rejected, by reason";
        let rejected = rejected.map(|(reason, count)| ([("reason", reason)], count));
        writer.counters("datagrams_rejected", help, rejected)
    }

    fn write_service(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let counts = self.connections.each_ref().map(Connections::counts);
        let sum = |count: fn(&Counts) -> u64| counts.iter().map(count).sum::<u64>();
        let open = sum(|counts| counts.open);
        writer.gauge("http_connections", "Open HTTP connections", None, &open)?;
        let help = "Idle HTTP connections closed because there were too many";
        writer.counter("http_connections_evicted", help, None, &sum(|counts| counts.evicted))?;
        let help = "HTTP connections and requests rejected because there were too many connections";
        writer.counter("http_connections_rejected", help, None, &sum(|counts| counts.rejected))?;
        writer.gauge("http_watchers", "Clients that watch", None, &self.watchers.count())?;
        let calls = self.audit.counts().into_iter();
        let calls = calls.map(|(result, count)| ([("result", result)], count));
        writer.counters("admin_calls", "Admin calls, by result", calls)?;
        let requests = self
            .requests
            .counts()
            .into_iter()
            .map(|((path, code), count)| ([("path", path), ("code", code.to_string())], count));
        writer.counters("http_requests", "HTTP requests, by path and status", requests)?;
        let help = "Log lines lost because the log was too slow or could not be written";
        writer.counter("log_lines_lost", help, None, &Counters::read(&LOST_LOG_LINES))
    }
}

/// What this node runs, and what it must have in common with the others.
fn write_identity(writer: &mut Writer<'_>, status: &Status) -> fmt::Result {
    let build = [("version", &*status.version), ("algorithm", &*status.algorithm)];
    writer.info("build", "Version and algorithm of this node", [build])?;
    let help = "Fingerprint of the member list and the algorithm";
    writer.info("configuration", help, [[("fingerprint", &*status.configuration)]])?;
    let uses = ["seal"].into_iter().chain(std::iter::repeat("open"));
    let keys = status.keys.iter().zip(uses);
    let keys = keys.map(|(fingerprint, of)| [("fingerprint", &**fingerprint), ("use", of)]);
    let help = "Fingerprints of the keys: one seals, all of them open";
    writer.info("key", help, keys)
}

fn write_members(writer: &mut Writer<'_>, status: &Status) -> fmt::Result {
    let help = "Whether this node is drained";
    writer.gauge("drained", help, None, &u32::from(status.drained))?;
    let help = "Whether this node has lost its state and is rejoining";
    writer.gauge("rejoining", help, None, &u32::from(status.rejoining))?;
    let peers = || status.members.iter().filter(|member| member.id != status.id);
    let reachable = peers().map(|peer| (peer.name.as_str(), u32::from(peer.reachable)));
    writer.gauges("peer_reachable", "Whether a member is reachable", None, "peer", reachable)?;
    let rtts = peers().filter_map(|peer| Some((peer.name.as_str(), peer.rtt_us? as f64 / 1e6)));
    let (help, seconds) = ("Smoothed round-trip time to a member", Some(&Unit::Seconds));
    writer.gauges("peer_rtt", help, seconds, "peer", rtts)?;
    let of_all = |value: fn(&MemberStatus) -> u64| {
        status.members.iter().map(move |member| (member.name.as_str(), value(member)))
    };
    let failures = of_all(|member| u64::from(member.recent_failures));
    let help = "Recent failures as leader that count against a member";
    writer.gauges("recent_failures", help, None, "of", failures)?;
    let left = of_all(|member| member.penalty_remaining_ms.unwrap_or_default());
    let left = left.map(|(name, millis)| (name, millis as f64 / 1e3));
    let help = "Time until the latest failure of a member no longer counts";
    writer.gauges("penalty_remaining", help, seconds, "of", left)
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

    /// One sample for each set of labels.
    fn info<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = [(&'l str, &'l str); N]>,
    ) -> fmt::Result {
        let mut metric = self.describe(name, help, None, MetricType::Info)?;
        values.into_iter().try_for_each(|labels| metric.encode_info(&labels))
    }

    /// Of times, in seconds.
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let (sum, buckets) = histogram.read();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let mut metric = self.describe(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        let exemplars = None::<&HashMap<usize, Exemplar<NoLabelSet, f64>>>;
        metric.encode_histogram(sum, count, &buckets, exemplars)
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

    /// One counter for each set of labels.
    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, impl AsRef<str>); N], u64)>,
    ) -> fmt::Result {
        let mut metric = self.describe(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            let labels = labels.each_ref().map(|(label, value)| (*label, value.as_ref()));
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
