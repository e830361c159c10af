/** What the members' picture shows of a run at a position, in the picture's own terms. Pure. */

import { asksToEnter } from "./labels.js";
import { list, many } from "./words.js";
import { timeScale } from "./scale.js";

/**
 * @typedef {import("./run.js").Run} Run
 * @typedef {import("./run.js").State} State
 * @typedef {import("./run.js").Position} Position
 */

/** The state of a member, as the name of its sign. @param {State} state @param {number} t @param {boolean} witness */
export function standing(state, t, witness = false) {
  if (!state.up) return "down";
  if (isPaused(state, t)) return "paused";
  if (witness && state.role === "follower") return "witness";
  return state.role;
}

/** @param {State} state @param {number} t */
const isPaused = (state, t) => (state.paused_until ?? null) !== null && /** @type {number} */ (state.paused_until) > t;

/** How long a lease is when it is granted: the longest that any step gives. @param {Run} run */
function leaseLength(run) {
  let longest = 0;
  for (const step of run.steps) {
    for (const [, { lease }] of step.change) if (lease?.[1]) longest = Math.max(longest, lease[1] - step.at);
  }
  return longest;
}

/** @type {WeakMap<Run, number>} */
const lengths = new WeakMap();

/** @param {Run} run @param {State} state @param {number} t */
function leaseOf(run, state, t) {
  if (!run.data.leases || !state.lease || !state.up) return null;
  if (!lengths.has(run)) lengths.set(run, leaseLength(run));
  const length = /** @type {number} */ (lengths.get(run));
  return { left: length ? Math.max(0, Math.min(1, (state.lease - t) / length)) : 0, over: state.lease <= t };
}

/** Up to this many members each shows the leader that it follows; of more, only those that do not follow the leader of most. */
const ALL_SAY_UP_TO = 6;

/** The leader that most members follow; null if there are so few members that each shows its own. @param {Run} run @param {Map<number, State>} frame */
function commonLeader(run, frame) {
  if (run.order.length <= ALL_SAY_UP_TO) return null;
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const { up, role, leader } of frame.values()) if (up && role === "follower" && leader !== null) counts.set(leader, (counts.get(leader) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

/** @param {Run} run @param {State} state @param {number} t @param {Map<number, State>} frame */
function labels(run, state, t, frame) {
  const how = standing(state, t);
  const term = state.term ? [{ text: `term ${state.term}`, tone: "soft" }] : [];
  if (how === "down") return [{ text: "down", tone: "fault" }];
  if (how === "paused") return [{ text: "paused", tone: "fault" }];
  if (how === "leader") return [{ text: "leads", tone: "ink" }, ...term];
  if (how === "candidate") return [{ text: "campaigns", tone: "soft" }, ...term];
  if (how === "inside") return [{ text: "inside", tone: inside(frame) > 1 ? "fault" : "ink" }];
  if (how === "waiting") return [{ text: "waits", tone: "soft" }];
  if (state.leader === null) return term;
  const leader = frame.get(state.leader);
  const stale = !leader?.up || leader.role !== "leader";
  return [{ text: `follows ${run.name(state.leader)}`, tone: stale ? "fault" : "soft" }, ...term];
}

/** How many members are inside the critical section. @param {Map<number, State>} frame */
const inside = (frame) => [...frame.values()].filter(({ up, role }) => up && role === "inside").length;

/** Whether a member follows the leader of most members, which needs no text if there are many. @param {State} state @param {number} t @param {number | null} common */
const isPlain = (state, t, common) => common !== null && standing(state, t) === "follower" && state.leader === common;

/** @param {{ from: number, to: number | null }} interval @param {number} t */
const isOn = ({ from, to }, t) => from <= t && ((to ?? null) === null || t < /** @type {number} */ (to));

/** @param {Run} run @param {Position} position @param {string | null} selection */
export function membersShown(run, position, selection) {
  const { s, t } = position;
  const frame = run.frame(s);
  const { partition = [], cuts = [] } = run.data.intervals ?? {};
  const common = commonLeader(run, frame);
  const crowded = inside(frame) > 1;
  const members = run.order.map((id) => {
    const state = /** @type {State} */ (frame.get(id));
    const { name, witness } = run.members.get(id) ?? { name: String(id), witness: false };
    return {
      id, name, role: state.role, up: state.up, paused: isPaused(state, t), drained: false, witness: Boolean(witness), contested: crowded && state.role === "inside",
      labels: isPlain(state, t, common) && selection !== String(id) ? [] : labels(run, state, t, frame), lease: leaseOf(run, state, t),
    };
  });
  const flights = run.inFlight(position).map(({ message, done, copy, lost }) => ({
    id: message.id, family: run.kinds[message.kind].family, from: message.from, to: message.to, done, copy, lost, text: message.text,
  }));
  return {
    members, flights, selection, order: run.order, topology: run.data.topology === "ring" ? "ring" : "mesh",
    cuts: cuts.filter((/** @type {any} */ cut) => isOn(cut, t)).map((/** @type {any} */ cut) => [cut.a, cut.b]),
    partition: partition.find((/** @type {any} */ one) => isOn(one, t))?.groups ?? null,
    describe: describe(run, frame, flights.length),
  };
}

/** The picture as a sentence. @param {Run} run @param {Map<number, State>} frame @param {number} flights */
export function describe(run, frame, flights) {
  const states = [...frame.values()];
  if (run.excludes) return describeSection(run, states, flights);
  const names = (/** @type {(state: State) => boolean} */ test) => states.filter(test).map((state) => run.name(state.id));
  const leaders = names((state) => state.up && state.role === "leader");
  const campaigning = names((state) => state.up && state.role === "candidate");
  const down = names((state) => !state.up);
  const term = states.find((state) => state.up && state.role === "leader")?.term;
  return [
    leaders.length ? `${list(leaders)} ${leaders.length === 1 ? "leads" : "lead"}${term ? ` in term ${term}` : ""}` : "No leader",
    ...(campaigning.length ? [`${list(campaigning)} ${campaigning.length === 1 ? "campaigns" : "campaign"}`] : []),
    ...(down.length ? [`${list(down)} ${down.length === 1 ? "is" : "are"} down`] : []),
    `${many(flights, "message")} in flight`,
  ].join("; ").concat(".");
}

/** The same around a critical section. @param {Run} run @param {State[]} states @param {number} flights */
function describeSection(run, states, flights) {
  const parts = [["inside", "inside"], ["waiting", "waiting"]].map(([role, word]) => {
    const names = states.filter((state) => state.up && state.role === role).map((state) => run.name(state.id));
    return names.length ? `${list(names)} ${names.length === 1 ? "is" : "are"} ${word}` : role === "inside" ? "No member is inside" : "";
  });
  const down = states.filter((state) => !state.up).map((state) => run.name(state.id));
  return [...parts, down.length ? `${list(down)} ${down.length === 1 ? "is" : "are"} down` : "", `${many(flights, "message")} in flight`]
    .filter(Boolean).join("; ").concat(".");
}

/** The signs of members on screen, for the legend. @param {Run} run @param {Position} position */
export function rolesShown(run, { s, t }) {
  const roles = new Set([...run.frame(s).values()].map((state) => standing(state, t, run.members.get(state.id)?.witness)));
  return ["leader", "candidate", "follower", "witness", "inside", "waiting", "outside", "paused", "down"].filter((role) => roles.has(role));
}

/** The signs of the diagram: which kinds were sent, which fates and intervals there are. @param {Run} run @param {{ selected: boolean, beside: boolean, until: number }} options `beside`: whether another run is shown; `until`: steps that may be seen */
export function signsShown(run, { selected, beside, until }) {
  const seen = run.messages.filter((message) => message.by < until);
  const kinds = run.kinds.filter((/** @type {any} */ _, /** @type {number} */ i) => seen.some((message) => message.kind === i));
  const { paused = [], overlap = [], partition = [], lease = [], cuts = [] } = run.data.intervals ?? {};
  const all = until >= run.length;
  const marks = [
    seen.some((message) => message.fate === "lost") && "lost",
    seen.some((message) => message.fate === "receiver down" && (message.at ?? 0) < until) && "missed",
    seen.some((message) => message.again !== null) && "doubled",
    run.steps.some(({ type, i }) => type === "campaign" && i < until) && "starts",
    run.excludes && "inside",
    run.excludes && "waits",
    run.steps.some((step) => asksToEnter(step) && step.i < until) && "asks",
    run.steps.some((step) => step.type === "timer" && !step.background && (step.rules.length || step.sends.length) && step.i < until) && "timer",
    run.steps.some((step) => step.i < until && step.change.some(([, { up }]) => up?.[1] === true)) && "restart",
    timeScale(run, 0).folds.length > 0 && "wait",
    all && cuts.length && "cut",
    all && paused.length && "paused",
    all && overlap.length && (run.excludes ? "together" : "overlap"),
    all && partition.length && "partition",
    all && lease.length && "lease",
    all && "future",
    selected && "faint",
    beside && "shared",
  ].filter(Boolean);

  return { kinds, marks: /** @type {string[]} */ (marks) };
}

/** What has been counted when `s` steps are done. @param {Run} run @param {number} s */
export function counted(run, s) {
  const counts = run.sentByKind(s);
  const [leader] = run.holders(s);
  return {
    messages: run.sent(s), total: run.data.metrics.messages, leader: leader?.id ?? null,
    by_kind: Object.fromEntries(run.kinds.map((/** @type {any} */ kind, /** @type {number} */ i) => [kind.name, counts[i]])),
  };
}
