/**
 * The places of members, their moves in a partition, and the ways between them. Pure.
 *
 * Members stand on an ellipse in the order given, clockwise from the top, so they are in convex position: every link lies
 * within their hull.
 */

/**
 * @typedef {object} Place
 * @property {string} id
 * @property {number} x @property {number} y @property {number} r the disc
 * @property {number} ux @property {number} uy the way out of the ring, of length 1
 * @property {number} rim how far it stands within the outer of two rings
 *
 * @typedef {{ x1: number, y1: number, x2: number, y2: number }} Segment
 * @typedef {{ x: number, y: number }} Point
 */

/** Between the ring and the edge of the stage: half a disc, the lease ring, a line of text. Less on a small stage. */
const MARGIN = 60;
const LEAST_MARGIN = 38;
const LIFT = 7;
const LARGEST = 34;
const SMALLEST = 7;
/** Below this radius discs stand on two rings. */
const CROWDED = 8;
/** How far groups move apart. */
const APART = 48;

/** The radius of discs for `n` members on a ring of radius `ring`. @param {number} n @param {number} ring */
export function memberRadius(n, ring) {
  return Math.max(SMALLEST, Math.min(LARGEST, Math.max(20, 0.235 * ring), 0.6 * ring * Math.sin(Math.PI / Math.max(n, 2))));
}

/** What a disc of this radius can hold: a name, an id, or nothing. @param {number} r @returns {"name" | "id" | "none"} */
export function roomFor(r) {
  return r >= 20 ? "name" : r >= 12 ? "id" : "none";
}

/**
 * The places of all members.
 * @param {string[]} order @param {{ width: number, height: number }} stage @param {string[][] | null} [groups] members that are parted
 * @returns {{ places: Map<string, Place>, walls: Segment[], centre: Point, radius: number }} `walls`: the lines between the groups
 */
export function ringLayout(order, stage, groups = null) {
  const n = order.length;
  const parted = groups && groups.length > 1 ? groups : null;
  const side = Math.min(stage.width, stage.height);
  const margin = Math.max(LEAST_MARGIN, Math.min(MARGIN, side * 0.16));
  const small = Math.max(40, side / 2 - margin - (parted ? APART / 4 : 0));
  const centre = { x: stage.width / 2, y: stage.height / 2 };
  const radius = memberRadius(n, small);
  const wide = Math.max(small, Math.min(small * 1.25, stage.width / 2 - margin - 80));
  const tall = Math.max(small, Math.min(small * 1.12, stage.height / 2 - margin));
  const two = n > 1 && 0.6 * small * Math.sin(Math.PI / n) < CROWDED;
  // Groups that are mixed around the ring cannot be separated by a line; then each takes its own arc.
  const contiguous = parted && !isContiguous(order, parted) ? parted.flat() : order;
  /** @type {Map<string, Place>} */
  const places = new Map();
  contiguous.forEach((id, i) => {
    const angle = n === 1 ? -Math.PI / 2 : (2 * Math.PI * i) / n - Math.PI / 2;
    const inward = two && i % 2 === 1 ? 2.6 * radius : 0;
    const [rx, ry] = n === 1 ? [0, 0] : [wide - inward, tall - inward];
    const [nx, ny] = [Math.cos(angle) / (rx || 1), Math.sin(angle) / (ry || 1)];
    const length = Math.hypot(nx, ny) || 1;
    places.set(id, {
      id, r: radius, ux: nx / length, uy: ny / length, rim: inward,
      x: centre.x + rx * Math.cos(angle), y: centre.y + ry * Math.sin(angle),
    });
  });
  centreAll(places, centre);
  const walls = parted ? part(places, parted, centre, Math.max(wide, tall) + radius + 16) : [];
  if (parted) keepInside(places, walls, stage);
  return { places, walls, centre, radius };
}

/** Groups that moved apart may have left the stage: everything moves back by as much. @param {Map<string, Place>} places @param {Segment[]} walls @param {{ width: number, height: number }} stage */
function keepInside(places, walls, stage) {
  const all = [...places.values()];
  const back = (/** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ size) => Math.max(0, 8 - low) - Math.max(0, high - (size - 8));
  const dx = back(Math.min(...all.map(({ x, r }) => x - r)), Math.max(...all.map(({ x, r }) => x + r)), stage.width);
  const dy = back(Math.min(...all.map(({ y, r }) => y - r)), Math.max(...all.map(({ y, r }) => y + r)), stage.height);
  for (const place of all) Object.assign(place, { x: place.x + dx, y: place.y + dy });
  for (const wall of walls) Object.assign(wall, { x1: wall.x1 + dx, x2: wall.x2 + dx, y1: wall.y1 + dy, y2: wall.y2 + dy });
}

/** Puts the middle of what is drawn, not of the ellipse, a little above the middle of the stage: an odd ring has its top higher than its foot is low, and labels stand below the foot but beside the top. @param {Map<string, Place>} places @param {Point} centre */
function centreAll(places, centre) {
  const ys = [...places.values()].map(({ y }) => y);
  const shift = centre.y - LIFT - (Math.min(...ys) + Math.max(...ys)) / 2;
  for (const place of places.values()) place.y += shift;
}

/** Whether each group is one arc of the ring. @param {string[]} order @param {string[][]} groups */
function isContiguous(order, groups) {
  const group = new Map(groups.flatMap((ids, g) => ids.map((id) => [id, g])));
  const changes = order.filter((id, i) => group.get(id) !== group.get(order[(i + 1) % order.length])).length;
  return changes <= groups.length;
}

/**
 * Moves groups apart, in place, and returns the lines between them.
 * @param {Map<string, Place>} places @param {string[][]} groups @param {Point} centre @param {number} reach
 * @returns {Segment[]}
 */
function part(places, groups, centre, reach) {
  const stands = groups.map((ids) => ids.flatMap((id) => places.get(id) ?? [])).filter((group) => group.length > 0);
  if (stands.length < 2) return [];
  if (stands.length === 2) return partTwo(stands[0], stands[1], reach);
  /** @type {Segment[]} */
  const walls = [];
  const all = [...places.values()];
  const group = new Map(stands.flatMap((members, g) => members.map((place) => [place, g])));
  all.forEach((place, i) => {
    const next = all[(i + 1) % all.length];
    if (group.get(place) === group.get(next)) return;
    const middle = { x: (place.x + next.x) / 2 - centre.x, y: (place.y + next.y) / 2 - centre.y };
    const length = Math.hypot(middle.x, middle.y) || 1;
    walls.push({ x1: centre.x, y1: centre.y, x2: centre.x + (middle.x / length) * reach, y2: centre.y + (middle.y / length) * reach });
  });
  for (const members of stands) {
    const middle = mean(members);
    const length = Math.hypot(middle.x - centre.x, middle.y - centre.y) || 1;
    for (const place of members) {
      place.x += ((middle.x - centre.x) / length) * (APART / 2);
      place.y += ((middle.y - centre.y) / length) * (APART / 2);
    }
  }
  return walls;
}

/** @param {Place[]} one @param {Place[]} other @param {number} reach @returns {Segment[]} */
function partTwo(one, other, reach) {
  const axis = widestGap(one, other);
  for (const place of one) move(place, axis, -APART / 2);
  for (const place of other) move(place, axis, APART / 2);
  const along = (/** @type {Point} */ place) => place.x * axis.x + place.y * axis.y;
  const across = (/** @type {Point} */ place) => -place.x * axis.y + place.y * axis.x;
  const at = (Math.max(...one.map(along)) + Math.min(...other.map(along))) / 2;
  // As long as both groups are wide there, so that the line visibly separates all of them.
  const width = [...one, ...other].map(across);
  const middle = (Math.min(...width) + Math.max(...width)) / 2;
  const half = Math.min(reach, (Math.max(...width) - Math.min(...width)) / 2 + one[0].r + 24);
  const point = (/** @type {number} */ side) => ({ x: axis.x * at - axis.y * (middle + side), y: axis.y * at + axis.x * (middle + side) });
  const [from, to] = [point(-half), point(half)];
  return [{ x1: from.x, y1: from.y, x2: to.x, y2: to.y }];
}

/** The direction from one group to the other along which the gap between them is widest. @param {Place[]} one @param {Place[]} other @returns {Point} */
function widestGap(one, other) {
  let best = { x: 1, y: 0, gap: -Infinity };
  for (let k = 0; k < 72; k++) {
    const axis = { x: Math.cos((k * Math.PI) / 36), y: Math.sin((k * Math.PI) / 36) };
    const along = (/** @type {Place} */ place) => place.x * axis.x + place.y * axis.y;
    const gap = Math.min(...other.map(along)) - Math.max(...one.map(along));
    if (gap > best.gap + 1e-9) best = { ...axis, gap };
  }
  return best;
}

/** @param {Place} place @param {Point} axis @param {number} by */
function move(place, axis, by) {
  place.x += axis.x * by;
  place.y += axis.y * by;
}

/** @param {Point[]} points @returns {Point} */
export function mean(points) {
  const sum = points.reduce((a, b) => ({ x: a.x + b.x, y: a.y + b.y }), { x: 0, y: 0 });
  return { x: sum.x / (points.length || 1), y: sum.y / (points.length || 1) };
}

/** The way from the edge of one disc to the edge of another, `side` pixels to the right of the line between their centres. @param {Place} from @param {Place} to @param {number} [side] @param {number} [air] @returns {Segment} */
export function way(from, to, side = 0, air = 0) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const inset = (/** @type {number} */ r) => Math.min(length / 2, Math.sqrt(Math.max(0, (r + air) ** 2 - side ** 2)));
  const [a, b] = [inset(from.r), inset(to.r)];
  return {
    x1: from.x + ux * a - uy * side, y1: from.y + uy * a + ux * side,
    x2: to.x - ux * b - uy * side, y2: to.y - uy * b + ux * side,
  };
}

/** A point of a way. @param {Segment} segment @param {number} done from 0 to 1 @returns {Point} */
export function along(segment, done) {
  return { x: segment.x1 + (segment.x2 - segment.x1) * done, y: segment.y1 + (segment.y2 - segment.y1) * done };
}

/** The members on the two sides of a line, those on its left first; null if all are on one side. @param {Iterable<Place>} places @param {Segment} line @returns {[string[], string[]] | null} */
export function sides(places, line) {
  /** @type {[string[], string[]]} */
  const groups = [[], []];
  for (const { id, x, y } of places) {
    const left = (line.x2 - line.x1) * (y - line.y1) - (line.y2 - line.y1) * (x - line.x1) < 0;
    groups[left ? 0 : 1].push(id);
  }
  return groups[0].length && groups[1].length ? groups : null;
}

/** The member at a point, or near it. @param {Iterable<Place>} places @param {Point} point @param {number} reach the smallest distance that counts */
export function memberAt(places, point, reach) {
  /** @type {{ id: string, distance: number } | null} */
  let nearest = null;
  for (const { id, x, y, r } of places) {
    const distance = Math.hypot(point.x - x, point.y - y);
    if (distance <= Math.max(r + 4, reach) && distance < (nearest?.distance ?? Infinity)) nearest = { id, distance };
  }
  return nearest?.id ?? null;
}
