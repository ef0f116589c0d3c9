// What a vehicle reports, in words: groups of rows, in the order in which they matter to dispatchers.
import type { StatusMeta, Vehicle, VehicleStatus } from '../../api/client';
import { coordinates as place, localTime, lowEnergyBelow, number } from '../../format';
import type { Texts } from '../../texts/en';
import { flatten } from '../fields';

export type Tone = 'plain' | 'warn' | 'bad' | 'none';

/** A value in words; null: the vehicle does not report it. */
type Said = { text: string; tone?: Tone } | null;

export interface Row {
  key: string;
  label: string;
  text: string;
  tone: Tone;
  /** The vehicle's time of it; null: the service knows it by itself. Of several fields that of the oldest. */
  at: string | null;
  /** The names and values that the API has. */
  title: string;
}

export const groups = ['doors', 'energy', 'driving', 'position', 'service', 'contact', 'oem_data', 'other'] as const;
export interface Group {
  name: (typeof groups)[number];
  rows: Row[];
  /** Labels of what the vehicle has never reported. */
  missing: string[];
}

export interface Reported {
  status: VehicleStatus;
  ages: Pick<StatusMeta, 'sections' | 'older'>;
  vehicle: Pick<Vehicle, 'powertrain'> & { capabilities: { signals: string[] } };
}

const weak12V = 11.8; // of a battery of 12 V that is nearly empty, at rest
const shortOil = 10;

/** The vehicle's time of a field. */
export function ageOf(place: string, { status, ages }: Reported): string | null {
  const section = place.split('.')[0] as keyof typeof ages.sections;
  if (section === 'location' && status.location.timestamp) return status.location.timestamp;
  return ages.older[place] ?? (section === 'oem_data' ? ages.older.oem_data : undefined) ?? ages.sections[section] ?? null;
}

const oldest = (places: string[], reported: Reported) =>
  places.map((place) => ageOf(place, reported)).reduce((a, b) => (a === null || b === null ? (a ?? b) : a < b ? a : b), null);

interface Field {
  group: Group['name'];
  places: string[];
  say: (reported: Reported, words: Words) => Said;
  /** Powertrains that cannot have it. */
  never?: Vehicle['powertrain'][];
  /** The service knows it by itself. */
  ageless?: boolean;
  /** Not worth a word where it is not known. */
  optional?: boolean;
}

interface Words {
  texts: Texts;
  number: (value: number, digits?: number) => string;
  /** A value as it is, and a time as such. */
  value: (value: string | number) => string | number;
}

const plain = (text: string | undefined | null): Said => (text ? { text } : null);

/** A value in a unit. */
const measure = (value: number | null, unit: string, { number }: Words, digits = 0): Said =>
  value === null ? null : { text: `${number(value, digits)} ${unit}` };

/** Doors, windows or seatbelts: what stands out, else what all of them are. */
function several(
  parts: Record<string, string | null>,
  usual: string,
  names: Record<string, string>,
  values: Record<string, string>,
  { all, and }: { all: string; and: string },
): Said {
  const known = Object.entries(parts).filter((part): part is [string, string] => part[1] !== null);
  if (known.length === 0) return null;
  const list = (of: string) => known.filter(([, value]) => value === of).map(([name]) => names[name] ?? name);
  const join = (items: string[]) => (items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} ${and} ${items.at(-1)}`);
  const unusual = [...new Set(known.map(([, value]) => value))].filter((value) => value !== usual);
  if (unusual.length > 0)
    return { text: unusual.map((value) => `${join(list(value))} ${values[value] ?? value}`).join(', '), tone: 'warn' };
  if (known.length === Object.keys(parts).length) return { text: all };
  return { text: `${join(list(usual))} ${values[usual] ?? usual}` };
}

const inTelemetry = (...names: string[]) => names.map((name) => `telemetry.${name}`);
const corners = ['front_left', 'front_right', 'rear_left', 'rear_right'];

type FieldName = keyof Texts['vehiclePage']['fields'];

/** The fields that are known here, by their names in the texts. */
const fields: Record<FieldName, Field> = {
  lock: {
    group: 'doors',
    places: inTelemetry('is_locked'),
    say: (
      {
        status: {
          status,
          telemetry: { is_locked },
        },
      },
      { texts },
    ) => {
      if (is_locked === null) return null;
      return is_locked ? { text: texts.locked } : { text: texts.unlocked, tone: status === 'available' ? 'warn' : 'plain' };
    },
  },
  doors: {
    group: 'doors',
    places: inTelemetry(...[...corners, 'trunk'].map((name) => `doors.${name}`)),
    say: ({ status }, { texts }) => doors(status, texts),
  },
  windows: {
    group: 'doors',
    places: inTelemetry(...corners.map((name) => `windows.${name}`)),
    say: ({ status }, { texts }) => windows(status, texts),
  },
  sunroof: {
    group: 'doors',
    places: inTelemetry('sunroof'),
    say: (
      {
        status: {
          telemetry: { sunroof },
        },
      },
      { texts },
    ) => sunroof && { text: texts.vehiclePage.values[sunroof], tone: sunroof === 'closed' ? 'plain' : 'warn' },
  },
  key: {
    group: 'doors',
    places: inTelemetry('key_status'),
    say: ({ status }, { texts }) => plain(status.telemetry.key_status && texts.vehiclePage.values[status.telemetry.key_status]),
  },
  seatbelts: {
    group: 'doors',
    places: inTelemetry('seatbelts.driver', 'seatbelts.passenger'),
    say: (
      {
        status: {
          telemetry: { seatbelts },
        },
      },
      { texts },
    ) => {
      const { names, values } = texts.vehiclePage;
      const known = (['driver', 'passenger'] as const).filter((seat) => seatbelts[seat] !== null);
      return plain(known.map((seat) => `${names[seat]} ${values[seatbelts[seat]!]}`).join(', '));
    },
  },
  battery: {
    group: 'energy',
    never: ['combustion'],
    places: inTelemetry('battery_level_percent'),
    say: ({ status }, words) => level(status.telemetry.battery_level_percent, words),
  },
  fuel: {
    group: 'energy',
    never: ['electric'],
    places: inTelemetry('fuel_level_percent'),
    say: ({ status }, words) => level(status.telemetry.fuel_level_percent, words),
  },
  range: {
    group: 'energy',
    places: inTelemetry('remaining_range_km'),
    say: ({ status }, words) => measure(status.telemetry.remaining_range_km, 'km', words),
  },
  charging: {
    group: 'energy',
    never: ['combustion'],
    places: inTelemetry('charging_status'),
    say: (
      {
        status: {
          telemetry: { charging_status },
        },
      },
      { texts },
    ) => charging_status && { text: texts.vehiclePage.charging[charging_status], tone: charging_status === 'fault' ? 'bad' : 'plain' },
  },
  voltage: {
    group: 'energy',
    places: inTelemetry('onboard_voltage_v'),
    say: ({ status }, words) => voltage(status.telemetry.onboard_voltage_v, words),
  },
  ignition: {
    group: 'driving',
    places: inTelemetry('ignition'),
    say: (
      {
        status: {
          telemetry: { ignition },
        },
      },
      { texts },
    ) => plain(ignition && texts.vehiclePage.values[ignition]),
  },
  engine: {
    group: 'driving',
    places: inTelemetry('is_engine_running'),
    say: (
      {
        status: {
          telemetry: { is_engine_running: runs },
        },
      },
      { texts },
    ) => (runs === null ? null : { text: runs ? texts.vehiclePage.runs : texts.vehiclePage.runsNot }),
  },
  speed: {
    group: 'driving',
    places: inTelemetry('speed_kmh'),
    say: ({ status }, words) => measure(status.telemetry.speed_kmh, 'km/h', words),
  },
  gear: {
    group: 'driving',
    places: inTelemetry('gear'),
    say: (
      {
        status: {
          telemetry: { gear },
        },
      },
      { texts },
    ) => plain(gear && `${gear} (${texts.vehiclePage.gears[gear]})`),
  },
  parkingBrake: {
    group: 'driving',
    places: inTelemetry('parking_brake'),
    say: (
      {
        status: {
          telemetry: { parking_brake },
        },
      },
      { texts },
    ) => plain(parking_brake && texts.vehiclePage.values[parking_brake]),
  },
  odometer: {
    group: 'driving',
    places: inTelemetry('mileage_km'),
    say: ({ status }, words) => measure(status.telemetry.mileage_km, 'km', words),
  },
  address: { group: 'position', optional: true, places: ['location.address'], say: ({ status }) => plain(status.location.address) },
  coordinates: {
    group: 'position',
    places: ['location.latitude', 'location.longitude'],
    say: ({ status }) => plain(coordinates(status.location)),
  },
  heading: {
    group: 'position',
    places: ['location.heading'],
    say: (
      {
        status: {
          location: { heading },
        },
      },
      { texts, number },
    ) => (heading === null ? null : { text: `${texts.vehiclePage.directions[Math.round(heading / 45) % 8]} (${number(heading)}°)` }),
  },
  locatedAt: {
    group: 'position',
    places: ['location.timestamp'],
    say: (
      {
        status: {
          location: { timestamp },
        },
      },
      { value },
    ) => plain(timestamp && String(value(timestamp))),
  },
  dtcs: {
    group: 'service',
    places: ['diagnostics.dtcs'],
    say: (
      {
        status: {
          diagnostics: { dtcs },
        },
      },
      { texts },
    ) => list(dtcs, texts),
  },
  lamps: {
    group: 'service',
    places: ['diagnostics.warning_lamps'],
    say: (
      {
        status: {
          diagnostics: { warning_lamps },
        },
      },
      { texts },
    ) => list(warning_lamps?.map((lamp) => inWords(lamp, texts)) ?? null, texts),
  },
  serviceDue: {
    group: 'service',
    places: ['diagnostics.service_due_in_km'],
    say: (
      {
        status: {
          diagnostics: { service_due_in_km: due },
        },
      },
      { texts, number },
    ) =>
      due === null
        ? null
        : {
            text: (due < 0 ? texts.vehiclePage.overdueBy : texts.vehiclePage.dueIn)(`${number(Math.abs(due))} km`),
            tone: due < 0 ? 'warn' : 'plain',
          },
  },
  oilLife: {
    group: 'service',
    never: ['electric'],
    places: ['diagnostics.oil_life_percent'],
    say: (
      {
        status: {
          diagnostics: { oil_life_percent: oil },
        },
      },
      words,
    ) => {
      const said = measure(oil, '%', words);
      return said && { ...said, tone: (oil ?? shortOil) < shortOil ? 'warn' : 'plain' };
    },
  },
  contact: {
    group: 'contact',
    ageless: true,
    places: ['connectivity.status'],
    say: ({ status }, { texts }) => plain(texts.contact[status.connectivity.status]),
  },
  lastSeen: {
    group: 'contact',
    ageless: true,
    places: ['connectivity.last_seen'],
    say: (
      {
        status: {
          connectivity: { last_seen },
        },
      },
      { texts, value },
    ) => ({ text: last_seen ? String(value(last_seen)) : texts.age.never }),
  },
  signal: {
    group: 'contact',
    places: ['connectivity.signal_quality'],
    say: (
      {
        status: {
          connectivity: { signal_quality: signal },
        },
      },
      { texts },
    ) => signal && { text: texts.vehiclePage.signals[signal], tone: signal === 'weak' || signal === 'none' ? 'warn' : 'plain' },
  },
  firmware: {
    group: 'contact',
    places: ['connectivity.firmware_version'],
    say: ({ status }) => plain(status.connectivity.firmware_version),
  },
};

const level = (value: number | null, words: Words): Said => {
  const said = measure(value, '%', words);
  return said && { ...said, tone: (value ?? lowEnergyBelow) < lowEnergyBelow ? 'warn' : 'plain' };
};

const voltage = (value: number | null, words: Words): Said => {
  const said = measure(value, 'V', words, 1);
  return said && { ...said, tone: (value ?? weak12V) < weak12V ? 'warn' : 'plain' };
};

const doors = ({ telemetry }: VehicleStatus, { vehiclePage: { names, values, allClosed, and } }: Texts) =>
  several(telemetry.doors, 'closed', names, values, { all: allClosed, and });
const windows = ({ telemetry }: VehicleStatus, { vehiclePage: { windowNames, values, allClosed, and } }: Texts) =>
  several(telemetry.windows, 'closed', windowNames, values, { all: allClosed, and });

const coordinates = ({ latitude, longitude }: VehicleStatus['location']) =>
  latitude === null || longitude === null ? null : place(latitude, longitude);

const list = (items: string[] | null, texts: Texts): Said =>
  items && (items.length ? { text: items.join(', '), tone: 'bad' } : { text: texts.vehiclePage.none });

/** A name of the API, which no text has, as words. */
const inWords = (name: string, texts: Texts) => texts.vehiclePage.lamps[name] ?? name.replaceAll('_', ' ');

export function wordsOf(texts: Texts, locale: string): Words {
  return { texts, number: (value, digits = 0) => number(value, locale, digits), value: (value) => localTime(value, locale) };
}

/** All that a vehicle reports. */
export function describe(reported: Reported, words: Words): Group[] {
  const { texts } = words;
  const result = new Map(groups.map((name) => [name, { name, rows: [], missing: [] } as Group]));
  const values = new Map<string, unknown>([
    ...(['location', 'telemetry', 'diagnostics', 'connectivity'] as const).flatMap((section) =>
      flatten(reported.status[section], `${section}.`),
    ),
    ...Object.entries(reported.status.oem_data).map(([name, value]): [string, unknown] => [`oem_data.${name}`, value]),
  ]);
  for (const [name, { group, places, say, never, ageless, optional }] of Object.entries(fields)) {
    const label = texts.vehiclePage.fields[name as FieldName];
    const said = say(reported, words);
    const known = places.filter((place) => (values.get(place) ?? null) !== null);
    const title = places
      .filter((place) => values.has(place))
      .map((place) => `${place}: ${shown(values.get(place), words)}`)
      .join('\n');
    for (const place of places) values.delete(place);
    if (said) {
      result
        .get(group)!
        .rows.push({ key: name, label, text: said.text, tone: said.tone ?? 'plain', at: ageless ? null : oldest(known, reported), title });
    } else if (places.some((place) => reported.vehicle.capabilities.signals.includes(place))) {
      result.get(group)!.rows.push({ key: name, label, text: texts.vehiclePage.noLonger, tone: 'none', at: null, title });
    } else if (!optional && !never?.includes(reported.vehicle.powertrain)) {
      result.get(group)!.missing.push(label);
    }
  }
  // What is not known here: the manufacturer's, and what a later version of the service has.
  for (const [place, value] of values) {
    const [section, ...path] = place.split('.');
    const group = result.get(section === 'oem_data' ? 'oem_data' : 'other')!;
    const label = path.join(' ').replaceAll('_', ' ');
    if (value === null) group.missing.push(label);
    else group.rows.push({ key: place, label, text: shown(value, words), tone: 'plain', at: ageOf(place, reported), title: place });
  }
  return [...result.values()].filter((group) => group.rows.length + group.missing.length > 0);
}

/** A value as the API has it. */
function shown(value: unknown, { texts, value: say }: Words): string {
  if (value === null || value === undefined) return texts.unknownValue;
  if (typeof value === 'boolean') return value ? texts.yes : texts.no;
  if (typeof value === 'string' || typeof value === 'number') return String(say(value));
  return JSON.stringify(value);
}

export interface Headline {
  key: 'lock' | 'energy' | 'driving' | 'position' | 'faults';
  label: string;
  text: string;
  tone: Tone;
  at: string | null;
  details: { text: string; tone: Tone; at: string | null }[];
}

/** What a dispatcher asks first. */
export function headlines(reported: Reported, words: Words): Headline[] {
  const { texts } = words;
  const { vehiclePage: page } = texts;
  const { telemetry, location, diagnostics } = reported.status;
  const oldestOf = (names: FieldName[]) => {
    const places = names.flatMap((name) => fields[name].places).filter((place) => valueAt(reported.status, place) !== null);
    return oldest(places, reported);
  };
  const say = (name: FieldName) => fields[name].say(reported, words);
  const detail = (name: FieldName, label = page.fields[name]) => {
    const said = say(name);
    return said && { text: label ? `${label} ${said.text}` : said.text, tone: said.tone ?? 'plain', at: oldestOf([name]) };
  };
  const headline = (
    key: Headline['key'],
    label: string,
    said: Said,
    names: FieldName[],
    details: (Headline['details'][number] | null)[] = [],
  ): Headline => ({
    key,
    label,
    text: said?.text ?? texts.unknownValue,
    tone: said ? (said.tone ?? 'plain') : 'none',
    at: said ? oldestOf(names) : null,
    details: details.filter((d) => d !== null),
  });

  const levels = (['battery', 'fuel'] as const).filter((name) => say(name) !== null);
  const both = levels.length > 1;
  const energy: Said =
    levels.length === 0
      ? null
      : {
          text: levels.map((name) => (both ? `${page.fields[name]} ${say(name)!.text}` : say(name)!.text)).join(', '),
          tone: levels.map((name) => say(name)?.tone ?? 'plain').find((tone) => tone !== 'plain') ?? 'plain',
        };
  const drives = (telemetry.speed_kmh ?? 0) > 0;
  const driving = drives
    ? page.drives(say('speed')!.text)
    : telemetry.ignition === 'on'
      ? page.stands
      : telemetry.ignition === 'off'
        ? page.ignitionOff
        : null;
  const windows = detail('windows', '');
  const due = detail('serviceDue');
  const dtcs = diagnostics.dtcs ?? [];
  const lamps = (diagnostics.warning_lamps ?? []).map((lamp) => inWords(lamp, texts));
  const faults: Said =
    dtcs.length + lamps.length > 0
      ? { text: [...dtcs, ...lamps].join(', '), tone: 'bad' }
      : diagnostics.dtcs !== null || diagnostics.warning_lamps !== null
        ? { text: page.none }
        : null;
  return [
    headline('lock', page.groups.doors, say('lock'), ['lock'], [detail('doors'), windows?.tone === 'warn' ? windows : null]),
    headline('energy', levels.length === 1 ? page.fields[levels[0]!] : page.groups.energy, energy, levels, [
      detail('range'),
      telemetry.charging_status === 'disconnected' ? null : detail('charging', ''),
      detail('voltage', '12 V'),
    ]),
    headline(
      'driving',
      page.groups.driving,
      plain(driving),
      [drives ? 'speed' : 'ignition'],
      telemetry.ignition === 'on' ? [detail('gear')] : [],
    ),
    headline('position', page.groups.position, say('address') ?? say('coordinates'), ['coordinates']),
    headline('faults', page.faults, faults, ['dtcs', 'lamps'], [due?.tone === 'warn' ? due : null]),
  ];
}

/** The value at a place such as telemetry.doors.trunk; null: there is none. */
function valueAt(status: VehicleStatus, place: string): unknown {
  return place.split('.').reduce<unknown>((group, name) => (group as Record<string, unknown> | null)?.[name], status) ?? null;
}
