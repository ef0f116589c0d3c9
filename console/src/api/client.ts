// The API, called with the session's cookie. Addresses are relative to /console/.
import type { components } from './contract';
import { clean } from '../text';
import { serverTime } from './servertime';

type Schemas = components['schemas'];
export type Vehicle = Schemas['Vehicle'];
// Its times are those of reported_at, which events change.
export type VehicleSummary = Omit<Schemas['VehicleSummary'], 'locked_at' | 'energy_at'>;
export type VehicleStatus = Schemas['VehicleStatus'];
export type StatusMeta = Schemas['StatusMeta'];
export type Command = Schemas['Command'];
export type Action = Schemas['Action'];
export type Halt = Schemas['Halt'];
export type Me = Schemas['Me'];
export type Activity = Schemas['Activity'];
export type Utilisation = Schemas['Utilisation'];
export type FreeVehicle = Schemas['FreeVehicle'];
export type Client = Schemas['FoundClient'];
export type Trip = Schemas['Trip'];
export type AgencyKey = Schemas['AgencyKey'];
export type Alert = Schemas['Alert'];
export type Note = Schemas['Note'];
export type ListedBulk = Schemas['ListedBulkCommand'];
export type BulkCommand = Schemas['BulkCommand'];
export type AdminBooking = Schemas['AdminBooking'];
export type VehicleHistory = Schemas['VehicleHistory'];
export type BookingTrack = Schemas['BookingTrack'];
export type Unit = Schemas['Unit'];
export type UnknownUnit = Schemas['UnknownUnit'];
export type Charge = Schemas['Charge'];
export type Transition = Schemas['AdminTransition'];
export type ReturnCheck = Schemas['ReturnCheck'];
export type PaymentMethod = Schemas['PaymentMethod'];
export type BookedCharge = Schemas['BookedCharge'];

interface Envelope<Data, Meta> {
  success: boolean;
  message: string;
  timestamp?: string;
  data: Data;
  meta: Meta;
  error?: Schemas['Error'];
  errors?: Record<string, string[]>;
}

/** A refusal, in the language of the pages. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Of a command that failed: what may be believed about the vehicle. */
    readonly outcome: Schemas['Error']['outcome'] = null,
    /** Of a return that is not possible: each of its conditions. */
    readonly checks: ReturnCheck[] = [],
    /** Of a request that is not valid: what the service says of its fields. */
    readonly fields: Record<string, string[]> = {},
    /** Of a change: whether it is not known if it was made. */
    readonly isUnknown = false,
  ) {
    super(message);
  }
}

/** What a refusal is in the language of the pages. */
let translated = (_error: Pick<Schemas['Error'], 'code' | 'reason' | 'detail'>, message: string): string => message;
/** That there is no answer, of a change or of a reading: browsers say it in words of their makers. */
let unreachable = (_isChange: boolean) => '';

export function translateRefusals(by: typeof translated, noAnswer: typeof unreachable) {
  translated = by;
  unreachable = noAnswer;
}

function refusal(status: number, { error, errors, message }: Envelope<unknown, unknown>, isChange: boolean): ApiError {
  const outcome = error?.outcome ?? null;
  const text = error ? translated(error, message) : message;
  return new ApiError(status, error?.code ?? 'unknown', text, outcome, error?.checks, errors, isChange && status >= 500 && !outcome);
}

export interface Answer<Data, Meta> {
  data: Data;
  meta: Meta;
  message: string;
}

/** What to do when the session has ended. */
let signedOut = () => {};
export const endSession = () => signedOut();

export function onSignedOut(callback: () => void) {
  signedOut = callback;
}

export async function call<Data, Meta = unknown>(
  method: string,
  path: string,
  options: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Answer<Data, Meta>> {
  const headers: Record<string, string> = { Accept: 'application/json', ...options.headers };
  const request: RequestInit = { method, headers };
  if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    request.body = JSON.stringify(options.body);
  }
  if (options.signal) request.signal = options.signal;
  const { envelope } = await exchange<Data, Meta>(path, request);
  return { data: envelope.data, meta: envelope.meta, message: envelope.message };
}

/** Then a request is given up, as on a connection that a sleep of the computer has cut; large fleets come slowly. */
const answerWithin = 120_000;

async function exchange<Data, Meta>(path: string, request: RequestInit): Promise<{ response: Response; envelope: Envelope<Data, Meta> }> {
  const sent = Date.now();
  const isChange = (request.method ?? 'GET') !== 'GET';
  let response: Response | undefined;
  let envelope: Envelope<Data, Meta>;
  try {
    const signal = request.signal ?? AbortSignal.timeout(answerWithin);
    response = await fetch(`../${path}`, { ...request, signal, credentials: 'same-origin' });
    envelope = response.status === 304 ? {} : clean(await response.json());
  } catch {
    throw new ApiError(response?.status ?? 0, 'no_answer', unreachable(isChange));
  }
  serverTime.update(Date.parse(envelope.timestamp ?? ''), sent, Date.now());
  if (response.status === 401) endSession();
  if (!response.ok && response.status !== 304) throw refusal(response.status, envelope, isChange);
  return { response, envelope };
}

export const get = <Data, Meta = unknown>(path: string) => call<Data, Meta>('GET', `api/v1/admin/${path}`);

/** Reads what has changed since the answer with an entity tag; null: nothing. */
export async function getIfChanged<Data>(path: string, etag: string): Promise<{ data: Data; etag: string } | null> {
  const headers: Record<string, string> = etag ? { 'If-None-Match': etag } : {};
  // The browser's own cache would answer 304 with the body it has.
  const { response, envelope } = await exchange<Data, unknown>(`api/v1/admin/${path}`, { headers, cache: 'no-store' });
  return response.status === 304 ? null : { data: envelope.data, etag: response.headers.get('ETag') ?? '' };
}

/** The first pages of a list, and whether there are more. */
export async function getPages<Item>(path: string, pages: number): Promise<{ items: Item[]; more: boolean }> {
  const items: Item[] = [];
  let cursor: string | null = null;
  for (let n = 0; n < pages && (n === 0 || cursor); n++) {
    const query: string = `${path}${path.includes('?') ? '&' : '?'}limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`;
    const page: Answer<Item[], { next_cursor: string | null }> = await get(query);
    items.push(...page.data);
    cursor = page.meta.next_cursor;
  }
  return { items, more: cursor !== null };
}

const orderWithin = 20_000;

/** Orders an action; the answer comes as events, or by polling the command. */
export const order = (vehicle: number, action: Action, key: string = crypto.randomUUID(), parameters?: unknown) =>
  call<Command>('POST', `api/v1/admin/vehicles/${vehicle}/control/${action}`, {
    // A request that is repeated after a lost answer moves the car once.
    headers: { Prefer: 'respond-async', 'Idempotency-Key': key },
    body: parameters ?? {},
    signal: AbortSignal.timeout(orderWithin), // no other order can be given meanwhile
  });

/** Orders an action of many vehicles. The key identifies the order: sent again, it returns its results. */
export const orderMany = (
  vehicles: number[],
  action: Action,
  key: string,
  parameters: BulkCommand['parameters'] = action === 'attention' ? ({ signal: 'lights' } as BulkCommand['parameters']) : null,
) =>
  call<BulkCommand>('POST', 'api/v1/admin/commands', {
    headers: { 'Idempotency-Key': key },
    body: { action, vehicle_ids: vehicles, ...(parameters && { parameters }) },
  });

/** Changes a booking: start, end, refund and so on. The key identifies the change: sent again, it is made once. */
export const changeBooking = (id: number, change: string, key: string, body?: unknown) =>
  call<AdminBooking>('POST', `api/v1/admin/bookings/${id}/${change}`, { headers: { 'Idempotency-Key': key }, body });

/** Starts, pauses, resumes or ends a rental, or gives a start up. What becomes of it comes as events, and with the booking. */
export const moveRental = (id: number, path: string, key: string, body?: unknown) =>
  call<unknown>('POST', `api/v1/admin/bookings/${id}/${path}`, {
    headers: { Prefer: 'respond-async', 'Idempotency-Key': key },
    body,
  });

export const halt = (reason: string, agency: number | null) =>
  call<Halt>('PUT', 'api/v1/admin/halts', { body: { reason, agency_id: agency } });

export const resume = (agency: number | null, reason: string) =>
  call<unknown>('DELETE', `api/v1/admin/halts?${new URLSearchParams({ ...(agency !== null && { agency_id: String(agency) }), reason })}`);

export const signOut = () => call<{ issuer_page: string | null }>('POST', 'auth/sign-out');
