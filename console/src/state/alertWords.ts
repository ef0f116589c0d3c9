// What an alert says, and what a person does next.
import { money } from '../money';
import type { Alert } from '../api/client';
import { serverTime } from '../api/servertime';
import type { IconName } from '../design/icons';
import { moment, number } from '../format';
import type { Texts } from '../texts/en';

type Facts = Record<string, unknown>;

/** What the rule saw, in words; empty: the rule says it all. */
function factsOf(facts: Facts, texts: Texts, locale: string): string {
  const words = texts.alerts.facts;
  const value = (name: string) => (typeof facts[name] === 'number' ? facts[name] : null);
  const list = (name: string, names: Record<string, string> = {}) =>
    Array.isArray(facts[name]) ? facts[name].map((item) => names[String(item)] ?? String(item).replaceAll('_', ' ')).join(', ') : null;
  const measured = (name: string, unit: string, digits = 0) => {
    const of = value(name);
    return of === null ? null : `${number(of, locale, digits)} ${unit}`;
  };
  const km = value('km');
  const ahead = value('ahead_s');
  const said = [
    typeof facts.last_seen === 'string' ? words.heard(moment(facts.last_seen, locale, serverTime.now())) : null,
    measured('volts', 'V', 1),
    measured('percent', '%'),
    measured('metres', 'm'),
    km === null ? null : texts.vehiclePage[km < 0 ? 'overdueBy' : 'dueIn'](`${number(Math.abs(km), locale)} km`),
    ahead === null ? null : texts.units[ahead < 0 ? 'behind' : 'ahead'](`${number(Math.abs(ahead), locale)} s`),
    value('vehicles') === null ? null : texts.selection.vehicles(value('vehicles') ?? 0),
    list('open', words.open),
    list('codes'),
    list('lamps', texts.vehiclePage.lamps),
    typeof facts.area === 'string' ? facts.area : null,
    typeof facts.kind === 'string' && facts.charge === undefined ? (words.kinds[facts.kind] ?? facts.kind) : null,
    typeof facts.text === 'string' ? facts.text : null,
    typeof facts.amount === 'number' && typeof facts.currency === 'string' ? money(facts.amount, facts.currency, locale) : null,
    typeof facts.reason === 'string' && facts.reason ? (texts.units.rejections[facts.reason] ?? facts.reason) : null,
  ];
  return said.filter(Boolean).join(', ');
}

/** What an alert says of its vehicle or person. */
export function textOf(alert: Pick<Alert, 'rule' | 'facts'>, texts: Texts, locale: string): string {
  const facts = factsOf(alert.facts as Facts, texts, locale);
  return texts.alerts.rules[alert.rule] + (facts ? `: ${facts}` : '');
}

/** Of what an alert is. */
export const subjectOf = ({ plate_number, vehicle_id, person }: Pick<Alert, 'plate_number' | 'vehicle_id' | 'person'>): string =>
  person ?? plate_number ?? (vehicle_id === null ? '' : `#${vehicle_id}`);

export type Step = 'lock' | 'locate' | 'booking' | 'command' | 'activity' | 'open';
export const icons: Record<Step, IconName> = {
  lock: 'lock', locate: 'place', booking: 'booking', command: 'command', activity: 'activity', open: 'fleet',
};

const steps: Partial<Record<Alert['rule'], Step>> = {
  left_open: 'lock',
  moved_without_booking: 'locate', ignition_without_booking: 'locate', outside_area: 'locate', parked_forbidden: 'locate',
  silent: 'locate', unit_alarm: 'locate',
  overdue: 'booking', started_not_opened: 'booking', charge_failed: 'booking',
  command_unknown: 'command', command_contradicted: 'command', unit_rejects: 'command', deaf: 'command',
  mass_access: 'activity',
};

/** What a person does next about an alert, and where. */
export function nextStep({ rule, vehicle_id, booking_id, command_id, person, holder }: Alert): [step: Step, href: string] {
  const vehicle = `#/vehicles/${vehicle_id}`;
  const step = steps[rule] ?? 'open';
  const booking = booking_id ?? holder?.booking_id;
  if (step === 'booking' && booking) return [step, `#/bookings/${booking}`];
  if (step === 'command' && command_id) return [step, `#/commands/${command_id}`];
  if (step === 'activity') return [step, `#/activity?${new URLSearchParams({ actor: person ?? '', from: '-24h' })}`];
  return [step === 'lock' || step === 'locate' ? step : 'open', vehicle];
}
