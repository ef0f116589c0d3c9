// What the service says by codes, in words.
import type { components } from '../api/contract';
import type { Texts } from './en';
import type { Code } from './refusals';

type Refused = Pick<components['schemas']['Error'], 'code' | 'reason' | 'detail'>;

/** Codes whose messages name what cannot be known here, such as the field, or which of several causes it is. */
const withMessage: Code[] = [
  'validation_failed',
  'malformed_json',
  'commands_halted',
  'idempotency_mismatch',
  'booking_not_extendable',
  'booking_state_conflict',
  'vehicle_not_available',
];

/** A reason of a unit or of a bank, in words. */
function reasonText(reason: string, texts: Texts): string {
  return texts.units.rejections[reason] ?? texts.charges.codes[reason] ?? texts.refusals.details[reason] ?? reason;
}

/** What a unit said when it did not do what was ordered. */
export function saidByUnit({ reason, detail }: { reason: string | null; detail: string | null }, texts: Texts): string {
  return [reason && reasonText(reason, texts), detail && (texts.refusals.details[detail] ?? detail)].filter(Boolean).join(': ');
}

/** A code of the audit log in words; one of a later version as it is. */
export function codeText(code: string, texts: Texts): string {
  return texts.refusals.codes[code as Code] ?? texts.entryCodes[code] ?? code;
}

/** A refusal in words; one of a later version as the service says it, in English. */
export function refusalOf(error: Refused, message: string, texts: Texts): string {
  const words = texts.refusals.codes[error.code];
  if (!words) return message;
  const more = withMessage.includes(error.code) ? message.replace('The request is not valid: ', '') : saidByUnit(error, texts);
  return more ? `${words} (${more.replace(/\.$/, '')})` : words;
}
