import { describe, expect, it } from 'vitest';
import type { Unit } from '../api/client';
import { de } from '../texts/de';
import { en } from '../texts/en';
import { unitTexts } from '../texts/units';
import { bySeverity, clockError, findings, problems, unitColumns, unitParameters, viewOf } from './units';

const now = Date.parse('2026-01-02T10:00:00.000Z');
const unit: Unit = {
  unit: '358000000000042',
  vehicle_id: 42,
  plate_number: 'M-IM 42',
  agency_id: 1,
  protocol: 'v1',
  connectivity: { status: 'unknown', last_seen: '2026-01-02T07:00:00.000Z' },
  firmware_version: '4.2.1',
  signal_quality: 'none',
  rsrp_dbm: -120,
  clock: { error_ms: -72_400, measured_at: '2026-01-02T09:00:00.000Z' },
  reconnects: 31,
  rejects: [
    { reason: 'unknown_word', count: 17, last_at: '2026-01-02T09:59:00.000Z' },
    { reason: 'of_tomorrow', count: 1, last_at: '2026-01-02T09:59:00.000Z' },
  ],
  rejected_commands: [{ reason: 'clock_behind', count: 1, last_at: '2026-01-02T09:00:00.000Z' }],
  keys: ['k1', 'k2'],
  problems: ['silent', 'commands', 'clock', 'rejects', 'reconnects', 'signal'],
};

const found = (of: Unit) => findings(of, now, en, unitTexts.en, 'en');

describe('what is wrong with a unit', () => {
  it('is said with its numbers, the most severe first', () => {
    expect(found(unit).map((f) => f.fact)).toEqual([
      'Silent, last heard 3 h ago',
      'Rejected 1 command',
      'Clock 72 s slow',
      '18 messages or values rejected',
      'Reconnected 31 times',
      'No signal',
    ]);
  });

  it('names the reasons, also those of a later version', () => {
    const reasons = (problem: string) => found(unit).find((f) => f.problem === problem)?.reasons.map((r) => r.name);
    expect(reasons('rejects')).toEqual(['unknown value', 'of_tomorrow']);
    expect(reasons('commands')).toEqual(['from the future, by its clock']);
    expect(reasons('clock')).toEqual([]);
  });

  it('depends on which way a clock is wrong', () => {
    const meaning = (error_ms: number) =>
      found({ ...unit, clock: { error_ms, measured_at: '' } }).find((f) => f.problem === 'clock')?.meaning;
    expect(meaning(-90_000)).toContain('from the future');
    expect(meaning(90_000)).toContain('expired');
  });

  it('has a meaning and something to do for each problem, in each language', () => {
    for (const [texts, words] of [[en, unitTexts.en], [de, unitTexts.de]] as const) {
      for (const finding of findings({ ...unit, problems: [...problems] }, now, texts, words, 'en')) {
        expect(finding.fact && finding.meaning && finding.todo && words.problems[finding.problem], finding.problem).toBeTruthy();
      }
    }
  });
});

it('says how far a clock is off, unless that is what a report takes', () => {
  const off = [-1999, 1500, 2000, -7250, 45_000, -200_000, 3 * 3_600_000, -9 * 86_400_000];
  expect(off.map((ms) => clockError(ms, en, unitTexts.en, 'en'))).toEqual([
    'right',
    'right',
    '2.0 s fast',
    'at most 7.3 s slow',
    '45 s fast',
    '3 min slow',
    '3 h fast',
    '9 d slow',
  ]);
});

it('puts the worst first, once all are read', () => {
  const units = (['signal', 'key', '', 'silent', 'rejects'] as const).map((problem, i): Unit => ({
    ...unit,
    vehicle_id: i,
    problems: problem ? [problem] : [],
  }));
  units[4]!.problems = ['rejects', 'signal'];
  units.push({ ...unit, vehicle_id: 5, problems: ['rejects'] });
  expect(bySeverity(units, true).map((u) => u.vehicle_id)).toEqual([3, 1, 4, 5, 0, 2]);
  expect(bySeverity(units, false)).toBe(units);
});

it('asks for the units of a view', () => {
  const none = { problem: '', connectivity: '', agency_id: '', q: '' };
  expect(String(unitParameters('trouble', none))).toBe('problem=any');
  expect(String(unitParameters('trouble', { ...none, problem: 'clock', q: 'M 1' }))).toBe('problem=clock&q=M+1');
  expect(String(unitParameters('all', { ...none, problem: 'clock', agency_id: '2' }))).toBe('agency_id=2');
  expect(String(unitParameters('rejects', { ...none, connectivity: 'online' }))).toBe('problem=rejects&connectivity=online');
  expect([null, 'all', 'unknown', 'nonsense'].map(viewOf)).toEqual(['trouble', 'all', 'unknown', 'trouble']);
});

it('exports what is nested as text', () => {
  const row = Object.fromEntries(unitColumns.map((c) => (typeof c === 'string' ? [c, unit[c]] : [c[0], c[1](unit)])));
  expect(row).toMatchObject({
    connectivity: 'unknown',
    last_seen: '2026-01-02T07:00:00.000Z',
    clock_error_ms: -72400,
    rejects: 'unknown_word 17; of_tomorrow 1',
    rejected_commands: 'clock_behind 1',
    keys: 'k1 k2',
    problems: 'silent commands clock rejects reconnects signal',
  });
  const quiet = Object.fromEntries(
    unitColumns.map((c) => (typeof c === 'string' ? [c, null] : [c[0], c[1]({ ...unit, clock: null, keys: null, rejects: [] })])),
  );
  expect(quiet).toMatchObject({ clock_error_ms: null, keys: null, rejects: '' });
});
