import type { components } from './contract.js';

type Details = components['schemas']['Error'];

/** One condition of a return, in words that an app can show. */
export type Check = components['schemas']['ReturnCheck'];

/** What an answer, or a transition that has failed, says of the error. */
export type Failure = Omit<Partial<Details>, 'code' | 'outcome'> & { code?: string; outcome?: string | null };

/** What the service answered instead of a result, or that it has not answered: `code` is `no_answer`, `status` 0. */
export class MotorpoolError extends Error {
  override readonly name = 'MotorpoolError';
  readonly code: Details['code'] | 'no_answer' | (string & {}); // new ones may be added
  readonly status: number;
  readonly retryable: boolean;
  readonly retryAfter: number | null; // seconds
  /** not_executed, failed, or unknown: the vehicle may have done it. Look before you repeat it with another key. */
  readonly outcome: Details['outcome'] | (string & {});
  readonly commandId: string | null;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly checks: Check[];
  readonly fields: Record<string, string[]>; // what is wrong with the request, if it is not valid
  readonly requestId: string | null;
  readonly timestamp: string | null; // the clock of the service

  constructor(message: string, error: Failure, answer: {
    status?: number; fields?: Record<string, string[]>; requestId?: string; timestamp?: string; cause?: unknown;
  } = {}) {
    super(message, { cause: answer.cause });
    this.code = error.code ?? 'no_answer';
    this.status = answer.status ?? 0;
    this.retryable = error.retryable ?? false;
    this.retryAfter = error.retry_after ?? null;
    this.outcome = error.outcome ?? null;
    this.commandId = error.command_id ?? null;
    this.reason = error.reason ?? null;
    this.detail = error.detail ?? null;
    this.checks = error.checks ?? [];
    this.fields = answer.fields ?? {};
    this.requestId = answer.requestId ?? null;
    this.timestamp = answer.timestamp ?? null;
  }
}
