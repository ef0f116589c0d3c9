// The current time, for ages: that of the service. One timer for all of them.
import { serverTime } from '../api/servertime';

const wrongFrom = 60_000;

class Clock {
  now = $state(serverTime.now());
  /** Milliseconds that the clock of this computer is ahead of the service's, if that is much; else 0. */
  wrongBy = $state(0);

  constructor() {
    setInterval(() => {
      this.now = serverTime.now();
      this.wrongBy = Math.abs(serverTime.offset) < wrongFrom ? 0 : -serverTime.offset;
    }, 1000);
  }
}

export const clock = new Clock();
