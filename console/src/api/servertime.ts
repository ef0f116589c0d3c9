/** The service's clock, as its answers tell it: the clock of a computer with a browser may be wrong. */
export class ServerTime {
  /** Milliseconds that the service's clock is ahead. */
  offset = 0;
  #trip = Infinity;

  /** Takes the time in an answer, and when this computer sent the request and got the answer. */
  update(server: number, sent: number, received: number) {
    const trip = received - sent;
    if (!Number.isFinite(server) || trip < 0) return;
    const offset = server - (sent + received) / 2;
    // A slower answer says less, unless one of the clocks was set meanwhile.
    const set = Math.abs(offset - this.offset) > (trip + this.#trip) / 2 + 1000;
    if (trip > this.#trip && !set) return;
    this.offset = offset;
    this.#trip = trip;
  }

  now(): number {
    return Date.now() + this.offset;
  }
}

export const serverTime = new ServerTime();
