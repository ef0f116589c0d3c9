import { expect, it } from 'vitest';
import { clean, printable } from './text';

it('removes what is not seen, and what changes the order of text', () => {
  expect(printable('M-\u202e24 MI\u2066\u200b\ufeff\u001b[2J\u009b')).toBe('M-24 MI[2J');
  expect(printable('TÜ-AB 1, רכב 7, 👩‍🔧\n\ttwo')).toBe('TÜ-AB 1, רכב 7, 👩‍🔧\n\ttwo');
});

it('makes all texts of an answer printable', () => {
  expect(clean({ a: 'x\u202ey', 'b\u202e': ['\u001b[2J', { c: '\u009b', d: null, e: -1 }] })).toEqual({
    a: 'xy',
    b: ['[2J', { c: '', d: null, e: -1 }],
  });
});
