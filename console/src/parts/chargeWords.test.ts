import { expect, it } from 'vitest';
import type { Activity, AdminBooking, Charge } from '../api/client';
import { en } from '../texts/en';
import { nameOf, stateName, stateText, twinText, whyOf } from './chargeWords';

const at = '2026-01-02T08:00:00.000Z';
const writing = { texts: en, money: (amount: number) => `${amount} EUR`, time: () => '20:00' };
const charge = (change: Partial<Charge>) =>
  ({
    id: 'a',
    kind: 'start',
    number: 1,
    state: 'paid',
    currency: 'EUR',
    amount: 200,
    settled: 200,
    fee: null,
    goal: null,
    capture_amount: null,
    decline_code: null,
    attempts: 1,
    card: 'Visa •••• 4242',
    created_at: at,
    requested_by: 'zoe',
    refund_of: null,
    ...change,
  }) as Charge;
const entry = (action: string, actor: string, role: string, parameters: object | null = null) =>
  ({ at, action, actor, role, parameters, outcome: 'executed', code: null, command_id: null }) as Activity;
const entries = [
  entry('booking.start', 'zoe', 'admin'),
  entry('booking.extend', 'client-1', 'client', { end_date: at }),
  entry('booking.end', 'eva', 'admin'),
  entry('booking.deposit_capture', 'tom', 'admin'),
];
const why = (change: Partial<Charge>, known = entries, others: Partial<Charge>[] = [], begun: string | null = at) =>
  whyOf(charge(change), { actual_start: begun, charges: [{ id: 'x' }, ...others].map(charge) } as AdminBooking, known, writing);

it.each([
  [{ kind: 'start' }, 'Charged when zoe started the booking.'],
  [{ kind: 'extension' }, 'The additional hours: the client (client-1) extended the booking to 20:00.'],
  [
    { kind: 'extension', state: 'released', decline_code: 'insufficient_funds' },
    en.booking.why.takenBack,
  ],
  [{ kind: 'start', state: 'released' }, en.booking.why.takenBack],
  [{ kind: 'end', state: 'released' }, en.booking.why.takenBack],
  [{ kind: 'fee' }, 'Charged by zoe.'],
  [{ kind: 'refund', refund_of: 'x' }, 'Given back to Visa •••• 4242 by zoe.'],
  [{ kind: 'deposit', goal: 'hold', state: 'pending' }, 'To be held, not charged, since zoe started the booking.'],
  [
    { kind: 'deposit', goal: 'hold', state: 'authorized' },
    'Held, not charged, since zoe started the booking. The end of the booking frees it.',
  ],
  [{ kind: 'deposit', goal: 'capture', state: 'authorized', capture_amount: 50 }, 'Held, not charged. tom asked to take 50 EUR of it.'],
  [
    { kind: 'deposit', goal: 'capture', state: 'captured', settled: 50 },
    'tom took 50 EUR of the 200 EUR that were held. The rest is free again.',
  ],
  [{ kind: 'deposit', goal: 'release', state: 'authorized' }, 'Held, not charged. It is being freed, since eva ended the booking.'],
  [{ kind: 'deposit', goal: 'release', state: 'released' }, 'Never charged: it was held, and is free again since eva ended the booking.'],
  [{ kind: 'deposit', goal: 'release', state: 'released', attempts: 0 }, 'Neither held nor charged: eva ended the booking before.'],
  [
    { kind: 'deposit', goal: 'hold', state: 'released', decline_code: 'expired' },
    'Never charged: the processor or the bank ended the hold.',
  ],
] as [Partial<Charge>, string][])('says why there is %o', (change, want) => expect(why(change)).toBe(want));

it('says that a start failed', () => {
  const deposit = { kind: 'deposit', goal: 'release', state: 'released' } as const;
  expect(why({ state: 'released' }, [], [], null)).toBe('Not charged: the rental did not start.');
  expect(why(deposit, entries, [{ kind: 'deposit', number: 2 }])).toBe('Not charged: the rental did not start.');
  expect(why(deposit, [], [], null)).toBe('Not charged: the rental did not start.');
});

it('says what it can without the audit log', () => {
  expect(why({ kind: 'extension', requested_by: 'client-1' }, [])).toBe('The additional hours: client-1 extended the booking.');
  expect(why({ kind: 'deposit', goal: 'release', state: 'released', requested_by: 'eva' }, [])).toContain('since eva ended');
  expect(why({ requested_by: null }, [])).toContain(en.booking.someone);
});

it('names charges', () => {
  const fee = charge({ id: 'f', kind: 'fee', fee: 'cleaning' });
  expect(nameOf(charge({}), en)).toBe('Rental');
  expect(nameOf(charge({ kind: 'extension', number: 2 }), en)).toBe('Extension 2');
  expect(nameOf(fee, en, [fee, { ...fee, id: 'g', number: 2 }])).toBe('Fee 1: cleaning');
  expect(nameOf(charge({ kind: 'refund', refund_of: 'f' }), en, [fee])).toBe('Refund of Fee: cleaning');
  expect(stateName(charge({ kind: 'refund' }), 'paid', en)).toBe('paid back');
  expect(stateText(charge({}), 'declined', 'insufficient_funds', en)).toBe('declined: not enough money');
  expect(stateText(charge({}), 'declined', 'new_code', en)).toBe('declined: new_code');
  expect(stateText(charge({}), 'requires_action', 'authentication_required', en)).toBe(en.charges.state.requires_action);
  expect(twinText(fee, [fee, { ...fee, id: 'g', number: 2 }], en)).toContain('Fee 2: cleaning is the same amount');
  expect(twinText(fee, [fee], en)).toBe('');
});
