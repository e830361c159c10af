/**
 * The running cluster as the pictures show it: members, their labels, pulses, what a partition would mean. Pure: a function of
 * what the cluster published and the time.
 */

import { ago, list, many } from "./words.js";

/**
 * @typedef {object} ClusterMember one member, as the stream gives it
 * @property {string} name @property {number} id @property {number} priority @property {number | null} pid
 * @property {string} address @property {string} http @property {"starting" | "up" | "paused" | "down" | "failed" | "unknown"} state
 * @property {number} since_us @property {string} role @property {number} term @property {string | null} leader
 * @property {null | { until_us: number, length_us: number, asked?: boolean }} lease `asked`: known from asking now and then @property {boolean} drained @property {boolean} eligible
 * @property {boolean} next @property {boolean} [witness] @property {Record<string, boolean | null>} reach
 * @property {null | { failures: number, until_us: number | null }} penalty recent failures as leader, and until when the latest counts
 * @property {Record<string, number>} rtt_us @property {number} incarnation @property {string[]} warnings @property {string | null} log_tail
 * @property {string[]} [seen] what another node sees of it, instead of what it holds @property {boolean} [own] the node whose page this is
 *
 * @typedef {object} ClusterState
 * @property {number} now_us @property {number} [epoch_ms] the wall clock at time zero, where the log shows it @property {string} [self] the node whose page this is @property {string} algorithm @property {string} profile @property {number} heartbeat_us
 * @property {number | null} lease_us @property {number} needed @property {ClusterMember[]} members @property {[string, string][]} cuts
 * @property {string[][] | null} partition @property {{ first: string, second: string, third: string, since_us?: number | null }} sentence
 *
 * @typedef {object} Failover
 * @property {number} at_us @property {number} [from_us] @property {string | null} from @property {string} to @property {number} term
 * @property {string} why @property {number | null} downtime_us null: not measured here @property {number | null} overlap_us
 * @property {{ name: string, kind: "detect" | "wait" | "vote" | "lease", us: number }[]} parts @property {string | null} advice
 *
 * @typedef {object} Timeline
 * @property {{ member: string, term: number, from_us: number, to_us: number | null }[]} leader
 * @property {{ from_us: number, to_us: number | null }[]} downtime
 * @property {{ from_us: number, to_us: number | null, members: string[] }[]} overlap
 * @property {{ member: string, at_us: number, kind: "killed" | "ended" | "paused" | "continued" | "started" }[]} marks
 * @property {Failover[]} failovers
 *
 * @typedef {import("../draw/member.js").Member} Member
 */

/** Algorithms that pass messages around a ring. A node's own page has no engine to ask; a test compares them with the engine's. */
export const RINGS = new Set(["ring-list", "ring-active-list", "ring-all-ids", "chang-roberts", "ring-resilient"]);
/** Algorithms whose leaders hold leases, likewise. */
export const LEASED = new Set(["quorum"]);
/** How long an empty ring stays after a lease is over. */
const LEASE_OVER = 600_000;
/** A pulse a link in this time stands for all heartbeats since the last one; it travels this part of it. */
const PULSE_EVERY = 1_200_000;
const PULSE_TRAVELS = 0.55;

/** @type {Timeline} */
export const NO_TIMELINE = { leader: [], downtime: [], overlap: [], marks: [], failovers: [] };

/** Whether a member's process runs and is not stopped. @param {ClusterMember} member */
export const isUp = (member) => member.state === "up";

/** @param {ClusterMember} member */
const isDown = (member) => member.state === "down" || member.state === "failed";

/** The present leader: null if there is none; if several members say that they lead, the one in the highest term. @param {ClusterState} cluster */
export function leaderOf(cluster) {
  const leaders = cluster.members.filter((member) => member.role === "leader" && !isDown(member));
  return leaders.sort((a, b) => b.term - a.term)[0] ?? null;
}

/** All that say they lead. @param {ClusterState} cluster */
export const leadersOf = (cluster) => cluster.members.filter((member) => member.role === "leader" && !isDown(member));

/** How members are linked. @param {ClusterState} cluster @returns {"ring" | "mesh"} */
export const topologyOf = (cluster) => (RINGS.has(cluster.algorithm) ? "ring" : "mesh");

/** The members as the ring shows them. @param {ClusterState} cluster @param {Timeline} timeline @param {number} now @param {number} coarse the time for texts, which change less often @param {Map<string, number>} leases when each lease last seen is over @returns {Member[]} */
export function membersAt(cluster, timeline, now, coarse, leases) {
  const term = Math.max(0, ...cluster.members.map((member) => member.term));
  const contested = leadersOf(cluster).length > 1;
  return cluster.members.map((member) => ({
    id: member.name, name: member.name, role: member.state === "starting" ? "starting" : member.role, up: !isDown(member),
    paused: member.state === "paused", drained: member.drained, witness: member.witness ?? false, contested: contested && member.role === "leader",
    labels: labelsOf(member, term, timeline, coarse, leases), lease: leaseAt(member, now, leases),
  }));
}

/** How much of a lease is left. Nothing is shown beyond its deadline. @param {ClusterMember} member @param {number} now @param {Map<string, number>} leases */
function leaseAt(member, now, leases) {
  if (isDown(member)) return null;
  const until = member.lease?.until_us ?? leases.get(member.name);
  if (until === undefined) return null;
  // A lease that is polled is renewed between two polls: its end is unknown, and nothing is shown.
  if (now >= until && member.lease?.asked) return { left: 0, over: false };
  if (now >= until) return member.lease || now < until + LEASE_OVER ? { left: 0, over: true } : null;
  if (!member.lease) return null;
  return { left: (until - now) / member.lease.length_us, over: false };
}

/** @param {ClusterMember} member @param {number} term the highest @param {Timeline} timeline @param {number} now @param {Map<string, number>} leases @returns {NonNullable<Member["labels"]>} */
function labelsOf(member, term, timeline, now, leases) {
  const since = ago(Math.max(0, now - member.since_us));
  if (member.state === "starting") return [{ text: "starting", tone: "soft" }];
  if (member.state === "failed") return [{ text: "has not started", tone: "fault" }];
  if (member.seen) return member.seen.map((text, i) => ({ text, tone: i === 0 && member.seen && member.seen.length > 1 ? "ink" : "soft" }));
  if (member.state === "unknown") return [{ text: "unreachable", tone: "fault" }, { text: seenWords(member, now), tone: "soft" }];
  if (member.state === "down") {
    const ended = timeline.marks.findLast((mark) => mark.member === member.name && (mark.kind === "killed" || mark.kind === "ended"));
    const words = ended ? `${ended.kind === "killed" ? "killed" : "stopped"} ${since}` : seenWords(member, now);
    return [{ text: "down", tone: "fault" }, { text: words, tone: "soft" }];
  }
  /** @type {NonNullable<Member["labels"]>} */
  const first = member.term ? [{ text: `term ${member.term}`, tone: member.term < term ? "fault" : "ink" }] : [];
  if (member.state === "paused") return [{ text: "paused", tone: "fault" }, { text: since, tone: "soft" }];
  return [...first, secondLabel(member, now, leases), ...(member.penalty ? [penaltyLabel(member.penalty, now)] : []), ...(member.drained ? [{ text: "drained", tone: /** @type {const} */ ("soft") }] : []), ...(member.own ? [{ text: "this node", tone: /** @type {const} */ ("soft") }] : [])];
}

/** When another node last saw it. @param {ClusterMember} member @param {number} now */
const seenWords = ({ since_us: since }, now) => (since < now ? `seen ${ago(now - since)}` : "not seen yet");

/** @param {NonNullable<ClusterMember["penalty"]>} penalty @param {number} now @returns {NonNullable<Member["labels"]>[number]} */
const penaltyLabel = ({ until_us: until }, now) => ({ text: until === null ? "penalty" : `penalty ${secondsLeft(until, now)}`, tone: "soft" });

/** Whole seconds, rounded up: a time that is not over is not "0 s". @param {number} until @param {number} now in microseconds */
const secondsLeft = (until, now) => `${Math.max(1, Math.ceil((until - now) / 1e6))} s`;

/** "failed as leader once; ranked last for another 14 s". @param {NonNullable<ClusterMember["penalty"]>} penalty @param {number} now */
export function penaltyWords({ failures, until_us: until }, now) {
  // No leader has counted it yet.
  if (until === null) return "may have failed as leader; ranked last until a leader says whether it has";
  const times = ["", "once", "twice"][failures] ?? `${failures} times`;
  return `failed as leader ${times}; ranked last for another ${secondsLeft(until, now)}`;
}

/** @param {ClusterMember} member @param {number} now @param {Map<string, number>} leases @returns {NonNullable<Member["labels"]>[number]} */
function secondLabel(member, now, leases) {
  const lease = leaseAt(member, now, leases);
  if (lease?.over) return { text: "lease over", tone: "fault" };
  if (member.lease?.asked && now >= member.lease.until_us) return { text: "leads", tone: "ink" };
  if (member.lease) return { text: `lease ${leaseLeft(member.lease, now)} ms`, tone: "answer" };
  if (member.role === "leader" || member.role === "retiring") return { text: member.role === "leader" ? "leads" : "hands over", tone: "ink" };
  if (member.role === "candidate") return { text: "campaigns", tone: "soft" };
  return { text: member.leader ? `follows ${member.leader}` : "knows no leader", tone: "soft" };
}

/** Milliseconds left; never more than the lease is long, although texts are a little behind. @param {{ until_us: number, length_us: number }} lease @param {number} now */
export const leaseLeft = (lease, now) => Math.round(Math.max(0, Math.min(lease.length_us, lease.until_us - now)) / 1000);

/** The pulses under way: from each leader to the members that it reaches. @param {ClusterState} cluster @param {number} now */
export function pulsesAt(cluster, now) {
  const done = ((now % PULSE_EVERY) / PULSE_EVERY) / PULSE_TRAVELS;
  // Around a ring, contact is kept in other ways than from the leader to each member.
  if (done > 1 || topologyOf(cluster) === "ring") return [];
  return leadersOf(cluster).filter(isUp).flatMap((leader) => cluster.members
    .filter((member) => member.name !== leader.name && isUp(member) && leader.reach[member.name] && !isCut(cluster, leader.name, member.name))
    .map((member) => ({ from: leader.name, to: member.name, done })));
}

/** @param {ClusterState} cluster @param {string} from @param {string} to */
export function isCut(cluster, from, to) {
  return cluster.cuts.some(([a, b]) => a === from && b === to) || isParted(cluster, from, to);
}

/** @param {ClusterState} cluster @param {string} a @param {string} b */
function isParted(cluster, a, b) {
  const groups = cluster.partition ?? [];
  return groups.length > 0 && groups.findIndex((group) => group.includes(a)) !== groups.findIndex((group) => group.includes(b));
}

/** Those of a group that are up. @param {ClusterState} cluster @param {string[]} group */
const upOf = (cluster, group) => group.filter((name) => cluster.members.some((member) => member.name === name && isUp(member)));

/** What each group of a partition can do. @param {ClusterState} cluster @param {string[][] | null} groups */
export function notesOf(cluster, groups) {
  return (groups ?? []).map((group) => {
    const up = upOf(cluster, group).length;
    const weak = cluster.lease_us !== null && up < cluster.needed;
    return { weak, text: weak ? `${up} of ${cluster.members.length}: cannot elect` : "" };
  });
}

/** "{n1, n2} and {n3, n4, n5}. n5 keeps a majority and keeps leading. n1 and n2 cannot elect." @param {ClusterState} cluster @param {string[][]} groups */
export function sayGroups(cluster, groups) {
  const leader = leaderOf(cluster);
  const notes = notesOf(cluster, groups);
  const sentences = groups.map((whole, g) => {
    const leads = leader && whole.includes(leader.name);
    const group = upOf(cluster, whole);
    if (!group.length) return `${list(whole)} ${whole.length === 1 ? "is" : "are"} not up.`;
    if (cluster.lease_us === null) return leads ? `${leader.name} keeps leading.` : `${list(group)} elect${group.length === 1 ? "s itself" : " a leader of their own"}.`;
    if (notes[g].weak) return leads ? `${leader.name} loses its majority and steps down.` : `${list(group)} cannot elect.`;
    return leads ? `${leader.name} keeps a majority and keeps leading.` : `${list(group)} can elect.`;
  });
  return `${groups.map(set).join(" and ")}. ${sentences.join(" ")}`;
}

/** @param {string[]} names */
const set = (names) => `{${names.join(", ")}}`;

/** The three sentences, with clocks that run between two events of the stream. @param {ClusterState} cluster @param {Timeline} timeline @param {number} now */
export function sentenceAt(cluster, timeline, now) {
  const { first, second, third, since_us: since } = cluster.sentence;
  const none = leadersOf(cluster).length === 0;
  const clock = since === null || since === undefined ? "" : none ? ` for ${running(now - since)}` : `: overlap ${running(now - since)} so far`;
  const led = timeline.leader.findLast((one) => one.to_us === null);
  const fresh = led ? second.replace(/[\d.]+ (?:ms|s|min|h) ago/, ago(Math.max(0, now - led.from_us))) : second;
  return { first: first + clock, second: fresh, third: (none && remedy(cluster)) || third, bad: clock !== "" };
}

/** What to do if no side of a partition can elect; nothing if one can. @param {ClusterState} cluster */
function remedy(cluster) {
  const { partition, needed, members } = cluster;
  const sides = partition ?? [];
  if (cluster.lease_us === null || !sides.length || sides.some((side) => upOf(cluster, side).length >= needed)) return "";
  const down = (/** @type {string[]} */ side) => side.filter((name) => members.some((member) => member.name === name && isDown(member)));
  const able = sides.find((side) => upOf(cluster, side).length + down(side).length >= needed);
  const heals = members.filter(isUp).length >= needed;
  const what = heals ? `Heal${able ? `, or restart ${list(down(able))}` : ""}` : able ? `Restart ${list(down(able))}` : `Heal, and restart ${list(members.filter(isDown).map(({ name }) => name)) || "members"}`;
  return `No side has ${many(needed, "member")}: ${sides.map((side) => set(upOf(cluster, side))).join(" and ")}. ${what}.`;
}

/** A time that runs: steady digits. @param {number} us */
export function running(us) {
  const ms = Math.max(0, us) / 1000;
  return ms < 1000 ? `${Math.floor(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A time that was measured: "243 ms", "0.8 ms", "1.4 s". @param {number} us */
export const length = (us) => (us === 0 ? "0 ms" : us >= 10_000 && us < 999_500 ? `${Math.round(us / 1000)} ms` : us < 10_000 ? `${(us / 1000).toFixed(1)} ms` : `${(us / 1e6).toFixed(1)} s`);

/** The lanes of the timeline, by rank; where there is no room for all, those that led or failed last. @param {ClusterState} cluster @param {Timeline} timeline @param {number} room */
export function lanesOf(cluster, timeline, room) {
  const most = Math.max(3, room);
  const ranked = cluster.members.toSorted((a, b) => b.priority - a.priority || b.id - a.id).map(({ name }) => name);
  if (ranked.length <= most) return ranked;
  const led = timeline.leader.map(({ member, from_us: at }) => ({ member, at }));
  const failed = timeline.marks.filter(({ kind }) => kind !== "started").map(({ member, at_us: at }) => ({ member, at }));
  const recent = [...led, ...failed].sort((a, b) => b.at - a.at).map(({ member }) => member);
  const kept = new Set([...new Set([...recent, ...ranked])].slice(0, most));
  return ranked.filter((name) => kept.has(name));
}

/** What a member was before something happened to it. @type {Record<string, string>} */
const BEFORE = { started: "down", continued: "paused", paused: "up", killed: "up", ended: "up" };

/** A lane in stretches: running, paused, down. @param {string[]} names @param {Timeline} timeline @param {Record<string, string> | null} states the present ones; null: not known @param {number} earliest */
export function lives(names, timeline, states, earliest) {
  return names.flatMap((member) => {
    const stretches = [];
    // Where nothing is known of processes (a node's own page), every lane runs.
    const marks = timeline.marks.filter((one) => one.member === member);
    let [from, state] = states ? [0, marks.length ? BEFORE[marks[0].kind] : laneState(states[member])] : [earliest, "up"];
    for (const mark of marks) {
      stretches.push({ member, from, to: /** @type {number | null} */ (mark.at_us), state });
      from = mark.at_us;
      state = mark.kind === "paused" ? "paused" : mark.kind === "killed" || mark.kind === "ended" ? "down" : "up";
    }
    stretches.push({ member, from, to: null, state });
    return stretches.filter((one) => one.to === null || one.to > one.from);
  });
}

/** @param {string} state of the stream */
const laneState = (state) => (state === "paused" ? "paused" : state === "up" || state === "unknown" ? "up" : "down");

/** The ring as a sentence. @param {ClusterState} cluster */
export function describe(cluster) {
  const leader = leaderOf(cluster);
  const by = (/** @type {string} */ state) => cluster.members.filter((member) => member.state === state).map(({ name }) => name);
  const parts = [leader ? `${leader.name} leads in term ${leader.term}` : "No leader", many(cluster.members.length, "member")];
  for (const [state, word] of [["down", "down"], ["failed", "not started"], ["paused", "paused"], ["starting", "starting"]]) {
    if (by(state).length) parts.push(`${list(by(state))} ${word}`);
  }
  if (cluster.partition) parts.push(`partitioned into ${cluster.partition.map(set).join(" and ")}`);
  else if (cluster.cuts.length) parts.push(`cut: ${cluster.cuts.map(([a, b]) => `${a} to ${b}`).join(", ")}`);
  return `${parts.join(". ")}.`;
}

/** A time as the log writes it: since the lab began, "33.816", "12:05.250"; by the wall clock where time zero is known, "19:01:18.183". @param {number} us @param {number} [epoch_ms] */
export function stamp(us, epoch_ms) {
  if (epoch_ms !== undefined) {
    const at = new Date(epoch_ms + us / 1000);
    return `${[at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  }
  const ms = Math.max(0, Math.floor(us / 1000));
  const seconds = String(Math.floor(ms / 1000) % 60).padStart(2, "0");
  const minutes = Math.floor(ms / 60_000);
  return `${minutes ? `${minutes}:` : ""}${seconds}.${String(ms % 1000).padStart(3, "0")}`;
}
