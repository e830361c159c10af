/**
 * What one node publishes, in the form of the lab's stream. Pure. A node knows less than the lab: how others fare only as far
 * as it reaches them, and the past only as far as it took part in it. What it does not know is left unknown.
 */

import { LEASED } from "./scene.js";
import { list, micros } from "./words.js";

/**
 * @typedef {object} Status see `/v1/status`
 * @property {string} cluster @property {string} algorithm @property {number} id @property {string} name @property {number} incarnation
 * @property {string} role @property {number | null} leader @property {{ member: number, term: number, last_heard_ms: number, lost?: string | null } | null} [last_leader] @property {number} term
 * @property {null | { until: number, remaining_ms: number }} lease @property {string | null} why @property {boolean} rejoining
 * @property {boolean} drained @property {number | null} next
 * @property {{ id: number, name: string, address: string, role: string, priority: number, witness: boolean, reachable: boolean,
 *   last_seen_ms: number | null, rtt_us: number | null, unreachable: number[] | null, eligible: boolean, recent_failures: number,
 *   penalty_remaining_ms: number | null, failed_ms_ago: number | null, notices: string[] }[]} members
 *
 * @typedef {object} Entry see `/v1/history`
 * @property {number} number @property {number} at_unix_ms @property {Record<string, any>} change @property {string} text @property {number | null} downtime_us
 */

const KINDS = /** @type {Record<string, string>} */ ({
  "became-leader": "leader", follows: "leader", "stepped-down": "leader", "lease-resumed": "leader", "regained-contact": "leader",
  "lost-contact": "suspect", "leader-left": "suspect", "lease-lapsed": "suspect", "election-started": "vote",
});

/** What a member does whose published role says more than that. @type {Record<string, string>} */
const PLAIN = { witness: "follower", drained: "follower", down: "unknown" };
/** A role beside the member, where a word alone would not do. @type {Record<string, string>} */
const SEEN = { candidate: "campaigns", unknown: "role not known" };

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];

/**
 * The event `cluster`.
 * @param {Status} status @param {import("./scene.js").Timeline} timeline
 * @param {{ now_us: number, epoch_ms: number, lease_us: number | null }} times `lease_us`: the length of leases, as far as it is known
 * @returns {import("./scene.js").ClusterState}
 */
export function clusterOf(status, timeline, { now_us, epoch_ms, lease_us }) {
  const names = new Map(status.members.map(({ id, name }) => [id, name]));
  const needed = Math.floor(status.members.length / 2) + 1;
  const leases = LEASED.has(status.algorithm);
  return {
    now_us, epoch_ms, self: status.name, algorithm: status.algorithm, profile: "", heartbeat_us: 0, lease_us: leases ? lease_us ?? 0 : null, needed, cuts: [], partition: null,
    members: status.members.map((member) => memberOf(status, member, names, now_us, lease_us)),
    sentence: sentenceOf(status, timeline, names, needed, leases),
  };
}

/** @param {Status} status @param {Status["members"][number]} member @param {Map<number, string>} names @param {number} now @param {number | null} length @returns {import("./scene.js").ClusterMember} */
function memberOf(status, member, names, now, length) {
  const own = member.id === status.id;
  const leads = status.leader === member.id;
  const lease = own && status.lease ? { until_us: now + status.lease.remaining_ms * 1000, length_us: length ?? status.lease.remaining_ms * 1000, asked: true } : null;
  return {
    name: member.name, id: member.id, priority: member.priority, pid: null, address: member.address, http: "",
    state: own || member.reachable ? "up" : member.role === "down" ? "down" : "unknown", since_us: now - (member.last_seen_ms ?? 0) * 1000,
    role: own ? status.role : PLAIN[member.role] ?? member.role,
    term: own || leads ? status.term : 0, leader: own && status.leader !== null ? names.get(status.leader) ?? null : null, lease,
    drained: member.role === "drained" || (own && status.drained), eligible: member.eligible, next: status.next === member.id, witness: member.witness,
    reach: reachOf(status, member, names),
    rtt_us: own ? Object.fromEntries(status.members.flatMap(({ name, rtt_us: rtt }) => (rtt ? [[name, rtt]] : []))) : member.rtt_us ? { [status.name]: member.rtt_us } : {},
    penalty: member.recent_failures > 0 ? { failures: member.recent_failures, until_us: member.penalty_remaining_ms === null ? null : now + member.penalty_remaining_ms * 1000 } : null,
    incarnation: own ? status.incarnation : 0, warnings: member.notices, log_tail: null,
    own, seen: own || !member.reachable ? undefined : [...(leads ? [`term ${status.term}`] : member.role === "follower" ? [] : [SEEN[member.role] ?? member.role]), member.rtt_us ? `${micros(member.rtt_us)} away` : "reachable"],
  };
}

/** @param {Status} status @param {Status["members"][number]} member @param {Map<number, string>} names */
function reachOf(status, member, names) {
  const { unreachable } = member;
  const known = member.id === status.id || (member.reachable && unreachable !== null);
  return Object.fromEntries(status.members.filter(({ id }) => id !== member.id).map((other) =>
    [names.get(other.id) ?? "", known ? (member.id === status.id ? other.reachable : !unreachable?.includes(other.id)) : null]));
}

/** @param {Status} status @param {import("./scene.js").Timeline} timeline @param {Map<number, string>} names @param {number} needed @param {boolean} leases */
function sentenceOf(status, timeline, names, needed, leases) {
  const up = status.members.filter((member) => member.reachable || member.id === status.id).length;
  const all = status.members.length;
  const next = status.next === null ? "" : ` Next in line: ${names.get(status.next)}.`;
  const spare = up - needed;
  // Without a leader, how many more may fail does not matter.
  const third = status.leader === null && spare >= 0 && leases ? "" : !leases ? `${up} of ${all} members are reachable from ${status.name}.`
    : spare < 0 ? `${status.name} reaches ${up} of ${all} members, itself included, and ${needed} are needed.`
      : spare === 0 ? `No failover possible: losing one more would leave ${up - 1} of ${all} members, and ${needed} are needed.`
        : `${NUMBERS[spare] ?? spare} more ${spare === 1 ? "member" : "members"} may fail: ${up} of ${all} are reachable and ${needed} are needed.${next}`;
  if (status.leader === null) {
    const own = status.members.find(({ id }) => id === status.id);
    const lost = status.members.filter((member) => !member.reachable && member.id !== status.id).map(({ name }) => name);
    const last = status.last_leader;
    const how = !last ? "" : last.lost ? `; it ${last.lost}` : last.member === status.id ? "" : " when last heard";
    const led = !last ? "" : `${last.member === status.id ? "This node" : names.get(last.member)} led in term ${last.term}${how}.`;
    const second = [led, lost.length ? `Unreachable: ${list(lost)}.` : ""].filter(Boolean).join(" ");
    return { first: `${status.name} knows no leader`, second: status.rejoining ? `It ${own?.notices[0]}.` : second, third, since_us: timeline.downtime.findLast(({ to_us: to }) => to === null)?.from_us ?? null };
  }
  const failover = timeline.failovers.at(-1);
  const measured = failover?.term === status.term && failover.downtime_us !== null ? ` Downtime ${micros(failover.downtime_us)}.` : "";
  const since = timeline.leader.findLast(({ to_us: to }) => to === null);
  const second = `${since ? "Since 0 s ago" : ""}${since && status.why ? ": " : ""}${status.why ?? ""}`;
  return { first: `${names.get(status.leader)} leads in term ${status.term}`, second: second ? `${second}.${measured}` : "", third, since_us: null };
}

/** The event `timeline`, from the node's history. @param {Entry[]} history @param {Status} status @param {number} epoch_ms @returns {import("./scene.js").Timeline} */
export function timelineOf(history, status, epoch_ms) {
  const names = new Map(status.members.map(({ id, name }) => [id, name]));
  /** @type {import("./scene.js").Timeline} */
  const timeline = { leader: [], downtime: [], overlap: [], marks: [], failovers: [] };
  const end = (/** @type {number} */ at) => {
    const open = timeline.leader.at(-1);
    if (!open || open.to_us !== null) return;
    open.to_us = at;
    timeline.downtime.push({ from_us: at, to_us: null });
  };
  for (const entry of history) {
    const at = (entry.at_unix_ms - epoch_ms) * 1000;
    const [[kind, { leader, term }]] = Object.entries(entry.change);
    const name = names.get(kind === "became-leader" ? status.id : leader) ?? "";
    if (kind === "became-leader" || kind === "follows" || kind === "lease-resumed" || kind === "regained-contact") {
      const before = timeline.leader.at(-1);
      end(at);
      const gap = timeline.downtime.at(-1);
      if (gap && gap.to_us === null) {
        // The node measures from the end of the last lease; what it saw itself begins later.
        if (entry.downtime_us !== null) gap.from_us = Math.min(gap.from_us, at - entry.downtime_us);
        gap.to_us = at;
        if (gap.to_us <= gap.from_us) timeline.downtime.pop();
      }
      timeline.leader.push({ member: name, term, from_us: at, to_us: null });
      if (before && kind !== "lease-resumed" && kind !== "regained-contact") timeline.failovers.push({ at_us: at, from_us: gap?.from_us ?? at, from: before.member, to: name, term, why: entry.text.replace(/^[^:]*: /, ""), downtime_us: entry.downtime_us, overlap_us: null, parts: [], advice: null });
    } else if (kind !== "election-started" || timeline.leader.length) {
      end(at);
    }
  }
  return timeline;
}

/** The event `log`. @param {Entry[]} history @param {Status} status @param {number} epoch_ms */
export function logOf(history, status, epoch_ms) {
  return history.map((entry) => ({
    n: entry.number, at_us: (entry.at_unix_ms - epoch_ms) * 1000, member: status.name, text: entry.downtime_us !== null && !/downtime/.test(entry.text) ? `${entry.text}; downtime ${micros(entry.downtime_us)}` : entry.text,
    kind: KINDS[Object.keys(entry.change)[0]] ?? "other",
  }));
}
