import type { paths } from './contract.js';
import { MotorpoolError } from './error.js';
import { sign, type AgencyKey, type SignedRequest } from './sign.js';

export interface Config {
  baseUrl: string;
  /** Returns the client's access token; `renew`: the last one was refused, fetch another. */
  token: string | ((renew: boolean) => string | Promise<string>);
  /** The agency's key; or a function that returns the value of X-Agency-Signature, for example from your server. */
  sign: AgencyKey | ((request: SignedRequest, time: number) => string | Promise<string>);
  fetch?: typeof fetch; // defaults to the global one
  timeout?: number; // of an attempt. Defaults to 45,000 ms: the service waits up to 30 s for a vehicle
  patience?: number; // for how long a request is repeated; 0: never; else once without an answer in any case. Defaults to 30,000 ms
}

export interface Answer<T> {
  data: T;
  message: string;
  meta?: { next_cursor?: string | null; agency_id?: number; agency_code?: string };
  requestId: string;
  status: number;
  /** Of 202: where the result will be. */
  location: string | null;
  /** The answer is to an earlier request with the same key. */
  replayed: boolean;
}

// What the contract says of the paths below /api/v1/client.
type Method = 'get' | 'post' | 'delete';
type Prefix = '/api/v1/client/';
export type Path<M extends Method> = {
  [P in keyof paths]: P extends `${Prefix}${infer Short}` ? (paths[P][M] extends { responses: unknown } ? Short : never) : never;
}[keyof paths];
type Operation<M extends Method, P extends string> = `${Prefix}${P}` extends keyof paths ? paths[`${Prefix}${P}`][M] : never;
type Json<R> = R extends { content: { 'application/json': { data: infer D } } } ? D : never;
type Success<R> = { [S in keyof R]: S extends 200 | 201 | 202 ? Json<R[S]> : never }[keyof R];
export type Data<M extends Method, P extends string> = Operation<M, P> extends { responses: infer R } ? Success<R> : never;
type Parameters<O, In extends string> = O extends { parameters: { [K in In]: infer V } } ? { [K in In]: V } : { [K in In]?: undefined };
type OptionalQuery<O> = O extends { parameters: { query?: infer Q } } ? { query?: Q } : { query?: undefined };
type Body<O> = O extends { requestBody: { content: { 'application/json': infer B } } } ? { body: B }
  : O extends { requestBody?: { content: { 'application/json': infer B } } } ? { body?: B } : { body?: undefined };
export type Input<M extends Method, P extends string> = Parameters<Operation<M, P>, 'path'> & OptionalQuery<Operation<M, P>>
  & Body<Operation<M, P>> & Options;
type Given<T> = Record<never, never> extends T ? [input?: T] : [input: T];

export interface Options {
  /** Idempotency-Key of a POST. Defaults to a new one: store one of your own to repeat a request after a restart of the app. */
  key?: string;
  /** Prefer, such as wait=20 or respond-async. */
  prefer?: string;
  signal?: AbortSignal;
}

interface Untyped extends Options {
  path?: Record<string, unknown> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

const longestWait = 10; // seconds; a longer one is for the app to show
const anew = ['agency_signature_stale', 'agency_signature_replayed', 'unauthenticated']; // each can be mended once

/** Calls /api/v1/client. Paths, parameters, bodies and results have the types of the contract. */
export class Motorpool {
  private ahead = 0; // seconds by which the service's clock is ahead of this one

  constructor(private readonly config: Config) {}

  get<P extends Path<'get'>>(path: P, ...input: Given<Input<'get', P>>): Promise<Answer<Data<'get', P>>> {
    return this.send('GET', path, input[0]);
  }
  post<P extends Path<'post'>>(path: P, ...input: Given<Input<'post', P>>): Promise<Answer<Data<'post', P>>> {
    return this.send('POST', path, input[0]);
  }
  delete<P extends Path<'delete'>>(path: P, ...input: Given<Input<'delete', P>>): Promise<Answer<Data<'delete', P>>> {
    return this.send('DELETE', path, input[0]);
  }

  /** The service's time, as its last answer said: the start of a rental from now, whatever the phone's clock says. */
  now(): Date {
    return new Date(Date.now() + this.ahead * 1000);
  }

  /**
   * Sends a request, and repeats it while that is safe and helps: a GET, and with the same Idempotency-Key a POST. A DELETE
   * whose answer is lost is not repeated, nor anything that a vehicle may have executed.
   */
  async send<T>(method: string, path: string, input: Untyped = {}): Promise<Answer<T>> {
    const url = this.config.baseUrl.replace(/\/$/, '') + (path.startsWith('/') ? path : `/api/v1/client/${fill(path, input)}`);
    const body = input.body === undefined ? undefined : JSON.stringify(input.body);
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (method === 'POST') headers['Idempotency-Key'] = input.key ?? newKey();
    if (input.prefer) headers.Prefer = input.prefer;

    const { patience = 30_000 } = this.config;
    const until = Date.now() + patience;
    const mended = new Set<string>();
    let renew = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.attempt<T>(method, url, headers, body, renew, input.signal);
      } catch (failure) {
        if (!(failure instanceof MotorpoolError)) throw failure;
        const mends = anew.includes(failure.code) && !mended.has(failure.code);
        renew = mends && failure.code === 'unauthenticated';
        if (mends) {
          mended.add(failure.code);
          continue;
        }
        const wait = mayRepeat(method, failure) ? (failure.retryAfter ?? Math.min(0.5 * 2 ** attempt, 5)) : Infinity;
        // An attempt that gets no answer may last longer than the patience.
        const isFirstLoss = failure.code === 'no_answer' && attempt === 0 && patience > 0;
        if (wait > longestWait || (!isFirstLoss && Date.now() + wait * 1000 > until)) throw failure;
        await pause(wait * 1000 * (1 + Math.random() / 4), input.signal);
      }
    }
  }

  private async attempt<T>(
    method: string, url: string, headers: Record<string, string>, body: string | undefined, renew: boolean, signal?: AbortSignal,
  ): Promise<Answer<T>> {
    const { token, sign: signer, fetch: send = fetch, timeout = 45_000 } = this.config;
    const bearer = typeof token === 'string' ? token : await token(renew);
    const request: SignedRequest = { method, url, body, token: bearer };
    const time = Math.floor(Date.now() / 1000) + this.ahead;
    const signature = await (typeof signer === 'function' ? signer(request, time) : sign(signer, request, time));

    const limit = new AbortController();
    const abort = () => limit.abort(signal?.reason);
    const timer = setTimeout(() => limit.abort(new Error(`no answer within ${timeout} ms`)), timeout);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      const response = await send(url, {
        method, body, signal: limit.signal,
        headers: { ...headers, Authorization: `Bearer ${bearer}`, 'X-Agency-Signature': signature },
      });
      return this.read<T>(response, await response.text());
    } catch (cause) {
      if (cause instanceof MotorpoolError || signal?.aborted) throw cause;
      throw new MotorpoolError(`No answer to ${method} ${url}: it may have been executed.`, {}, { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Returns the answer, or throws it if it is an error. Without an envelope it is of something between app and service. */
  private read<T>(response: Response, text: string): Answer<T> {
    let envelope;
    try {
      envelope = JSON.parse(text);
    } catch { /* not JSON */ }
    const time = Date.parse(envelope?.timestamp);
    if (time) this.ahead = Math.round((time - Date.now()) / 1000);
    const answer = { status: response.status, requestId: envelope?.request_id, timestamp: envelope?.timestamp };
    if (typeof envelope?.success !== 'boolean' || (!envelope.success && !envelope.error)) {
      throw new MotorpoolError(`The answer ${response.status} is not of the service; the request may have been executed.`, {}, answer);
    }
    if (!envelope.success) throw new MotorpoolError(envelope.message, envelope.error, { ...answer, fields: envelope.errors });
    return {
      data: envelope.data, message: envelope.message, meta: envelope.meta, requestId: envelope.request_id, status: response.status,
      location: response.headers.get('Location'), replayed: response.headers.get('Idempotency-Replayed') === 'true',
    };
  }
}

function mayRepeat(method: string, failure: MotorpoolError): boolean {
  if (failure.code === 'no_answer') return method !== 'DELETE';
  const vehicleTried = failure.outcome === 'unknown' || failure.outcome === 'failed';
  const person = failure.checks.length > 0 || failure.code === 'too_far'; // must mend it first
  return failure.retryable && !vehicleTried && !person;
}

/** Puts parameters into a path. */
function fill(path: string, { path: values = {}, query = {} }: Untyped): string {
  const filled = path.replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(String(values[name])));
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const search = pairs.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&');
  return search ? `${filled}?${search}` : filled;
}

/** A key need not be secret, only new for this client: React Native may have no Web Crypto. */
const newKey = () => [Date.now(), Math.random(), Math.random()].map((n) => n.toString(36).replace('0.', '')).join('-');

/** Waits, and ends early, with the signal's reason, if the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', abort); resolve(); }, ms);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
  });
}
