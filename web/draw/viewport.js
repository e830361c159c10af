/** What of a diagram is in sight: zoom and pan. */

const WIDEST = 4000;
const LEAST_ZOOM = 0.05;
const MANY = 120;
const REST = 80;

export class Viewport {
  constructor() {
    /** How many times larger than to fit, how far to the right, and whether waits are unfolded. */
    this.zoom = 1;
    this.pan = 0;
    this.unfold = false;
    /** Where life lines begin, and how wide what is in sight is. */
    this.left = 40;
    this.plot = 40;
    /** @type {{ factor: number, x: number } | null} */
    this.waiting = null;
    /** While one zooms, what takes long is left for when it rests. */
    this.hurried = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.resting = undefined;
    /** @type {import("./ground.js").Picture | null} */
    this.picture = null;
    /** @type {import("./diagram.js").Shown | null} */
    this.state = null;
  }

  /** Finds a place for everything, and draws it. */
  layout() {}

  /** Moves everything sideways. */
  move() {}

  /** Moves what moves with time. @param {boolean} _follow keeps the now line in sight */
  moveNow(_follow) {}

  /** Where a time is, in pixels from the left of the element. @param {number} t */
  xOf(t) {
    return this.left - this.pan + (this.picture?.scale.toX(t) ?? 0);
  }

  /** @param {number} x */
  timeAt(x) {
    return this.picture?.scale.toTime(x - this.left + this.pan) ?? 0;
  }

  /** Whether there is more than is in sight. */
  pans() {
    return this.mostPan() > 0;
  }

  mostPan() {
    return this.picture && !this.state?.domain ? Math.max(0, this.picture.scale.width + 28 - this.plot) : 0;
  }

  /** @param {number} pan */
  panTo(pan) {
    const next = Math.max(0, Math.min(pan, this.mostPan()));
    if (Math.abs(next - this.pan) < 0.1) return;
    this.pan = next;
    this.move();
  }

  /** @param {number} pixels to the right */
  panBy(pixels) {
    this.panTo(this.pan + pixels);
    this.moveNow(false);
  }

  /** Keeps a place in sight, with some of what is ahead. @param {number} x in the picture */
  follow(x) {
    if (!this.pans()) return;
    if (x < this.pan + 20) this.panTo(x - this.plot * 0.25);
    else if (x > this.pan + this.plot * 0.85) this.panTo(x - this.plot * 0.8);
  }

  /** Zooms about a place, the now line if none is given. @param {number} factor @param {number} [x] */
  zoomBy(factor, x) {
    const { picture, state } = this;
    if (!picture || !state || state.domain) return;
    const about = x ?? this.xOf(state.position.t);
    const t = this.timeAt(about);
    const flight = picture.scale.flight / this.zoom;
    this.zoom = Math.max(LEAST_ZOOM, Math.min(this.zoom * factor, WIDEST / flight));
    if (this.zoom < 1 && picture.scale.fits) this.zoom = 1;
    this.layout();
    this.panTo(this.xOf(t) + this.pan - about);
    this.moveNow(false);
  }

  /** Zooms with the next frame: a wheel turns more often than that. @param {number} factor @param {number} x */
  zoomSoon(factor, x) {
    if (this.waiting) {
      this.waiting = { factor: this.waiting.factor * factor, x };
      return;
    }
    this.waiting = { factor, x };
    requestAnimationFrame(() => {
      const { factor: all, x: about } = this.waiting ?? { factor, x };
      this.waiting = null;
      // A large run takes more than a frame to lay out in full.
      this.hurried = (this.picture?.arrows.length ?? 0) > MANY;
      this.zoomBy(all, about);
      if (this.hurried) this.restSoon();
    });
  }

  restSoon() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.hurried = false;
      this.layout();
      this.moveNow(false);
    }, REST);
  }

  /** Shows all of the run. */
  fit() {
    this.zoom = 1;
    this.pan = 0;
    this.layout();
    // Where the least size of a flight keeps a long run from fitting, "all" means all.
    const { scale } = this.picture ?? {};
    if (scale && !scale.fits && !this.state?.domain) {
      this.zoom = Math.max(LEAST_ZOOM, (this.plot - 40) / scale.width);
      this.layout();
    }
    this.moveNow(false);
  }

  /** Shows all of what is selected, or of the run. */
  fitSelection() {
    const { picture, state } = this;
    const step = state?.selection ? state.run.stepOf(state.selection, state.position) : null;
    if (!picture || !state || step === null || state.domain) return this.fit();
    const times = [...state.run.past(step)].map((i) => state.run.steps[i].at);
    const [from, to] = [Math.min(...times), Math.max(...times)];
    const wide = Math.max(20, picture.scale.toX(to) - picture.scale.toX(from));
    this.zoom = Math.max(LEAST_ZOOM, Math.min((this.zoom * this.plot * 0.8) / wide, WIDEST / (picture.scale.flight / this.zoom)));
    this.layout();
    this.panTo((this.picture?.scale.toX(from) ?? 0) - 40);
    this.moveNow(false);
  }

  /** Draws long waits to scale, or folds them. */
  toggleFolds() {
    this.unfold = !this.unfold;
    this.layout();
    this.moveNow(true);
  }
}
