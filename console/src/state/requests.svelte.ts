// Requests that change something. Each is kept until its answer is known, also while the page is loaded again.
import { ApiError } from '../api/client';
import { serverTime } from '../api/servertime';

/** For how long a request may be sent again. The service keeps its key for 24 hours (telematics.KeptFor). */
const resendFor = 23 * 60 * 60_000;

/** A request that was sent, and what identifies it. */
export interface Sent<What> {
  what: What;
  key: string;
  /** When it was sent first, in the service's time. */
  at: number;
}

type Post<What, Answer> = (what: What, key: string) => Promise<Answer>;

/** Codes of refusals by which it is not known whether the service has looked up the key. */
const beforeKey = ['rate_limited', 'telematics_unavailable'];

/** Whether it is not known if a request was carried out, after it, or a repetition of it, has failed. */
export function isLost(error: unknown, repeated: boolean): boolean {
  if (!(error instanceof ApiError) || error.code === 'no_answer' || error.code === 'idempotency_in_progress') return true;
  if (!repeated) return error.status >= 500 && error.outcome === null;
  // Only a refusal after the key was looked up says that the first request was not carried out.
  if ([404, 409, 422].includes(error.status)) return false;
  return error.outcome === null || beforeKey.includes(error.code);
}

/** The requests of one person to one vehicle, booking and the like: one at a time, and none while another's outcome is not known. */
export class Requests<What> {
  /** The request whose outcome is not known; null: there is none. */
  lost = $state.raw<Sent<What> | null>(null);
  /** What the service answered instead of the outcome. */
  why = $state('');
  busy = $state(false);
  #name: string;
  #store: Storage;

  constructor(name: string, store: Storage) {
    this.#name = name;
    this.#store = store;
    this.lost = JSON.parse(store.getItem(name) ?? 'null');
  }

  /** Whether another request can be sent. */
  get isFree(): boolean {
    return !this.busy && this.lost === null;
  }

  /** Whether the service may have forgotten the key of what is lost: sent again, it could be carried out twice. */
  isTooOld(now: number): boolean {
    return this.lost !== null && !(now - this.lost.at < resendFor);
  }

  /** Sends a request. If it fails and is not lost, nothing was done. */
  async send<Answer>(what: What, post: Post<What, Answer>): Promise<Answer> {
    if (!this.isFree) throw new Error('another request has no answer yet');
    return this.#send({ what, key: crypto.randomUUID(), at: serverTime.now() }, false, post);
  }

  /** Sends what is lost again: it is carried out once. */
  async again<Answer>(post: Post<What, Answer>): Promise<Answer> {
    if (this.busy || !this.lost || this.isTooOld(serverTime.now())) throw new Error('there is nothing to send again');
    return this.#send(this.lost, true, post);
  }

  forget() {
    this.lost = null;
    this.why = '';
    this.#store.removeItem(this.#name);
  }

  async #send<Answer>(sent: Sent<What>, repeated: boolean, post: Post<What, Answer>): Promise<Answer> {
    this.#store.setItem(this.#name, JSON.stringify(sent)); // if there is no room, nothing is sent
    this.busy = true;
    try {
      const answer = await post(sent.what, sent.key);
      this.forget();
      return answer;
    } catch (error) {
      if (isLost(error, repeated)) {
        this.lost = sent;
        this.why = error instanceof ApiError && error.code !== 'no_answer' ? error.message : '';
      } else this.forget();
      throw error;
    } finally {
      this.busy = false;
    }
  }
}

const all = new Map<string, Requests<unknown>>();

/** The requests of a person, such as to "vehicle 42": the same ones after its page was left. */
export function requestsTo<What>(about: string, person: string): Requests<What> {
  const name = `sent ${about} ${person}`;
  let found = all.get(name);
  if (!found) all.set(name, (found = new Requests(name, sessionStorage)));
  return found as Requests<What>;
}
