// The current time, for ages: that of the service. One timer for all of them.
import { serverTime } from '../api/servertime';

const wrongFrom = 60_000;
const inSeconds = 90_000; // ages below are written in seconds (see age in format.ts)
const seldom = 10_000;

class Clock {
  now = $state(serverTime.now());
  /** The time for what changes with the day: it wakes its readers seldom. */
  seldom = $state(serverTime.now());
  /** Milliseconds that the clock of this computer is ahead of the service's, if that is much; else 0. */
  wrongBy = $state(0);

  /** The time, for the age of something: what is old wakes its page seldom, as its words do not change each second. */
  since(at: number | string | null | undefined): number {
    if (!at || this.seldom - (typeof at === 'number' ? at : Date.parse(at)) >= inSeconds) return this.seldom;
    return this.now;
  }

  constructor() {
    setInterval(() => {
      this.now = serverTime.now();
      if (Math.abs(this.now - this.seldom) >= seldom) this.seldom = this.now;
      this.wrongBy = Math.abs(serverTime.offset) < wrongFrom ? 0 : -serverTime.offset;
    }, 1000);
  }
}

export const clock = new Clock();
