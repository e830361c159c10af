/** Playback in one loop of frames: whether it moves, and how fast. A subclass says what moves and how. */

/** Without motion something is shown each second. */
export const STILL = 1000;
/** A page that was hidden does not catch up. */
const LONGEST_FRAME = 100;

export class Playback {
  /** @param {(settled: boolean) => void} changed `settled`: it stands where the address should say */
  constructor(changed) {
    this.changed = changed;
    this.playing = false;
    this.speed = 1;
    this.frame = 0;
    this.last = 0;
    this.rest = 0;
  }

  /** @param {number} factor */
  changeSpeed(factor) {
    this.speed = Math.min(16, Math.max(1 / 16, this.speed * factor));
    this.changed(true);
  }

  /** Ends all movement; the view is left. */
  stop() {
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  /** Whether something moves, so that another frame is needed. */
  get isMoving() {
    return this.playing;
  }

  /** The one loop of this page's pictures. It ends when nothing moves; the browser holds it while the page is hidden. */
  wake() {
    this.frame ||= requestAnimationFrame((now) => {
      this.frame = 0;
      this.tick(now);
      if (this.isMoving) this.wake();
    });
  }

  /** Moves what a frame shows. @param {number} _now */
  tick(_now) {
    throw new Error("what plays says what a frame moves");
  }

  /** The milliseconds since the last frame. @param {number} now */
  passed(now) {
    const passed = Math.min(LONGEST_FRAME, now - this.last);
    this.last = now;
    return passed;
  }

  /** Whether it is time for the next picture, where there is no motion. @param {number} passed */
  isDue(passed) {
    this.rest += passed * this.speed;
    if (this.rest < STILL) return false;
    this.rest = 0;
    return true;
  }
}
